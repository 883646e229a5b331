"""What all families have in common: one round, a posterior from its release, and `fit` for values at hand."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from hubbub.analyses.driver import run
from hubbub.arrays import Floats, number_rows
from hubbub.errors import invalid
from hubbub.privacy import Budget, Ledger, PrivacyReport
from hubbub.protocols import Analysis, Engine, Mechanism, Plan, Population, Release, Result, RoundSpec, Statistic


class Posterior(Protocol):
    """What every posterior of a family offers."""

    @property
    def mean(self) -> Any:
        """Posterior means."""
        ...

    @property
    def std(self) -> Any:
        """Posterior standard deviations."""
        ...

    def interval(self, level: float = 0.9) -> Floats:
        """Central credible intervals."""
        ...


_MOST = 0.5  # more than so many clipped values are most of them
P = TypeVar("P", bound=Posterior)


@dataclass(frozen=True)
class FamilyState:
    """The plan, and the release once it is there."""

    plan: Plan
    release: Release | None = None


@dataclass(frozen=True)
class FamilyFit(Result, Generic[P]):
    """The posterior and the statement of its privacy."""

    posterior: P
    privacy: PrivacyReport
    release: Release
    names: tuple[str, ...]
    """Of the quantities."""
    clipped: float | None = None
    """Share of the values that were clipped, as the posterior expects it; None where the family clips none."""

    def table(self, level: float = 0.9) -> list[dict[str, Any]]:
        """A row for each quantity."""
        means, stds = np.atleast_1d(self.posterior.mean), np.atleast_1d(self.posterior.std)
        ends = np.atleast_2d(self.posterior.interval(level))
        return [
            {"name": name, "mean": float(mean), "std": float(std), "low": float(low), "high": float(high)}
            for name, mean, std, (low, high) in zip(self.names, means, stds, ends, strict=True)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        rows = {row["name"]: {key: row[key] for key in ("mean", "std", "low", "high")} for row in self.table()}
        found = {"quantities": rows, "intervals": "90 %, the privacy noise counted", "n": self.release.n}
        return found if self.clipped is None else {**found, "clipped": self.clipped}

    def cautions(self) -> tuple[str, ...]:
        """That most values were clipped, as far as the noisy sums tell; this costs no privacy."""
        if self.clipped is None or self.clipped <= _MOST:
            return ()
        return (
            f"about {self.clipped:.0%} of the values seem to lie beyond the bound: the intervals count that, but rest "
            "on the few others, on the shape of the family and on the prior; a larger bound may tell more",
        )


@dataclass(frozen=True)
class Family(Analysis[FamilyState, FamilyFit[P]], Generic[P]):
    """A family of distributions whose posterior needs one sum."""

    label: ClassVar[str]
    """Of its one round."""

    @abstractmethod
    def checked(self) -> Any:
        """The same with every setting as a plain number, or one line that says what is wrong."""

    @property
    @abstractmethod
    def statistic(self) -> Statistic:
        """What is summed."""

    @abstractmethod
    def posterior(self, release: Release) -> P:
        """The posterior, from the noisy sum."""

    def beyond(self, posterior: Any) -> float | None:
        """Expected share of values beyond the bound, in the column that has most of them; None without bounds."""
        return None

    @abstractmethod
    def quantities(self) -> tuple[str, ...]:
        """The names of what the posterior is of."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """All settings as plain JSON values."""

    def plan(self, budget: Budget, population: Population, mechanism: Mechanism) -> Plan:
        """One round with all the budget."""
        me = self.checked()
        (noise,) = mechanism.within(budget, (1.0,))
        return Plan(budget, population, (RoundSpec(self.label, me.statistic, noise),))

    def start(self, plan: Plan) -> FamilyState:
        """Nothing is released yet."""
        return FamilyState(plan)

    def ask(self, state: FamilyState) -> RoundSpec | None:
        """The one sum."""
        return state.plan.specs[0] if state.release is None else None

    def tell(self, state: FamilyState, release: Release) -> FamilyState:
        """That is all that is needed."""
        return FamilyState(state.plan, release)

    def result(self, state: FamilyState) -> FamilyFit[P]:
        """The posterior."""
        assert state.release is not None
        report, found = PrivacyReport.of(state.plan, (state.release,)), self.posterior(state.release)
        return FamilyFit(found, report, state.release, self.quantities(), self.beyond(found))

    def describe(self) -> dict[str, Any]:
        """Kind and settings, for a study."""
        return {"kind": self.kind, **self.settings()}

    def fit(self, values: object, *, budget: Budget, engine: Engine, ledger: Ledger | None = None) -> FamilyFit[P]:
        """The posterior from values at hand, one for each client: (n,), or (n, d) where the family has d columns.

        Parameters
        ----------
        budget : what the fit may spend.
        engine : where the roles run, such as LocalEngine(computes=3).
        ledger : a total budget over several fits; default that of an enclosing `with Ledger(...)`.
        """
        me = self.checked()
        try:
            rows = np.asarray(values)
        except ValueError:
            raise invalid(
                "values", "a number for each client", "rows of different lengths", "make them alike"
            ) from None
        rows = number_rows("values", rows[:, None] if rows.ndim == 1 else rows, me.statistic.columns)
        found: FamilyFit[P] = run(me, rows, engine, budget, ledger)
        return found
