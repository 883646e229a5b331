"""The default linear regression (kind "linear"): where columns lie and how widely first, then sums of standard rows.

Standardising makes one noise level fit all columns; the ball's sensitivity does not grow with their number; and
x and y are shortened by the same factor, so that long rows do not bias the regression. Clipping y afterwards does,
and the posterior makes up for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from hubbub.analyses.linear.columns import Columns, cautious_target, read_columns
from hubbub.analyses.linear.regression import RegressionColumns, RegressionState, written_columns
from hubbub.analyses.linear.release import RegressionRelease
from hubbub.analyses.linear.released import Released
from hubbub.analyses.linear.result import RegressionResult
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats
from hubbub.privacy import MultiplierMechanism
from hubbub.protocols import Analysis, Budget, Description, Mechanism, Plan, Population, Release, RoundSpec, Statistic
from hubbub.statistics import Ball, Box, ColumnHistogram, Regression, Spread, Stacked
from hubbub.statistics.bounds import positive
from hubbub.statistics.preparation import constant, scale, shift

LABELS = ("columns", "regression")
"""The two rounds."""


@dataclass(frozen=True)
class LinearRegression(RegressionColumns, Analysis[RegressionState, RegressionResult]):
    """Bayesian linear regression in two rounds, with a posterior that counts the noise.

    Parameters
    ----------
    features, target : names of the columns.
    y_bound, x_bound : public bounds (low, high) of the target and of each feature. A row that lies beyond them is
        shortened as a whole.
    x_norm : public bound of the length of x in place of x_bound, for columns of one kind: they get a common scale, and
        their means are released themselves.
    intercept : fit one; otherwise columns and target are taken to be centred.
    """

    kind: ClassVar[str] = "linear"
    x_norm: float | None = None
    intercept: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.x_norm is None:
            self.check_bounds()
        else:
            object.__setattr__(self, "x_norm", positive("x_norm", self.x_norm))

    def plan(self, budget: Budget, population: Population, mechanism: Mechanism) -> Plan:
        """Two rounds; what the second one sums follows from public numbers, only its steps from the first release."""
        first, second = mechanism.within(budget, weights(self.x_norm))
        nowhere = Columns(np.zeros(len(self.columns)), np.ones(len(self.columns)), np.zeros(len(self.columns)))
        specs = (
            RoundSpec(LABELS[0], self._columns_statistic(), first, (shift(self._middle),)),
            RoundSpec(LABELS[1], self._sums_statistic(population.n, second), second, self._steps(nowhere)),
        )
        return Plan(budget, population, specs)

    def start(self, plan: Plan) -> RegressionState:
        """Nothing is released yet."""
        return RegressionState(plan)

    def ask(self, state: RegressionState) -> RoundSpec | None:
        """First the columns, then the sums of rows in their units."""
        if len(state.done) != 1:
            return None if state.done else state.plan.specs[0]
        return replace(state.plan.specs[1], steps=self._steps(self._found(state)))

    def tell(self, state: RegressionState, release: Release) -> RegressionState:
        """With one more release."""
        return state.after(release)

    def result(self, state: RegressionState) -> RegressionResult:
        """The released sums in the units of the data, from which any posterior is made."""
        found, sums = self._found(state), state.plan.specs[1].statistic
        assert isinstance(sums, Regression)
        assert isinstance(sums.bound, Ball)
        columns = Columns(found.centre + self._middle, found.scale, found.doubt)
        release = state.done[1]
        released = Released(
            sums.unflatten(release.value), release.n, release.noise_std, sums.bound, columns, self.intercept,
            release.noise.shape,
        )  # fmt: skip
        report = state.report()
        return RegressionResult(RegressionRelease(released, self.features, self.target, report.as_dict()), report)

    def describe(self) -> dict[str, Any]:
        """Names, bounds and settings, for a study."""
        return {"kind": self.kind, **self.described(), "x_norm": self.x_norm, "intercept": self.intercept}

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        return cls.read(description, x_norm=description["x_norm"], intercept=bool(description["intercept"]))

    @classmethod
    def written(cls, settings: Mapping[str, Any]) -> Self:
        """From study.toml, where bounds are text such as "age=0:110,salt=0:40"."""
        norm = settings.get("x_norm")
        rest = {name: settings[name] for name in ("intercept",) if name in settings}
        return cls(**written_columns(settings, {"x_norm", "intercept"}, norm is None), x_norm=norm, **rest)

    @property
    def _ranges(self) -> Floats:
        x = self.x_bound if self.x_norm is None else ((-self.x_norm, self.x_norm),) * len(self.features)
        return np.array([*x, self.y_bound], dtype=np.float64)

    @property
    def _middle(self) -> Floats:
        """What the first step takes away: the middle of each column's bounds."""
        return np.asarray(self._ranges.mean(axis=1) if self.intercept else np.zeros(len(self.columns)))

    def _columns_statistic(self) -> Statistic:
        half = np.abs(self._ranges - self._middle[:, None]).max(axis=1)
        return column_statistic(Box(tuple(half[:-1].tolist()), float(half[-1])), self.x_norm)

    def _sums_statistic(self, samples: int, mechanism: Mechanism) -> Regression:
        width = len(self.features) + int(self.intercept)
        return Regression(choose_ball(samples, width, multiplier_of(mechanism, width)), target_square=True)

    def _found(self, state: RegressionState) -> Columns:
        """Where columns lie and how widely, from the first round, around the middle of their bounds."""
        return cautious_target(_columns(state.plan.specs[0].statistic, state.done[0], self.intercept))

    def _steps(self, columns: Columns) -> tuple[dict[str, object], ...]:
        """From a row as its holder has it to a row in standard units, the constant 1 first."""
        steps = (shift(self._middle), shift(columns.centre), scale(columns.scale))
        return (*steps, constant()) if self.intercept else steps


def weights(norm: float | None = None) -> tuple[float, float]:
    """How the two rounds share the budget (`Mechanism.within`): the squares add up to 1."""
    first = TUNING.columns_share if norm is None else TUNING.spread_columns_share
    return math.sqrt(first), math.sqrt(1 - first)


def multiplier_of(mechanism: Mechanism, columns: int) -> float:
    """How many L2 sensitivities of noise a mechanism adds, as far as the choice of the ball needs to know it.

    A law whose noise is no multiple of that is settled for a round of so many columns in a ball of radius 1.
    """
    if isinstance(mechanism, MultiplierMechanism):
        return mechanism.noise_multiplier
    sums = Regression(Ball(1.0, columns, y=1.0, weight=TUNING.target_part), target_square=True)
    return mechanism.settled(sums, Population(1000)).sigma_std / sums.sensitivity


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
