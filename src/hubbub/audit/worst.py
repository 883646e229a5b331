"""The two samples that are furthest apart: searched for, since a bound that is stated wrongly must be found out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hubbub.arrays import Floats

Vectors = Callable[[Floats], Floats]
"""(n, columns) samples -> (n, d) vectors, in units in which all coordinates count alike."""

_POOL = np.array([0.0, *(sign * 10.0**k for k in range(-2, 5) for sign in (1, -1)), 0.5, -0.5, 2.0, 3.0, 4.0, 5.0, 7.5])
"""Numbers to try in every column: within and beyond any bounds, small whole numbers (categories) among them."""
_SAMPLES = 300
_CLIMBS = 600


class Pair(NamedTuple):
    """Two samples."""

    one: Floats
    other: Floats


def widest_pair(vectors: Vectors, columns: int, order: int, rng: np.random.Generator) -> Pair:
    """The pair of samples whose vectors lie furthest apart (`order` 1 or 2), as far as a search finds it.

    All pairs of some hundred random samples, then small changes as long as they help.
    """
    samples = rng.choice(_POOL, size=(_SAMPLES, columns))
    samples[: _POOL.size] = _POOL[:, None]
    found = vectors(samples)
    apart = _distances(found, order)
    i, j = np.unravel_index(int(np.argmax(apart)), apart.shape)
    pair, best = np.stack([samples[i], samples[j]]), float(apart[i, j])
    for _ in range(_CLIMBS):
        tried = _changed(pair, rng)
        first, second = vectors(tried)
        distance = float(np.linalg.norm(first - second, order))
        if distance > best:
            pair, best = tried, distance
    return Pair(pair[0], pair[1])


def _distances(found: Floats, order: int) -> Floats:
    return np.stack([np.linalg.norm(found - each, order, axis=1) for each in found])


def _changed(pair: Floats, rng: np.random.Generator) -> Floats:
    """With another number in one or two places: one of the pool, or near to what was there."""
    tried = pair.copy()
    for _ in range(rng.integers(1, 3)):
        who, column = rng.integers(2), rng.integers(pair.shape[1])
        near = tried[who, column] * rng.choice([-1.0, 0.5, 0.9, 1.1, 2.0])
        tried[who, column] = rng.choice(_POOL) if rng.random() < 0.5 else near
    return tried
