"""PrivateSGLD: Langevin sampling for any NumPyro model with independent rows."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

from hubbub.analyses.iterative.plan import Batches
from hubbub.analyses.iterative.public import Public
from hubbub.analyses.iterative.rows import as_rows, shape_of
from hubbub.analyses.iterative.sgld import (
    BURN_IN,
    DEFAULT_CLIP,
    DEFAULT_STEPS,
    LangevinResult,
    LangevinSampling,
    check_burn_in,
    checked_size,
    langevin_model,
)
from hubbub.arrays import Floats
from hubbub.estimators.options import Tick, check_function
from hubbub.estimators.sampled import SampledEstimator
from hubbub.privacy import Budget, Ledger
from hubbub.protocols import Engine
from hubbub.statistics.bounds import positive


class PrivateSGLD(SampledEstimator):
    """Private stochastic gradient Langevin dynamics.

    Parameters
    ----------
    model, budget, clip, batch, steps, engine, selection, ledger, noise_multiplier, seed, tick : as in PrivateSVI.
    step_size : of a Langevin step, at most; default 1/(2N).
    burn_in : the share of the steps that are thrown away.

    Attributes
    ----------
    privacy_ : TrainingReport.   program_ : what clients run.   step_size_ : the one that was used.
    positions_ : (kept steps, d), one after the other; neighbours are alike.   result_ : LangevinResult.
    analysis_ : LangevinSampling, with the seed that was used; a loaded estimator has none.
    """

    kind = "Langevin sampling"
    own = ("clip", "step_size", "burn_in")

    def __init__(
        self,
        model: Any,
        budget: Budget | None = None,
        clip: float = DEFAULT_CLIP,
        batch: int | None = None,
        steps: int = DEFAULT_STEPS,
        engine: Engine | None = None,
        *,
        step_size: float | None = None,
        burn_in: float = BURN_IN,
        selection: Batches = "self",
        ledger: Ledger | None = None,
        noise_multiplier: float | None = None,
        seed: int | None = None,
        tick: Tick | None = None,
    ) -> None:
        self.model = model
        self.budget = budget
        self.clip = clip
        self.batch = batch
        self.steps = steps
        self.engine = engine
        self.step_size = step_size
        self.burn_in = burn_in
        self.selection = selection
        self.ledger = ledger
        self.noise_multiplier = noise_multiplier
        self.seed = seed
        self.tick = tick

    def fit(self, *data: Any, **public: Any) -> PrivateSGLD:
        """Run all steps over the rows, one client each: `fit(X, y)` calls `model(X, y)`; keywords are public."""
        schedule, clip, size = self._schedule(), positive("clip", self.clip), checked_size(self.step_size)
        check_burn_in(self.burn_in)
        rows, shape = as_rows(data)
        check_function("model", self.model)
        model = langevin_model(self.model, shape, Public(public), rows.shape[0])
        self.analysis_ = LangevinSampling(model, clip, size, self.burn_in, **schedule)
        return self._with(self._result_of(self.analysis_, rows))

    def sample(self, draws: int = 1000, *, seed: int = 0) -> dict[str, Floats]:
        """Draws of the latent sites, evenly spread over the kept steps."""
        return self._fitted().sample(draws, seed=seed)  # type: ignore[no-any-return]

    def save(self, path: str | PathLike[str]) -> None:
        """Write positions, sites, settings and the privacy report to a JSON file, which holds no code."""
        self._write(path, self._fitted().stored())

    @classmethod
    def load(cls, path: str | PathLike[str], model: Any, **public: Any) -> Self:
        """The fitted estimator in such a file. Loading needs the model and the public keywords of fit."""
        check_function("model", model)
        found, stored = cls._read(path, model=model)
        shape = stored.checked(lambda: shape_of(stored.found["rows"]))
        parts = langevin_model(model, shape, Public(public), stored.report.samples)
        return found._with(LangevinResult.read(parts, stored))  # type: ignore[no-any-return]

    def _with(self, found: LangevinResult) -> Self:
        self.result_, self.privacy_, self.program_ = found, found.privacy, found.model.program
        self.positions_, self.step_size_ = found.positions, found.step_size
        return self
