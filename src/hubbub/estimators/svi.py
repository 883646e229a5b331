"""PrivateSVI: variational inference for any NumPyro model with independent rows."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

from hubbub.analyses.iterative.plan import Batches
from hubbub.analyses.iterative.public import Public
from hubbub.analyses.iterative.rows import as_rows, shape_of
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
from hubbub.estimators.options import Tick, check_function
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
    noise_ : the posterior that counts the noise (NoiseAware); None for guides that are not normal, more than 300 latent
        numbers, too few steps, no noise, or where none was found: `summary()` says which.
    flat_ : flat parameters of the guide, averaged over the last steps.   result_ : VariationalResult.
    trace_ : (steps, p) flat parameters after every step.   analysis_ : VariationalInference, with the seed that was
        used. A loaded estimator has neither of the two.
    """

    kind = "variational inference"
    own = ("clip", "average")

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
        self.model = model
        self.guide = guide
        self.optimiser = optimiser
        self.budget = budget
        self.clip = clip
        self.batch = batch
        self.steps = steps
        self.engine = engine
        self.selection = selection
        self.ledger = ledger
        self.noise_multiplier = noise_multiplier
        self.average = average
        self.seed = seed
        self.tick = tick

    def fit(self, *data: Any, **public: Any) -> PrivateSVI:
        """Run all steps over the rows, one client each: `fit(X, y)` calls `model(X, y)`; keywords are public."""
        schedule, clip = self._schedule(), positive("clip", self.clip)
        check_choices(self.optimiser, self.average)
        rows, shape = as_rows(data)
        check_function("model", self.model)
        if self.guide is not None:
            check_function("guide", self.guide, "a function or an automatic guide")
        model = guided_model(self.model, self.guide, shape, Public(public), rows.shape[0])
        self.analysis_ = VariationalInference(model, clip, self.optimiser, self.average, **schedule)
        found = self._result_of(self.analysis_, rows)
        self.trace_ = found.trace
        return self._with(found)

    def sample(self, draws: int = 1000, *, noise_aware: bool = True, seed: int = 0) -> dict[str, Floats]:
        """Draws of the latent sites: of the posterior that counts the noise where there is one, else of the guide."""
        return self._fitted().sample(draws, noise_aware=noise_aware, seed=seed)  # type: ignore[no-any-return]

    def save(self, path: str | PathLike[str]) -> None:
        """Write parameters, sites, settings and the privacy report to a JSON file, which holds no code and no trace."""
        self._write(path, self._fitted().stored())

    @classmethod
    def load(cls, path: str | PathLike[str], model: Any, guide: Any = None, **public: Any) -> Self:
        """The fitted estimator in such a file. Loading needs the model, the guide and the public keywords of fit."""
        check_function("model", model)
        found, stored = cls._read(path, model=model, guide=guide)
        shape = stored.checked(lambda: shape_of(stored.found["rows"]))
        parts = guided_model(model, guide, shape, Public(public), stored.report.samples)
        return found._with(VariationalResult.read(parts, stored))  # type: ignore[no-any-return]

    def _with(self, found: VariationalResult) -> Self:
        self.result_, self.privacy_ = found, found.privacy
        self.program_, self.flat_ = found.model.program, found.flat
        self.parameters_, self.noise_ = found.parameters, found.noise
        return self
