"""What all estimators of many steps take and check in the same way, before any budget is spent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from hubbub.analyses.driver import run
from hubbub.analyses.iterative.plan import Batches
from hubbub.analyses.iterative.report import TrainingReport
from hubbub.analyses.iterative.stored import StoredFit, StoredReport, write
from hubbub.arrays import Floats
from hubbub.engines import LocalEngine
from hubbub.errors import InvalidInput, invalid, whole
from hubbub.estimators.linear_regression import DEFAULT_BUDGET
from hubbub.privacy import Budget, Ledger, current_ledger
from hubbub.protocols import Analysis, Engine, Result

Tick = Callable[[int], object]
Found = TypeVar("Found", bound=Result)
_STORED = ("budget", "batch", "steps", "selection", "noise_multiplier", "seed")


class NotFitted(InvalidInput, NotFittedError):  # type: ignore[misc]  # scikit-learn is untyped
    """An estimator was used before `fit`."""


class TrainingEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Budget, batches and engine of a run, and what was fitted as a file; PrivateSVI describes the parameters."""

    kind: ClassVar[str]
    """What the file of a fitted one calls itself."""
    own: ClassVar[tuple[str, ...]] = ()
    """The parameters of its own that are plain values, which the file keeps."""

    budget: Budget | None
    steps: int
    batch: int | None
    selection: Batches
    engine: Engine | None
    ledger: Ledger | None
    noise_multiplier: float | None
    seed: int | None
    tick: Tick | None

    def _schedule(self) -> dict[str, Any]:
        """The settings that every analysis of many steps takes, checked; a seed is made up where none is given."""
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
        seed = int(np.random.default_rng().integers(2**31)) if self.seed is None else self.seed
        return {
            "steps": self.steps, "batch": self.batch, "selection": self.selection,
            "noise_multiplier": self.noise_multiplier, "seed": seed,
        }  # fmt: skip

    def _result_of(self, analysis: Analysis[Any, Found], rows: Floats) -> Found:
        """Run the analysis over the rows, one client each, on the engine."""
        engine = LocalEngine(computes=3) if self.engine is None else self.engine
        budget = DEFAULT_BUDGET if self.budget is None else self.budget
        return run(analysis, rows, engine, budget, self.ledger, tick=self.tick)

    def _fitted(self) -> Any:
        """The result of the last fit; refuses the use of what is there only after it."""
        if not hasattr(self, "result_"):
            raise NotFitted(f"{type(self).__name__} must be fitted first, got an estimator that is not; call fit")
        return self.result_

    def _names(self, columns: int) -> tuple[str, ...]:
        """The columns' names, or x0, x1, .. where the data had none."""
        return tuple(map(str, getattr(self, "feature_names_in_", _numbered(columns))))

    def _named(self, names: tuple[str, ...]) -> None:
        """As if fitted to columns of these names."""
        self.n_features_in_ = len(names)
        if names != _numbered(len(names)):
            self.feature_names_in_ = np.array(names, dtype=object)

    def _write(self, path: str | PathLike[str], found: Mapping[str, Any]) -> None:
        settings = {name: getattr(self, name) for name in (*_STORED, *self.own)}
        write(path, self.kind, settings, found, self._fitted().privacy)

    @classmethod
    def _read(cls, path: str | PathLike[str], **given: Any) -> tuple[Any, StoredFit]:
        """An estimator with the settings of a file (without engine, ledger and tick), and the rest of the file."""
        stored = StoredFit(path, cls.kind, cls.__name__)

        def made() -> Any:
            settings = {name: stored.settings[name] for name in (*_STORED, *cls.own)}
            if settings["budget"] is not None:
                settings["budget"] = Budget(settings["budget"]["epsilon"], settings["budget"]["delta"])
            return cls(**given, **settings)

        return stored.checked(made), stored

    def __getstate__(self) -> Any:
        """An unfitted one takes the ledger of an enclosing `with` block along, as PrivateLinearRegression does."""
        state = super().__getstate__()
        if not hasattr(self, "result_") and self.ledger is None and current_ledger() is not None:
            state = {**state, "ledger": current_ledger()}
        return state


def _numbered(columns: int) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(columns))


def check_function(name: str, value: object, kind: str = "a function") -> None:
    """Refuse a model or guide that cannot be called."""
    if not callable(value):
        raise invalid(name, kind, type(value).__name__, "write it as for NumPyro")


def note_of(report: TrainingReport | StoredReport) -> str:
    """The line under a summary: samples, steps, and whether there is a guarantee."""
    kind = f"{report.budget}-differentially private" if report.is_guarantee else "NOT A GUARANTEE"
    return f"n = {report.samples}; {report.steps} steps; {kind}"
