"""What a generalised linear model has found: the released steps, their report, and posteriors made from them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hubbub.analyses.glm.families import FAMILIES
from hubbub.analyses.glm.look import Stepped
from hubbub.analyses.glm.posterior import GLMPosterior, sample_glm
from hubbub.analyses.linear.release import checked_prior, sampling_caution
from hubbub.analyses.summary import posterior_rows
from hubbub.errors import UntrustworthyWarning
from hubbub.privacy import PrivacyReport
from hubbub.protocols import Result


@dataclass(frozen=True)
class GLMResult(Result):
    """The released steps and their privacy report; the posterior is sampled when it is first asked for."""

    stepped: Stepped
    family: str
    names: tuple[str, ...]
    target: str
    privacy: PrivacyReport
    noticed: tuple[str, ...] = ()
    """What the first round shows of bounds that may be wrong."""

    def with_caveats(self, caveats: tuple[str, ...]) -> GLMResult:
        """The same with reasons why it is not a guarantee."""
        return replace(self, privacy=replace(self.privacy, caveats=caveats))

    def cautions(self) -> tuple[str, ...]:
        """That most values of a column lie at a bound, or beyond."""
        return self.noticed

    def sampled(
        self, *, prior_scale: object = None, prior_mean: object = None, draws: int = 1000, seed: int | None = 0
    ) -> GLMPosterior:
        """The posterior under this prior (deviations and means of coefficients in the units of the data), for free.

        Where the sampler's chains disagree or hold little, an UntrustworthyWarning says of what and what to do.
        """
        prior = checked_prior(len(self.names), prior_scale, prior_mean, "noise-aware", draws)
        found = sample_glm(self.stepped, FAMILIES[self.family], prior, draws=draws, seed=seed)
        caution = sampling_caution(found.linear, self.names, draws)
        if caution is not None:
            warnings.warn(caution, UntrustworthyWarning, stacklevel=2)
        return found

    @cached_property
    def posterior(self) -> GLMPosterior:
        """The posterior under the default prior; `sampled` takes others."""
        return self.sampled()

    def table(self, level: float = 0.9) -> list[dict[str, Any]]:
        """Coefficients and intercept."""
        return table_of(self.posterior, self.names, level)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        kept = ("mean", "std", "low", "high")
        rows = {str(row["name"]): {name: row[name] for name in kept} for row in self.table()}
        intercept = rows.pop("intercept")
        return {
            "family": self.family, "target": self.target, "coefficients": rows, "intercept": intercept["mean"],
            "intervals": "90 %, the privacy noise counted", "n": self.stepped.n,
        }  # fmt: skip


def table_of(posterior: GLMPosterior, names: Sequence[str], level: float) -> list[dict[str, Any]]:
    """Rows of a summary: coefficients and intercept, without a residual deviation."""
    return posterior_rows(posterior.linear, names, level)[:-1]
