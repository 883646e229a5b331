"""PrivateSGLD: Langevin sampling for any NumPyro model with independent rows."""

from __future__ import annotations

from typing import Any

from hubbub.analyses.iterative.plan import Batches
from hubbub.analyses.iterative.public import Public
from hubbub.analyses.iterative.report import TrainingReport
from hubbub.analyses.iterative.rows import as_rows
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
from hubbub.estimators.options import Tick, TrainingOptions, check_function, fitted
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
    positions_ : (kept steps, d), one after the other; neighbours are alike.
    analysis_ : LangevinSampling, with the seed that was used.   result_ : LangevinResult.
    """

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
        self.model, self.clip = model, positive("clip", clip)
        self.step_size, self.burn_in = checked_size(step_size), burn_in
        check_burn_in(burn_in)
        self.options = TrainingOptions(budget, steps, batch, selection, engine, ledger, noise_multiplier, seed, tick)
        self.result_: LangevinResult | None = None

    def fit(self, *data: Any, **public: Any) -> PrivateSGLD:
        """Run all steps over the rows, one client each: `fit(X, y)` calls `model(X, y)`; keywords are public."""
        rows, shape = as_rows(data)
        check_function("model", self.model)
        model = langevin_model(self.model, shape, Public(public), rows.shape[0])
        schedule = self.options.schedule()
        self.analysis_ = LangevinSampling(model, self.clip, self.step_size, self.burn_in, **schedule)
        self.result_ = found = self.options.result_of(self.analysis_, rows)
        self.privacy_: TrainingReport | None = found.privacy
        self.program_, self.positions_, self.step_size_ = model.program, found.positions, found.step_size
        return self

    def sample(self, draws: int = 1000, *, seed: int = 0) -> dict[str, Floats]:
        """Draws of the latent sites, evenly spread over the kept steps."""
        return fitted(self.result_, "PrivateSGLD").sample(draws, seed=seed)

    @property
    def _result(self) -> LangevinResult | None:
        return self.result_
