"""From a noisy histogram of each column to where it lies and how widely it varies.

Post-processing of a release: it sees noisy counts and the noise in them, never the data. Noise of any law counts by its
variance here: what is read off is a unit for the next round with a doubt beside it, no posterior.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats
from hubbub.statistics import ColumnHistogram


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


def read_columns(histogram: ColumnHistogram, counts: Floats, n: int, noise_std: float, *, centre: bool) -> Columns:
    """Centre and scale of each column; without `centre` all distances are taken from zero.

    Normal columns of many centres and scales are held against the counts, the noise being known. The counts then
    correct the shape of the best one by as much as they can be trusted, and the scale is a quantile of that.
    """
    table = histogram.table(counts) / n
    noise = noise_std / n
    mu, sigma, shares, prior = _candidates(histogram.octaves, centre)
    variance = noise**2 + shares * (1 - shares) / n + TUNING.bin_shape**2
    evidence = prior - 0.5 * np.sum((table[:, None] - shares) ** 2 / variance + np.log(variance), axis=-1)
    weights = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    where, size = weights @ mu, weights @ np.log(sigma)
    doubt = np.sqrt(np.maximum(weights @ np.log(sigma) ** 2 - size**2, 0.0))
    scale = _quantiles(histogram, table, where, np.exp(size), noise)
    bounds = np.asarray(histogram.bounds)
    return Columns(where * bounds, scale * bounds, doubt)


@lru_cache(maxsize=8)
def _candidates(octaves: int, centre: bool) -> tuple[Floats, Floats, Floats, Floats]:
    """Normal columns in units of the bound: centre, deviation, share of each bin, logarithm of the prior."""
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
    return mu, sigma_, _shares(ColumnHistogram((1.0,), octaves).edges, mu, sigma_), np.array(prior)


def _shares(edges: Floats, mu: Floats, sigma: Floats) -> Floats:
    """(k, bins): the probability of each bin for normal columns."""
    from scipy.special import ndtr

    below = ndtr((edges - mu[:, None]) / sigma[:, None])
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


def _quantiles(histogram: ColumnHistogram, table: Floats, mu: Floats, sigma: Floats, noise: float) -> Floats:
    """The quantile of |x - mu|: within a bin as the normal column has it, between bins as far as counts tell."""
    per_bin = TUNING.bin_points
    expected = _shares(histogram.edges, mu, sigma)
    trust = TUNING.bin_rest**2 / (TUNING.bin_rest**2 + noise**2)
    share = np.maximum(expected + trust * (table - expected), 0.0)
    outer = 2.0 ** (1 - histogram.octaves + (np.arange((histogram.octaves - 1) * per_bin) + 0.5) / per_bin)
    inner = 2.0 ** (1 - histogram.octaves) * (np.arange(per_bin) + 0.5) / per_bin
    half = np.concatenate([inner, outer])
    points = np.concatenate([-half[::-1], half])
    bin_ = np.repeat(np.arange(histogram.bins), per_bin)
    width = np.gradient(points)
    found = np.empty(mu.size)
    for j, (m, s) in enumerate(zip(mu, sigma, strict=True)):
        density = (np.exp(-0.5 * ((points - m) / s) ** 2) + 1e-12) * width
        mass = density / np.bincount(bin_, density)[bin_] * share[j, bin_]
        distance = np.abs(points - m)
        order = np.argsort(distance)
        reached = np.cumsum(mass[order])
        found[j] = distance[order][np.searchsorted(reached, TUNING.quantile * reached[-1])]
    return np.maximum(found, 2.0**-histogram.octaves / per_bin)
