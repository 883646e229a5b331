"""What all methods of many steps have in common: state -> clipped program -> noisy sum -> next state.

Nothing but the noisy sums reaches a state, and every state follows from the plan and the releases alone.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, TypeVar

import numpy as np

from hubbub.analyses.iterative.plan import Schedule, StepPlan, make_plan
from hubbub.analyses.iterative.report import TrainingReport
from hubbub.arrays import Floats
from hubbub.errors import HubbubError
from hubbub.protocols import Analysis, Budget, Mechanism, Plan, Population, Release, RoundSpec
from hubbub.statistics import Clipped, Program, install

Inner = TypeVar("Inner")
Found = TypeVar("Found")


@dataclass(frozen=True)
class NoisySum:
    """What one step gives to the update: a sum that stands for all samples, and how much noise is in it."""

    value: Floats
    noise_std: float
    step: int
    """Steps done before this one."""


@dataclass(frozen=True, eq=False)
class StepState(Generic[Inner]):
    """A run so far: what the method knows, and what its guarantee depends on."""

    plan: StepPlan
    inner: Inner
    """What the method itself keeps from step to step."""
    done: int = 0
    """Steps."""
    last: Release | None = None
    least_covered: int = 0
    """The smallest number of colluders that any of the steps still covered."""
    most_dropouts: int = 0
    most_colluders: int = 0
    """Simulated ones, in any of the steps."""

    def after(self, release: Release, inner: Inner) -> StepState[Inner]:
        """One step further."""
        least = release.colluders_covered if self.last is None else min(self.least_covered, release.colluders_covered)
        return StepState(
            self.plan, inner, self.done + 1, release, least, max(self.most_dropouts, release.dropouts),
            max(self.most_colluders, release.protection.colluders),
        )  # fmt: skip

    def report(self) -> TrainingReport:
        """What is promised of the steps so far."""
        assert self.last is not None  # a plan has one step at least
        return TrainingReport(
            self.plan, self.done, self.last, self.least_covered, self.most_dropouts, self.most_colluders
        )


@dataclass(frozen=True, kw_only=True)
class Stepwise(Schedule, Analysis[StepState[Inner], Found], Generic[Inner, Found]):
    """An analysis in steps. A method says where it starts, what clients run, and how it goes on after a sum."""

    label: ClassVar[str]
    """What people call the method."""

    @property
    @abstractmethod
    def program(self) -> Program:
        """What clients run."""

    @property
    @abstractmethod
    def longest(self) -> float:
        """The length to which a client clips its vector."""

    @abstractmethod
    def first(self, steps: int) -> Inner:
        """What is known before the first of so many steps."""

    @abstractmethod
    def numbers(self, inner: Inner) -> Floats:
        """The public numbers at which the program is evaluated in the next step."""

    @abstractmethod
    def moved(self, inner: Inner, noisy: NoisySum, plan: StepPlan) -> Inner:
        """What is known after a step."""

    @abstractmethod
    def found(self, state: StepState[Inner], report: TrainingReport) -> Found:
        """The result of a run that is done."""

    def plan(self, budget: Budget, population: Population, mechanism: Mechanism) -> StepPlan:
        """The steps, the batches and the noise; refuses what the budget does not pay for."""
        inner = self.first(self.steps)
        return make_plan(self, budget, population, mechanism, self.label, lambda q: self._statistic(inner, q))

    def start(self, plan: Plan) -> StepState[Inner]:
        """Before the first step; from here on this process can also take part as a client."""
        assert isinstance(plan, StepPlan)  # the one that `plan` has made
        install(self.program)
        return StepState(plan, self.first(plan.steps))

    def ask(self, state: StepState[Inner]) -> RoundSpec | None:
        """The next step."""
        plan = state.plan
        if state.done == plan.steps:
            return None
        statistic = self._statistic(state.inner, plan.probability)
        return replace(plan.specs[0], statistic=statistic, chosen=plan.chosen(state.done))

    def tell(self, state: StepState[Inner], release: Release) -> StepState[Inner]:
        """One step further."""
        noisy = standing_for_all(release, state.plan, state.done)
        return state.after(release, self.moved(state.inner, noisy, state.plan))

    def result(self, state: StepState[Inner]) -> Found:
        """What was found."""
        return self.found(state, state.report())

    def _statistic(self, inner: Inner, probability: float) -> Clipped:
        numbers = np.asarray(self.numbers(inner), dtype=np.float64)
        return Clipped(self.program, numbers, self.longest, probability)


def standing_for_all(release: Release, plan: StepPlan, step: int) -> NoisySum:
    """A release scaled to all samples; those who dropped out are stood in for by the others."""
    scale = plan.scale * plan.contributors / release.n
    value = scale * release.value
    if not np.isfinite(value).all():
        raise HubbubError(f"the noisy sum must be finite, got another in step {step}; report this")
    return NoisySum(value, scale * release.noise_std, step)
