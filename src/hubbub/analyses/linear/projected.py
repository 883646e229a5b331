"""The paper's linear regressions: plain (kind "linear-plain") and projected (Algorithm 2, kind "linear-projected").

    y_i ~ N(x_i' beta, 1/noise_precision),   beta ~ N(0, I/prior_precision)

The private part ends with the Gram sums; what follows is post-processing and costs nothing. Columns and target are
taken to be centred, and the posterior treats the noisy sums as exact: of the noise a repair of XX' knows the standard
deviation, and nothing knows its law.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from hubbub.analyses.linear.auto import multiplier_of
from hubbub.analyses.linear.regression import RegressionColumns, RegressionState, checked_positive, written_columns
from hubbub.analyses.linear.repair import Repair, repaired_matrix
from hubbub.analyses.linear.stored import INTERVALS, StoredModel
from hubbub.analyses.linear.thresholds import find_thresholds
from hubbub.analyses.posterior import LinearPosterior, NormalPosterior
from hubbub.arrays import Floats
from hubbub.privacy import PrivacyReport
from hubbub.protocols import Analysis, Budget, Description, Mechanism, Plan, Population, Release, Result, RoundSpec
from hubbub.statistics import Box, Formula, Gram, Regression, SecondMoments

DEVIATIONS_SHARE = 0.3  # the paper's share of the budget for the deviations
FALLBACK_DEVIATION = 1 / 15  # of the assumed bound: the paper's 0.5 at its bound of 7.5
TYPICAL_DEVIATION = 1 / 3
"""Of the bound: what a plan assumes before the deviations are known."""


@dataclass(frozen=True)
class BoxResult(Result):
    """The noisy sums of rows in a box, and the posterior that takes them for exact."""

    names: tuple[str, ...]
    target: str
    gram: Gram
    n: int
    bound: Box
    noise_std: float
    privacy: PrivacyReport
    method: str
    prior_precision: float = 1.0
    noise_precision: float = 1.0
    repair: Repair = "ridge"

    def with_caveats(self, caveats: tuple[str, ...]) -> BoxResult:
        """The same with reasons why it is not a guarantee."""
        return replace(self, privacy=replace(self.privacy, caveats=caveats))

    @cached_property
    def posterior(self) -> LinearPosterior:
        """Normal, without an intercept, the residual variance being assumed."""
        normal = normal_posterior(
            self.gram, noise_std=self.noise_std, repair=self.repair, prior_precision=self.prior_precision,
            noise_precision=self.noise_precision,
        )  # fmt: skip
        return replace(LinearPosterior.without_intercept(normal, 1 / self.noise_precision), names=self.names)

    @property
    def stored(self) -> StoredModel:
        """What `hubbub predict` needs."""
        intervals = INTERVALS[self.method]
        return StoredModel(list(self.names), self.target, self.posterior, self.privacy.as_dict(), intervals)

    def table(self, level: float = 0.9) -> list[dict[str, Any]]:
        """Coefficients and the assumed residual deviation."""
        return self.stored.rows(level)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**self.stored.summary(), "n": self.n}

    def files(self) -> Mapping[str, Callable[[Path], None]]:
        """The model for `hubbub predict`."""
        return {"out": self.stored.save}


@dataclass(frozen=True)
class PlainRegression(RegressionColumns, Analysis[RegressionState, BoxResult]):
    """One round: the regression sums of data clipped to the assumed bounds, |x_j| and |y| at most.

    `formula` "paper" takes the paper's looser sensitivity; `repair` says what becomes of negative eigenvalues.
    """

    kind: ClassVar[str] = "linear-plain"
    method: ClassVar[str] = "plain"
    prior_precision: float = 1.0
    noise_precision: float = 1.0
    repair: Repair = "ridge"
    formula: Formula = "tight"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_bounds()
        for field in ("prior_precision", "noise_precision"):
            checked_positive(field, getattr(self, field))

    @property
    def box(self) -> Box:
        """The widest absolute value of each column."""
        widest = np.abs(self.ranges).max(axis=1)
        return Box(tuple(widest[:-1].tolist()), float(widest[-1]))

    def plan(self, budget: Budget, population: Population, mechanism: Mechanism) -> Plan:
        """One round."""
        (noise,) = mechanism.within(budget, (1.0,))
        return Plan(budget, population, (RoundSpec("regression", self._sums(self.box), noise),))

    def _sums(self, bound: Box) -> Regression:
        return Regression(bound, formula=self.formula)

    def start(self, plan: Plan) -> RegressionState:
        """Nothing is released yet."""
        return RegressionState(plan)

    def ask(self, state: RegressionState) -> RoundSpec | None:
        """The sums."""
        return None if state.done else state.plan.specs[0]

    def tell(self, state: RegressionState, release: Release) -> RegressionState:
        """With one more release."""
        return state.after(release)

    def result(self, state: RegressionState) -> BoxResult:
        """The sums, unflattened."""
        return self._result(state, self.box)

    def _result(self, state: RegressionState, bound: Box) -> BoxResult:
        release = state.done[-1]
        return BoxResult(
            self.features, self.target, self._sums(bound).unflatten(release.value), release.n, bound,
            release.noise_std, state.report(), self.method, self.prior_precision, self.noise_precision, self.repair,
        )  # fmt: skip

    @classmethod
    def written(cls, settings: Mapping[str, Any]) -> Self:
        """From study.toml, where bounds are text such as "age=0:110,salt=0:40"."""
        own = {each.name for each in fields(cls)} - {"features", "target", "x_bound", "y_bound"}
        rest = {name: value for name, value in settings.items() if name in own}
        return cls(**written_columns(settings, own), **rest)

    def describe(self) -> dict[str, Any]:
        """Names, bounds and settings, for a study."""
        return {
            "kind": self.kind, **self.described(), "prior_precision": self.prior_precision,
            "noise_precision": self.noise_precision, "repair": self.repair, "formula": self.formula,
        }  # fmt: skip

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        return replace(
            cls.read(description), prior_precision=description["prior_precision"],
            noise_precision=description["noise_precision"], repair=description["repair"],
            formula=description["formula"],
        )  # fmt: skip


@dataclass(frozen=True)
class ProjectedRegression(PlainRegression):
    """Algorithm 2: deviations, then thresholds found on auxiliary data, then the sums of rows clipped to them.

    `thresholds` skips the search where the caller has done it. `fallback` is the deviation assumed where the noise
    makes a variance negative: the paper's 0.5, or by default a fifteenth of the bound.
    """

    kind: ClassVar[str] = "linear-projected"
    method: ClassVar[str] = "projected"
    thresholds: tuple[float, float] | None = None
    fallback: float | None = None

    def plan(self, budget: Budget, population: Population, mechanism: Mechanism) -> Plan:
        """Two rounds; the second stands here for deviations of a third of the bounds, since the real ones are open."""
        first, second = mechanism.within(budget, (DEVIATIONS_SHARE, 1 - DEVIATIONS_SHARE))
        typical = self._limits * TYPICAL_DEVIATION
        plan = ProjectedPlan(
            budget, population,
            (RoundSpec("deviations", SecondMoments(tuple(self._limits.tolist())), first),
             RoundSpec("regression", self._sums(self.box), second)),
            self._searched(population, second),
        )  # fmt: skip
        specs = (plan.specs[0], replace(plan.specs[1], statistic=self._sums(self._inner(plan, typical))))
        return replace(plan, specs=specs)

    def _searched(self, population: Population, mechanism: Mechanism) -> tuple[float, float]:
        if self.thresholds is not None:
            return self.thresholds
        return find_thresholds(
            population.n, len(self.features), multiplier_of(mechanism, len(self.features)), population, self.formula,
            self.prior_precision, self.noise_precision,
        )  # fmt: skip

    @property
    def _limits(self) -> Floats:
        box = self.box
        return np.array([*box.x, box.y])

    def _inner(self, plan: Plan, deviations: Floats) -> Box:
        """What rows are clipped to: so many deviations, and no more than the assumed bounds."""
        assert isinstance(plan, ProjectedPlan)
        p_x, p_y = plan.thresholds
        projected = np.minimum(deviations * np.append(np.full(len(self.features), p_x), p_y), self._limits)
        return Box(tuple(projected[:-1].tolist()), float(projected[-1]))

    def _found(self, state: RegressionState) -> Box:
        fallback = self._limits * FALLBACK_DEVIATION if self.fallback is None else self.fallback
        return self._inner(state.plan, private_deviations(state.done[0], fallback))

    def ask(self, state: RegressionState) -> RoundSpec | None:
        """First the deviations, then the sums."""
        if len(state.done) != 1:
            return None if state.done else state.plan.specs[0]
        return replace(state.plan.specs[1], statistic=self._sums(self._found(state)))

    def result(self, state: RegressionState) -> BoxResult:
        """The sums, unflattened."""
        return self._result(state, self._found(state))

    def describe(self) -> dict[str, Any]:
        """Names, bounds and settings, for a study."""
        thresholds = None if self.thresholds is None else list(self.thresholds)
        return {**super().describe(), "thresholds": thresholds, "fallback": self.fallback}

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        pair = description["thresholds"]
        thresholds = None if pair is None else (float(pair[0]), float(pair[1]))
        return replace(super().of(description), thresholds=thresholds, fallback=description["fallback"])


@dataclass(frozen=True)
class ProjectedPlan(Plan):
    """A plan with the thresholds that were found before the first round, from public numbers alone."""

    thresholds: tuple[float, float]
    """For x and for y, in standard deviations."""


def private_deviations(release: Release, fallback: float | Floats) -> Floats:
    """Standard deviations of (centred) columns from the noisy second moments."""
    variance = release.value / release.n
    return np.where(variance > 0, np.sqrt(np.maximum(variance, 0.0)), fallback)


def normal_posterior(
    gram: Gram,
    *,
    noise_std: float = 0.0,
    prior_precision: float = 1.0,
    noise_precision: float = 1.0,
    repair: Repair = "flip",
) -> NormalPosterior:
    """The paper's posterior: the noisy sums in the formula as if they were exact, XX' repaired first.

    Its intervals ignore the noise of the mechanism and are too narrow where that noise is large.
    """
    xx = repaired_matrix(gram.xx, repair, noise_std)
    precision = prior_precision * np.eye(gram.xy.size) + noise_precision * xx
    covariance = np.linalg.inv(precision)
    return NormalPosterior(covariance @ (noise_precision * gram.xy), (covariance + covariance.T) / 2)
