"""PrivateSVI: variational inference for any NumPyro model with independent rows, from noisy sums alone.

In every step the trainer draws the latent sites from the guide, at public random numbers; each client computes the
gradient of its own log likelihood there, clips it, adds its noise and shares it out. From the noisy sum the gradient of
the guide's parameters follows by the chain rule, without data, and prior and entropy are added exactly (the aligned
gradients of Jalko et al. 2023: noise meets the latent sites only, not the guide's parameters).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from hubbub.analyses.iterative.draws import Draws
from hubbub.analyses.iterative.guides import FlatGuide, flat_guide
from hubbub.analyses.iterative.noise import AddedNoise, added_noise
from hubbub.analyses.iterative.plan import Plan, Selection
from hubbub.analyses.iterative.public import Public
from hubbub.analyses.iterative.report import TrainingReport
from hubbub.analyses.iterative.row_model import guarded, row_model
from hubbub.analyses.iterative.rows import RowShape, as_rows
from hubbub.analyses.iterative.settings import Settings, Tick, check_function, checked_fit
from hubbub.analyses.iterative.trainer import Method, NoisySum
from hubbub.analyses.iterative.xla import XlaProgram, gradient_program
from hubbub.analyses.rounds import Engine
from hubbub.arrays import Floats
from hubbub.errors import InvalidInput, invalid
from hubbub.privacy import Budget, Ledger
from hubbub.statistics import install
from hubbub.statistics.bounds import positive

DEFAULT_STEPS, DEFAULT_CLIP, TAIL = 500, 1.0, 0.5


class PrivateSVI(Draws):
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
    trace_ : (steps, p) flat parameters of the guide.
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
        selection: Selection = "self",
        ledger: Ledger | None = None,
        noise_multiplier: float | None = None,
        average: float = TAIL,
        seed: int | None = None,
        tick: Tick | None = None,
    ) -> None:
        self.model, self.guide, self.optimiser, self.clip = model, guide, optimiser, positive("clip", clip)
        if optimiser is not None and not isinstance(optimiser, optax.GradientTransformation):
            raise invalid("optimiser", "one of optax", type(optimiser).__name__, "use optax.adam(0.05)")
        if not (isinstance(average, int | float) and 0 < average <= 1):
            raise invalid("average", "in (0, 1]", repr(average), f"{TAIL} is common")
        self.average = average
        self.settings = Settings(budget, steps, batch, selection, engine, ledger, noise_multiplier, seed, tick)
        self.privacy_: TrainingReport | None = None

    def fit(self, *data: Any, **public: Any) -> PrivateSVI:
        """Run all steps over the rows, one client each: `fit(X, y)` calls `model(X, y)`; keywords are public."""
        rows, shape = as_rows(data)
        check_function("model", self.model)
        if self.guide is not None:
            check_function("guide", self.guide, "a function or an automatic guide")
        plan = self.settings.plan(rows.shape[0])
        parts = _prepared(self.model, self.guide, shape, Public(public), rows.shape[0])
        install(parts.program)
        optimiser = default_optimiser(plan.steps) if self.optimiser is None else self.optimiser
        key = jax.random.PRNGKey(self.settings.public_seed())
        training, report = self.settings.run(_method(parts, optimiser, plan, self.clip, self.average, key), rows, plan)
        state = training.state
        self._parts, self.privacy_, self.program_ = parts, report, parts.program
        self.trace_ = np.array(state.trace)
        self.flat_ = self.trace_[-tail_of(training.steps, self.average) :].mean(axis=0)
        self.parameters_ = jax.tree.map(np.asarray, parts.named(jnp.asarray(self.flat_)))
        gradients = np.array(state.gradients)[-tail_of(training.steps, self.average) :]
        noise = state.noise_std * np.abs(parts.carried(jnp.asarray(self.flat_), key))
        self.noise_: AddedNoise | None = added_noise(parts.guide, self.parameters_, gradients, noise, len(gradients))
        return self

    def sample(self, draws: int = 1000, *, noise_aware: bool = True, seed: int = 0) -> dict[str, Floats]:
        """Draws of the latent sites; `noise_aware` ones are wider by the variance that the noise has added."""
        checked_fit(self.privacy_, "PrivateSVI")
        parameters = self.parameters_
        if noise_aware and self.noise_ is not None:
            parameters = self.noise_.widened(parameters)
        keys = jax.random.split(jax.random.PRNGKey(seed), draws)
        return {name: np.asarray(value) for name, value in self._parts.draws(parameters, keys).items()}


class _State(NamedTuple):
    """The trainer's side of a run: public throughout."""

    flat: Any
    inner: Any
    key: Any
    position: Any
    gradients: list[Floats]
    trace: list[Floats]
    """Both grow by one entry a step."""
    noise_std: float


@dataclass(frozen=True, eq=False)
class _Parts:
    """What is made once for a model, a guide and a shape, and used by every fit."""

    guide: FlatGuide
    program: XlaProgram

    @partial(jax.jit, static_argnums=0)
    def position(self, flat: Any, key: Any) -> Any:
        """The guide's draw: where all clients compute."""
        return self.guide.draw(flat, key)[0]

    @partial(jax.jit, static_argnums=0)
    def carried(self, flat: Any, key: Any) -> Any:
        """For the mean of a normal guide: 1 where the noise of the sums reaches it, else 0."""
        reached = self.guide.model.whole(np.ones(self.program.dimension))
        return jax.grad(lambda flat: jnp.dot(self.guide.draw(flat, key)[0], reached))(flat)

    @partial(jax.jit, static_argnums=0)
    def named(self, flat: Any) -> Any:
        """The guide's parameters by name."""
        return self.guide.parameters(flat)

    @partial(jax.jit, static_argnums=0)
    def draws(self, parameters: Any, keys: Any) -> Any:
        """The latent sites, a draw for each key."""
        flat = self.guide.flat(parameters)
        return jax.vmap(lambda key: self.guide.model.values(self.guide.draw(flat, key)[0]))(keys)

    @partial(jax.jit, static_argnums=(0, 1))
    def step(
        self, optimiser: Any, flat: Any, inner: Any, key: Any, noisy: Any, clients: Any
    ) -> tuple[Any, Any, Any, Any, Any]:
        """One step uphill: parameters, optimiser's state, gradient; and key and draw of the next step."""

        def bound(flat: Any) -> Any:
            position, public = self.guide.draw(flat, key)
            return jnp.dot(position, noisy) + public

        gradient = -jax.grad(bound)(flat) / clients
        updates, inner = optimiser.update(gradient, inner, flat)
        flat, key = optax.apply_updates(flat, updates), jax.random.split(key)[0]
        return flat, inner, gradient * clients, key, self.guide.draw(flat, key)[0]


@lru_cache(maxsize=16)
def _prepared(model: Any, guide: Any, shape: RowShape, public: Public, clients: int) -> _Parts:
    """Model and guide checked, the clients' program exported: nothing of this looks at data."""
    rows = row_model(model, shape, public)
    flat = flat_guide(rows, guide, 0)
    parts = _Parts(flat, gradient_program(rows, clients))
    guarded("guide", 1, lambda: _rehearse(parts))
    return parts


def _rehearse(parts: _Parts) -> None:
    """All that is done after the last step, once before the first: no budget is spent on what cannot be used."""
    start, key = jnp.asarray(parts.guide.start, dtype=float), jax.random.PRNGKey(0)
    parts.position(start, key)
    parts.draws(jax.tree.map(np.asarray, parts.named(start)), key[None])


@lru_cache(maxsize=16)
def default_optimiser(steps: int) -> Any:
    """Adam with a rate that falls from 0.1 to 0.005, so that the noise averages out at the end."""
    return optax.adam(optax.cosine_decay_schedule(0.1, max(1, steps), alpha=0.05))


def tail_of(steps: int, average: float) -> int:
    """How many of the last steps are averaged."""
    return max(1, round(average * steps))


def _method(parts: _Parts, optimiser: Any, plan: Plan, clip: float, average: float, key: Any) -> Method[_State]:
    kept = plan.steps - tail_of(plan.steps, average)

    def update(state: _State, noisy: NoisySum) -> _State:
        flat, inner, gradient, following, position = parts.step(
            optimiser, state.flat, state.inner, state.key,
            parts.guide.model.whole(noisy.value).astype(state.flat.dtype), float(plan.clients),
        )  # fmt: skip
        state.trace.append(np.asarray(flat))
        if not np.isfinite(state.trace[-1]).all():
            raise InvalidInput(
                f"optimiser must keep the parameters finite, got others in step {noisy.step}; use a smaller rate"
            )
        if noisy.step >= kept:
            state.gradients.append(np.asarray(gradient))
        return state._replace(flat=flat, inner=inner, key=following, position=position, noise_std=noisy.noise_std)

    flat = jnp.asarray(parts.guide.start, dtype=float)
    start = _State(flat, optimiser.init(flat), key, parts.position(flat, key), [], [], 0.0)
    return Method("variational inference", parts.program, clip, start, lambda s: np.asarray(s.position), update)
