"""A NumPyro model, cut into what one client computes and what the trainer computes without data.

The log joint density is a sum: over the rows, of what stands inside the plate over the data (the client's part), plus
the prior outside of it (the public part), which no noise touches. Both are functions of the model's latent sites, made
real and flat: the *position*. Nothing here ever sees a row of the data: models are traced with made-up rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.distributions.constraints import real

from hubbub.analyses.iterative.rows import RowShape
from hubbub.arrays import Floats
from hubbub.errors import HubbubError, InvalidInput, NotFiniteWarning

Model = Callable[..., Any]
Sites = Mapping[str, Any]


@dataclass(frozen=True)
class RowModel:
    """A checked model, as functions of a flat position in real numbers."""

    model: Model
    shape: RowShape
    public: Mapping[str, Any]
    plates: frozenset[str]
    latents: tuple[str, ...]
    """The names of the latent sites; the position holds these, and the model's parameters if it has any."""
    supports: Mapping[str, Any] = field(repr=False)
    start: Any = field(repr=False)
    """The position that is zero throughout."""
    unravel: Callable[[Any], Any] = field(repr=False)

    @property
    def dimension(self) -> int:
        """Numbers in a position."""
        return int(self.start.size)

    @cached_property
    def touched(self) -> NDArray[np.intp]:
        """Where in a position the numbers stand that a row's likelihood looks at.

        The likelihood's gradient in all others is zero for every row, whatever it says: they are learned from the
        prior and the touched ones, need no sum over clients, and so no noise.
        """
        found = np.repeat(_looked_at(self), [np.size(leaf) for leaf in jax.tree.leaves(self.unravel(self.start))])
        return np.flatnonzero(found)

    def whole(self, sums: Floats) -> Floats:
        """A gradient of the whole position from its touched part."""
        found = np.zeros(self.dimension)
        found[self.touched] = sums
        return found

    def values(self, position: Any) -> dict[str, Any]:
        """Latent sites (and parameters) by name, each in its own space."""
        return self.constrained(self.unravel(position))

    def constrained(self, free: Mapping[str, Any]) -> dict[str, Any]:
        """Real numbers by name, each brought into its own space."""
        return {name: biject_to(self.supports[name])(value) for name, value in free.items()}

    def position(self, values: Mapping[str, Any]) -> Any:
        """The flat position of values by name."""
        return ravel_pytree({name: biject_to(self.supports[name]).inv(values[name]) for name in self.supports})[0]

    def client_part(self, position: Any, row: Any) -> Any:
        """One row's log likelihood."""
        return self.parts(self.values(position), self.shape.unpack(row[None]))[0]

    def public_part(self, position: Any) -> Any:
        """The prior's log density of the position (the rows are made up, and do not matter)."""
        free = self.unravel(position)
        density = self.parts(self.values(position), self.shape.made_up(1))[1]
        for name in self.latents:
            transform, value = biject_to(self.supports[name]), free[name]
            density += jnp.sum(transform.log_abs_det_jacobian(value, transform(value)))
        return density

    def parts(self, values: Mapping[str, Any], args: Sequence[Any]) -> tuple[Any, Any]:
        """log density inside the plate over the data (without its scale), and outside of it."""
        seeded = handlers.seed(handlers.substitute(self.model, data=dict(values)), jax.random.PRNGKey(0))
        trace = handlers.trace(seeded).get_trace(*args, **self.public)
        inside, outside = jnp.zeros(()), jnp.zeros(())
        for site in trace.values():
            if site["type"] != "sample":
                continue
            log_prob = jnp.sum(site["fn"].log_prob(site["value"]))
            scale = 1.0 if site["scale"] is None else site["scale"]
            frames = [frame.name for frame in site["cond_indep_stack"] if frame.name in self.plates]
            if frames:
                inside += scale / _plate_scale(trace[frames[0]]) * log_prob
            else:
                outside += scale * log_prob
        return inside, outside


def row_model(model: Model, shape: RowShape, public: Mapping[str, Any]) -> RowModel:
    """Check a model on made-up rows and cut it up; raises InvalidInput in one line where that cannot be done."""
    if not callable(model):
        raise InvalidInput(f"model must be a function, got {type(model).__name__}; write it as for NumPyro")
    sites = sites_of(model, "model", shape.made_up(3), public)
    plates = _data_plates(sites, sites_of(model, "model", shape.made_up(2), public))
    latents = tuple(n for n, s in sites.items() if s["type"] == "sample" and not s["is_observed"])
    for name in latents:
        if not outside(sites[name], plates):
            raise InvalidInput(
                f"model must have no latent site of single rows, got {name!r} inside the plate over the data; its "
                "parameters would depend on the data: sum it out"
            )
        if sites[name]["fn"].is_discrete:
            raise InvalidInput(f"model must have continuous latent sites, got discrete {name!r}; sum it out")
    parameters = {n: s["kwargs"].get("constraint", real) for n, s in sites.items() if s["type"] == "param"}
    supports = {**{name: sites[name]["fn"].support for name in latents}, **parameters}
    free = {
        name: jnp.zeros(biject_to(support).inverse_shape(jnp.shape(sites[name]["value"])))
        for name, support in supports.items()
    }
    start, unravel = ravel_pytree(free)
    if start.size == 0:
        raise InvalidInput("model must have a latent site to learn, got none; add a prior with numpyro.sample")
    found = RowModel(model, shape, public, plates, latents, supports, start, unravel)
    _check_independent(found)
    if found.touched.size == 0:
        raise InvalidInput(
            "model must have rows that depend on a latent site, got none that do; there is nothing to learn"
        )
    return found


def _looked_at(model: RowModel) -> list[bool]:
    """For each latent site (and parameter), in the order of the position: does a row's likelihood use it?"""

    def likelihood(free: dict[str, Any], row: Any) -> Any:
        return model.parts(model.constrained(free), model.shape.unpack(row[None]))[0]

    free, row = model.unravel(model.start), jnp.zeros(model.shape.columns)
    jaxpr = jax.make_jaxpr(likelihood)(free, row).jaxpr
    used = {id(variable) for variable in jaxpr.outvars}
    for equation in reversed(jaxpr.eqns):
        if any(id(variable) in used for variable in equation.outvars):
            used |= {id(variable) for variable in equation.invars}
    return [id(variable) in used for variable in jaxpr.invars[: len(jax.tree.leaves(free))]]


def sites_of(function: Model, what: str, args: Sequence[Any], public: Mapping[str, Any]) -> dict[str, Any]:
    """The sites of a function, without a single number computed."""
    found: dict[str, Any] = {}

    def trace(key: Any, *args: Any) -> float:
        found.update(handlers.trace(handlers.seed(function, key)).get_trace(*args, **public))
        return 0.0

    guarded(what, args[0].shape[0], lambda: jax.eval_shape(trace, jax.random.PRNGKey(0), *args))
    return found


def guarded(what: str, rows: int, action: Callable[[], Any]) -> Any:
    """Whatever a user's function raises becomes one line."""
    try:
        return action()
    except HubbubError:
        raise
    except Exception as error:
        text = str(error).strip().splitlines()[0][:160] if str(error).strip() else type(error).__name__
        raise InvalidInput(
            f"{what} must take any number of rows, got an error with {rows}: {text}; "
            "use numpyro.plate(name, clients, subsample_size=X.shape[0]) and shapes taken from the arguments"
        ) from None


def outside(site: Any, plates: frozenset[str]) -> bool:
    """True where a site stands in none of the plates."""
    return not plates & {frame.name for frame in site.get("cond_indep_stack", [])}


def _data_plates(more: Sites, few: Sites) -> frozenset[str]:
    """The plates that have as many entries as there are rows; every observed site must stand in one."""
    plates = frozenset(
        name for name, site in more.items()
        if site["type"] == "plate" and _entries(site) == 3 and name in few and _entries(few[name]) == 2
    )  # fmt: skip
    observed = {name: site for name, site in more.items() if site["type"] == "sample" and site["is_observed"]}
    if not observed:
        raise InvalidInput("model must have an observed site, got none; pass the data as obs=..")
    for name, site in observed.items():
        if outside(site, plates):
            raise InvalidInput(
                f"model must have independent rows, got site {name!r} outside a subsampled plate over the data; put it "
                "into `with numpyro.plate('clients', N, subsample_size=X.shape[0])`"
            )
    return plates


def _entries(site: Any) -> int:
    return int(site["args"][0] if site["args"][1] is None else site["args"][1])


def _plate_scale(site: Any) -> float:
    return float(site["args"][0] / _entries(site))


def _check_independent(model: RowModel) -> None:
    """The client's parts of two rows must add up to that of both together, and the prior must not look at rows."""
    checked, densities = False, _densities(model)
    for between in (None, (0.1, 0.9), (1.5, 3.0)):
        args = model.shape.made_up(2, 3, between)
        together, added = guarded("model", 2, partial(densities, model.start + 0.1, args))
        if not bool(jnp.isfinite(together[0])):
            continue
        checked = True
        if not all(np.allclose(one, other, rtol=1e-3, atol=1e-3) for one, other in zip(together, added, strict=True)):
            raise InvalidInput(
                "model must have independent rows, got a likelihood of two rows that is not the product of each one's; "
                "let every row stand for itself (no mean or rank over the rows)"
            )
    if not checked:
        warnings.warn(
            "model must have a finite likelihood for it to be checked that rows are independent, got none on made-up "
            "rows; make sure yourself that every row stands for itself",
            NotFiniteWarning,
            stacklevel=2,
        )
    priors = [
        guarded("model", n, partial(_prior, model, model.shape.made_up(n, seed, between)))
        for n, seed, between in ((1, 0, None), (2, 1, None), (3, 2, (0.1, 0.9)))
    ]
    if not all(np.allclose(prior, priors[0], rtol=1e-3, atol=1e-3, equal_nan=True) for prior in priors):
        raise InvalidInput(
            "model must have priors that do not depend on the rows, got one that does (of their number or values); "
            "fix it beforehand, and give public numbers as keywords"
        )


def _densities(model: RowModel) -> Any:
    """Of two rows together and of each, added up: the client's part, and its gradient."""

    def parts(position: Any, args: Sequence[Any]) -> Any:
        return model.parts(model.values(position), args)[0]

    @jax.jit
    def densities(position: Any, args: Sequence[Any]) -> tuple[Any, Any]:
        both = jax.value_and_grad(parts)(position, args)
        first, second = (jax.value_and_grad(parts)(position, [arg[i : i + 1] for arg in args]) for i in (0, 1))
        return both, jax.tree.map(jnp.add, first, second)

    return densities


def _prior(model: RowModel, args: Sequence[Any]) -> Any:
    return model.parts(model.values(model.start + 0.1), args)[1]
