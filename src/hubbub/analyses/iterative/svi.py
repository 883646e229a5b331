"""Variational inference for any NumPyro model with independent rows, from noisy sums alone (kind "svi").

In every step the trainer draws the latent sites from the guide, at public random numbers; each client computes the
gradient of its own log likelihood there, clips it, adds its noise and shares it out. From the noisy sum the gradient of
the guide's parameters follows by the chain rule, without data, and prior and entropy are added exactly (the aligned
gradients of Jalko et al. 2023: noise meets the latent sites only, not the guide's parameters).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from types import FunctionType
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
import optax

from hubbub.analyses.iterative.expected import named_columns
from hubbub.analyses.iterative.guides import FlatGuide, flat_guide
from hubbub.analyses.iterative.heard import WINDOW, Heard
from hubbub.analyses.iterative.installed import InstalledModels
from hubbub.analyses.iterative.noise import NoiseAware, expected_prior, noise_aware, note_on, why_not
from hubbub.analyses.iterative.plan import Schedule, StepPlan
from hubbub.analyses.iterative.public import Public
from hubbub.analyses.iterative.report import TrainingReport
from hubbub.analyses.iterative.row_model import RowModel, guarded, row_model
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

DEFAULT_STEPS, DEFAULT_CLIP, TAIL = 500, 1.0, 0.5


@dataclass(frozen=True, eq=False)
class GuidedModel:
    """A model and a guide, checked, with what clients run: made once for a shape of rows, and used by every run."""

    guide: FlatGuide
    program: XlaProgram
    made_from: tuple[Any, ...] = field(repr=False)
    """What `guided_model` made it from."""

    def __reduce__(self) -> Any:
        """Compiled code has no place in a pickle: it is made again from the model's source."""
        return guided_model, self.made_from

    @property
    def guide_name(self) -> str:
        """What a description calls the guide: its class, or the name of the function."""
        guide = self.guide.guide
        return guide.__name__ if isinstance(guide, FunctionType) else type(guide).__name__

    @partial(jax.jit, static_argnums=0)
    def position(self, flat: Any, key: Any) -> Any:
        """The guide's draw: where all clients compute."""
        return self.guide.draw(flat, key)[0]

    @partial(jax.jit, static_argnums=0)
    def prior(self, mean: Any, root: Any) -> tuple[Any, Any]:
        """Expected gradient and Hessian of the log prior."""
        return expected_prior(self.guide.model, mean, root)

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
    ) -> tuple[Any, Any, Any, Any]:
        """One step uphill: parameters, optimiser's state; and key and draw of the next step."""

        def bound(flat: Any) -> Any:
            position, public = self.guide.draw(flat, key)
            return jnp.dot(position, noisy) + public

        gradient = -jax.grad(bound)(flat) / clients
        updates, inner = optimiser.update(gradient, inner, flat)
        flat, key = optax.apply_updates(flat, updates), jax.random.split(key)[0]
        return flat, inner, key, self.guide.draw(flat, key)[0]

    @partial(jax.jit, static_argnums=(0, 1, 2))
    def again(self, optimiser: Any, steps: int, flat: Any, likelihood: Any, clients: Any, keys: Any) -> tuple[Any, Any]:
        """Such a run with a normal likelihood in place of the rows', a run for each key: positions and releases."""
        centre, curvature, deviation = likelihood
        touched, zero = self.guide.model.touched, jnp.zeros(self.guide.model.dimension)

        def run(key: Any) -> tuple[Any, Any]:
            def step(state: Any, key: Any) -> tuple[Any, Any]:
                flat, inner, draw, position = state
                release = deviation * jax.random.normal(key, centre.shape) - curvature @ (position[touched] - centre)
                state = self.step(optimiser, flat, inner, draw, zero.at[touched].set(release), clients)
                return state, (position[touched], release)

            draw, noise = jax.random.split(key)
            start = flat, optimiser.init(flat), draw, self.guide.draw(flat, draw)[0]
            return jax.lax.scan(step, start, jax.random.split(noise, steps))[1]  # type: ignore[no-any-return]

        return jax.lax.map(run, keys)  # type: ignore[no-any-return]


class GuideState(NamedTuple):
    """The trainer's side of a run: public throughout."""

    flat: Any
    inner: Any
    """The optimiser's own."""
    key: Any
    position: Any
    trace: Trace
    """The guide's parameters after every step."""
    positions: Trace
    releases: Trace
    """Where clients computed, and the noisy sums there, in the steps that the posterior's widths follow from."""
    noise_std: float


@dataclass(frozen=True, eq=False)
class VariationalResult(SampledResult):
    """The guide's parameters, averaged over the last steps, and what the noise has added to them."""

    model: GuidedModel
    flat: Floats
    """Parameters of the guide as real numbers."""
    parameters: Mapping[str, Any]
    """The same by name, each in its own space."""
    trace: Floats
    """(steps, p) flat parameters of the guide."""
    noise: NoiseAware | None
    """The posterior that counts the noise; None where there is none."""
    note: str
    """What the intervals count and what they leave out, for people."""
    privacy: TrainingReport | StoredReport

    @property
    def rows(self) -> RowModel:
        """The model."""
        return self.model.guide.model

    def sample(self, draws: int = 1000, *, seed: int = 0, noise_aware: bool = True) -> dict[str, Floats]:
        """Draws of the latent sites, of the posterior that counts the noise or else of the guide."""
        if noise_aware and self.noise is not None:
            at = jnp.asarray(self.noise.draws(draws, seed), dtype=float)
            return {name: np.asarray(value) for name, value in jax.vmap(self.rows.values)(at).items()}
        keys = jax.random.split(jax.random.PRNGKey(seed), draws)
        return {name: np.asarray(value) for name, value in self.model.draws(self.parameters, keys).items()}

    def stored(self) -> dict[str, Any]:
        """For a file: without the trace."""
        aware = None if self.noise is None else self.noise.stored()
        guide = {"guide": self.model.guide_name, "parameters": self.parameters, "flat": self.flat}
        return {**self._sites(), **guide, "noise": aware, "note": self.note}

    @classmethod
    def read(cls, model: GuidedModel, stored: StoredFit) -> Self:
        """From a file."""
        flat, nothing = stored.array("flat", None), np.empty((0, 0))
        note, guide = stored.text("note"), stored.text("guide")
        found = cls(model, flat, {}, nothing, None, note, stored.report)
        found._check_sites(stored)
        if (model.guide_name, model.guide.start.size) != (guide, flat.size):
            raise InvalidInput(
                f"guide must be the one that was fitted, {guide[:80]} with {flat.size} numbers, got "
                f"{model.guide_name} with {model.guide.start.size}; give that guide"
            )
        aware = stored.checked(lambda: NoiseAware.read(stored, model.guide.model))
        parameters = jax.tree.map(np.asarray, model.named(jnp.asarray(flat, dtype=float)))
        return replace(found, parameters=parameters, noise=aware)

    def notes(self) -> list[str]:
        """What the intervals count and what they leave out."""
        return [self.note]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**super().as_dict(), "note": self.note}


@dataclass(frozen=True)
class VariationalInference(Stepwise[GuideState, VariationalResult]):
    """Private variational inference.

    Parameters
    ----------
    model : what `guided_model` makes of a NumPyro model and a guide.
    clip : the largest length of one client's gradient in the model's latent sites; does not depend on N.
    optimiser : of optax; default Adam, its rate falling from 0.1 to 0.005. It sees the gradient divided by N.
    average : the share of the steps, from the last one back, whose parameters are averaged.
    names : of the columns, in the order of the model's arguments; x0, x1, .. where they are left out.
    steps, batch, selection, noise_multiplier, seed : as in `Schedule`; the seed is also that of the guide's draws.
    """

    kind: ClassVar[str] = "svi"
    label: ClassVar[str] = "variational inference"
    model: GuidedModel
    clip: float = DEFAULT_CLIP
    optimiser: Any = None
    average: float = TAIL
    names: tuple[str, ...] = ()
    steps: int = field(default=DEFAULT_STEPS, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "clip", positive("clip", self.clip))
        object.__setattr__(self, "names", self.model.guide.model.shape.named(self.names))
        named_columns(self.names)
        check_choices(self.optimiser, self.average)
        object.__setattr__(self, "average", float(self.average))

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

    def first(self, steps: int) -> GuideState:
        """The guide as it starts, and its first draw."""
        flat = jnp.asarray(self.model.guide.start, dtype=float)
        key = jax.random.PRNGKey(self.public_seed())
        inner = self._optimiser(steps).init(flat)
        return GuideState(flat, inner, key, self.model.position(flat, key), Trace(), Trace(), Trace(), 0.0)

    def numbers(self, inner: GuideState) -> Floats:
        """The guide's draw of the latent sites."""
        return np.asarray(inner.position)

    def moved(self, inner: GuideState, noisy: NoisySum, plan: StepPlan) -> GuideState:
        """One step uphill."""
        flat, optimiser, key, position = self.model.step(
            self._optimiser(plan.steps), inner.flat, inner.inner, inner.key,
            self.model.guide.model.whole(noisy.value).astype(inner.flat.dtype), float(plan.samples),
        )  # fmt: skip
        at = np.asarray(flat)
        if not np.isfinite(at).all():
            raise InvalidInput(
                f"optimiser must keep the parameters finite, got others in step {noisy.step}; use a smaller rate"
            )
        positions, releases = inner.positions, inner.releases
        if noisy.step >= plan.steps - tail_of(plan.steps, WINDOW):
            positions, releases = positions.added(self.numbers(inner)), releases.added(noisy.value)
        return GuideState(flat, optimiser, key, position, inner.trace.added(at), positions, releases, noisy.noise_std)

    def found(self, state: StepState[GuideState], report: TrainingReport) -> VariationalResult:
        """The average of the last steps."""
        inner, trace = state.inner, state.inner.trace.array()
        flat = trace[-tail_of(state.done, self.average) :].mean(axis=0)
        parameters = jax.tree.map(np.asarray, self.model.named(jnp.asarray(flat)))
        rows, guide = self.model.guide.model, self.model.guide.guide
        note, noise = why_not(rows, guide, inner.noise_std, inner.positions.length), None
        if note is None:
            asked = inner.positions.array().astype(np.float64)
            replay = partial(self._replayed, state)
            try:
                noise = noise_aware(rows, self.model.prior, asked, inner.releases.array(), inner.noise_std, replay)
            except np.linalg.LinAlgError:  # what was paid for is not lost: the guide is there without it
                noise = None
            note = note_on(noise)
        return VariationalResult(self.model, flat, parameters, trace, noise, note, report)

    def _replayed(self, state: StepState[GuideState], likelihood: Heard, runs: int, seed: int) -> tuple[Floats, Floats]:
        """The same run, again and again, with a normal likelihood: what `calibrated` asks for."""
        flat = jnp.asarray(self.model.guide.start, dtype=float)
        normal = likelihood.centre, likelihood.curvature, np.sqrt(likelihood.variance)
        keys = jax.random.split(jax.random.PRNGKey(self.public_seed() + 1 + seed), runs)
        optimiser, clients = self._optimiser(state.plan.steps), float(state.plan.samples)
        found = self.model.again(optimiser, state.done, flat, jax.tree.map(jnp.asarray, normal), clients, keys)
        kept = state.inner.positions.length
        positions, releases = (np.asarray(each, dtype=np.float64)[:, -kept:] for each in found)
        return positions, releases

    def describe(self) -> dict[str, Any]:
        """The program by name and fingerprint, the guide by name, and the settings, for a study."""
        fingerprint, guide, optimiser = self._key
        return {
            "kind": self.kind, "program": self.program.name, "fingerprint": fingerprint, "guide": guide,
            "optimiser": optimiser, "columns": list(self.names), "clip": self.clip, "average": self.average,
            **self.described(),
        }  # fmt: skip

    def install(self) -> None:
        """Let this process read descriptions that name this model, guide and optimiser, and take part in them."""
        install(self.program)
        _MODELS.add(self._key, (self.model, self.optimiser))

    @classmethod
    def written(cls, settings: Mapping[str, Any]) -> Self:
        """From study.toml, where `fingerprint` names an installed model and the rest may be left out."""
        chosen = {
            "program": "a model",
            "guide": "AutoDiagonalNormal",
            "optimiser": "default",
            "columns": (),
            **settings,
        }
        return cls.of({"clip": DEFAULT_CLIP, "average": TAIL, **Schedule(steps=DEFAULT_STEPS).described(), **chosen})

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description, with the model that this process has installed."""
        key = tuple(str(description[name]) for name in ("fingerprint", "guide", "optimiser"))
        model, optimiser = _MODELS.find(str(description["program"]), key)
        settings = cls.settings_in(description)
        columns = tuple(description["columns"])
        found = cls(model, description["clip"], optimiser, description["average"], columns, **settings)
        install(found.program)
        return found

    @property
    def _key(self) -> tuple[str, str, str]:
        return self.program.fingerprint, self.model.guide_name, "default" if self.optimiser is None else "own"

    def _optimiser(self, steps: int) -> Any:
        return default_optimiser(steps) if self.optimiser is None else self.optimiser


def check_choices(optimiser: object, average: object) -> None:
    """Refuse an optimiser that is none of optax, and a share that is none."""
    if optimiser is not None and not isinstance(optimiser, optax.GradientTransformation):
        raise invalid("optimiser", "one of optax", type(optimiser).__name__, "use optax.adam(0.05)")
    if not (isinstance(average, int | float) and 0 < average <= 1):
        raise invalid("average", "in (0, 1]", repr(average), f"{TAIL} is common")


@lru_cache(maxsize=16)
def guided_model(model: Any, guide: Any, shape: RowShape, public: Public, clients: int) -> GuidedModel:
    """Model and guide checked, the clients' program exported for about so many rows: nothing of this looks at data."""
    rows = row_model(model, shape, public)
    flat = flat_guide(rows, guide, 0)
    parts = GuidedModel(flat, gradient_program(rows, clients), (model, guide, shape, public, clients))
    guarded("guide", 1, lambda: _rehearse(parts))
    return parts


def _rehearse(parts: GuidedModel) -> None:
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


_MODELS: InstalledModels[tuple[GuidedModel, Any]] = InstalledModels("VariationalInference")
