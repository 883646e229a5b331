"""What all iterative estimators take and check in the same way, before any budget is spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hubbub.analyses.iterative.plan import Plan, Selection, make_plan
from hubbub.analyses.iterative.report import TrainingReport, report_of
from hubbub.analyses.iterative.trainer import Method, State, Training, train
from hubbub.analyses.rounds import Engine
from hubbub.arrays import Floats
from hubbub.engines import LocalEngine
from hubbub.errors import InvalidInput, invalid, whole
from hubbub.privacy import Budget, Ledger, current_ledger

DEFAULT_BUDGET = Budget(epsilon=1.0, delta=1e-5)
Tick = Callable[[int], object]


@dataclass(frozen=True)
class Settings:
    """Budget, batches and engine of a run."""

    budget: Budget | None
    steps: int
    batch: int | None
    selection: Selection
    engine: Engine | None
    ledger: Ledger | None
    noise_multiplier: float | None
    seed: int | None
    tick: Tick | None

    def __post_init__(self) -> None:
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise invalid("budget", "a Budget", repr(self.budget), "use Budget(epsilon=1.0, delta=1e-5)")
        if self.engine is not None and (isinstance(self.engine, type) or not hasattr(self.engine, "private_sum")):
            raise invalid("engine", "an engine", repr(self.engine), "use LocalEngine(computes=3)")
        if self.ledger is not None and not isinstance(self.ledger, Ledger):
            raise invalid("ledger", "a Ledger", repr(self.ledger), "use Ledger(budget, path='ledger.json')")
        if self.tick is not None and not callable(self.tick):
            raise invalid("tick", "a function of the number of steps done", repr(self.tick), "leave it out")
        if self.seed is not None:
            whole("seed", self.seed, 0, "give for example 0, or leave it out")

    def public_seed(self) -> int:
        """Of what is public anyway: where a run starts, and the guide's draws."""
        return int(np.random.default_rng(self.seed).integers(2**31))

    def plan(self, clients: int) -> Plan:
        """The steps, the batches and the noise; refuses what the budget does not pay for."""
        budget = DEFAULT_BUDGET if self.budget is None else self.budget
        rng = np.random.default_rng(self.seed)
        plan = make_plan(clients, self.steps, self.batch, self.selection, budget, self.noise_multiplier, rng)
        self._engine().population(plan.contributors)  # refuses where too few would be left to add noise
        return plan

    def run(self, method: Method[State], rows: Floats, plan: Plan) -> tuple[Training[State], TrainingReport]:
        """Charge the ledger, take all steps, and say what is promised."""
        ledger = current_ledger() if self.ledger is None else self.ledger
        tick = self.tick or (lambda _: None)
        training = train(method, rows, plan, self._engine(), ledger, tick)
        budget = DEFAULT_BUDGET if self.budget is None else self.budget
        return training, report_of(budget, training, method.label)

    def _engine(self) -> Engine:
        return LocalEngine(computes=3) if self.engine is None else self.engine


def check_function(name: str, value: object, kind: str = "a function") -> None:
    """Refuse a model or guide that cannot be called."""
    if not callable(value):
        raise invalid(name, kind, type(value).__name__, "write it as for NumPyro")


def checked_fit(value: object, name: str) -> None:
    """Refuse the use of what is there only after fit."""
    if value is None:
        raise InvalidInput(f"{name} must be fitted first, got an estimator that is not; call fit")
