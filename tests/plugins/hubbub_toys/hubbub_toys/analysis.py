"""The mean of a bounded column, from one noisy sum."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar

from hubbub import PrivacyReport
from hubbub.protocols import Analysis, Budget, Description, Mechanism, Plan, Population, Release, Result, RoundSpec
from hubbub_toys.statistic import ToyRange


@dataclass(frozen=True)
class ToyState:
    """The plan, and the release once it is there."""

    plan: Plan
    release: Release | None = None


@dataclass(frozen=True)
class ToyFound(Result):
    """The posterior of the mean over the samples under a flat prior: normal, since the noise is."""

    mean: float
    std: float
    n: int
    privacy: PrivacyReport

    def table(self, level: float = 0.9) -> list[dict[str, Any]]:
        half = self.std * NormalDist().inv_cdf((1 + level) / 2)
        return [{"name": "mean", "mean": self.mean, "std": self.std, "low": self.mean - half, "high": self.mean + half}]

    def as_dict(self) -> dict[str, Any]:
        return {"quantities": {row.pop("name"): row for row in self.table()}, "n": self.n}


@dataclass(frozen=True)
class ToyMean(Analysis[ToyState, ToyFound]):
    """The mean of `column` over all samples, whose values are known to lie in [low, high]."""

    kind: ClassVar[str] = "toy-mean"
    low: float = 0.0
    high: float = 1.0
    column: str = "value"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def statistic(self) -> ToyRange:
        return ToyRange(float(self.low), float(self.high))

    def plan(self, budget: Budget, population: Population, mechanism: Mechanism) -> Plan:
        (noise,) = mechanism.within(budget, (1.0,))
        return Plan(budget, population, (RoundSpec("toy sum", self.statistic, noise),))

    def start(self, plan: Plan) -> ToyState:
        return ToyState(plan)

    def ask(self, state: ToyState) -> RoundSpec | None:
        return state.plan.specs[0] if state.release is None else None

    def tell(self, state: ToyState, release: Release) -> ToyState:
        return ToyState(state.plan, release)

    def result(self, state: ToyState) -> ToyFound:
        release = state.release
        assert release is not None
        mean = self.statistic.middle + release.value[0] / release.n
        return ToyFound(mean, release.noise_std / release.n, release.n, PrivacyReport.of(state.plan, (release,)))

    def describe(self) -> dict[str, Any]:
        low, high = float(self.low), float(self.high)
        return {"kind": self.kind, "package": "hubbub-toys", "low": low, "high": high, "column": self.column}

    @classmethod
    def of(cls, description: Description) -> "ToyMean":
        return cls(description["low"], description["high"], description["column"])
