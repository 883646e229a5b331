"""Generalised linear models (kind "glm"): the columns first, then a few private Newton steps.

Every step sums each row's part of the score and of the information at a public state that the step before it led to
(`statistics/newton.py`). The steps together are a noisy regression with a known residual variance, of which the sampler
of the linear regression makes a posterior (docs/decisions/0028).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from hubbub.analyses.glm.dispersion import Dispersion, corrected, dispersion
from hubbub.analyses.glm.families import FAMILIES, Family
from hubbub.analyses.glm.look import (
    InterceptPrior,
    Step,
    estimate,
    rounded,
    stepped,
    still_to_go,
    turn_after,
    unattenuated,
)
from hubbub.analyses.glm.offset import Offset
from hubbub.analyses.glm.result import GLMResult
from hubbub.analyses.glm.tuning import TUNING
from hubbub.analyses.linear.auto import multiplier_of
from hubbub.analyses.linear.columns import Columns, doubt_of_centres, histogram, read_columns, share_at_ends
from hubbub.analyses.linear.ranges import parse_ranges
from hubbub.analyses.linear.regression import RegressionColumns, RegressionState
from hubbub.arrays import Floats
from hubbub.errors import InvalidInput, invalid
from hubbub.protocols import Analysis, Budget, Description, Mechanism, Plan, Population, Release, RoundSpec
from hubbub.statistics import ColumnHistogram, NewtonStep
from hubbub.statistics.log_link import Dispersed
from hubbub.statistics.preparation import FAR, clip, constant, log, scale, shift, turn
from hubbub.statistics.responses import Logit, Probit, Response

YES_NO = (Logit, Probit)
OVERDISPERSED = (
    "counts must vary no more than a Poisson law says, got more: intervals are too narrow; name further columns that "
    "counts depend on, or use the family negative-binomial"
)


@dataclass(frozen=True)
class GLM(RegressionColumns, Analysis[RegressionState, GLMResult]):
    """A Bayesian generalised linear model with an intercept, whose posterior counts the noise.

    Parameters
    ----------
    features, target : names of the columns.
    y_bound : public bounds (low, high) of the target. (0, 1) for a yes or no; for counts and positive numbers (0, B),
        where B need not hold for every row: it says where to look in the first round.
    x_bound : public bounds (low, high) of each feature. A row that lies beyond them counts less, and is not clipped.
    family : one of "bernoulli" (logistic regression), "probit", "poisson", "negative-binomial" and "gamma" (with the
        log link).
    offset : a column that is added to the linear predictor as it is, or whose logarithm is (an exposure).
    """

    kind: ClassVar[str] = "glm"
    family: str = "bernoulli"
    offset: Offset | None = None

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            use = "use an analysis of the kind 'linear'" if self.family == "gaussian" else "use 'bernoulli'"
            raise invalid("family", f"one of {', '.join(FAMILIES)}", repr(self.family)[:80], use)
        super().__post_init__()
        self.check_bounds()
        if self.offset is not None and self.offset.exposure and self._family.yes_no:
            raise invalid("exposure", "of a family with a log link", self.family, "give an offset, or use poisson")
        low, high = self.y_bound
        if self._family.yes_no and (low, high) != (0.0, 1.0):
            raise invalid("y_bound", f"(0, 1) for {self.family}", (low, high), "code the two classes as 0 and 1")
        if low != 0:
            kind = "counts" if self._family.whole else "positive numbers"
            raise invalid("y_bound", f"(0, B) for {kind}", (low, high), "give for example (0, 20)")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns a client needs, in order: the offset before the target."""
        return (*self.features, *(() if self.offset is None else (self.offset.column,)), self.target)

    @property
    def ranges(self) -> Floats:
        """The bounds of these columns; those of an exposure are of its logarithm."""
        offset = [] if self.offset is None else [self.offset.ends]
        return np.array([*self.x_bound, *offset, self.y_bound], dtype=np.float64)

    def plan(self, budget: Budget, population: Population, mechanism: Mechanism) -> Plan:
        """The rounds and their noise, from public numbers; what a step is at, and where rows are shortened, from
        what was released before.
        """
        columns, *steps = mechanism.within(budget, [math.sqrt(share) for share in self._family.shares])
        counted = histogram(tuple(self._half.tolist()), multiplier_of(columns, len(self.columns)), population.n)
        nowhere = Columns(np.zeros(len(self.columns)), np.ones(len(self.columns)), np.zeros(len(self.columns)))
        specs = [RoundSpec("columns", counted, columns, (*self._logarithm, shift(self._middle)))]
        start = self._family.start(float(self._middle[-1]) / self.unit)
        for number, law in enumerate(steps):
            statistic = self._step(number, self._at(start), TUNING.dispersion, start)
            specs.append(RoundSpec(self._label(number), statistic, law, self._steps(nowhere)))
        return Plan(budget, population, tuple(specs))

    def cautions(self, plan: Plan) -> tuple[str, ...]:
        """That noise alone will hide coefficients of the size that one expects."""
        spec, n = plan.specs[-1], plan.population.n
        statistic = spec.statistic
        assert isinstance(statistic, NewtonStep)
        noise = spec.mechanism.settled(statistic, plan.population).sigma_std * plan.population.spread
        most = TUNING.room * statistic.features * TUNING.radius**2
        by_noise = noise / statistic.weight / (n * statistic.information / most)
        if by_noise < TUNING.hopeless:
            return ()
        return (
            f"too little can be learned from {n} samples of {len(self.features)} feature(s) with {plan.budget}: "
            "the posterior will be close to the prior; better with more samples, a larger epsilon or fewer features",
        )

    def start(self, plan: Plan) -> RegressionState:
        """Nothing is released yet."""
        return RegressionState(plan)

    def ask(self, state: RegressionState) -> RoundSpec | None:
        """First the columns, then a step at what the steps before it found."""
        done = len(state.done)
        if done == state.plan.count:
            return None
        spec = state.plan.specs[done]
        if done == 0:
            return spec
        steps, walk = self._steps(self._found(state)), self._walked(state, done)
        turned = self._turn(state, walk, done)
        statistic = self._statistic(state, walk, done, turned)
        return replace(spec, statistic=statistic, steps=(*steps, *self._turning(turned)))

    def tell(self, state: RegressionState, release: Release) -> RegressionState:
        """With one more release."""
        return state.after(release)

    def result(self, state: RegressionState) -> GLMResult:
        """The steps as one noisy regression, from which any posterior is made."""
        found, last, walk = self._found(state), state.done[-1], self._walked(state, state.plan.count)
        steps = walk.steps[self._family.rough :]
        d, end = len(self.features), steps[-1]
        coefficients = np.array(walk.at)
        noticed = (*self._at_bounds(state), *_not_there(steps, coefficients))
        if self.family == "poisson" and end.overdispersed:
            noticed = (*noticed, OVERDISPERSED)
        doubt = np.maximum(np.append(found.doubt[:d], found.doubt[-1]), TUNING.doubt)
        # a linear predictor has no unit, and is counted from that of the unit of y and of the offset's middle
        middle = (0.0 if self.offset is None else -self.offset.middle) + math.log(self.unit)
        columns = Columns(np.append(found.centre[:d], middle), np.append(found.scale[:d], 1.0), doubt)
        together = stepped(steps, coefficients, last.n, columns, last.noise.shape)
        together = replace(together, dispersion=walk.dispersion, intercept_prior=self._intercept_prior(state))
        return GLMResult(together, self.family, self.features, self.target, state.report(), noticed, self.offset)

    def describe(self) -> dict[str, Any]:
        """Names, bounds and family, for a study."""
        offset = {} if self.offset is None else {"offset": self.offset.describe()}
        return {"kind": self.kind, **self.described(), "family": self.family, **offset}

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        return cls.read(description, family=description["family"], offset=Offset.of(description.get("offset")))

    @classmethod
    def written(cls, settings: Mapping[str, Any]) -> Self:
        """From study.toml, where bounds are text such as "age=0:110,salt=0:40"; a yes or no needs no y_bound."""
        offsets = {"offset", "offset_bound", "exposure", "exposure_bound"}
        known = {"features", "target", "x_bound", "y_bound", "family", *offsets}
        if unknown := sorted(set(settings) - known):
            raise invalid("analysis", f"made of {', '.join(sorted(known))}", unknown[0], "check the spelling")
        if missing := [name for name in ("features", "target", "x_bound") if name not in settings]:
            raise InvalidInput(f"analysis must have the entry {missing[0]}, got none; add it to the study")
        if not isinstance(settings["features"], list):
            raise InvalidInput("features must be a list of names, got another; see `hubbub study create --help`")
        features, target = [str(name) for name in settings["features"]], str(settings["target"])
        family = str(settings.get("family", "bernoulli"))
        (y_bound,) = parse_ranges(str(settings.get("y_bound", "0:1")), [target], "y_bound")
        if family in FAMILIES and not FAMILIES[family].yes_no and "y_bound" not in settings:
            raise InvalidInput(f"y_bound must be given for {family}, got none; give for example 0:20")
        x_bound = tuple(parse_ranges(str(settings["x_bound"]), features))
        return cls(tuple(features), target, y_bound, x_bound, family, Offset.written(settings))

    @property
    def _family(self) -> Family:
        return FAMILIES[self.family]

    def _label(self, number: int) -> str:
        rough = self._family.rough
        return "logarithms" if number < rough else f"step {number + 1 - rough}"

    @property
    def _middle(self) -> Floats:
        """The middle of each column's bounds."""
        return np.asarray(self.ranges.mean(axis=1))

    @property
    def _half(self) -> Floats:
        """How far from there the bounds reach."""
        return np.asarray(np.diff(self.ranges, axis=1)[:, 0] / 2)

    @property
    def _zero_one(self) -> list[bool]:
        """Of which columns the bounds are 0 and 1."""
        return [tuple(ends) == (0.0, 1.0) for ends in self.ranges.tolist()]

    def _found(self, state: RegressionState) -> Columns:
        """Where columns lie and how widely, in the units of the data."""
        counted, release = state.plan.specs[0].statistic, state.done[0]
        assert isinstance(counted, ColumnHistogram)
        zero_one = self._zero_one
        found = read_columns(counted, release.value, release.n, release.noise_std, centre=True, zero_one=zero_one)
        return replace(found, centre=rounded(found.centre + self._middle), scale=rounded(found.scale))

    @property
    def unit(self) -> float:
        """Of y, where it has one: a count has none."""
        return 1.0 if self._family.whole else self.y_bound[1]

    @property
    def _logarithm(self) -> tuple[dict[str, object], ...]:
        """The step from an exposure to its offset."""
        if self.offset is None or not self.offset.exposure:
            return ()
        return (log(np.array([*np.zeros(len(self.features)), self.offset.bound[0], 0.0])),)

    def _steps(self, columns: Columns) -> tuple[dict[str, object], ...]:
        """From a row as its holder has it to standard units, the constant 1 first, the offset within its bounds, and y
        in its unit.
        """
        centre, size = columns.centre.copy(), columns.scale.copy()
        centre[-1], size[-1] = 0.0, self.unit
        if self.offset is None:
            return shift(centre), scale(size), constant()
        centre[-2], size[-2] = self.offset.middle, 1.0
        ends = np.full(size.size, FAR)
        ends[-2] = self.offset.half
        return *self._logarithm, shift(centre), clip(ends), scale(size), constant()

    def _at(self, start: float) -> tuple[float, ...]:
        """A state with an intercept alone."""
        return (start, *(0.0 for _ in self.features))

    def _statistic(self, state: RegressionState, walk: Walk, number: int, turned: Floats | None) -> NewtonStep:
        """Of the round of this number, which is 1 for the first step."""
        at = walk.at if turned is None else tuple(rounded(np.linalg.solve(turned, np.array(walk.at))).tolist())
        return self._step(number - 1, at, walk.value, self._origin(state))

    def _turn(self, state: RegressionState, walk: Walk, number: int) -> Floats | None:
        """What rows are multiplied by in the round of this number: in the last one, where that pays."""
        if number < state.plan.count - 1:
            return None
        before = state.done[number - 1]
        return turn_after(walk.steps[-1], before.n, before.noise.shape)

    def _turning(self, turned: Floats | None) -> tuple[dict[str, object], ...]:
        """The step that does so; an offset stays as it is."""
        if turned is None:
            return ()
        whole = np.eye(len(turned) + (self.offset is not None))
        whole[: len(turned), : len(turned)] = turned
        return (turn(whole),)

    def _step(self, number: int, at: tuple[float, ...], dispersion: float, origin: float) -> NewtonStep:
        """The statistic of the step of this number."""
        return newton_step(self._family.response(number, dispersion), at, origin, self.offset is not None)

    def _origin(self, state: RegressionState) -> float:
        """The linear predictor at the released mean of y."""
        mean = float(self._found(state).centre[-1]) / self.unit
        return float(rounded(np.array([self._family.start(mean)]))[0])

    def _intercept_prior(self, state: RegressionState) -> InterceptPrior:
        """The prior of the intercept. Of a yes or no the first round tells how many say yes, with a known doubt.

        The intercept is not quite where that says, as effects draw the share of yes towards a half.
        """
        family, counted, release = self._family, state.plan.specs[0].statistic, state.done[0]
        if not family.yes_no:
            return InterceptPrior(0.0, family.intercept)
        assert isinstance(counted, ColumnHistogram)
        origin = self._origin(state)
        slope = family.link_slope(origin)
        doubt = slope * doubt_of_centres(counted, release.value, release.n, release.noise_std, self._zero_one)[-1]
        std = min(family.intercept, math.hypot(doubt, TUNING.off_origin * (1 + abs(origin))))
        return InterceptPrior(*rounded(np.array([family.intercept_at(origin, *self._offsets(state)), std])).tolist())

    def _offsets(self, state: RegressionState) -> tuple[float, float]:
        """Mean and deviation of the rows' offsets, from the middle of their bounds."""
        if self.offset is None:
            return 0.0, 0.0
        found = self._found(state)
        return float(found.centre[-2] - self.offset.middle), float(found.scale[-2])

    def _walked(self, state: RegressionState, number: int) -> Walk:
        """Where the round of this number is, and the steps before it."""
        family, origin, offsets = self._family, self._origin(state), self._offsets(state)
        start = float(rounded(np.array([family.intercept_at(origin, *offsets)]))[0])
        walk, attenuation, steps = Walk(self._at(start)), family.attenuated(origin), list[Step]()
        intercept_prior = self._intercept_prior(state)
        for done in range(1, number):
            n, turned = state.done[done].n, self._turn(state, walk, done)
            steps.append(Step.of(self._statistic(state, walk, done, turned), state.done[done], turned))
            told = steps if done <= family.rough else steps[family.rough :]
            found = unattenuated(estimate(told, n, intercept_prior), steps[0], attenuation if done == 1 else 0.0)
            walk = Walk(tuple(found.tolist()), tuple(steps))
            if family.dispersed and done > family.rough:
                known = dispersion(told, found, n, offsets)
                told = corrected(told, known, offsets)
                found = estimate(told, n, intercept_prior)
                walk = Walk(tuple(found.tolist()), (*steps[: family.rough], *told), known)
        return walk

    def _at_bounds(self, state: RegressionState) -> tuple[str, ...]:
        """Of which features most values lie at an end of their bounds; 0/1 columns have no others."""
        counted, release = state.plan.specs[0].statistic, state.done[0]
        assert isinstance(counted, ColumnHistogram)
        shares = share_at_ends(counted, release.value, release.n, release.noise_std)
        return tuple(
            f"bounds of {name} must hold most of its values, got at least {share:.0%} of them at {end:g} or beyond; "
            "where they lie beyond, give wider bounds"
            for name, ends, found in zip(self.features, self.ranges, shares, strict=False)
            for end, share in zip(ends, found, strict=True)
            if share > 0.5 and tuple(ends) != (0.0, 1.0)
        )


def _not_there(steps: Sequence[Step], found: Floats) -> tuple[str, ...]:
    """That Newton's method has not arrived, as far as the last release tells."""
    left = still_to_go(steps, found)
    if left < TUNING.arrived:
        return ()
    return (
        f"another step must move the linear predictor by less than {TUNING.arrived:g}, got about {left:.2g}: effects "
        "are strong for so few rows, and intervals may be too narrow; better with more samples or a larger epsilon",
    )


@dataclass(frozen=True)
class Walk:
    """The state that some steps lead to."""

    at: tuple[float, ...]
    steps: tuple[Step, ...] = ()
    """With scores as they would be with the dispersion that all of them found."""
    dispersion: Dispersion | None = None

    @property
    def value(self) -> float:
        """The dispersion to go on with."""
        return TUNING.dispersion if self.dispersion is None else float(f"{self.dispersion.value:.6g}")


def newton_step(response: Response, at: tuple[float, ...], origin: float, offset: bool = False) -> NewtonStep:
    """The statistic of a step at this state, with bounds that suit an average row of standardised columns.

    `origin` is the linear predictor at the mean of y. The weights give the score and the information about the same
    part of the sensitivity.
    """
    average = response.working(np.array([origin]), np.zeros(1))
    square, most, each = TUNING.radius**2 * len(at), float(average.most[0]), TUNING.room * float(average.information[0])
    if isinstance(response, YES_NO):  # the information is largest where yes and no are alike
        middle = response.working(np.zeros(1), np.zeros(1))
        most, each = float(middle.most[0]), min(each, float(middle.information[0]))
    score, information = (float(rounded(np.array([v]))[0]) for v in (most * math.sqrt(square), each * square))
    spread = TUNING.spread * information if isinstance(response, Dispersed) else 0.0
    trace = TUNING.trace * information / score**2
    return NewtonStep(response, at, score, information, information / score, trace, spread, offset)
