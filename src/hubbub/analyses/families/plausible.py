"""Which exact sums may lie behind the noisy ones, and how likely each is: prior times density of the noise.

Given the exact sums the posterior is conjugate, so with these weights it is a mixture of conjugate ones.
Post-processing: free, and the seed is harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hubbub.analyses.families.grids import plane
from hubbub.arrays import Floats
from hubbub.release import NoiseLaw

_LEAST_NOISE = 1e-9  # so that no noise at all is no special case
_NEGLIGIBLE = 45.0  # so far below the highest, a log weight counts for nothing
_MANY = 200_000  # whole numbers that are weighed one by one
_NEAR = 1000  # at either end also where they are more
_GROUPS = 1000  # of about the same probability, that more than so many are put into
_SWEEPS, _CHAINS, _RECORDS = 15, 64, 10  # of the sampler between records, ten times as many before; fewer chains ...
_NUMBERS = 64_000  # ... where they would hold more counts than this
_TABLE, _TABLE_END = 6000, 60.0  # points of a table of a density, and how many deviations it reaches


def plausible_count(
    log_prior: Callable[[Floats], Floats], noisy: float, noise: NoiseLaw, most: float
) -> tuple[Floats, Floats]:
    """Whole numbers from 0 to `most` that the sum may have been, and their weights; in groups if they are many."""

    log_noise = _tabled(noise.at_least(_LEAST_NOISE))

    def log_weight(count: Floats) -> Floats:
        return np.asarray(log_prior(count) + log_noise(noisy - count))

    low, high = 0.0, np.floor(most)
    while high - low > _MANY:
        grid = np.unique(np.round(np.linspace(low, high, 2000)))
        log = log_weight(grid)
        kept = np.flatnonzero(log >= log.max() - _NEGLIGIBLE)
        first, last = grid[max(kept[0] - 1, 0)], grid[min(kept[-1] + 1, grid.size - 1)]
        if last - first > (high - low) / 2:
            break
        low, high = first, last
    counts, width = _cells(low, high)
    log = log_weight(counts) + np.log(width)
    kept = log >= log.max() - _NEGLIGIBLE
    counts, weights = counts[kept], np.exp(log[kept] - log.max())
    weights /= weights.sum()
    if counts.size <= _GROUPS:
        return counts, weights
    group = np.minimum((np.cumsum(weights) - weights / 2) * _GROUPS, _GROUPS - 1).astype(int)
    total: Floats = np.bincount(group, weights).astype(np.float64)
    middle = np.bincount(group, weights * (counts - counts[0]))[total > 0]
    total = total[total > 0]
    return counts[0] + middle / total, total


def _cells(low: float, high: float) -> tuple[Floats, Floats]:
    """Runs of whole numbers by their middles and lengths: one number each, or only near the ends if they are many."""
    size = high - low + 1
    if size <= _MANY:
        return np.arange(low, high + 1), np.ones(int(size))
    near = np.append(np.arange(_NEAR), np.geomspace(_NEAR, size / 2, _MANY // 2))
    edges = np.unique(np.round(np.concatenate([low + near, high + 1 - near])))
    width = np.diff(edges)
    return edges[:-1] + (width - 1) / 2, width


def plausible_moments(
    log_prior: Callable[[Floats, Floats], Floats], n: int, noisy: Floats, noise: Sequence[NoiseLaw], bound: float
) -> tuple[Floats, Floats, Floats]:
    """Means and sums of squares around them that n numbers within the bound may have had, and their weights.

    `log_prior` is a density of (mean, log of the sum of squares around it); `noisy` and `noise` are of the sums of
    x and x^2.
    """

    units = (bound, bound**2)
    one, two = (_tabled(law.at_least(_LEAST_NOISE * unit)) for law, unit in zip(noise, units, strict=True))

    def log_weight(mean: Floats, log_square: Floats) -> Floats:
        of_square = two(noisy[1] - np.exp(log_square) - n * mean**2)
        return np.asarray(log_prior(mean, log_square) + one(noisy[0] - n * mean) + of_square)

    def squares(mean: Floats) -> tuple[Floats, Floats]:
        top = np.log(n * np.maximum(bound**2 - mean**2, 1e-12 * bound**2))
        return top - 30.0, top

    mean, log_square, weights = plane(log_weight, -bound, bound, squares)
    return mean, np.exp(log_square), weights


def plausible_counts(n: int, noisy: Floats, noise: NoiseLaw, prior: float) -> tuple[Floats, Floats]:
    """Counts of categories, n in all, that the sums may have been, and their weights, by Metropolis sampling.

    Each step divides what a pair of categories holds anew, all pairs of a matching and all chains at once: by turns a
    little differently, and as the prior would have it, which reaches the empty categories that a small prior expects.
    """
    from scipy.special import gammaln

    rng, law_of_noise = np.random.default_rng(0), noise.at_least(_LEAST_NOISE)
    std, log_density = law_of_noise.std, _tabled(law_of_noise)
    categories, pairs = noisy.size, noisy.size // 2
    chains = int(np.clip(_NUMBERS // categories, 8, _CHAINS))
    apart = _SWEEPS * int(np.ceil(np.clip(0.1 / prior, 1, 8)))  # small priors mix slowly
    counts = _near(noisy + std * rng.standard_normal((chains, categories)), n)

    def log_noise(count: Floats, seen: Floats) -> Floats:
        return log_density(seen - count)

    def log_weight(count: Floats, seen: Floats) -> Floats:
        return np.asarray(gammaln(prior + count) - gammaln(count + 1) + log_noise(count, seen))

    found = []
    for sweep in range(apart * (10 + _RECORDS)):
        order = rng.permutation(categories)
        one, two = order[:pairs], order[pairs : 2 * pairs]
        a, b = counts[:, one], counts[:, two]
        if sweep % 2:
            share = rng.beta(prior, prior, a.shape)
            share = np.where(np.isfinite(share), share, rng.integers(2, size=a.shape))  # tiny priors
            change, law = rng.binomial((a + b).astype(np.int64), share) - a, log_noise
        else:
            step = np.maximum(1.5 * np.minimum(std / np.sqrt(2), (a + b) / 2), 0.7)
            change, law = np.round(step * rng.standard_normal(a.shape)), log_weight
            change *= (change >= -a) & (change <= b)
        gain = law(a + change, noisy[one]) + law(b - change, noisy[two]) - law(a, noisy[one]) - law(b, noisy[two])
        change *= np.log(rng.uniform(size=a.shape)) < gain
        counts[:, one] += change
        counts[:, two] -= change
        if sweep >= 10 * apart and (sweep + 1) % apart == 0:
            found.append(counts.copy())
    different, times = np.unique(np.concatenate(found), axis=0, return_counts=True)
    return different, times / times.sum()


def _tabled(law: NoiseLaw) -> Callable[[Floats], Floats]:
    """The log density of a law, from a table where it takes Bessel functions, which are slow: within 1e-4 of it."""
    if law.normal or law.shape == 1:
        return law.log_density
    points = _TABLE_END * law.std * np.linspace(0, 1, _TABLE) ** 2  # close to one another around zero
    values = law.log_density(points)
    slope = (values[-1] - values[-2]) / (points[-1] - points[-2])

    def log_density(noise: Floats) -> Floats:
        distance = np.abs(noise)
        return np.asarray(np.interp(distance, points, values) + slope * np.maximum(distance - points[-1], 0.0))

    return log_density


def _near(wanted: Floats, n: int) -> Floats:
    """Whole numbers >= 0 with sum n in each row, near the wanted ones."""
    positive = np.maximum(wanted - (wanted.sum(axis=1, keepdims=True) - n) / wanted.shape[1], 1e-9)
    exact = positive * (n / positive.sum(axis=1, keepdims=True))
    whole = np.floor(exact)
    missing = np.round(n - whole.sum(axis=1)).astype(int)
    place = np.argsort(np.argsort(whole - exact, axis=1), axis=1)  # the largest remainders first
    return np.asarray(whole + (place < missing[:, None]))
