"""The default regression: where columns lie and how widely first, then the sums of standardised rows in a ball.

Standardising makes one noise level fit all columns; the ball's sensitivity does not grow with their number; and
x and y are shortened by the same factor, so that long rows do not bias the regression. Clipping y afterwards does,
and the posterior makes up for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from hubbub.analyses.linear.columns import Columns, cautious_target, read_columns
from hubbub.analyses.linear.released import Released
from hubbub.analyses.linear.tuning import TUNING
from hubbub.analyses.rounds import Engine, Rounds
from hubbub.arrays import Floats, finite_rows
from hubbub.errors import invalid
from hubbub.privacy import Ledger, Release
from hubbub.privacy.report import Round
from hubbub.statistics import Ball, Box, ColumnHistogram, Regression, Spread, Stacked, Statistic
from hubbub.statistics.preparation import FAR

LABELS = ("columns", "regression")
"""The two rounds."""


class LazyRows(Protocol):
    """Rows that stay where they are, say in a cluster: what is to be done to them is done there, block by block."""

    @property
    def shape(self) -> tuple[int, int]:
        """(N, columns)."""
        ...

    def map(self, step: Callable[[Floats], Floats], columns: int) -> LazyRows:
        """The same clients after one more step, which leaves that many columns."""
        ...


@dataclass(frozen=True)
class ScaledFit:
    """What the two rounds gave."""

    released: Released
    rounds: tuple[Round, ...]


def fit_scaled(
    rows: Floats | LazyRows,
    bound: Box,
    multipliers: Sequence[float],
    engine: Engine,
    *,
    intercept: bool = True,
    norm: float | None = None,
    ledger: Ledger | None = None,
) -> ScaledFit:
    """Two rounds: where each column lies, then the regression sums of the standardised rows.

    `norm` bounds the length of x in place of the box, and takes its columns to be of one kind: they get a common
    scale, and their means are released themselves.
    """
    width = bound.features + 1
    rows = each_block(_checked(rows, width), _within_reach, width)
    first = column_statistic(bound, norm)
    with Rounds(engine, ledger, list(zip(LABELS, multipliers, strict=True))) as rounds:
        columns = found_columns(first, rounds.run(rows, first), intercept)
        standard = each_block(rows, partial(_standard, columns=columns, intercept=intercept), width + int(intercept))
        statistic = regression_statistic(rows.shape[0], bound, multipliers[1], intercept)
        release = rounds.run(standard, statistic)
    return ScaledFit(released_sums(statistic, release, columns, intercept), rounds.done)


def found_columns(first: Statistic, release: Release, intercept: bool) -> Columns:
    """Where columns lie and how widely, from the first round."""
    return cautious_target(_columns(first, release, intercept))


def regression_statistic(clients: int, bound: Box, multiplier: float, intercept: bool) -> Regression:
    """What the second round sums."""
    return Regression(choose_ball(clients, bound.features + int(intercept), multiplier), target_square=True)


def released_sums(statistic: Regression, release: Release, columns: Columns, intercept: bool) -> Released:
    """What any posterior is made from."""
    assert isinstance(statistic.bound, Ball)
    sums = statistic.unflatten(release.value)
    return Released(sums, release.n, release.noise_std, statistic.bound, columns, intercept)


def each_block(rows: Floats | LazyRows, step: Callable[[Floats], Floats], columns: int) -> Floats:
    """The rows after this step: an array now, lazy rows when an engine comes to them."""
    if isinstance(rows, np.ndarray):
        return step(rows)
    return rows.map(step, columns)  # type: ignore[return-value]  # all that is done with it: shape, map and the engine


def moved(rows: Floats, middle: Floats) -> Floats:
    """The rows with their middle taken away, as a step."""
    return rows - middle


def shares(norm: float | None = None) -> tuple[float, float]:
    """How the two rounds share the budget, for `privacy.split`: the squares add up to 1."""
    first = TUNING.columns_share if norm is None else TUNING.spread_columns_share
    return math.sqrt(first), math.sqrt(1 - first)


def column_statistic(bound: Box, norm: float | None) -> Statistic:
    """What the first round sums."""
    assert bound.y is not None
    if norm is None:
        return ColumnHistogram((*bound.x, bound.y))
    return Stacked(
        (Spread(norm, bound.features), ColumnHistogram((bound.y,))), (TUNING.spread_share, 1 - TUNING.spread_share)
    )


def choose_ball(clients: int, columns: int, multiplier: float) -> Ball:
    """Radius and bound of y, in standard units: tight where noise rules, wide where there is plenty of data.

    Depends on public numbers alone. The weight gives x and y such parts of the sensitivity that xy gets 1.3 % more
    noise than it needs on its own, and xx' 14 % less than with equal parts (docs/privacy.md, section 4).
    """
    plenty = math.log(max(clients / (max(multiplier, 1e-6) * columns), math.e))
    size = max(TUNING.least_size, TUNING.size_per_plenty * plenty)
    radius = size * math.sqrt(columns)
    # rows of that radius are shortened by about min(size, 1)
    y = min(size, 1.0) * max(TUNING.least_y, *(a * plenty - b for a, b in TUNING.y_lines))
    return Ball(radius, columns, y=y, weight=TUNING.target_part * radius / y)


def _checked(rows: Floats | LazyRows, columns: int) -> Floats | LazyRows:
    if isinstance(rows, np.ndarray):
        return finite_rows("rows", rows, columns)
    if rows.shape[1] != columns:
        raise invalid("rows", f"a table with {columns} columns", f"{rows.shape[1]} columns", "check the columns")
    return rows


def _within_reach(rows: Floats) -> Floats:
    return np.clip(rows, -FAR, FAR)  # so that squares stay numbers; the bounds come with the statistics


def _standard(rows: Floats, columns: Columns, intercept: bool) -> Floats:
    standard = (rows - columns.centre) / columns.scale
    return np.hstack([np.ones((rows.shape[0], 1)), standard]) if intercept else standard


def _columns(statistic: Statistic, release: Release, centre: bool) -> Columns:
    if isinstance(statistic, ColumnHistogram):
        return read_columns(statistic, release.value, release.n, release.noise_std, centre=centre)
    assert isinstance(statistic, Stacked)
    (spread, noise), (counts, counts_noise) = statistic.unstack(release.value, release.noise_std)
    rows, histogram = statistic.parts
    assert isinstance(rows, Spread)
    assert isinstance(histogram, ColumnHistogram)
    target = read_columns(histogram, counts, release.n, counts_noise, centre=centre)
    mean, error = spread[:-1] / release.n, noise / release.n
    square = spread[-1] / release.n * rows.norm
    around = float(mean @ mean) - rows.features * error**2 if centre else 0.0
    variance = max(square - around, 0.02 * rows.norm**2) / rows.features + error**2
    return Columns(
        np.append(mean if centre else np.zeros_like(mean), target.centre),
        np.append(np.full(rows.features, math.sqrt(variance)), target.scale),
        np.append(np.full(rows.features, TUNING.spread_doubt), target.doubt),
    )
