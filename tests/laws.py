"""Exact laws of whole numbers for the tests of noise: by sums and convolutions, with nothing from hubbub.

Convolutions add positive numbers only, so that every probability is right to many digits, far out in the tails too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from conftest import FALSE_ALARM

Array = np.ndarray


@dataclass(frozen=True)
class Law:
    """Probabilities of the whole numbers from `first` on; what lies beyond its ends is left out."""

    first: int
    p: Array

    @property
    def x(self) -> Array:
        return np.arange(self.first, self.first + self.p.size)

    @property
    def mean(self) -> float:
        return float(self.x @ self.p)

    @property
    def variance(self) -> float:
        return float((self.x - self.mean) ** 2 @ self.p)

    def __add__(self, other: Law) -> Law:
        """Of the sum of two independent draws."""
        return Law(self.first + other.first, np.convolve(self.p, other.p))

    def shifted(self, by: int) -> Law:
        return Law(self.first + by, self.p)

    def negated(self) -> Law:
        return Law(-self.first - self.p.size + 1, self.p[::-1])

    def within(self, low: int, high: int) -> Array:
        """The probabilities of low .. high, zero where there are none."""
        found = np.zeros(high - low + 1)
        inside = (self.x >= low) & (self.x <= high)
        found[self.x[inside] - low] = self.p[inside]
        return found


def mixed(*parts: tuple[float, Law]) -> Law:
    """One of several laws, each with its probability."""
    low = min(law.first for _, law in parts)
    high = max(law.first + law.p.size - 1 for _, law in parts)
    return Law(low, sum((weight * law.within(low, high) for weight, law in parts), np.zeros(high - low + 1)))


def together(laws: Iterable[Law]) -> Law:
    """Of the sum of independent draws."""
    total = Law(0, np.ones(1))
    for law in laws:
        total = total + law
    return total


def discrete_gaussian(sigma: float, reach: float = 26.0) -> Law:
    """exp(-x^2 / 2 sigma^2), over its sum."""
    x = np.arange(-math.ceil(reach * sigma), math.ceil(reach * sigma) + 1.0)
    p = np.exp(-0.5 * (x / sigma) ** 2)
    return Law(int(x[0]), p / math.fsum(p))


def two_sided_geometric(scale: float, reach: float = 60.0) -> Law:
    """exp(-|x| / scale), over its sum."""
    x = np.arange(-math.ceil(reach * scale), math.ceil(reach * scale) + 1.0)
    return Law(int(x[0]), np.exp(-np.abs(x) / scale) * math.tanh(0.5 / scale))


def polya_difference(scale: float, shape: float, reach: float = 45.0) -> Law:
    """The difference of two negative binomial draws of this shape, by scipy's probabilities of one."""
    one = stats.nbinom(shape, -math.expm1(-1 / scale)).pmf(np.arange(math.ceil(reach * scale * max(1.0, shape))))
    return Law(0, one) + Law(0, one).negated()


def skellam(mean: float, reach: float = 20.0) -> Law:
    """The difference of two Poisson draws of this mean each."""
    one = stats.poisson(mean).pmf(np.arange(math.ceil(mean + reach * math.sqrt(mean) + 40)))
    return Law(0, one) + Law(0, one).negated()


def hockey_stick(one: Law, other: Law, epsilon: float) -> float:
    """The delta that goes with epsilon for these two laws, in the worse of the two directions."""
    low, high = min(one.first, other.first), max(one.first + one.p.size, other.first + other.p.size)
    first, second = one.within(low, high), other.within(low, high)
    return max(float(np.maximum(a - math.exp(epsilon) * b, 0.0).sum()) for a, b in ((first, second), (second, first)))


def largest_log_ratio(one: Law, other: Law, trusted: float = 1e-200) -> float:
    """The largest |ln(p / q)| where both are numbers that have their digits."""
    low, high = max(one.first, other.first), min(one.first + one.p.size, other.first + other.p.size) - 1
    first, second = one.within(low, high), other.within(low, high)
    seen = (first > trusted) & (second > trusted)
    return float(np.abs(np.log(first[seen] / second[seen])).max())


def check_draws(draws: Array, law: Law, least: float = 20.0) -> None:
    """Chi-squared of draws against the law, with neighbouring numbers put together until `least` are expected.

    A right sampler fails with probability FALSE_ALARM.
    """
    expected = draws.size * law.p
    edges, counts = _grouped(expected, least)
    counts[-1] += draws.size * max(0.0, 1.0 - math.fsum(law.p))
    position = np.clip(np.asarray(draws, dtype=np.int64) - law.first, 0, law.p.size - 1)
    seen = np.bincount(np.searchsorted(edges, position, side="left"), minlength=counts.size)
    assert counts.size > 1, "too few draws to tell anything"
    statistic = float(((seen - counts) ** 2 / counts).sum())
    assert stats.chi2(counts.size - 1).sf(statistic) > FALSE_ALARM, f"{statistic:.1f} for {counts.size} groups"


def _grouped(expected: Array, least: float) -> tuple[Array, list[float] | Array]:
    """(last position of each group, expected draws in it)."""
    edges, counts, total = [], [], 0.0
    for position, value in enumerate(expected):
        total += value
        if total >= least:
            edges.append(position)
            counts.append(total)
            total = 0.0
    edges[-1] = expected.size - 1
    counts[-1] += total
    return np.array(edges), np.array(counts)


def check_moments(draws: Array, mean: float, variance: float) -> None:
    """Mean and variance of draws, by their own scatter; each fails a right sampler with probability FALSE_ALARM."""
    bound = stats.norm.isf(FALSE_ALARM / 2)
    away = np.asarray(draws, dtype=np.float64) - mean
    assert abs(away.mean()) < bound * math.sqrt(variance / away.size)
    assert abs((away**2).mean() - variance) < bound * (away**2).std() / math.sqrt(away.size)
