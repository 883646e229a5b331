"""Posteriors as small frozen records with the same verbs: mean, std, sample, interval.

Everything here is post-processing of a release: it costs no privacy, and a seed is harmless.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import invalid

_ROWS = 1000  # predicted at once from draws


def _check_level(level: float) -> float:
    if not 0 < level < 1:
        raise invalid("level", "between 0 and 1", level, "use 0.9 for a 90 % interval")
    return level


@dataclass(frozen=True)
class NormalPosterior:
    """A multivariate normal posterior."""

    mean: Floats
    covariance: Floats

    @property
    def std(self) -> Floats:
        """Marginal standard deviations."""
        return np.sqrt(np.diag(self.covariance))

    def sample(self, size: int = 1, seed: int | None = None) -> Floats:
        """(size, d) draws."""
        rng = np.random.default_rng(seed)
        return rng.multivariate_normal(self.mean, self.covariance, size=size, method="eigh")

    def predict(self, X: Floats, noise_precision: float) -> tuple[Floats, Floats]:
        """Posterior predictive mean and standard deviation of y = x'beta + noise."""
        spread = np.einsum("ij,jk,ik->i", X, self.covariance, X)
        return X @ self.mean, np.sqrt(spread + 1 / noise_precision)

    def interval(self, level: float = 0.9) -> Floats:
        """(d, 2) central credible intervals."""
        from scipy.special import ndtri

        half = ndtri(0.5 + _check_level(level) / 2) * self.std
        return np.column_stack([self.mean - half, self.mean + half])


@dataclass(frozen=True)
class LinearPosterior:
    """Posterior of a linear regression: coefficients, intercept and residual variance.

    Normal, or made of draws: then intervals are quantiles of the draws.
    """

    joint: NormalPosterior
    """Of the coefficients and, last, the intercept (exactly 0 where there is none)."""
    residual_variance: float
    draws: Floats | None = None
    """(k, d + 2): coefficients, intercept, residual variance."""

    @classmethod
    def of_draws(cls, coefficients: Floats, intercept: Floats, residual_variance: Floats) -> LinearPosterior:
        """From equally weighted draws."""
        draws = np.column_stack([coefficients, intercept, residual_variance])
        covariance = np.atleast_2d(np.cov(draws[:, :-1].T))
        joint = NormalPosterior(draws[:, :-1].mean(axis=0), covariance)
        return cls(joint, float(draws[:, -1].mean()), draws)

    @classmethod
    def without_intercept(cls, coefficients: NormalPosterior, residual_variance: float) -> LinearPosterior:
        """A regression through the origin."""
        covariance = np.pad(coefficients.covariance, (0, 1))
        return cls(NormalPosterior(np.append(coefficients.mean, 0.0), covariance), residual_variance)

    @property
    def mean(self) -> Floats:
        """Of the coefficients."""
        return self.joint.mean[:-1]

    @property
    def intercept(self) -> float:
        """Posterior mean of the intercept."""
        return float(self.joint.mean[-1])

    @property
    def covariance(self) -> Floats:
        """Of the coefficients."""
        return self.joint.covariance[:-1, :-1]

    @property
    def std(self) -> Floats:
        """Of the coefficients."""
        return self.joint.std[:-1]

    def intervals(self, level: float = 0.9) -> Floats:
        """(d + 1, 2) central credible intervals of coefficients and intercept."""
        if self.draws is None:
            return self.joint.interval(level)
        tail = (1 - _check_level(level)) / 2
        return np.asarray(np.quantile(self.draws[:, :-1], [tail, 1 - tail], axis=0).T)

    def interval(self, level: float = 0.9) -> Floats:
        """(d, 2) central credible intervals of the coefficients."""
        return self.intervals(level)[:-1]

    def sample(self, size: int = 1, seed: int | None = None) -> Floats:
        """(size, d) draws of the coefficients."""
        return self.sample_all(size, seed)[:, :-2]

    def sample_all(self, size: int = 1, seed: int | None = None) -> Floats:
        """(size, d + 2) draws of coefficients, intercept and residual variance."""
        rng = np.random.default_rng(seed)
        if self.draws is not None:
            return np.asarray(self.draws[rng.integers(len(self.draws), size=size)])
        joint = rng.multivariate_normal(self.joint.mean, self.joint.covariance, size=size, method="eigh")
        return np.column_stack([joint, np.full(size, self.residual_variance)])

    def predict(self, X: Floats) -> tuple[Floats, Floats]:
        """Posterior predictive mean and standard deviation of y."""
        return self.joint.predict(np.hstack([X, np.ones((len(X), 1))]), 1 / self.residual_variance)

    def predictive(self, X: Floats, size: int = 1000, seed: int | None = None) -> Floats:
        """(size, n) draws of y for these rows."""
        rng = np.random.default_rng(seed)
        draws = self.sample_all(size, int(rng.integers(2**32)))
        noise = np.sqrt(draws[:, -1:]) * rng.standard_normal((size, len(X)))
        return np.asarray(draws[:, :-2] @ X.T + draws[:, -2:-1] + noise)

    def predictive_interval(self, X: Floats, level: float = 0.9) -> Floats:
        """(n, 2) central intervals that hold y with this probability; the same ones at every call."""
        from scipy.special import ndtri

        tail = (1 - _check_level(level)) / 2
        if self.draws is None:
            mean, std = self.predict(X)
            return np.asarray(mean[:, None] + ndtri([tail, 1 - tail]) * std[:, None])
        found = np.empty((len(X), 2))
        for first in range(0, len(X), _ROWS):  # in pieces, so that memory stays bounded
            part = slice(first, first + _ROWS)
            found[part] = np.quantile(self.predictive(X[part], 2000, seed=0), [tail, 1 - tail], axis=0).T
        return found


@dataclass(frozen=True)
class ScalarPosterior:
    """A Beta(a, b) or Gamma(shape, rate) posterior of one number."""

    family: Literal["beta", "gamma"]
    parameters: tuple[float, float]

    def _frozen(self) -> Any:
        from scipy import stats

        a, b = self.parameters
        return stats.beta(a, b) if self.family == "beta" else stats.gamma(a, scale=1 / b)

    @property
    def mean(self) -> float:
        """Posterior mean."""
        return float(self._frozen().mean())

    @property
    def std(self) -> float:
        """Posterior standard deviation."""
        return float(self._frozen().std())

    def sample(self, size: int = 1, seed: int | None = None) -> Floats:
        """(size,) draws."""
        draws: Floats = self._frozen().rvs(size, random_state=np.random.default_rng(seed))
        return draws

    def interval(self, level: float = 0.9) -> Floats:
        """(2,) central credible interval."""
        return np.array(self._frozen().interval(_check_level(level)))


@dataclass(frozen=True)
class DirichletPosterior:
    """A Dirichlet posterior of probabilities."""

    concentration: Floats

    @property
    def mean(self) -> Floats:
        """Posterior mean of each probability."""
        return np.asarray(self.concentration / self.concentration.sum())

    @property
    def std(self) -> Floats:
        """Posterior standard deviation of each probability."""
        mean = self.mean
        return np.asarray(np.sqrt(mean * (1 - mean) / (self.concentration.sum() + 1)))

    def sample(self, size: int = 1, seed: int | None = None) -> Floats:
        """(size, k) draws."""
        return np.random.default_rng(seed).dirichlet(self.concentration, size)

    def interval(self, level: float = 0.9) -> Floats:
        """(k, 2) central credible intervals of the marginals, which are Beta."""
        rest = self.concentration.sum() - self.concentration
        return np.array(
            [ScalarPosterior("beta", (a, b)).interval(level) for a, b in zip(self.concentration, rest, strict=True)]
        )


@dataclass(frozen=True)
class NormalVariancePosterior:
    """Normal-inverse-gamma posterior of (mean, variance)."""

    location: float
    count: float
    shape: float
    scale: float

    @property
    def mean(self) -> Floats:
        """Posterior means of the mean and the variance."""
        return np.array([self.location, self.scale / (self.shape - 1)])

    @property
    def std(self) -> Floats:
        """Posterior standard deviations of the mean and the variance (infinite while n is tiny)."""
        variance = self.scale / (self.shape - 1) if self.shape > 1 else np.inf
        of_variance = variance / np.sqrt(self.shape - 2) if self.shape > 2 else np.inf
        return np.array([np.sqrt(variance / self.count), of_variance])

    def sample(self, size: int = 1, seed: int | None = None) -> Floats:
        """(size, 2) draws of mean and variance."""
        rng = np.random.default_rng(seed)
        variance = self.scale / rng.gamma(self.shape, size=size)
        return np.column_stack([rng.normal(self.location, np.sqrt(variance / self.count)), variance])

    def interval(self, level: float = 0.9) -> Floats:
        """(2, 2) central credible intervals of mean and variance."""
        from scipy import stats

        spread = np.sqrt(self.scale / (self.shape * self.count))
        mean = stats.t(2 * self.shape, self.location, spread).interval(_check_level(level))
        return np.array([mean, stats.invgamma(self.shape, scale=self.scale).interval(level)])
