"""What all estimators of many steps take and check in the same way, before any budget is spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from hubbub.analyses.driver import run
from hubbub.analyses.iterative.plan import Batches
from hubbub.analyses.iterative.report import TrainingReport
from hubbub.arrays import Floats
from hubbub.engines import LocalEngine
from hubbub.errors import InvalidInput, invalid, whole
from hubbub.privacy import Budget, Ledger
from hubbub.protocols import Analysis, Engine, Result

DEFAULT_BUDGET = Budget(epsilon=1.0, delta=1e-5)
Tick = Callable[[int], object]
Found = TypeVar("Found", bound=Result)


@dataclass(frozen=True)
class TrainingOptions:
    """Budget, batches and engine of a run; the parameters are described in PrivateSVI."""

    budget: Budget | None
    steps: int
    batch: int | None
    selection: Batches
    engine: Engine | None
    ledger: Ledger | None
    noise_multiplier: float | None
    seed: int | None
    tick: Tick | None

    def __post_init__(self) -> None:
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise invalid("budget", "a Budget", repr(self.budget), "use Budget(epsilon=1.0, delta=1e-5)")
        if self.engine is not None and (isinstance(self.engine, type) or not isinstance(self.engine, Engine)):
            raise invalid("engine", "an engine", repr(self.engine), "use LocalEngine(computes=3)")
        if self.ledger is not None and not isinstance(self.ledger, Ledger):
            raise invalid("ledger", "a Ledger", repr(self.ledger), "use Ledger(budget, path='ledger.json')")
        if self.tick is not None and not callable(self.tick):
            raise invalid("tick", "a function of the number of steps done", repr(self.tick), "leave it out")
        if self.seed is not None:
            whole("seed", self.seed, 0, "give for example 0, or leave it out")

    def schedule(self) -> dict[str, Any]:
        """The settings that every analysis of many steps takes; a seed is made up where none is given."""
        seed = int(np.random.default_rng().integers(2**31)) if self.seed is None else self.seed
        return {
            "steps": self.steps, "batch": self.batch, "selection": self.selection,
            "noise_multiplier": self.noise_multiplier, "seed": seed,
        }  # fmt: skip

    def result_of(self, analysis: Analysis[Any, Found], rows: Floats) -> Found:
        """Run the analysis over the rows, one client each, on the engine."""
        engine = LocalEngine(computes=3) if self.engine is None else self.engine
        budget = DEFAULT_BUDGET if self.budget is None else self.budget
        return run(analysis, rows, engine, budget, self.ledger, tick=self.tick)


def check_function(name: str, value: object, kind: str = "a function") -> None:
    """Refuse a model or guide that cannot be called."""
    if not callable(value):
        raise invalid(name, kind, type(value).__name__, "write it as for NumPyro")


def fitted(result: Found | None, name: str) -> Found:
    """The result of a fit; refuses the use of what is there only after it."""
    if result is None:
        raise InvalidInput(f"{name} must be fitted first, got an estimator that is not; call fit")
    return result


def note_of(report: TrainingReport) -> str:
    """The line under a summary: samples, steps, and whether there is a guarantee."""
    kind = f"{report.budget}-differentially private" if report.is_guarantee else "NOT A GUARANTEE"
    return f"n = {report.plan.samples}; {report.steps} steps; {kind}"
