"""The default linear regression (kind "linear"), in four rounds.

First where columns lie and how widely. Then sums of standardised rows: one noise level fits all columns, the ball's
sensitivity does not grow with their number, and x and y are shortened by the same factor, so that long rows do not
bias the regression. Then the same sums with residuals in place of y, around the coefficients that the second round
gave, and once more around those that all sums so far give. Residuals are smaller than y, so they are clipped at a
smaller bound and bear less noise, and clipping them does not bias the regression. Where columns are nearly collinear
for the noise, rows of the last two rounds are turned, so that weak axes are seen (`turned.py`). Nothing of a round is
lost: the posterior uses all of them (docs/decisions/0025, 0031 and 0032).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from hubbub.analyses.linear.columns import Columns, cautious_target, histogram, read_columns, share_at_ends
from hubbub.analyses.linear.pilot import Pilot, pilot, turn_of
from hubbub.analyses.linear.regression import RegressionColumns, RegressionState, written_columns
from hubbub.analyses.linear.release import RegressionRelease
from hubbub.analyses.linear.released import LaterLook, Released
from hubbub.analyses.linear.residuals import EDGES
from hubbub.analyses.linear.result import RegressionResult
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats
from hubbub.privacy import MECHANISMS, MultiplierMechanism
from hubbub.protocols import Analysis, Budget, Description, Mechanism, Plan, Population, Release, RoundSpec, Statistic
from hubbub.statistics import Ball, Box, ColumnHistogram, Distances, Regression, Spread, Stacked
from hubbub.statistics.bounds import positive
from hubbub.statistics.preparation import constant, repeat, residual, scale, shift, turn

LABELS = ("columns", "regression", "residuals", "last-residuals")
"""The four rounds: where columns lie, then three rounds of sums that share the rest of the budget alike."""
_SUMS = len(LABELS) - 1


@dataclass(frozen=True)
class LinearRegression(RegressionColumns, Analysis[RegressionState, RegressionResult]):
    """Bayesian linear regression in four rounds, with a posterior that counts the noise.

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
        """Four rounds; what they sum follows from public numbers, only steps from what was released before."""
        columns, *sums = mechanism.within(budget, weights(self.x_norm))
        width = len(self.features) + int(self.intercept)
        regression = Regression(choose_ball(population.n, width, together(sums, width)), target_square=True)
        later = Stacked((regression, Distances(EDGES)), (1 - TUNING.counts_share, TUNING.counts_share))
        nowhere = Columns(np.zeros(len(self.columns)), np.ones(len(self.columns)), np.zeros(len(self.columns)))
        steps = self._steps(nowhere)
        around = (*steps, *_residual_steps(Pilot(np.zeros(width), 1.0)))
        specs = (
            RoundSpec(LABELS[0], self._columns_statistic(columns, population.n), columns, (shift(self._middle),)),
            RoundSpec(LABELS[1], regression, sums[0], steps),
            *(RoundSpec(label, later, law, around) for label, law in zip(LABELS[2:], sums[1:], strict=True)),
        )
        return Plan(budget, population, specs)

    def cautions(self, plan: Plan) -> tuple[str, ...]:
        """That clients are too few for the columns at this budget, and what would help."""
        people, law = plan.population, plan.specs[0].mechanism.describe()
        # so many clients' shares are not counted on, if every sample were a client
        missing = people.n - 1 - people.n / people.spread**2
        return _too_few(people.n, len(self.features), plan.budget, missing, str(law["mechanism"]))

    def start(self, plan: Plan) -> RegressionState:
        """Nothing is released yet."""
        return RegressionState(plan)

    def ask(self, state: RegressionState) -> RoundSpec | None:
        """First the columns, then the sums of rows in their units, then those of their residuals, twice."""
        done = len(state.done)
        if done == len(LABELS):
            return None
        spec = state.plan.specs[done]
        if done == 0:
            return spec
        steps = self._steps(self._found(state))
        if done == 1:
            return replace(spec, steps=steps)
        turned = turn_of(self._first_sums(state))
        return replace(spec, steps=(*steps, *_residual_steps(pilot(self._sums(state)), turned)))

    def tell(self, state: RegressionState, release: Release) -> RegressionState:
        """With one more release."""
        return state.after(release)

    def result(self, state: RegressionState) -> RegressionResult:
        """The released sums in the units of the data, from which any posterior is made."""
        report = state.report()
        found = RegressionRelease(self._sums(state), self.features, self.target, report.as_dict())
        return RegressionResult(found, report, self._at_bounds(state))

    def _sums(self, state: RegressionState) -> Released:
        """What the rounds of sums so far released: each one about residuals is around what those before it gave."""
        released = self._first_sums(state)
        turned = turn_of(released)
        for spec, release in zip(state.plan.specs[2:], state.done[2:], strict=False):
            assert isinstance(spec.statistic, Stacked)
            (sums, noise), (counts, counts_noise) = spec.statistic.unstack(release.value, release.noise_std)
            regression, _ = spec.statistic.parts
            assert isinstance(regression, Regression)
            look = pilot(released)
            later = LaterLook(
                regression.unflatten(sums), noise, look.around, look.unit, counts, counts_noise, turn=turned
            )
            released = replace(released, later=(*released.later, later))
        return released

    def _first_sums(self, state: RegressionState) -> Released:
        """What the first two rounds released."""
        found, regression, release = self._found(state), state.plan.specs[1].statistic, state.done[1]
        assert isinstance(regression, Regression)
        assert isinstance(regression.bound, Ball)
        columns = Columns(found.centre + self._middle, found.scale, found.doubt)
        return Released(
            regression.unflatten(release.value), release.n, release.noise_std, regression.bound, columns,
            self.intercept, release.noise.shape,
        )  # fmt: skip

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

    def _columns_statistic(self, mechanism: Mechanism, clients: int) -> Statistic:
        half = self._half
        multiplier = multiplier_of(mechanism, len(self.columns))
        return column_statistic(Box(tuple(half[:-1].tolist()), float(half[-1])), self.x_norm, multiplier, clients)

    @property
    def _half(self) -> Floats:
        """How far from there the bounds reach."""
        return np.asarray(np.abs(self._ranges - self._middle[:, None]).max(axis=1))

    def _found(self, state: RegressionState) -> Columns:
        """Where columns lie and how widely, from the first round, around the middle of their bounds."""
        zero_one = [tuple(ends) == (0.0, 1.0) for ends in self._ranges]
        return cautious_target(_columns(state.plan.specs[0].statistic, state.done[0], self.intercept, zero_one))

    def _at_bounds(self, state: RegressionState) -> tuple[str, ...]:
        """Of which columns most values lie at an end of their bounds; 0/1 columns have no others."""
        counted, counts, noise = _counts(state.plan.specs[0].statistic, state.done[0])
        shares = share_at_ends(counted, counts, state.done[0].n, noise)
        reach = np.column_stack([self._middle - self._half, self._middle + self._half])
        named = list(zip(self.columns, reach, strict=True))[-counted.columns :]
        return tuple(
            f"bounds of {name} must hold most of its values, got at least {share:.0%} of them at {end:g} or beyond; "
            "where they lie beyond, give wider bounds"
            for (name, ends), found in zip(named, shares, strict=True)
            for end, share in zip(ends, found, strict=True)
            if share > 0.5 and tuple(ends) != (0.0, 1.0)
        )

    def _steps(self, columns: Columns) -> tuple[dict[str, object], ...]:
        """From a row as its holder has it to a row in standard units, the constant 1 first."""
        steps = (shift(self._middle), shift(columns.centre), scale(columns.scale))
        return (*steps, constant()) if self.intercept else steps


@lru_cache(maxsize=64)  # the advice calibrates noise dozens of times, and repeated fits ask for the same
def _too_few(samples: int, features: int, budget: Budget, not_counted: float, law: str) -> tuple[str, ...]:
    """That so many samples are too few, with what would help; nothing where they are enough."""
    from hubbub.analyses.linear.forecast import advice, forecast

    known = (samples, features, budget, not_counted, MECHANISMS.find(law)())
    if not forecast(*known).hopeless:
        return ()
    better = "; or ".join(advice(*known))
    return (
        f"too little can be learned from {samples} samples of {features} feature(s) with {budget}: "
        f"the posterior will be close to the prior; better with {better}",
    )


def _residual_steps(look: Pilot, turned: Floats | None = None) -> tuple[dict[str, object], ...]:
    """From a standard row to one with its residual in place of the target, in its unit, and again for the counts."""
    unit = np.append(np.ones(look.around.size), look.unit)
    return residual(look.around), scale(unit), *(() if turned is None else (turn(turned),)), repeat()


def weights(norm: float | None = None) -> tuple[float, ...]:
    """How the rounds share the budget (`Mechanism.within`): the squares add up to 1."""
    first = TUNING.columns_share if norm is None else TUNING.spread_columns_share
    return math.sqrt(first), *(math.sqrt((1 - first) / _SUMS),) * _SUMS


def together(sums: Sequence[Mechanism], columns: int) -> float:
    """How many L2 sensitivities of noise the rounds of sums have together, as if they were one."""
    first, *later = (1 / multiplier_of(each, columns) for each in sums)
    return 1 / math.hypot(first, *(each * math.sqrt(1 - TUNING.counts_share) for each in later))


def multiplier_of(mechanism: Mechanism, columns: int) -> float:
    """How many L2 sensitivities of noise a mechanism adds, as far as the choice of the ball needs to know it.

    A law whose noise is no multiple of that is settled for a round of so many columns in a ball of radius 1.
    """
    if isinstance(mechanism, MultiplierMechanism):
        return mechanism.noise_multiplier
    sums = Regression(Ball(1.0, columns, y=1.0, weight=TUNING.target_part), target_square=True)
    return mechanism.settled(sums, Population(1000)).sigma_std / sums.sensitivity


def column_statistic(bound: Box, norm: float | None, multiplier: float, clients: int) -> Statistic:
    """What the first round sums, with so many L2 sensitivities of noise."""
    assert bound.y is not None
    if norm is None:
        return histogram((*bound.x, bound.y), multiplier, clients)
    share = 1 - TUNING.spread_share
    target = histogram((bound.y,), multiplier / math.sqrt(share), clients)
    return Stacked((Spread(norm, bound.features), target), (TUNING.spread_share, share))


def choose_ball(clients: int, columns: int, multiplier: float) -> Ball:
    """Radius and bound of y, in standard units: tight where noise rules, wide where there is plenty of data.

    In the later rounds that is the bound of residuals, in their unit.

    Depends on public numbers alone. The weight gives x and y such parts of the sensitivity that xy gets 1.3 % more
    noise than it needs on its own, and xx' 14 % less than with equal parts (docs/privacy.md, section 4).
    """
    plenty = math.log(max(clients / (max(multiplier, 1e-6) * columns), math.e))
    size = max(TUNING.least_size, TUNING.size_per_plenty * plenty)
    radius = size * math.sqrt(columns)
    # rows of that radius are shortened by about min(size, 1)
    y = min(size, 1.0) * max(TUNING.least_y, *(a * plenty - b for a, b in TUNING.y_lines))
    return Ball(radius, columns, y=y, weight=TUNING.target_part * radius / y)


def _counts(statistic: Statistic, release: Release) -> tuple[ColumnHistogram, Floats, float]:
    """What the first round counted: of all columns, or of the target alone where rows have a bounded length."""
    sums, noise = release.value, release.noise_std
    if isinstance(statistic, Stacked):
        (_, (sums, noise)), statistic = statistic.unstack(sums, noise), statistic.parts[1]
    assert isinstance(statistic, ColumnHistogram)
    return statistic, sums, noise


def _columns(statistic: Statistic, release: Release, centre: bool, zero_one: list[bool]) -> Columns:
    counted, counts, noise = _counts(statistic, release)
    found = read_columns(counted, counts, release.n, noise, centre=centre, zero_one=zero_one[-counted.columns :])
    if not isinstance(statistic, Stacked):
        return found
    rows, (spread, noise) = statistic.parts[0], statistic.unstack(release.value, release.noise_std)[0]
    assert isinstance(rows, Spread)
    mean, error = spread[:-1] / release.n, noise / release.n
    square = spread[-1] / release.n * rows.norm
    around = float(mean @ mean) - rows.features * error**2 if centre else 0.0
    variance = max(square - around, 0.02 * rows.norm**2) / rows.features + error**2
    return Columns(
        np.append(mean if centre else np.zeros_like(mean), found.centre),
        np.append(np.full(rows.features, math.sqrt(variance)), found.scale),
        np.append(np.full(rows.features, TUNING.spread_doubt), found.doubt),
    )
