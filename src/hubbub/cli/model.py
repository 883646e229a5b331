"""Show a fitted model as a table and as a picture, for all commands that fit one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.table import Table
from rich.text import Text

from hubbub.analyses.linear.release import RegressionRelease
from hubbub.analyses.saved import AnyModel, AnyRelease
from hubbub.arrays import Floats
from hubbub.cli.output import console
from hubbub.protocols import Result


def print_model(stored: AnyModel, *, assumed: bool = False) -> None:
    """Print the coefficients, the intercept and, if there is one, the residual deviation, which some methods assume."""
    table = Table("coefficient", "mean", "std", "90 % interval *")
    for row in stored.rows():
        known = row["std"] > 1e-9 * abs(row["mean"])  # a single value has no interval
        interval = f"{row['low']:.4g} .. {row['high']:.4g}" if known else "assumed" if assumed else ""
        table.add_row(Text(row["name"]), f"{row['mean']:.4g}", f"{row['std']:.3g}" if known else "", interval)
    console.print(table)
    console.print(f"* {stored.note}\n", markup=False)


def print_result(result: Result) -> None:
    """Print a row for each quantity that an analysis has found, and what its intervals mean."""
    table = Table("quantity", "mean", "std", "90 % interval *")
    for row in result.table():
        known = row["std"] > 1e-9 * abs(row["mean"])  # a single value has no interval
        interval = f"{row['low']:.4g} .. {row['high']:.4g}" if known else ""
        table.add_row(Text(row["name"]), f"{row['mean']:.4g}", f"{row['std']:.3g}" if known else "", interval)
    console.print(table)
    console.print(f"* {result.as_dict().get('intervals', '90 %')}\n", markup=False)


def plot_model(
    path: Path, stored: AnyModel, title: str, prior_scale: Sequence[float] | None, budget: dict[str, Floats] | None
) -> None:
    """Draw the forest plot, with the prior if it was given, and with the sources of the variance if they are known."""
    from scipy.special import ndtri

    from hubbub.plots.coefficients import forest_plot

    prior = None if prior_scale is None else ndtri(0.95) * np.outer(prior_scale, [-1.0, 1.0])
    forest_plot(path, stored.names, stored.mean, stored.posterior.interval(0.9), title, prior=prior, budget=budget)


def noise_budget(release: AnyRelease | None) -> dict[str, Floats] | None:
    """Return the variance of each coefficient by source, where the release tells."""
    return release.noise_budget() if isinstance(release, RegressionRelease) else None
