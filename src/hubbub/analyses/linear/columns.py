"""From a noisy histogram of each column to where it lies and how widely it varies.

Post-processing of a release: it sees noisy counts and the noise in them, never the data. Noise of any law counts by its
variance here: what is read off is a unit for the next round with a doubt beside it, no posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats
from hubbub.statistics import ColumnHistogram

_WITHIN = 16  # points that stand for a bin
_SHARES = 1 / (1 + np.exp(-np.linspace(-4, 4, 17)))  # of ones, in a column of two values


@dataclass(frozen=True)
class Columns:
    """Centre and scale of each column, and the standard deviation of the scale's logarithm (how sure it is)."""

    centre: Floats
    scale: Floats
    doubt: Floats


def cautious_target(columns: Columns) -> Columns:
    """The last column with a larger scale where it is in doubt: a target clipped too hard tells the wrong thing."""
    scale = columns.scale.copy()
    scale[-1] *= np.exp(max(0.0, columns.doubt[-1] - TUNING.sure))
    return Columns(columns.centre, scale, columns.doubt)


def read_columns(
    histogram: ColumnHistogram,
    counts: Floats,
    n: int,
    noise_std: float,
    *,
    centre: bool,
    zero_one: Sequence[bool] | None = None,
) -> Columns:
    """Centre and scale (the standard deviation) of each column; without `centre` distances are taken from zero.

    Columns of many kinds are held against the counts, the noise being known: normal ones of many centres and scales,
    and columns of two values, the ends of the bounds, in many shares. Where the bounds are 0 and 1 (`zero_one`) two
    values are what one expects. The scale of a column of two values follows from its share of ones alone. Of a normal
    one the counts correct the shape where they differ from it by clearly more than noise, and the scale is that of
    this shape.
    """
    table = histogram.table(counts) / n
    noise = noise_std / n
    kinds = _kinds(histogram.octaves, centre)
    two = np.where(
        np.zeros(len(table), bool) if zero_one is None else zero_one, TUNING.two_values, TUNING.few_two_values
    )
    prior = kinds.prior + np.log(np.where(kinds.two, two[:, None] if centre else 1e-300, 1 - two[:, None]))
    variance = noise**2 + kinds.shares * (1 - kinds.shares) / n + TUNING.bin_shape**2
    evidence = prior - 0.5 * np.sum((table[:, None] - kinds.shares) ** 2 / variance + np.log(variance), axis=-1)
    weights = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    where, size = weights @ kinds.mean, weights @ np.log(kinds.scale)
    doubt = np.sqrt(np.maximum(weights @ np.log(kinds.scale) ** 2 - size**2, 0.0))
    scale = np.exp(size)
    bends = weights @ kinds.two < 0.5  # the rest are taken for columns of two values, whose shape is known
    if bends.any():
        expected = weights[bends] @ kinds.shares
        found = _moments(histogram, expected, table[bends], where[bends], scale[bends], noise)
        where[bends], scale[bends] = found if centre else (0.0, np.hypot(*found))
    bounds = np.asarray(histogram.bounds)
    least = 2.0**-histogram.octaves / _WITHIN
    return Columns(where * bounds, np.maximum(scale, least) * bounds, doubt)


class _Kinds(NamedTuple):
    """What a column may be, in units of its bound."""

    mean: Floats
    scale: Floats
    shares: Floats
    """(kinds, bins)."""
    prior: Floats
    """Logarithm, within the normal kinds and within those of two values."""
    two: Floats
    """True for those of two values."""


@lru_cache(maxsize=8)
def _kinds(octaves: int, centre: bool) -> _Kinds:
    away = np.array([0, 0.15, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16]) if centre else np.zeros(1)
    found, prior = [], []
    for sigma in 2.0 ** np.arange(-octaves, 0.01, 0.25):
        inside = away[away * sigma < 1]
        centres = np.concatenate([inside, -inside[1:]]) * sigma
        found += [(mu, sigma) for mu in centres]
        size = -0.5 * ((np.log2(sigma) + 2) / 1.5) ** 2  # a quarter of the bound, give or take 1.5 octaves
        rest = np.log((1 - TUNING.centred) / max(len(centres) - 1, 1))
        prior += [size + (np.log(TUNING.centred) if mu == 0 else rest) for mu in centres]
    mu, sigma_ = np.array(found).T
    normal = _shares(ColumnHistogram((1.0,), octaves).edges, mu, sigma_)
    ends = np.zeros((_SHARES.size, 2 * octaves))
    ends[:, 0], ends[:, -1] = 1 - _SHARES, _SHARES
    log = np.array(prior)
    return _Kinds(
        np.concatenate([mu, 2 * _SHARES - 1]),
        np.concatenate([sigma_, 2 * np.sqrt(_SHARES * (1 - _SHARES))]),
        np.vstack([normal, ends]),
        np.concatenate([log - np.logaddexp.reduce(log), np.full(_SHARES.size, -np.log(_SHARES.size))]),
        np.arange(mu.size + _SHARES.size) >= mu.size,
    )


def _shares(edges: Floats, mu: Floats, sigma: Floats) -> Floats:
    """(k, bins): the probability of each bin for normal columns."""
    from scipy.special import ndtr

    below = ndtr((edges - mu[:, None]) / sigma[:, None])
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


def _moments(
    histogram: ColumnHistogram, expected: Floats, table: Floats, mu: Floats, sigma: Floats, noise: float
) -> tuple[Floats, Floats]:
    """Mean and deviation of each column: in a bin as the normal column lies, between bins as expected or as counted.

    A count that differs from what is expected by less than `TUNING.clear` deviations of its noise counts as expected.
    """
    away = table - expected
    clear = np.maximum(1 - (TUNING.clear * noise / np.maximum(np.abs(away), 1e-12)) ** 2, 0.0)
    share = np.maximum(expected + clear * away, 0.0)
    share /= share.sum(axis=1, keepdims=True)
    ends = np.concatenate([[-1.0], histogram.edges, [1.0]])
    width = np.diff(ends) / _WITHIN
    points = (ends[:-1, None] + width[:, None] * (np.arange(_WITHIN) + 0.5)).ravel()
    density = (np.exp(-0.5 * ((points - mu[:, None]) / sigma[:, None]) ** 2) + 1e-12) * np.repeat(width, _WITHIN)
    binned = density.reshape(*share.shape, _WITHIN)
    mass = (binned / binned.sum(axis=-1, keepdims=True) * share[..., None]).reshape(density.shape)
    mean = mass @ points
    return mean, np.sqrt(np.sum(mass * (points - mean[:, None]) ** 2, axis=1))
