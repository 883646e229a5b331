"""Generalised linear models (kind "glm"): the columns first, then a few private Newton steps.

Every step sums each row's part of the score and of the information at a public state that the step before it led to
(`statistics/newton.py`). The steps together are a noisy regression with a known residual variance, of which the sampler
of the linear regression makes a posterior (docs/decisions/0028).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from hubbub.analyses.glm.families import FAMILIES, Family
from hubbub.analyses.glm.look import Step, Stepped, estimate, looks, rounded, still_to_go, unattenuated
from hubbub.analyses.glm.result import GLMResult
from hubbub.analyses.glm.tuning import TUNING
from hubbub.analyses.linear.auto import multiplier_of
from hubbub.analyses.linear.columns import Columns, histogram, read_columns, share_at_ends
from hubbub.analyses.linear.ranges import parse_ranges
from hubbub.analyses.linear.regression import RegressionColumns, RegressionState
from hubbub.arrays import Floats
from hubbub.errors import InvalidInput, invalid
from hubbub.protocols import Analysis, Budget, Description, Mechanism, Plan, Population, Release, RoundSpec
from hubbub.statistics import Ball, ColumnHistogram, Gram, NewtonStep
from hubbub.statistics.preparation import constant, scale, shift
from hubbub.statistics.responses import Logit, Probit, Response

YES_NO = (Logit, Probit)
OVERDISPERSED = (
    "counts must vary no more than a Poisson law says, got more: intervals are too narrow; name further columns that "
    "counts depend on, or read intervals as rough"
)


@dataclass(frozen=True)
class GLM(RegressionColumns, Analysis[RegressionState, GLMResult]):
    """A Bayesian generalised linear model with an intercept, whose posterior counts the noise.

    Parameters
    ----------
    features, target : names of the columns.
    y_bound : public bounds (low, high) of the target. (0, 1) for a yes or no; for counts (0, B), where B need not hold
        for every row: it says where to look in the first round.
    x_bound : public bounds (low, high) of each feature. A row that lies beyond them counts less, and is not clipped.
    family : one of "bernoulli" (logistic regression), "probit", "poisson" (with the log link).
    """

    kind: ClassVar[str] = "glm"
    family: str = "bernoulli"

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise invalid("family", f"one of {', '.join(FAMILIES)}", repr(self.family)[:80], "use 'bernoulli'")
        super().__post_init__()
        self.check_bounds()
        low, high = self.y_bound
        if self._family.yes_no and (low, high) != (0.0, 1.0):
            raise invalid("y_bound", f"(0, 1) for {self.family}", (low, high), "code the two classes as 0 and 1")
        if low != 0:
            raise invalid("y_bound", "(0, B) for counts", (low, high), "give for example (0, 20)")

    def plan(self, budget: Budget, population: Population, mechanism: Mechanism) -> Plan:
        """The rounds and their noise, from public numbers; what a step is at, and where rows are shortened, from
        what was released before.
        """
        columns, *steps = mechanism.within(budget, [math.sqrt(share) for share in self._family.shares])
        counted = histogram(tuple(self._half.tolist()), multiplier_of(columns, len(self.columns)), population.n)
        nowhere = Columns(np.zeros(len(self.columns)), np.ones(len(self.columns)), np.zeros(len(self.columns)))
        specs = [RoundSpec("columns", counted, columns, (shift(self._middle),))]
        start = self._family.start(float(self._middle[-1]))
        for number, law in enumerate(steps):
            statistic = newton_step(self._family.response(number, start), self._at(start), start)
            specs.append(RoundSpec(self._label(number), statistic, law, self._steps(nowhere)))
        return Plan(budget, population, tuple(specs))

    def cautions(self, plan: Plan) -> tuple[str, ...]:
        """That noise alone will hide coefficients of the size that one expects."""
        spec, n = plan.specs[-1], plan.population.n
        statistic = spec.statistic
        assert isinstance(statistic, NewtonStep)
        noise = spec.mechanism.settled(statistic, plan.population).sigma_std / plan.population.spread
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
        found = self._found(state)
        return replace(spec, statistic=self._statistic(state, done), steps=self._steps(found))

    def tell(self, state: RegressionState, release: Release) -> RegressionState:
        """With one more release."""
        return state.after(release)

    def result(self, state: RegressionState) -> GLMResult:
        """The steps as one noisy regression, from which any posterior is made."""
        found, last, (_, steps) = self._found(state), state.done[-1], self._walked(state, state.plan.count)
        steps = steps[self._family.rough :]
        p, end = len(self.features) + 1, steps[-1]
        coefficients = estimate(steps, last.n, self._family.intercept)
        seen, noticed = looks(steps, coefficients), (*self._at_bounds(state), *_not_there(steps, coefficients))
        if not self._family.yes_no and end.overdispersed:
            noticed = (*noticed, OVERDISPERSED)
        doubt = np.maximum(found.doubt, TUNING.doubt)
        # a linear predictor has no unit, and is centred on nothing
        columns = Columns(np.append(found.centre[:-1], 0.0), np.append(found.scale[:-1], 1.0), doubt)
        ball = Ball(math.sqrt(end.most), p, y=1.0)
        stepped = Stepped(
            Gram(end.information, end.score, 0.0), last.n, end.noise, ball, columns, True, last.noise.shape,
            looks=seen, ratio=end.ratio,
        )  # fmt: skip
        return GLMResult(stepped, self.family, self.features, self.target, state.report(), noticed)

    def describe(self) -> dict[str, Any]:
        """Names, bounds and family, for a study."""
        return {"kind": self.kind, **self.described(), "family": self.family}

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        return cls.read(description, family=description["family"])

    @classmethod
    def written(cls, settings: Mapping[str, Any]) -> Self:
        """From study.toml, where bounds are text such as "age=0:110,salt=0:40"; a yes or no needs no y_bound."""
        known = {"features", "target", "x_bound", "y_bound", "family"}
        if unknown := sorted(set(settings) - known):
            raise invalid("analysis", f"made of {', '.join(sorted(known))}", unknown[0], "check the spelling")
        if missing := [name for name in ("features", "target", "x_bound") if name not in settings]:
            raise InvalidInput(f"analysis must have the entry {missing[0]}, got none; add it to the study")
        if not isinstance(settings["features"], list):
            raise InvalidInput("features must be a list of names, got another; see `hubbub study create --help`")
        features, target = [str(name) for name in settings["features"]], str(settings["target"])
        family = str(settings.get("family", "bernoulli"))
        (y_bound,) = parse_ranges(str(settings.get("y_bound", "0:1")), [target], "y_bound")
        if family == "poisson" and "y_bound" not in settings:
            raise InvalidInput("y_bound must be given for counts, got none; give for example 0:20")
        return cls(tuple(features), target, y_bound, tuple(parse_ranges(str(settings["x_bound"]), features)), family)

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

    def _found(self, state: RegressionState) -> Columns:
        """Where columns lie and how widely, in the units of the data."""
        counted, release = state.plan.specs[0].statistic, state.done[0]
        assert isinstance(counted, ColumnHistogram)
        zero_one = [tuple(ends) == (0.0, 1.0) for ends in self.ranges]
        found = read_columns(counted, release.value, release.n, release.noise_std, centre=True, zero_one=zero_one)
        return replace(found, centre=rounded(found.centre + self._middle), scale=rounded(found.scale))

    def _steps(self, columns: Columns) -> tuple[dict[str, object], ...]:
        """From a row as its holder has it to standard units, the constant 1 first, and y as it is."""
        centre, size = columns.centre.copy(), columns.scale.copy()
        centre[-1], size[-1] = 0.0, 1.0
        return shift(centre), scale(size), constant()

    def _at(self, start: float) -> tuple[float, ...]:
        """A state with an intercept alone."""
        return (start, *(0.0 for _ in self.features))

    def _statistic(self, state: RegressionState, number: int) -> NewtonStep:
        """Of the round of this number, which is 1 for the first step."""
        at, _ = self._walked(state, number)
        origin = self._origin(state)
        return newton_step(self._family.response(number - 1, origin), at, origin)

    def _origin(self, state: RegressionState) -> float:
        """The linear predictor at the released mean of y."""
        return float(rounded(np.array([self._family.start(float(self._found(state).centre[-1]))]))[0])

    def _walked(self, state: RegressionState, number: int) -> tuple[tuple[float, ...], list[Step]]:
        """The state at which the round of this number is, and the steps before it."""
        origin, steps = self._origin(state), list[Step]()
        at, rough, attenuation = self._at(origin), self._family.rough, self._family.attenuated(origin)
        for done in range(1, number):
            statistic = newton_step(self._family.response(done - 1, origin), at, origin)
            steps.append(Step.of(statistic, state.done[done]))
            told = steps if done <= rough else steps[rough:]
            found = estimate(told, state.done[done].n, self._family.intercept)
            at = tuple(unattenuated(found, steps[0], attenuation if done == 1 else 0.0).tolist())
        return at, steps

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


def _not_there(steps: list[Step], found: Floats) -> tuple[str, ...]:
    """That Newton's method has not arrived, as far as the last release tells."""
    left = still_to_go(steps, found)
    if left < TUNING.arrived:
        return ()
    return (
        f"another step must move the linear predictor by less than {TUNING.arrived:g}, got about {left:.2g}: effects "
        "are strong for so few rows, and intervals may be too narrow; better with more samples or a larger epsilon",
    )


def newton_step(response: Response, at: tuple[float, ...], origin: float) -> NewtonStep:
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
    return NewtonStep(response, at, score, information, information / score, TUNING.trace * information / score**2)
