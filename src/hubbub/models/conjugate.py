"""Conjugate families that need one sum: Gaussian mean and variance, Bernoulli, categorical, Poisson.

Each has a prior, asks an engine for one noisy sum, and gives the conjugate posterior. A count that the
noise pushed out of its range is moved back to the nearest possible one: post-processing, free of cost.

Only GaussianMean takes the mechanism's noise into account. The other posteriors treat the noisy sum as exact:
where the noise is large beside the sampling error, their intervals are too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats, finite_rows
from hubbub.errors import invalid
from hubbub.models.posterior import (
    DirichletPosterior,
    NormalPosterior,
    NormalVariancePosterior,
    ScalarPosterior,
)
from hubbub.models.rounds import Engine, Rounds
from hubbub.privacy import Budget, Ledger, PrivacyReport, Release, current_ledger, noise_multiplier
from hubbub.statistics import Count, MeanAndSquare, Means, OneHot, Statistic

P = TypeVar("P")


@dataclass(frozen=True)
class ConjugateFit(Generic[P]):
    """The posterior and the statement of its privacy."""

    posterior: P
    privacy: PrivacyReport
    release: Release


def _fit(
    values: object, statistic: Statistic, label: str, budget: Budget, engine: Engine, ledger: Ledger | None
) -> tuple[Release, PrivacyReport]:
    rows = np.asarray(values)
    rows = finite_rows("values", rows[:, None] if rows.ndim == 1 else rows, statistic.columns)
    if not isinstance(budget, Budget):
        raise invalid("budget", "a Budget", repr(budget), "use Budget(epsilon=1.0, delta=1e-5)")
    ledger = current_ledger() if ledger is None else ledger
    with Rounds(engine, ledger, [(label, noise_multiplier(budget))]) as rounds:
        release = rounds.run(rows, statistic)
    return release, PrivacyReport(budget, rounds.done)


@dataclass(frozen=True)
class GaussianMean:
    """x ~ N(theta, variance I) with known variance and theta ~ N(prior_mean, prior_variance I).

    The noise of the mechanism is normal too, so here the posterior takes it into account exactly.
    """

    bound: float | Sequence[float]
    variance: float
    prior_mean: float = 0.0
    prior_variance: float = 1e6

    def fit(
        self, values: object, *, budget: Budget, engine: Engine, ledger: Ledger | None = None
    ) -> ConjugateFit[NormalPosterior]:
        """Posterior of the mean from one noisy sum; values are (n,) or (n, d)."""
        _check_positive(variance=self.variance, prior_variance=self.prior_variance)
        bounds = tuple(np.atleast_1d(np.asarray(self.bound, dtype=float)))
        release, report = _fit(values, Means(bounds), "mean", budget, engine, ledger)
        n = release.n
        observed = self.variance / n + (release.noise_std / n) ** 2
        precision = 1 / self.prior_variance + 1 / observed
        mean = (self.prior_mean / self.prior_variance + release.value / n / observed) / precision
        return ConjugateFit(NormalPosterior(mean, np.eye(len(bounds)) / precision), report, release)


@dataclass(frozen=True)
class Gaussian:
    """x ~ N(mu, v), both unknown, with a normal-inverse-gamma prior."""

    bound: float
    prior_mean: float = 0.0
    prior_count: float = 1e-3
    prior_shape: float = 1e-2
    prior_scale: float = 1e-2

    def fit(
        self, values: object, *, budget: Budget, engine: Engine, ledger: Ledger | None = None
    ) -> ConjugateFit[NormalVariancePosterior]:
        """Posterior of mean and variance from the noisy sums of x and x^2."""
        _check_positive(prior_count=self.prior_count, prior_shape=self.prior_shape, prior_scale=self.prior_scale)
        release, report = _fit(values, MeanAndSquare(self.bound), "mean and square", budget, engine, ledger)
        n = release.n
        total, square = release.value[0] * self.bound, release.value[1] * self.bound**2
        mean = float(np.clip(total / n, -self.bound, self.bound))
        spread = float(np.clip(square - n * mean**2, 0.0, n * self.bound**2))
        count = self.prior_count + n
        shift = self.prior_count * n / count * (mean - self.prior_mean) ** 2
        posterior = NormalVariancePosterior(
            location=(self.prior_count * self.prior_mean + n * mean) / count,
            count=count,
            shape=self.prior_shape + n / 2,
            scale=self.prior_scale + spread / 2 + shift / 2,
        )
        return ConjugateFit(posterior, report, release)


@dataclass(frozen=True)
class Bernoulli:
    """x in {0, 1} with success probability theta ~ Beta(a, b)."""

    prior: tuple[float, float] = (1.0, 1.0)

    def fit(
        self, values: object, *, budget: Budget, engine: Engine, ledger: Ledger | None = None
    ) -> ConjugateFit[ScalarPosterior]:
        """Posterior of the success probability."""
        _check_positive(a=self.prior[0], b=self.prior[1])
        _check_values(values, "0 or 1", lambda v: (v == 0) | (v == 1))
        release, report = _fit(values, Count(1.0), "successes", budget, engine, ledger)
        successes = float(np.clip(release.value[0], 0.0, release.n))
        a, b = self.prior
        return ConjugateFit(ScalarPosterior("beta", (a + successes, b + release.n - successes)), report, release)


@dataclass(frozen=True)
class Categorical:
    """x in 0..k-1 with probabilities theta ~ Dirichlet(prior, .., prior)."""

    categories: int
    prior: float = 1.0

    def fit(
        self, values: object, *, budget: Budget, engine: Engine, ledger: Ledger | None = None
    ) -> ConjugateFit[DirichletPosterior]:
        """Posterior of the probabilities."""
        _check_positive(prior=self.prior)
        release, report = _fit(values, OneHot(self.categories), "categories", budget, engine, ledger)
        counts: Floats = np.clip(release.value, 0.0, release.n)
        return ConjugateFit(DirichletPosterior(self.prior + counts), report, release)


@dataclass(frozen=True)
class PoissonRate:
    """x ~ Poisson(rate), counts clipped to [0, bound], with rate ~ Gamma(shape, rate)."""

    bound: float
    prior: tuple[float, float] = (0.5, 1e-3)

    def fit(
        self, values: object, *, budget: Budget, engine: Engine, ledger: Ledger | None = None
    ) -> ConjugateFit[ScalarPosterior]:
        """Posterior of the rate."""
        _check_positive(shape=self.prior[0], rate=self.prior[1])
        _check_values(values, "a whole number >= 0", lambda v: (v >= 0) & (v == np.floor(v)))
        release, report = _fit(values, Count(self.bound), "events", budget, engine, ledger)
        events = max(float(release.value[0]), 0.0)
        shape, rate = self.prior
        return ConjugateFit(ScalarPosterior("gamma", (shape + events, rate + release.n)), report, release)


def _check_positive(**values: float) -> None:
    for field, value in values.items():
        if not (np.isfinite(value) and value > 0):
            raise invalid(field, "positive and finite", value, "give a proper prior and a known variance")


def _check_values(values: object, bound: str, good: Callable[[Floats], NDArray[np.bool_]]) -> None:
    """Refuse a value that the family has no likelihood for; NaN and text are left to the check that follows."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return
    wrong = ~good(numbers) & np.isfinite(numbers)
    if wrong.any():
        raise invalid("values", bound, numbers[wrong][0], "code them so, or use another family")
