"""Posteriors of regressions as small frozen records with the same verbs: mean, std, sample, interval.

Everything here is post-processing of a release: it costs no privacy, and a seed is harmless.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hubbub.analyses.linear.sampler.diagnostics import Diagnostics, diagnose
from hubbub.arrays import Floats
from hubbub.errors import invalid
from hubbub.shown import Tabled, quantities_html

_ROWS = 1000  # predicted at once from draws


def check_level(level: float) -> float:
    """A share of a distribution, or one line that says so."""
    if not 0 < level < 1:
        raise invalid("level", "between 0 and 1", level, "use 0.9 for a 90 % interval")
    return level


@dataclass(frozen=True)
class NormalPosterior(Tabled):
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

        half = ndtri(0.5 + check_level(level) / 2) * self.std
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
    chains_on_rows: Floats | None = field(default=None, repr=False)
    """(chains, k, d + 1): the same of the chains."""
    noise_share: Floats | None = field(default=None, repr=False)
    """(d + 1,): of the variance of coefficients and intercept the part that is there because noise hides the exact sums
    (`sampler/noise_share.py`)."""
    names: tuple[str, ...] = field(default=(), repr=False)
    """Of the coefficients, for tables and pictures."""

    @classmethod
    def of_draws(
        cls,
        draws: Floats,
        chains: Floats | None = None,
        centre: Floats | None = None,
        on_rows: Floats | None = None,
        **more: Any,
    ) -> LinearPosterior:
        """From equally weighted draws; `chains` tell how far they can be relied on.

        `centre` is what to take for the mean where tails are so heavy that a mean of draws would say little; `more` are
        further fields.
        """
        centre = draws[:, :-1].mean(axis=0) if centre is None else centre
        found = None if chains is None else diagnose(np.dstack([chains[..., :-1], np.sqrt(chains[..., -1])]))
        joint = NormalPosterior(centre, _around(draws[:, :-1], centre))
        rows_covariance = None if on_rows is None else _around(on_rows, centre)
        return cls(joint, float(draws[:, -1].mean()), draws, chains, found, on_rows, rows_covariance, **more)

    @classmethod
    def without_intercept(cls, coefficients: NormalPosterior, residual_variance: float) -> LinearPosterior:
        """A regression through the origin."""
        covariance = np.pad(coefficients.covariance, (0, 1))
        return cls(NormalPosterior(np.append(coefficients.mean, 0.0), covariance), residual_variance)

    @property
    def labels(self) -> list[str]:
        """The names of the coefficients, or x0, x1, .. where they have none."""
        return list(self.names) or [f"x{j}" for j in range(len(self.mean))]

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
        tail = (1 - check_level(level)) / 2
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

    def kept_apart(self) -> Floats:
        """(chains, k, d + 2) draws: chains of a sampled posterior; of a closed form independent draws, as one chain."""
        return self.sample_all(1000, 0)[None] if self.chains is None else self.chains

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

        tail = (1 - check_level(level)) / 2
        if self.draws is None:
            mean, std = self.predict(X)
            return np.asarray(mean[:, None] + ndtri([tail, 1 - tail]) * std[:, None])
        found = np.empty((len(X), 2))
        for first in range(0, len(X), _ROWS):  # in pieces, so that memory stays bounded
            part = slice(first, first + _ROWS)
            found[part] = np.quantile(self.predictive(X[part], 2000, seed=0), [tail, 1 - tail], axis=0).T
        return found

    def _repr_html_(self) -> str:
        ends, draws = self.intervals(0.9), self.sample_all(4000, 0) if self.draws is None else self.draws
        names = [*self.labels, "intercept"] if self.joint.covariance[-1, -1] > 0 else self.labels
        rows = [
            {"name": name, "mean": self.joint.mean[j], "std": self.joint.std[j], "low": ends[j, 0], "high": ends[j, 1],
             "positive": np.mean(draws[:, j] > 0)}
            for j, name in enumerate(names)
        ]  # fmt: skip
        return quantities_html(rows, 0.9)


def _around(draws: Floats, centre: Floats) -> Floats:
    """Covariance of draws around what is taken for their mean."""
    away = draws - centre
    return np.asarray(away.T @ away / len(away))
