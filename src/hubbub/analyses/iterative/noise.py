"""The posterior that counts the privacy noise: the model's prior times what the releases say (`heard.py`).

Both are public by then, so this costs no privacy and needs no row. The posterior is the normal distribution of the
model's position that is closest to their product, found by natural-gradient steps that keep its precision positive
(Lin, Schmidt and Khan 2020). Latent sites that no row looks at, the spread of a hierarchical model say, are learned
from the others with their noise: they are not taken for as far apart as noise has moved them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray
from numpyro.infer.autoguide import AutoDiagonalNormal, AutoMultivariateNormal, AutoNormal

from hubbub.analyses.iterative.heard import Heard
from hubbub.analyses.iterative.replay import Replay, calibrated
from hubbub.analyses.iterative.row_model import RowModel
from hubbub.analyses.iterative.stored import StoredFit
from hubbub.arrays import Floats

Prior = Callable[[Floats, Floats], tuple[Any, Any]]
"""Of a mean and a root of a covariance: the expected gradient and Hessian of the log prior there."""

MOST_NUMBERS = 300  # of a position: more would make the steps below slow
_NORMAL = (AutoDiagonalNormal, AutoNormal, AutoMultivariateNormal)
MOST_REACH, MOST_DOUBT = 4.0, 0.3
_PAIRS, _STEPS, _RATE, _CLOSE = 64, 200, 0.3, 1e-3


@dataclass(frozen=True)
class NoiseAware:
    """A normal posterior of the model's position (its latent sites in real numbers, flat)."""

    mean: Floats
    covariance: Floats
    heard: Heard
    """What the releases alone say of the numbers that rows look at."""

    def draws(self, size: int, seed: int) -> Floats:
        """(size, d)."""
        rng = np.random.default_rng(seed)
        return self.mean + rng.standard_normal((size, self.mean.size)) @ np.linalg.cholesky(self.covariance).T

    def stored(self) -> dict[str, Any]:
        """For a file."""
        return {"mean": self.mean, "covariance": self.covariance, "heard": asdict(self.heard)}

    @classmethod
    def read(cls, stored: StoredFit, model: RowModel) -> NoiseAware | None:
        """From a file; None where it has none."""
        if stored.found["noise"] is None:
            return None
        size, touched = model.dimension, model.touched.size
        whole, part = stored.part("noise"), stored.part("noise", "heard")
        heard = Heard(
            part.array("centre", touched), part.covariance("covariance", touched),
            part.covariance("curvature", touched), part.array("variance", touched, least=0),
            float(part.array("doubt", least=0)), float(part.array("reach", least=0)),
            part.array("over", touched, least=0), part.array("wider", touched, least=0),
        )  # fmt: skip
        np.linalg.cholesky(whole.covariance("covariance", size))
        return cls(whole.array("mean", size), whole.covariance("covariance", size), heard)


def why_not(model: RowModel, guide: object, noise_std: float, steps: int) -> str | None:
    """Why there is no posterior that counts the noise, in plain words; None where there is one."""
    if noise_std == 0:
        return "no noise was added, and none is counted"
    if type(guide) not in _NORMAL:
        return "the intervals LEAVE OUT the privacy noise: it is counted for normal guides only"
    if model.dimension > MOST_NUMBERS:
        return f"the intervals LEAVE OUT the privacy noise: it is counted up to {MOST_NUMBERS} numbers"
    if steps < 2 * model.touched.size + 10:
        return "the intervals LEAVE OUT the privacy noise: there are too few steps to count it; take more"
    return None


def note_on(found: NoiseAware | None) -> str:
    """What the intervals count, and why they must not be trusted where that can be told."""
    if found is None:
        return "the intervals LEAVE OUT the privacy noise: no posterior that counts it was found; take more steps"
    said = (
        "the intervals count the privacy noise, but NOT what clipping gradients has changed: too narrow where many "
        "gradients are longer than the clip"
    )
    if found.heard.reach > MOST_REACH:
        return f"{said}; DO NOT TRUST THEM: the run had not arrived when it ended; take more steps"
    if found.heard.doubt > MOST_DOUBT:
        return f"{said}; DO NOT TRUST THEM: the noise hides how much the rows tell; more rows or budget would help"
    return said


def noise_aware(
    model: RowModel, prior: Prior, positions: Floats, releases: Floats, noise_std: float, replay: Replay
) -> NoiseAware | None:
    """From (steps, d) positions of the model and the noisy sums there; None where no posterior was found."""
    touched = model.touched
    found = calibrated(positions[:, touched], releases, noise_std, sites_in(model), replay)
    precision = np.zeros((model.dimension,) * 2)
    precision[np.ix_(touched, touched)] = np.linalg.inv(found.covariance)
    mean = positions.mean(axis=0)
    mean[touched] = found.centre
    middle, now = mean.copy(), precision + np.diag(1 / np.maximum(positions.var(axis=0), 1e-12))
    for _ in range(_STEPS):
        root = np.linalg.inv(np.linalg.cholesky(now)).T
        slope, curve = (np.asarray(each, dtype=np.float64) for each in prior(mean, root))
        change = precision - curve - now
        now = now + _RATE * change + _RATE**2 / 2 * change @ np.linalg.solve(now, change)
        step = np.linalg.solve(now, slope + precision @ (middle - mean))
        if not (np.isfinite(step).all() and np.isfinite(now).all()):
            return None
        mean, now = mean + _RATE * step, (now + now.T) / 2
        if step @ now @ step < _CLOSE**2 * step.size and np.abs(change).max() < _CLOSE * np.abs(now).max():
            break
    return NoiseAware(mean, np.asarray(np.linalg.inv(now)), found)


def sites_in(model: RowModel) -> list[NDArray[np.intp]]:
    """The touched numbers of each latent site, counted among the touched ones."""
    free = model.unravel(model.start)
    named = {name: jnp.full(jnp.shape(value), float(i)) for i, (name, value) in enumerate(sorted(free.items()))}
    site = np.asarray(ravel_pytree(named)[0])[model.touched]
    return [np.flatnonzero(site == one) for one in np.unique(site)]


def expected_prior(model: RowModel, mean: Any, root: Any) -> tuple[Any, Any]:
    """Gradient and Hessian of the log prior, on average over a normal distribution (128 draws, the same every time)."""
    half = jax.random.normal(jax.random.PRNGKey(0), (_PAIRS, model.dimension))
    at = mean + jnp.concatenate([half, -half]) @ root.T
    slope, curve = jax.grad(model.public_part), jax.hessian(model.public_part)
    return jax.vmap(slope)(at).mean(axis=0), jax.lax.map(curve, at).mean(axis=0)
