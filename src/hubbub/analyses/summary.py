"""A posterior as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.analyses.posterior import LinearPosterior
from hubbub.errors import InvalidInput
from hubbub.privacy import PrivacyReport
from hubbub.shown import quantities_html


@dataclass(frozen=True)
class Summary:
    """Rows of name, mean, std, low, high and the probability of being positive; prints as a table.

    Of a sampled posterior also ess (bulk effective sample size) and r_hat: docs/decisions/0020 says of which chains.
    """

    rows: tuple[dict[str, Any], ...]
    level: float
    note: str

    def __str__(self) -> str:
        width = max(len(str(row["name"])) for row in self.rows)
        head = f"{'':<{width}}  {'mean':>10}  {'std':>9}  {f'{100 * self.level:.10g}% interval':>23}  {'P(> 0)':>6}"
        sampled = "ess" in self.rows[0]
        head += f"  {'ess':>5}  {'r_hat':>5}" if sampled else ""
        lines = [
            f"{row['name']:<{width}}  {row['mean']:>10.4g}  {row['std']:>9.3g}  "
            f"{row['low']:>10.4g} .. {row['high']:<9.4g}  {_probability(row['positive'])}"
            + (f"  {row['ess']:>5.0f}  {row['r_hat']:>5.2f}" if sampled else "")
            for row in self.rows
        ]
        return "\n".join([head, *(line.rstrip() for line in lines), self.note])

    def _repr_html_(self) -> str:
        return quantities_html(self.rows, self.level, self.note)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each name (needs the package pandas)."""
        try:
            import pandas
        except ImportError:
            raise InvalidInput("to_frame needs the package pandas, got none; run: pip install pandas") from None
        return pandas.DataFrame.from_dict(self.to_dict(), orient="index")

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """By name."""
        return {str(row["name"]): {key: value for key, value in row.items() if key != "name"} for row in self.rows}


def _probability(value: float | None) -> str:
    return " " * 6 if value is None else f"{value:>6.2f}"


def note_on(report: PrivacyReport) -> str:
    """One line below a table: how many samples, and what is promised."""
    kind = f"{report.budget}-differentially private" if report.is_guarantee else "NOT A GUARANTEE (see privacy_)"
    return f"n = {report.rounds[-1].release.n}; {kind}"


def posterior_rows(posterior: LinearPosterior, names: Sequence[str], level: float) -> list[dict[str, Any]]:
    """The rows of such a table."""
    draws = posterior.sample_all(4000, 0) if posterior.draws is None else posterior.draws
    rows: list[dict[str, Any]] = [
        {
            "name": name, "mean": float(posterior.joint.mean[j]), "std": float(posterior.joint.std[j]),
            "low": float(low), "high": float(high), "positive": float(np.mean(draws[:, j] > 0)),
        }
        for j, (name, (low, high)) in enumerate(zip([*names, "intercept"], posterior.intervals(level), strict=True))
    ]  # fmt: skip
    sigma = np.sqrt(draws[:, -1])
    low, high = np.quantile(sigma, [(1 - level) / 2, (1 + level) / 2])
    rows.append({"name": "residual deviation", "mean": float(sigma.mean()), "std": float(sigma.std()),
                 "low": float(low), "high": float(high), "positive": None})  # fmt: skip
    if posterior.diagnostics is not None:
        found = posterior.diagnostics
        for row, ess, r_hat in zip(rows, found.ess_bulk, found.r_hat, strict=True):
            row.update(ess=float(ess), r_hat=float(r_hat))
    if not posterior.joint.covariance[-1, -1] > 0:
        rows.pop(-2)
    return rows
