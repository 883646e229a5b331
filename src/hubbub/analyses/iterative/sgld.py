"""PrivateSGLD: Langevin sampling whose gradients are noisy sums (Wang, Fienberg and Smola 2015).

A step of size h needs noise of variance h. The privacy noise in the gradient already brings h^2 s^2 / 4, with s its
standard deviation, so only the rest is added; a step so large that privacy noise alone would exceed h is made smaller.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hubbub.analyses.iterative.draws import Draws
from hubbub.analyses.iterative.plan import Plan, Selection
from hubbub.analyses.iterative.public import Public
from hubbub.analyses.iterative.report import TrainingReport
from hubbub.analyses.iterative.row_model import RowModel, row_model
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

BURN_IN = 0.3


class PrivateSGLD(Draws):
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
    """

    def __init__(
        self,
        model: Any,
        budget: Budget | None = None,
        clip: float = 1.0,
        batch: int | None = None,
        steps: int = 1000,
        engine: Engine | None = None,
        *,
        step_size: float | None = None,
        burn_in: float = BURN_IN,
        selection: Selection = "self",
        ledger: Ledger | None = None,
        noise_multiplier: float | None = None,
        seed: int | None = None,
        tick: Tick | None = None,
    ) -> None:
        self.model, self.clip = model, positive("clip", clip)
        self.step_size = None if step_size is None else positive("step_size", step_size)
        if not (isinstance(burn_in, int | float) and 0 <= burn_in < 1):
            raise invalid("burn_in", "in [0, 1)", repr(burn_in), f"{BURN_IN} is common")
        self.burn_in = burn_in
        self.settings = Settings(budget, steps, batch, selection, engine, ledger, noise_multiplier, seed, tick)
        self.privacy_: TrainingReport | None = None

    def fit(self, *data: Any, **public: Any) -> PrivateSGLD:
        """Run all steps over the rows, one client each: `fit(X, y)` calls `model(X, y)`; keywords are public."""
        rows, shape = as_rows(data)
        check_function("model", self.model)
        plan = self.settings.plan(rows.shape[0])
        parts = _prepared(self.model, shape, Public(public), rows.shape[0])
        install(parts.program)
        size = 0.5 / rows.shape[0] if self.step_size is None else self.step_size
        method = _method(parts, plan, self.clip, size, self.settings.public_seed())
        training, self.privacy_ = self.settings.run(method, rows, plan)
        kept = training.steps - round(self.burn_in * training.steps)
        self._rows, self.program_, self.step_size_ = parts.model, parts.program, training.state.size
        self.positions_ = np.array(training.state.trace)[-max(1, kept) :]
        return self

    def sample(self, draws: int = 1000, *, seed: int = 0) -> dict[str, Floats]:
        """Draws of the latent sites, evenly spread over the kept steps."""
        checked_fit(self.privacy_, "PrivateSGLD")
        chosen = np.linspace(0, len(self.positions_) - 1, draws).round().astype(int)
        values = jax.vmap(self._rows.values)(jnp.asarray(self.positions_[chosen]))
        return {name: np.asarray(value) for name, value in values.items()}


class _State(NamedTuple):
    position: Any
    trace: list[Floats]
    size: float


class _Parts(NamedTuple):
    model: RowModel
    prior: Any
    program: XlaProgram


@lru_cache(maxsize=16)
def _prepared(model: Any, shape: RowShape, public: Public, clients: int) -> _Parts:
    rows = row_model(model, shape, public)
    return _Parts(rows, jax.jit(jax.grad(rows.public_part)), gradient_program(rows, clients))


def _method(parts: _Parts, plan: Plan, clip: float, wanted: float, seed: int) -> Method[_State]:
    rng = np.random.default_rng(seed)
    reached = parts.model.whole(np.ones(parts.program.dimension))

    def update(state: _State, noisy: NoisySum) -> _State:
        size = wanted if noisy.noise_std == 0 else min(wanted, 4 / noisy.noise_std**2)
        gradient = parts.model.whole(noisy.value) + np.asarray(parts.prior(jnp.asarray(state.position, dtype=float)))
        missing = np.maximum(0.0, size - np.square(size * noisy.noise_std / 2 * reached))
        moved = state.position + size / 2 * gradient + np.sqrt(missing) * rng.standard_normal(gradient.size)
        if not np.isfinite(moved).all():
            raise InvalidInput(f"step_size must keep the position finite, got step_size={size:.3g}; use a smaller one")
        state.trace.append(moved)
        return state._replace(position=moved, size=size)

    start = _State(np.asarray(parts.model.start, dtype=np.float64), [], wanted)
    return Method("Langevin sampling", parts.program, clip, start, lambda s: s.position, update)
