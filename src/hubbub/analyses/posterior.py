"""Posteriors as small frozen records with the same verbs: mean, std, sample, interval.

Everything here is post-processing of a release: it costs no privacy, and a seed is harmless.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.linear.sampler.diagnostics import Diagnostics, diagnose
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
    """Of the coefficients and, last, the intercept (exactly 0 where there is none). Its mean is what predicts best."""
    residual_variance: float
    draws: Floats | None = None
    """(k, d + 2): coefficients, intercept, residual variance."""
    chains: Floats | None = None
    """(chains, k, d + 2): draws of the same posterior with the sampler's chains kept apart."""
    diagnostics: Diagnostics | None = None
    """Of the chains: coefficients, intercept, residual deviation."""
    on_rows: Floats | None = None
    """(k, d + 1): for each draw the coefficients and intercept that predict for a row (`sampler/on_rows.py`)."""
    rows_covariance: Floats | None = None
    """(d + 1, d + 1): their covariance, where it is not that of the coefficients."""

    @classmethod
    def of_draws(
        cls,
        draws: Floats,
        chains: Floats | None = None,
        centre: Floats | None = None,
        on_rows: Floats | None = None,
    ) -> LinearPosterior:
        """From equally weighted draws; `chains` tell how far they can be relied on.

        `centre` is what to take for the mean where tails are so heavy that a mean of draws would say little.
        """
        centre = draws[:, :-1].mean(axis=0) if centre is None else centre
        found = None if chains is None else diagnose(np.dstack([chains[..., :-1], np.sqrt(chains[..., -1])]))
        joint = NormalPosterior(centre, _around(draws[:, :-1], centre))
        rows_covariance = None if on_rows is None else _around(on_rows, centre)
        return cls(joint, float(draws[:, -1].mean()), draws, chains, found, on_rows, rows_covariance)

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
        covariance = self.joint.covariance if self.rows_covariance is None else self.rows_covariance
        joint = NormalPosterior(self.joint.mean, covariance)
        return joint.predict(np.hstack([X, np.ones((len(X), 1))]), 1 / self.residual_variance)

    def predictive(self, X: Floats, size: int = 1000, seed: int | None = None) -> Floats:
        """(size, n) draws of y for these rows."""
        rng = np.random.default_rng(seed)
        if self.draws is None or self.on_rows is None:
            drawn = self.sample_all(size, int(rng.integers(2**32)))
            joint, variance = drawn[:, :-1], drawn[:, -1:]
        else:
            chosen = rng.integers(len(self.draws), size=size)
            joint, variance = self.on_rows[chosen], self.draws[chosen, -1:]
        noise = np.sqrt(variance) * rng.standard_normal((size, len(X)))
        return np.asarray(joint[:, :-1] @ X.T + joint[:, -1:] + noise)

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


def _around(draws: Floats, centre: Floats) -> Floats:
    """Covariance of draws around what is taken for their mean."""
    away = draws - centre
    return np.asarray(away.T @ away / len(away))


@dataclass(frozen=True)
class _Mixture:
    """Of conjugate posteriors, one for each exact sum that may lie behind the noisy one."""

    weights: Floats
    """Of the components: positive, with sum 1."""

    def _moments(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation, from those of the components (first axis)."""
        middle = self._mixed(mean)
        return middle, np.sqrt(self._mixed(variance + (mean - middle) ** 2))

    def _mixed(self, values: Floats) -> Floats:
        """The weighted mean over the components, which are the first axis."""
        return np.asarray(np.tensordot(self.weights, values, axes=1))

    def _interval(self, law: Any, level: float) -> Floats:
        """Central interval of a mixture of laws (first axis: components), one for each column."""
        tail = (1 - _check_level(level)) / 2
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
class NormalMixturePosterior(_Mixture):
    """Independent numbers, each with a mixture of normal posteriors of its own. The weights are (components, d)."""

    means: Floats
    """(components, d)."""
    variances: Floats
    """(components, d)."""

    @property
    def mean(self) -> Floats:
        """Posterior means."""
        return self._moments(self.means, self.variances)[0]

    @property
    def std(self) -> Floats:
        """Posterior standard deviations."""
        return self._moments(self.means, self.variances)[1]

    @property
    def covariance(self) -> Floats:
        """(d, d): the numbers are independent."""
        return np.diag(self.std**2)

    def _mixed(self, values: Floats) -> Floats:
        return np.asarray(np.sum(self.weights * values, axis=0))

    def sample(self, size: int = 1, seed: int | None = None) -> Floats:
        """(size, d) draws."""
        rng = np.random.default_rng(seed)
        columns = range(self.weights.shape[1])
        chosen = np.stack([rng.choice(len(self.weights), size, p=self.weights[:, j]) for j in columns], axis=1)
        mean, variance = (np.take_along_axis(part, chosen, axis=0) for part in (self.means, self.variances))
        return np.asarray(rng.normal(mean, np.sqrt(variance)))

    def interval(self, level: float = 0.9) -> Floats:
        """(d, 2) central credible intervals."""
        return self._interval(_Normals(self.means, np.sqrt(self.variances)), level)


@dataclass(frozen=True)
class _Normals:
    """Normal laws, as quick as scipy.stats has them not: a mixture asks them sixty times."""

    mean: Floats
    std: Floats

    def ppf(self, share: float) -> Floats:
        """Quantiles."""
        from scipy.special import ndtri

        return np.asarray(self.mean + self.std * ndtri(share))

    def cdf(self, value: Floats) -> Floats:
        """Cumulative probabilities."""
        from scipy.special import ndtr

        return np.asarray(ndtr((value - self.mean) / self.std))


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
        law = self._law(self.parameters)
        return self._moments(law.mean(), law.var())

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
        total = self.concentration.sum(axis=1, keepdims=True)
        mean = self.concentration / total
        return self._moments(mean, mean * (1 - mean) / (total + 1))

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
        variance = self.scale / (self.shape - 1) if self.shape > 1 else np.full_like(self.scale, np.inf)
        squared = variance**2 / (self.shape - 2) if self.shape > 2 else np.full_like(self.scale, np.inf)
        mean, std = self._moments(self.location, variance / self.count)
        if not self.shape > 1:
            return np.array([mean, np.inf]), np.array([np.inf, np.inf])
        of_variance = self._moments(variance, squared)
        return np.array([mean, of_variance[0]]), np.array([std, of_variance[1]])

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
