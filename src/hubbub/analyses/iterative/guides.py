"""A guide as a function of flat parameters: its draw of the model's position, and its density. It never sees data."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.distributions.constraints import real
from numpyro.infer.autoguide import AutoDiagonalNormal, AutoGuide
from numpyro.infer.initialization import init_to_feasible

from hubbub.analyses.iterative.row_model import RowModel, guarded, outside, sites_of
from hubbub.arrays import Floats
from hubbub.errors import InvalidInput


@dataclass(frozen=True)
class FlatGuide:
    """A checked guide; parameters of the model itself count among its own."""

    model: RowModel
    guide: Callable[..., Any]
    constraints: Mapping[str, Any] = field(repr=False)
    start: Floats = field(repr=False)
    unravel: Callable[[Any], Any] = field(repr=False)

    def parameters(self, flat: Any) -> dict[str, Any]:
        """By name, each in its own space."""
        return {name: biject_to(self.constraints[name])(value) for name, value in self.unravel(flat).items()}

    def flat(self, parameters: Mapping[str, Any]) -> Any:
        """The flat real numbers of parameters by name."""
        free = {name: biject_to(self.constraints[name]).inv(parameters[name]) for name in self.constraints}
        return ravel_pytree(free)[0]

    def draw(self, flat: Any, key: Any) -> tuple[Any, Any]:
        """The model's position at the guide's draw, and the public part of the bound there: prior less guide."""
        parameters, args = self.parameters(flat), self.model.shape.made_up(1)
        guide = handlers.seed(handlers.substitute(self.guide, data=parameters), key)
        trace = handlers.trace(guide).get_trace(*args, **self.model.public)
        samples = {name: site for name, site in trace.items() if site["type"] == "sample"}
        values = {**parameters, **{name: site["value"] for name, site in samples.items()}}
        density = sum(_density(site) for site in samples.values())
        named = {name: values[name] for name in self.model.supports}
        return self.model.position(named), self.model.parts(named, args)[1] - density


def _density(site: Any) -> Any:
    scale = 1.0 if site["scale"] is None else site["scale"]
    return scale * jnp.sum(site["fn"].log_prob(site["value"]))


def flat_guide(model: RowModel, guide: Any, seed: int) -> FlatGuide:
    """Check a guide on made-up rows; raises InvalidInput in one line where it does not do."""
    key, args = jax.random.PRNGKey(seed), model.shape.made_up(1)
    guide = _fresh(model.model, guide)
    if isinstance(guide, AutoGuide):
        guarded("guide", 1, lambda: handlers.seed(guide, key)(*args, **model.public))  # sets itself up
    else:
        _check_free_of_data(model, guide, key)
    sites = sites_of(guide, "guide", args, model.public)
    missing = [name for name in model.latents if name not in sites or sites[name]["type"] != "sample"]
    if missing:
        raise InvalidInput(f"guide must draw every latent site, got none for {missing[0]!r}; add it to the guide")
    constraints, values = _parameters(model, guide, key, args)
    flat, unravel = ravel_pytree(values)
    if flat.size == 0:
        raise InvalidInput("guide must have parameters to learn, got none; use an automatic guide")
    return FlatGuide(model, guide, constraints, np.asarray(flat, dtype=np.float64), unravel)


def _fresh(model: Callable[..., Any], guide: Any) -> Any:
    """An automatic guide that has seen no data: a class is made into one, a used one is reset."""
    guide = AutoDiagonalNormal if guide is None else guide
    if isinstance(guide, type) and issubclass(guide, AutoGuide):
        return guide(model, init_loc_fn=init_to_feasible())
    if not callable(guide):
        raise InvalidInput(f"guide must be a function or an automatic guide, got {type(guide).__name__}; leave it out")
    if isinstance(guide, AutoGuide):
        guide = copy.deepcopy(guide)
        guide.prototype_trace = None
    return guide


def _parameters(
    model: RowModel, guide: Callable[..., Any], key: Any, args: Sequence[Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The constraints of all parameters, and where they start, unconstrained; the model's own start at zero."""
    constraints: dict[str, Any] = {}

    def start(key: Any) -> dict[str, Any]:
        trace = handlers.trace(handlers.seed(guide, key)).get_trace(*args, **model.public)
        sites = {name: site for name, site in trace.items() if site["type"] == "param"}
        constraints.update({name: site["kwargs"].get("constraint", real) for name, site in sites.items()})
        return {name: biject_to(constraints[name]).inv(site["value"]) for name, site in sites.items()}

    values = guarded("guide", 1, lambda: jax.jit(start)(key))
    own = {name: value for name, value in model.unravel(model.start).items() if name not in model.latents}
    return {**constraints, **{name: model.supports[name] for name in own}}, {**values, **own}


def _check_free_of_data(model: RowModel, guide: Callable[..., Any], key: Any) -> None:
    """No parameter and no draw may depend on the rows, neither on how many there are nor on what they say."""
    few, more = (sites_of(guide, "guide", model.shape.made_up(n), model.public) for n in (1, 2))
    for name, site in few.items():
        if site["type"] in ("param", "sample") and (
            not outside(site, model.plates) or jnp.shape(site["value"]) != jnp.shape(more[name]["value"])
        ):
            raise _dependent(f"{site['type']} {name!r}, of which every row has one")
    fixed = [name for name, site in few.items() if site["type"] in ("param", "sample")]

    @jax.jit
    def values(args: Sequence[Any]) -> dict[str, Any]:
        trace = handlers.trace(handlers.seed(guide, key)).get_trace(*args, **model.public)
        return {name: trace[name]["value"] for name in fixed}

    one, other = (values(model.shape.made_up(1, seed)) for seed in (1, 2))
    for name in fixed:
        if not bool(jnp.all(one[name] == other[name])):
            raise _dependent(f"{few[name]['type']} {name!r}")


def _dependent(what: str) -> InvalidInput:
    return InvalidInput(
        f"guide must have parameters that do not depend on the data, got {what}; they would be as private as the "
        "rows: use a guide of the global sites alone"
    )
