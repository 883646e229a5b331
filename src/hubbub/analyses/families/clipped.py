"""Laws of values that are clipped to a bound, and how likely a noisy sum of n of them is.

A value beyond the bound is summed as the bound, so the sum is one of clipped values. Their law is written as a few
points with probabilities, a row for each setting of the parameters; all that is asked of the sum follows from these.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hubbub.arrays import Floats
from hubbub.release import NoiseLaw

_CELLS = 512  # of counts below the bound: where there are more, neighbours are taken together
_REACH = 12.0  # deviations around a rate that counts are looked for in
_NODES = np.polynomial.legendre.leggauss(32)  # for a normal density within the bound
_NORMAL_REACH = 8.0  # deviations around a mean; beyond them are 1e-15
_VARIANCES = 10  # that stand for all which noise of another law may have
_AT_ONCE = 1_000_000  # complex numbers in memory
_ENDS = {True: (12.0, 8.0, 48), False: (40.0, 14.0, 192)}  # of normal, and of other noise: see log_likelihood
_SMOOTH = {True: 1.5, False: 8.0}  # deviations of normal, and of other noise that hide that a sum is a whole number
_EXACT = 0.01  # of a whole number, or of a bound: less noise than that is none
_LEAST = 1e-13  # of a density in units of its deviation: what is left of it by rounding


@dataclass(frozen=True)
class Clipped:
    """Laws of one clipped value, a row for each setting of the parameters."""

    points: Floats
    """(settings, points): values that it may have."""
    masses: Floats
    """(settings, points): their probabilities."""

    @cached_property
    def mean(self) -> Floats:
        """(settings,) expected values."""
        return np.asarray((self.masses * self.points).sum(axis=1))

    @cached_property
    def variance(self) -> Floats:
        """(settings,) variances."""
        return np.asarray((self.masses * (self.points - self.mean[:, None]) ** 2).sum(axis=1))

    def of_squares(self) -> Clipped:
        """Of the squares of the values."""
        return Clipped(self.points**2, self.masses)

    def covariance(self, other: Clipped) -> Floats:
        """(settings,) with other values of the same probabilities."""
        away = (self.points - self.mean[:, None]) * (other.points - other.mean[:, None])
        return np.asarray((self.masses * away).sum(axis=1))


def clipped_counts(rate: Floats, bound: float) -> Clipped:
    """Of min(x, bound) for x ~ Poisson(rate) and a whole bound, for each of these rates."""
    from scipy.special import gammaln, pdtr, pdtrc, xlogy

    column, size = rate[:, None], int(min(bound, _CELLS))
    last = pdtrc(bound - 1, column)
    if bound <= _CELLS:
        points = np.broadcast_to(np.arange(bound), (rate.size, size))
        masses = np.exp(xlogy(points, column) - column - gammaln(points + 1))
    else:
        reach = _REACH * np.sqrt(column) + 2 * _REACH
        low, high = np.clip(np.floor(column - reach), 0, bound), np.clip(np.ceil(column + reach), 0, bound)
        edges = np.round(low + (high - low) * np.linspace(0, 1, size + 1))
        first, end = edges[:, :-1], edges[:, 1:]
        masses = np.maximum(_below(pdtr, end, column) - _below(pdtr, first, column), 0.0)
        sums = column * (_below(pdtr, end - 1, column) - _below(pdtr, first - 1, column))
        middle = np.divide(sums, masses, out=first.copy(), where=masses > 1e-200)
        points = np.clip(middle, first, np.maximum(end - 1, first))
    return Clipped(np.hstack([points, np.full_like(column, bound)]), np.hstack([masses, last]))


def _below(pdtr: np.ufunc, count: Floats, rate: Floats) -> Floats:
    """Probability of fewer than so many events."""
    return np.where(count > 0, pdtr(np.maximum(count - 1, 0), rate), 0.0)


def clipped_normals(mean: Floats, std: Floats | float, bound: float) -> Clipped:
    """Of x ~ N(mean, std^2), clipped to [-bound, bound], for each of these means and deviations."""
    from scipy.special import ndtr

    column, std = mean[:, None], np.broadcast_to(std, mean.shape)[:, None]
    low, high = np.maximum(column - _NORMAL_REACH * std, -bound), np.minimum(column + _NORMAL_REACH * std, bound)
    half, (nodes, weights) = np.maximum(high - low, 0.0) / 2, _NODES
    points = np.clip((low + high) / 2 + half * nodes, -bound, bound)
    masses = half * weights * np.exp(-0.5 * ((points - column) / std) ** 2) / (np.sqrt(2 * np.pi) * std)
    ends = np.full_like(column, bound)
    below, above = ndtr((-bound - column) / std), ndtr((column - bound) / std)
    return Clipped(np.hstack([-ends, points, ends]), np.hstack([below, masses, above]))


def rough_log_likelihood(law: Clipped, n: int, noisy: float, noise: NoiseLaw, whole: bool) -> Floats:
    """The same as `log_likelihood`, with the sum taken as normal: nearly right, and everywhere finite."""
    std = _deviation(law, n, noise, whole)
    gap = np.abs(noisy - n * law.mean) / std
    log = -0.5 * gap**2
    if noise.shape is not None:  # such noise has an exponential tail
        log = np.maximum(log, -np.sqrt(2 * noise.shape) * gap)
    return np.asarray(log - np.log(std))


def log_likelihood(law: Clipped, n: int, noisy: float, noise: NoiseLaw, whole: bool) -> Floats:
    """Log density of a noisy sum of n clipped values, for each setting, but for a common constant.

    The Fourier integral of the n-th power of one value's characteristic function times that of the noise, which is
    exact up to rounding for any n and any noise. `whole` is for sums that are whole numbers: each is weighed by the
    density of the noise that it needs. Far from what a setting leads to, the sum is taken as normal.
    """
    found = rough_log_likelihood(law, n, noisy, noise, whole)
    std = _deviation(law, n, noise, whole)
    noise = noise.at_least(_EXACT * (1.0 if whole else float(np.abs(law.points).max())))
    end, reach, count = _ENDS[noise.normal]
    near = np.flatnonzero(np.abs(noisy - n * law.mean) < reach * std)
    chunk = max(_AT_ONCE // (count * law.points.shape[1]), 1)
    for rows in np.split(near, range(chunk, near.size, chunk)):
        last = np.minimum(np.pi, end / std[rows]) if whole else end / std[rows]
        t = last[:, None] * (np.arange(count) + 0.5) / count
        away = law.points[rows] - law.mean[rows, None]
        one = np.einsum("ik,itk->it", law.masses[rows], np.exp(1j * t[..., None] * away[:, None, :]))
        every = np.exp(n * np.log(one)) * _of_noise(t, noisy - n * law.mean[rows, None], noisy, noise, whole)
        if not noise.normal:
            ringing = np.where(last < np.pi, std[rows], 0.0) if whole else std[rows]  # where the integral ends early
            every *= np.exp(-0.5 * (5 * t * ringing[:, None] / end) ** 2)
        density = every.real.sum(axis=1) * last / (np.pi * count)
        found[rows] = np.log(np.maximum(density * std[rows], _LEAST)) - np.log(std[rows])
    return found


def _deviation(law: Clipped, n: int, noise: NoiseLaw, whole: bool) -> Floats:
    """Of a noisy sum for each setting, and at least what tells whole numbers apart, or next to nothing of a bound."""
    least = 1.0 if whole else _EXACT * float(np.abs(law.points).max())
    return np.asarray(np.sqrt(n * law.variance + max(noise.std, least) ** 2))


def _of_noise(t: Floats, gap: Floats, noisy: float, noise: NoiseLaw, whole: bool) -> Floats:
    """Characteristic function of the noise, turned by how far the noisy sum is from the expected one.

    Of whole sums and little noise: the whole numbers near the noisy sum instead, each as likely as the noise makes it.
    """
    if whole and noise.std < _SMOOTH[noise.normal]:
        reach = np.ceil((12 if noise.normal else 20) * noise.std) + 1
        sums = np.arange(np.floor(noisy - reach), np.ceil(noisy + reach) + 1)
        log = noise.log_density(noisy - sums)
        return np.asarray(np.exp(-1j * t[..., None] * (gap[..., None] + (sums - noisy))) @ np.exp(log - log.max()))
    squared = (noise.std * t) ** 2 / 2
    if noise.normal or noise.shape is None:
        return np.asarray(np.exp(-squared - 1j * t * gap))
    return np.asarray(np.exp(-noise.shape * np.log1p(squared / noise.shape) - 1j * t * gap))


def log_likelihood_of_both(law: Clipped, n: int, noisy: Floats, noise: NoiseLaw) -> Floats:
    """Log density of the noisy sums of n clipped values and of their squares, in units of the bound.

    The exact sums are taken as normal, with the means and the covariance that clipped values have. Laplace noise is
    normal of a random variance, in each sum one of its own; a few variances stand for all.
    """
    squares, noise = law.of_squares(), noise.at_least(_EXACT)
    one, two = noisy[0] - n * law.mean, noisy[1] - n * squares.mean
    a, b, c = n * law.variance, n * squares.variance, n * law.covariance(squares)
    variances, log_weights = _variances(noise)
    found = np.full(one.shape, -np.inf)
    for first, log_first in zip(variances, log_weights, strict=True):
        for second, log_second in zip(variances, log_weights, strict=True):
            p, q = a + first, b + second
            det = p * q - c**2
            log = -0.5 * np.log(det) - 0.5 * (one**2 * q - 2 * one * two * c + two**2 * p) / det
            np.logaddexp(found, log + (log_first + log_second), out=found)
    return found


def _variances(noise: NoiseLaw) -> tuple[Floats, Floats]:
    """Variances that the noise may have had, in even steps of the logarithm, and the logarithms of their weights."""
    if noise.normal or noise.shape is None:
        return np.array([noise.std**2]), np.zeros(1)
    from scipy.special import gammaincinv

    shape = noise.shape
    low, high = gammaincinv(shape, [1e-3, 1 - 1e-7])
    log = np.linspace(np.log(low), np.log(high), _VARIANCES)
    weights = shape * log - np.exp(log)
    return noise.std**2 / shape * np.exp(log), weights - np.logaddexp.reduce(weights)
