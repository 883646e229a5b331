"""A normal law of log S that is close to its posterior: what the noisy S and the prior say, linearised.

In the axes of the noisy S all terms of log S are independent under it. With e^a for the eigenvalues, a change of a term
(i, j) of log S changes that term of S by (e^a_i - e^a_j)/(a_i - a_j) times as much: noise is held against that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.linear.sampler.target import Target
from hubbub.arrays import Floats

_STEPS = 12


class Reference(NamedTuple):
    """Independent normal terms, symmetric: off the diagonal the deviation is that over the square root of two."""

    mean: Floats
    """(walkers, p): of the diagonal; other terms have mean 0."""
    deviation: Floats
    """(walkers, p, p)."""

    def log_density(self, log_S: Floats) -> Floats:
        """Up to a constant."""
        p = log_S.shape[-1]
        gap = (log_S - self.mean[:, :, None] * np.eye(p)) / self.deviation
        return np.asarray(-0.5 * np.sum(gap**2, axis=(-1, -2)))

    def taken(self, rows: NDArray[np.intp]) -> Reference:
        """Those of some of the walkers."""
        return Reference(self.mean[rows], self.deviation[rows])


def reference(target: Target, level: Floats, spread: Floats) -> Reference:
    """For each walker, given the level of S and the deviation of log S."""
    noise = target.terms_noise  # one for all, or one for each term
    a = _modes(target.values, noise if np.ndim(noise) == 0 else np.diagonal(noise), level[:, None], spread[:, None])
    size = np.exp(a)
    apart = a[:, :, None] - a[:, None, :]
    near = np.abs(apart) < 1e-6
    middle = (size[:, :, None] + size[:, None, :]) / 2
    slope = np.where(near, middle, (size[:, :, None] - size[:, None, :]) / np.where(near, 1.0, apart))
    return Reference(a, 1 / np.sqrt(1 / spread[:, None, None] ** 2 + (slope / noise) ** 2))


def _modes(values: Floats, noise: Floats | float, level: Floats, spread: Floats) -> Floats:
    """The likeliest logarithm of each eigenvalue: (a - level)^2/spread^2 + (e^a - value)^2/noise^2 at its least."""
    a = np.maximum(np.log(np.maximum(values, 0.3 * noise)), level - 3 * spread)
    for _ in range(_STEPS):
        size = np.exp(a)
        slope = (a - level) / spread**2 + (size - values) * size / noise**2
        bend = 1 / spread**2 + np.maximum(2 * size - values, size / 2) * size / noise**2
        a = a - np.clip(slope / bend, -1, 1)
    return np.asarray(a)
