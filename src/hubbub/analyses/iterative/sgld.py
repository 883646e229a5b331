"""Langevin sampling whose gradients are noisy sums (kind "sgld"; Wang, Fienberg and Smola 2015).

A step of size h needs noise of variance h. The privacy noise in the gradient already brings h^2 s^2 / 4, with s its
standard deviation, so only the rest is added; a step so large that privacy noise alone would exceed h is made smaller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from hubbub.analyses.iterative.expected import named_columns
from hubbub.analyses.iterative.installed import InstalledModels
from hubbub.analyses.iterative.plan import Schedule, StepPlan
from hubbub.analyses.iterative.public import Public
from hubbub.analyses.iterative.report import TrainingReport
from hubbub.analyses.iterative.row_model import RowModel, row_model
from hubbub.analyses.iterative.rows import RowShape
from hubbub.analyses.iterative.sampled import SampledResult
from hubbub.analyses.iterative.stepwise import NoisySum, StepState, Stepwise
from hubbub.analyses.iterative.stored import StoredFit, StoredReport
from hubbub.analyses.iterative.trace import Trace
from hubbub.analyses.iterative.xla import XlaProgram, gradient_program
from hubbub.arrays import Floats
from hubbub.errors import InvalidInput, invalid
from hubbub.protocols import Description
from hubbub.statistics import install
from hubbub.statistics.bounds import positive

BURN_IN, DEFAULT_CLIP, DEFAULT_STEPS = 0.3, 1.0, 1000


@dataclass(frozen=True, eq=False)
class LangevinModel:
    """A model, checked, with the gradient of its prior and what clients run: made once for a shape of rows."""

    rows: RowModel
    prior: Any
    program: XlaProgram
    made_from: tuple[Any, ...] = field(repr=False)
    """What `langevin_model` made it from."""

    def __reduce__(self) -> Any:
        """Compiled code has no place in a pickle: it is made again from the model's source."""
        return langevin_model, self.made_from

    @cached_property
    def reached(self) -> Floats:
        """1 where the noise of the sums reaches a number of the position, else 0."""
        return self.rows.whole(np.ones(self.program.dimension))


@lru_cache(maxsize=16)
def langevin_model(model: Any, shape: RowShape, public: Public, clients: int) -> LangevinModel:
    """The model checked, the clients' program exported for about so many rows: nothing of this looks at data."""
    rows = row_model(model, shape, public)
    prior = jax.jit(jax.grad(rows.public_part))
    return LangevinModel(rows, prior, gradient_program(rows, clients), (model, shape, public, clients))


class LangevinState(NamedTuple):
    """Where the chain is, where it has been, and from where its own noise is drawn next: public throughout."""

    position: Floats
    trace: Trace
    size: float
    """Of the last step."""
    generator: Any
    """The state of NumPy's generator, as plain values."""


@dataclass(frozen=True, eq=False)
class LangevinResult(SampledResult):
    """The positions of the steps that are kept."""

    model: LangevinModel
    positions: Floats
    """(kept steps, d), one after the other; neighbours are alike."""
    step_size: float
    """The one that was used in the end."""
    privacy: TrainingReport | StoredReport

    @property
    def rows(self) -> RowModel:
        """The model."""
        return self.model.rows

    def sample(self, draws: int = 1000, *, seed: int = 0) -> dict[str, Floats]:
        """Draws of the latent sites, evenly spread over the kept steps."""
        chosen = np.linspace(0, len(self.positions) - 1, draws).round().astype(int)
        values = jax.vmap(self.rows.values)(jnp.asarray(self.positions[chosen]))
        return {name: np.asarray(value) for name, value in values.items()}

    def stored(self) -> dict[str, Any]:
        """For a file."""
        return {**self._sites(), "positions": self.positions, "step_size": self.step_size}

    @classmethod
    def read(cls, model: LangevinModel, stored: StoredFit) -> Self:
        """From a file."""
        positions = stored.array("positions", None, model.rows.dimension)
        found = cls(model, positions, float(stored.array("step_size")), stored.report)
        found._check_sites(stored)
        return found


@dataclass(frozen=True)
class LangevinSampling(Stepwise[LangevinState, LangevinResult]):
    """Private stochastic gradient Langevin dynamics.

    Parameters
    ----------
    model : what `langevin_model` makes of a NumPyro model.
    clip : the largest length of one client's gradient in the model's latent sites; does not depend on N.
    step_size : of a Langevin step, at most; default 1/(2N).
    burn_in : the share of the steps that are thrown away.
    names : of the columns, in the order of the model's arguments; x0, x1, .. where they are left out.
    steps, batch, selection, noise_multiplier, seed : as in `Schedule`; the seed is also that of the chain's own noise.
    """

    kind: ClassVar[str] = "sgld"
    label: ClassVar[str] = "Langevin sampling"
    model: LangevinModel
    clip: float = DEFAULT_CLIP
    step_size: float | None = None
    burn_in: float = BURN_IN
    names: tuple[str, ...] = ()
    steps: int = field(default=DEFAULT_STEPS, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "clip", positive("clip", self.clip))
        object.__setattr__(self, "step_size", checked_size(self.step_size))
        object.__setattr__(self, "names", self.model.rows.shape.named(self.names))
        named_columns(self.names)
        check_burn_in(self.burn_in)
        object.__setattr__(self, "burn_in", float(self.burn_in))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the model's arguments, one after the other."""
        return self.names

    @property
    def program(self) -> XlaProgram:
        """The gradient of one row's log likelihood."""
        return self.model.program

    @property
    def longest(self) -> float:
        """The clip."""
        return self.clip

    def first(self, steps: int) -> LangevinState:
        """The chain starts at zero."""
        start = np.asarray(self.model.rows.start, dtype=np.float64)
        return LangevinState(start, Trace(), 0.0, np.random.default_rng(self.public_seed()).bit_generator.state)

    def numbers(self, inner: LangevinState) -> Floats:
        """Where the chain is."""
        return inner.position

    def moved(self, inner: LangevinState, noisy: NoisySum, plan: StepPlan) -> LangevinState:
        """One Langevin step."""
        wanted = 0.5 / plan.samples if self.step_size is None else self.step_size
        size = wanted if noisy.noise_std == 0 else min(wanted, 4 / noisy.noise_std**2)
        prior = np.asarray(self.model.prior(jnp.asarray(inner.position, dtype=float)))
        gradient = self.model.rows.whole(noisy.value) + prior
        missing = np.maximum(0.0, size - np.square(size * noisy.noise_std / 2 * self.model.reached))
        rng = _generator(inner.generator)
        moved = inner.position + size / 2 * gradient + np.sqrt(missing) * rng.standard_normal(gradient.size)
        if not np.isfinite(moved).all():
            raise InvalidInput(f"step_size must keep the position finite, got step_size={size:.3g}; use a smaller one")
        return LangevinState(moved, inner.trace.added(moved), size, rng.bit_generator.state)

    def found(self, state: StepState[LangevinState], report: TrainingReport) -> LangevinResult:
        """What is left after the burn-in."""
        kept = state.done - round(self.burn_in * state.done)
        return LangevinResult(self.model, state.inner.trace.array()[-max(1, kept) :], state.inner.size, report)

    def describe(self) -> dict[str, Any]:
        """The program by name and fingerprint, and the settings, for a study."""
        return {
            "kind": self.kind, "program": self.program.name, "fingerprint": self.program.fingerprint,
            "columns": list(self.names), "clip": self.clip, "step_size": self.step_size, "burn_in": self.burn_in,
            **self.described(),
        }  # fmt: skip

    def install(self) -> None:
        """Let this process read descriptions that name this model, and take part in them."""
        install(self.program)
        _MODELS.add((self.program.fingerprint,), self.model)

    @classmethod
    def written(cls, settings: Mapping[str, Any]) -> Self:
        """From study.toml, where `fingerprint` names an installed model and the rest may be left out."""
        chosen = {"program": "a model", "columns": (), "clip": DEFAULT_CLIP, "step_size": None, "burn_in": BURN_IN}
        return cls.of({**chosen, **Schedule(steps=DEFAULT_STEPS).described(), **settings})

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description, with the model that this process has installed."""
        model = _MODELS.find(str(description["program"]), (str(description["fingerprint"]),))
        settings, columns = cls.settings_in(description), tuple(description["columns"])
        choices = (description["clip"], description["step_size"], description["burn_in"])
        found = cls(model, *choices, columns, **settings)
        install(found.program)
        return found


def checked_size(step_size: float | None) -> float | None:
    """The size of a step, or one line that says what is wrong with it."""
    return None if step_size is None else positive("step_size", step_size)


def check_burn_in(burn_in: object) -> None:
    """Refuse a share that is none."""
    if not (isinstance(burn_in, int | float) and 0 <= burn_in < 1):
        raise invalid("burn_in", "in [0, 1)", repr(burn_in), f"{BURN_IN} is common")


def _generator(state: Any) -> np.random.Generator:
    """NumPy's default generator, going on from a state of it."""
    bits = np.random.PCG64(0)
    bits.state = state
    return np.random.Generator(bits)


_MODELS: InstalledModels[LangevinModel] = InstalledModels("LangevinSampling")
