"""PrivateSVI: variational inference for any NumPyro model with independent rows."""

from __future__ import annotations

from typing import Any

from hubbub.analyses.iterative.plan import Batches
from hubbub.analyses.iterative.public import Public
from hubbub.analyses.iterative.report import TrainingReport
from hubbub.analyses.iterative.rows import as_rows
from hubbub.analyses.iterative.svi import (
    DEFAULT_CLIP,
    DEFAULT_STEPS,
    TAIL,
    VariationalInference,
    VariationalResult,
    check_choices,
    guided_model,
)
from hubbub.arrays import Floats
from hubbub.estimators.options import Tick, TrainingOptions, check_function, fitted
from hubbub.estimators.sampled import SampledEstimator
from hubbub.privacy import Budget, Ledger
from hubbub.protocols import Engine
from hubbub.statistics.bounds import positive


class PrivateSVI(SampledEstimator):
    """Private variational inference.

    Parameters
    ----------
    model : a NumPyro model with every observed site in a plate over the data that takes any number of rows:
        `with numpyro.plate("clients", N, subsample_size=X.shape[0])`.
    guide : an automatic guide (or its class; default AutoDiagonalNormal), or a function of the same arguments.
    optimiser : of optax; default Adam, its rate falling from 0.1 to 0.005. It sees the gradient divided by N.
    budget : what the whole run may spend; default (epsilon=1, delta=1e-5).
    clip : the largest length of one client's gradient in the model's latent sites; does not depend on N.
    batch : how many clients count in a step on average; default all.
    steps : of the run. Where `noise_multiplier` is given, as many of them as the budget pays for.
    engine : where the roles run; default LocalEngine(computes=3).
    selection : "self" (every client flips its own coin, all send) or "trainer" (fixed batches that are known).
    ledger : a total budget, charged once for the whole run before its first step.
    noise_multiplier : noise over the sensitivity 2 clip, in place of what follows from the budget; 0 is no privacy.
    average : the share of the steps, from the last one back, whose parameters are averaged.
    seed : of what is public (the guide's draws). Noise and coins are the engine's.
    tick : called with the number of each step that is done.

    Attributes
    ----------
    parameters_ : of the guide, by name.   privacy_ : TrainingReport.   program_ : what clients run.
    noise_ : what the noise adds (AddedNoise), None for guides that are not normal.
    trace_ : (steps, p) flat parameters of the guide.   flat_ : their average over the last steps.
    analysis_ : VariationalInference, with the seed that was used.   result_ : VariationalResult.
    """

    def __init__(
        self,
        model: Any,
        guide: Any = None,
        optimiser: Any = None,
        budget: Budget | None = None,
        clip: float = DEFAULT_CLIP,
        batch: int | None = None,
        steps: int = DEFAULT_STEPS,
        engine: Engine | None = None,
        *,
        selection: Batches = "self",
        ledger: Ledger | None = None,
        noise_multiplier: float | None = None,
        average: float = TAIL,
        seed: int | None = None,
        tick: Tick | None = None,
    ) -> None:
        self.model, self.guide, self.optimiser, self.clip = model, guide, optimiser, positive("clip", clip)
        check_choices(optimiser, average)
        self.average = average
        self.options = TrainingOptions(budget, steps, batch, selection, engine, ledger, noise_multiplier, seed, tick)
        self.result_: VariationalResult | None = None

    def fit(self, *data: Any, **public: Any) -> PrivateSVI:
        """Run all steps over the rows, one client each: `fit(X, y)` calls `model(X, y)`; keywords are public."""
        rows, shape = as_rows(data)
        check_function("model", self.model)
        if self.guide is not None:
            check_function("guide", self.guide, "a function or an automatic guide")
        model = guided_model(self.model, self.guide, shape, Public(public), rows.shape[0])
        schedule = self.options.schedule()
        self.analysis_ = VariationalInference(model, self.clip, self.optimiser, self.average, **schedule)
        self.result_ = found = self.options.result_of(self.analysis_, rows)
        self.privacy_: TrainingReport | None = found.privacy
        self.program_, self.trace_, self.flat_ = model.program, found.trace, found.flat
        self.parameters_, self.noise_ = found.parameters, found.noise
        return self

    def sample(self, draws: int = 1000, *, noise_aware: bool = True, seed: int = 0) -> dict[str, Floats]:
        """Draws of the latent sites; `noise_aware` ones are wider by the variance that the noise has added."""
        return fitted(self.result_, "PrivateSVI").sample(draws, noise_aware=noise_aware, seed=seed)

    @property
    def _result(self) -> VariationalResult | None:
        return self.result_
