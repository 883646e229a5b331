"""Posteriors of families that need one sum, with the same verbs as those of regressions: mean, std, sample, interval.

Everything here is post-processing of a release: it costs no privacy, and a seed is harmless.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.posterior import check_level
from hubbub.arrays import Floats
from hubbub.shown import Tabled


@dataclass(frozen=True)
class _Mixture(Tabled):
    """Of conjugate posteriors, one for each exact sum that may lie behind the noisy one."""

    weights: Floats
    """Of the components: positive, with sum 1."""

    @property
    def noise_share(self) -> Floats | None:
        """Of each variance the part that is there because noise hides the exact sums, by the law of total variance.

        None where the components are not of exact sums.
        """
        found = self._components()
        if found is None:
            return None
        total = self._moments(*found)[1] ** 2
        return np.atleast_1d(1 - self._mixed(found[1]) / np.maximum(total, 1e-300))

    def _components(self) -> tuple[Floats, Floats] | None:
        """Mean and variance given the exact sum of each component."""
        return None

    def _moments(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation, from those of the components (first axis)."""
        middle = self._mixed(mean)
        return middle, np.sqrt(self._mixed(variance + (mean - middle) ** 2))

    def _mixed(self, values: Floats) -> Floats:
        """The weighted mean over the components, which are the first axis."""
        return np.asarray(np.tensordot(self.weights, values, axes=1))

    def _interval(self, law: Any, level: float) -> Floats:
        """Central interval of a mixture of laws (first axis: components), one for each column."""
        tail = (1 - check_level(level)) / 2
        found = []
        for share in (tail, 1 - tail):
            ends = law.ppf(share)
            low, high = ends.min(axis=0), ends.max(axis=0)
            for _ in range(30 if len(self.weights) > 1 else 0):
                middle = (low + high) / 2
                below = self._mixed(law.cdf(middle)) < share
                low, high = np.where(below, middle, low), np.where(below, high, middle)
            found.append((low + high) / 2)
        return np.stack(found, axis=-1)

    def _chosen(self, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Components of so many draws."""
        return rng.choice(len(self.weights), size, p=self.weights)


@dataclass(frozen=True)
class GridPosterior(Tabled):
    """One number or several, as points of a fine grid with weights."""

    points: Floats
    """(k,) of one number, (k, d) of several."""
    weights: Floats
    """Of the points, with sum 1: (k,), or (k, d) where each of d independent numbers has a grid of its own."""

    @property
    def mean(self) -> Any:
        """Posterior means."""
        return self._mixed(self.points)

    @property
    def std(self) -> Any:
        """Posterior standard deviations."""
        return np.sqrt(self._mixed((self.points - self.mean) ** 2))

    def _mixed(self, values: Floats) -> Any:
        return np.sum(self._columns() * values, axis=0)

    def _columns(self) -> Floats:
        """The weights with an axis for each of the points'."""
        return self.weights if self.weights.ndim == self.points.ndim else self.weights[:, None]

    def sample(self, size: int = 1, seed: int | None = None) -> Floats:
        """(size,) or (size, d) draws."""
        rng = np.random.default_rng(seed)
        if self.weights.ndim < self.points.ndim:
            return np.asarray(self.points[rng.choice(len(self.points), size, p=self.weights)])
        return self._quantiles(rng.random((size, *self.points.shape[1:])))

    def interval(self, level: float = 0.9) -> Floats:
        """(2,) or (d, 2) central credible intervals."""
        tail = (1 - check_level(level)) / 2
        shares = np.broadcast_to(
            np.reshape([tail, 1 - tail], (2, *(1,) * (self.points.ndim - 1))), (2, *self.points.shape[1:])
        )
        return self._quantiles(shares).T

    def _quantiles(self, shares: Floats) -> Floats:
        """Of each number at the shares in its column, between points by interpolation."""
        columns = self.points.reshape(len(self.points), -1)
        weights = np.broadcast_to(self._columns().reshape(len(self.points), -1), columns.shape)
        found = np.empty((len(shares), columns.shape[1]))
        for j, share in enumerate(shares.reshape(len(shares), -1).T):
            order = np.argsort(columns[:, j], kind="stable")
            weight = weights[order, j]
            found[:, j] = np.interp(share, np.cumsum(weight) - weight / 2, columns[order, j])
        return found.reshape(shares.shape)


@dataclass(frozen=True)
class ScalarPosterior(_Mixture):
    """Beta(a, b) or Gamma(shape, rate) posteriors of one number, mixed."""

    family: Literal["beta", "gamma"]
    parameters: tuple[Floats, Floats]
    """Of each component."""

    def _law(self, parameters: tuple[Floats, Floats]) -> Any:
        from scipy import stats

        a, b = parameters
        return stats.beta(a, b) if self.family == "beta" else stats.gamma(a, scale=1 / b)

    @property
    def mean(self) -> float:
        """Posterior mean."""
        return float(self._both()[0])

    @property
    def std(self) -> float:
        """Posterior standard deviation."""
        return float(self._both()[1])

    def _both(self) -> tuple[Floats, Floats]:
        return self._moments(*self._components())

    def _components(self) -> tuple[Floats, Floats]:
        law = self._law(self.parameters)
        return law.mean(), law.var()

    def sample(self, size: int = 1, seed: int | None = None) -> Floats:
        """(size,) draws."""
        rng = np.random.default_rng(seed)
        chosen = self._chosen(size, rng)
        a, b = self.parameters
        return np.asarray(self._law((a[chosen], b[chosen])).rvs(size, random_state=rng))

    def interval(self, level: float = 0.9) -> Floats:
        """(2,) central credible interval."""
        return self._interval(self._law(self.parameters), level)


@dataclass(frozen=True)
class DirichletPosterior(_Mixture):
    """Dirichlet posteriors of probabilities, mixed."""

    concentration: Floats
    """(components, k)."""

    @property
    def mean(self) -> Floats:
        """Posterior mean of each probability."""
        return self._both()[0]

    @property
    def std(self) -> Floats:
        """Posterior standard deviation of each probability."""
        return self._both()[1]

    def _both(self) -> tuple[Floats, Floats]:
        return self._moments(*self._components())

    def _components(self) -> tuple[Floats, Floats]:
        total = self.concentration.sum(axis=1, keepdims=True)
        mean = self.concentration / total
        return mean, mean * (1 - mean) / (total + 1)

    def sample(self, size: int = 1, seed: int | None = None) -> Floats:
        """(size, k) draws."""
        rng = np.random.default_rng(seed)
        gamma = rng.gamma(self.concentration[self._chosen(size, rng)])
        return np.asarray(gamma / gamma.sum(axis=1, keepdims=True))

    def interval(self, level: float = 0.9) -> Floats:
        """(k, 2) central credible intervals of the marginals, which are mixtures of Beta."""
        from scipy import stats

        others = (self.concentration.shape[1] - 1) * self.concentration.min(axis=1, keepdims=True)  # at least
        rest = np.maximum(self.concentration.sum(axis=1, keepdims=True) - self.concentration, others)
        return self._interval(stats.beta(self.concentration, rest), level)


@dataclass(frozen=True)
class NormalVariancePosterior(_Mixture):
    """Normal-inverse-gamma posteriors of (mean, variance), mixed; count and shape are common to all."""

    location: Floats
    scale: Floats
    count: float
    shape: float

    @property
    def mean(self) -> Floats:
        """Posterior means of the mean and the variance."""
        return self._both()[0]

    @property
    def std(self) -> Floats:
        """Posterior standard deviations of the mean and the variance (infinite while n is tiny)."""
        return self._both()[1]

    def _both(self) -> tuple[Floats, Floats]:
        if not self.shape > 1:
            return np.array([self._mixed(self.location), np.inf]), np.array([np.inf, np.inf])
        return self._moments(*self._components())

    def _components(self) -> tuple[Floats, Floats]:
        variance = self.scale / (self.shape - 1) if self.shape > 1 else np.full_like(self.scale, np.inf)
        squared = variance**2 / (self.shape - 2) if self.shape > 2 else np.full_like(self.scale, np.inf)
        return np.column_stack([self.location, variance]), np.column_stack([variance / self.count, squared])

    def sample(self, size: int = 1, seed: int | None = None) -> Floats:
        """(size, 2) draws of mean and variance."""
        rng = np.random.default_rng(seed)
        chosen = self._chosen(size, rng)
        variance = self.scale[chosen] / rng.gamma(self.shape, size=size)
        return np.column_stack([rng.normal(self.location[chosen], np.sqrt(variance / self.count)), variance])

    def interval(self, level: float = 0.9) -> Floats:
        """(2, 2) central credible intervals of mean and variance."""
        from scipy import stats

        spread = np.sqrt(self.scale / (self.shape * self.count))
        mean = self._interval(stats.t(2 * self.shape, self.location, spread), level)
        return np.array([mean, self._interval(stats.invgamma(self.shape, scale=self.scale), level)])
