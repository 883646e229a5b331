"""Conjugate families that need one sum: Gaussian mean and variance, Bernoulli, categorical, Poisson.

Each has a prior, asks an engine for one noisy sum, and gives the posterior: the conjugate ones of all exact sums that
may lie behind the noisy one, mixed as their prior and the noise make them likely (`plausible`). So the intervals
count the mechanism's noise. Values beyond a bound are clipped, which no posterior here makes up for. Values that the
family does not know (NaN, a Bernoulli 7, an unknown category) do not stop a fit, because a refusal would tell that
there is one: they count as zero (for `Categorical`: for no category), and the caller is warned of how many there are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.families.plausible import plausible_count, plausible_counts, plausible_moments
from hubbub.analyses.posterior import (
    DirichletPosterior,
    NormalPosterior,
    NormalVariancePosterior,
    ScalarPosterior,
)
from hubbub.analyses.rounds import Engine, Rounds
from hubbub.arrays import Floats, number_rows
from hubbub.errors import OutOfDomainWarning, invalid
from hubbub.privacy import Budget, Ledger, PrivacyReport, Release, current_ledger, noise_multiplier
from hubbub.statistics import Count, MeanAndSquare, Means, OneHot, Statistic
from hubbub.statistics.bounds import positive
from hubbub.statistics.domain import outside_text

P = TypeVar("P")
_LARGEST = 1e12  # parameter of a prior, in the units of the data


@dataclass(frozen=True)
class ConjugateFit(Generic[P]):
    """The posterior and the statement of its privacy."""

    posterior: P
    privacy: PrivacyReport
    release: Release


@dataclass(frozen=True)
class _Domain:
    """What a family's values may be, where the statistic would take others as well."""

    text: str
    holds: Callable[[Floats], NDArray[np.bool_]]

    def kept(self, rows: Floats) -> Floats:
        """The rows with zero in place of what is none of these, and a warning to whoever called."""
        wrong = ~self.holds(rows)
        if not wrong.any():
            return rows
        where = f", the first in row {int(np.argmax(wrong))}"
        text = outside_text("values", self.text, int(wrong.sum()), rows.shape[0], where)
        warnings.warn(text, OutOfDomainWarning, stacklevel=4)
        return np.where(wrong, 0.0, rows)


def _fit(
    values: object, statistic: Statistic, label: str, budget: Budget, engine: Engine, ledger: Ledger | None,
    domain: _Domain | None = None,
) -> tuple[Release, PrivacyReport]:  # fmt: skip
    try:
        rows = np.asarray(values)
    except ValueError:
        raise invalid("values", "a number for each client", "rows of different lengths", "make them alike") from None
    rows = number_rows("values", rows[:, None] if rows.ndim == 1 else rows, statistic.columns)
    rows = rows if domain is None else domain.kept(rows)
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
        variance = _positive("variance", self.variance)
        prior_mean, prior_variance = _finite(self.prior_mean), _positive("prior_variance", self.prior_variance)
        each = self.bound if isinstance(self.bound, Sequence | np.ndarray) and np.ndim(self.bound) else [self.bound]
        statistic = Means(tuple(positive("bound", bound) for bound in each))
        release, report = _fit(values, statistic, "mean", budget, engine, ledger)
        n = release.n
        observed = variance / n + (release.noise_std / n) ** 2
        precision = 1 / prior_variance + 1 / observed
        mean = (prior_mean / prior_variance + release.value / n / observed) / precision
        return ConjugateFit(NormalPosterior(mean, np.eye(statistic.dimension) / precision), report, release)


@dataclass(frozen=True)
class Gaussian:
    """x ~ N(mu, v), both unknown, with a normal-inverse-gamma prior of those parts that are given.

    Without them it is flat in the mean and the standard deviation, as far as the bound lets them be: where noise
    leaves the variance open, the prior decides, and a vague inverse gamma would say that it is next to nothing.
    """

    bound: float
    prior_mean: float = 0.0
    prior_count: float | None = None
    prior_shape: float | None = None
    prior_scale: float | None = None

    def fit(
        self, values: object, *, budget: Budget, engine: Engine, ledger: Ledger | None = None
    ) -> ConjugateFit[NormalVariancePosterior]:
        """Posterior of mean and variance from the noisy sums of x and x^2."""
        center, statistic = _finite(self.prior_mean), MeanAndSquare(self.bound)
        if self.prior_shape is not None and self.prior_scale is None:
            raise invalid("prior_scale", "given where prior_shape is", None, "give both, or neither")
        prior_count, prior_shape, prior_scale = (
            flat if given is None else _positive(field, given)
            for field, given, flat in (
                ("prior_count", self.prior_count, 0.0),
                ("prior_shape", self.prior_shape, -1.0),  # p(mu, v) ~ v^-1/2
                ("prior_scale", self.prior_scale, 0.0),
            )
        )
        release, report = _fit(values, statistic, "mean and square", budget, engine, ledger)
        n, bound = release.n, statistic.bound
        count, shape = prior_count + n, max(prior_shape + n / 2, 0.5)

        def scale(mean: Floats, square: Floats) -> Floats:
            shift = prior_count * n / count * (mean - center) ** 2
            return np.asarray(prior_scale + square / 2 + shift / 2)

        def log_prior(mean: Floats, log_square: Floats) -> Floats:
            return np.asarray((n - 1) / 2 * log_square - shape * np.log(scale(mean, np.exp(log_square))))

        units = np.array([bound, bound**2])
        mean, square, weights = plausible_moments(log_prior, n, release.value * units, release.noise_std * units, bound)
        location = (prior_count * center + n * mean) / count
        posterior = NormalVariancePosterior(weights, location, scale(mean, square), count, shape)
        return ConjugateFit(posterior, report, release)


@dataclass(frozen=True)
class Bernoulli:
    """x in {0, 1} with success probability theta ~ Beta(a, b)."""

    prior: tuple[float, float] = (1.0, 1.0)

    def fit(
        self, values: object, *, budget: Budget, engine: Engine, ledger: Ledger | None = None
    ) -> ConjugateFit[ScalarPosterior]:
        """Posterior of the success probability."""
        a, b = _pair(self.prior, "a", "b")
        release, report = _fit(values, Count(1.0), "successes", budget, engine, ledger, _YES_NO)
        n = release.n
        count, weights = plausible_count(
            lambda k: _log_ways(k, a) + _log_ways(n - k, b), release.value[0], release.noise_std, n
        )
        return ConjugateFit(ScalarPosterior(weights, "beta", (a + count, b + (n - count))), report, release)


@dataclass(frozen=True)
class Categorical:
    """x in 0..k-1 with probabilities theta ~ Dirichlet(prior, .., prior)."""

    categories: int
    prior: float = 1.0

    def fit(
        self, values: object, *, budget: Budget, engine: Engine, ledger: Ledger | None = None
    ) -> ConjugateFit[DirichletPosterior]:
        """Posterior of the probabilities."""
        prior = _positive("prior", self.prior)
        release, report = _fit(values, OneHot(self.categories), "categories", budget, engine, ledger)
        counts, weights = plausible_counts(release.n, release.value, release.noise_std, prior)
        return ConjugateFit(DirichletPosterior(weights, prior + counts), report, release)


@dataclass(frozen=True)
class PoissonRate:
    """x ~ Poisson(rate), counts clipped to [0, bound], with rate ~ Gamma(shape, rate)."""

    bound: float
    prior: tuple[float, float] = (0.5, 1e-3)

    def fit(
        self, values: object, *, budget: Budget, engine: Engine, ledger: Ledger | None = None
    ) -> ConjugateFit[ScalarPosterior]:
        """Posterior of the rate."""
        shape, rate = _pair(self.prior, "shape", "rate")
        statistic = Count(self.bound)
        if statistic.bound < 1:
            raise invalid("bound", "at least 1", statistic.bound, "give the most events that one client may count with")
        release, report = _fit(values, statistic, "events", budget, engine, ledger, _EVENTS)
        n = release.n
        decay = np.log1p(rate / n)
        count, weights = plausible_count(
            lambda k: _log_ways(k, shape) - k * decay, release.value[0], release.noise_std, n * statistic.bound
        )
        law = ScalarPosterior(weights, "gamma", (shape + count, np.full(count.size, rate + n)))
        return ConjugateFit(law, report, release)


_YES_NO = _Domain("0 or 1", lambda v: (v == 0) | (v == 1))
_EVENTS = _Domain("a finite whole number >= 0", lambda v: np.isfinite(v) & (v >= 0) & (v == np.floor(v)))


def _log_ways(count: Floats, prior: float) -> Floats:
    """Logarithm of Gamma(prior + count) / count!."""
    from scipy.special import gammaln

    return np.asarray(gammaln(prior + count) - gammaln(count + 1))


def _pair(prior: Any, first: str, second: str) -> tuple[float, float]:
    try:
        one, two = prior
    except (TypeError, ValueError):
        raise invalid("prior", "a pair of numbers", repr(prior), "give for example (1.0, 1.0)") from None
    return _positive(first, one), _positive(second, two)


def _positive(field: str, value: object) -> float:
    number = _number(field, value)
    if not 1 / _LARGEST <= number <= _LARGEST:
        raise invalid(
            field,
            f"positive and finite, {1 / _LARGEST:g}..{_LARGEST:g}",
            number,
            "give a proper prior, a known variance",
        )
    return number


def _finite(prior_mean: object) -> float:
    number = _number("prior_mean", prior_mean)
    if not abs(number) <= _LARGEST:
        raise invalid("prior_mean", f"in -{_LARGEST:g}..{_LARGEST:g}", number, "say where the mean is expected")
    return number


def _number(field: str, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # whatever it is, float() decides
    except (TypeError, ValueError, OverflowError):
        raise invalid(field, "a number", repr(value), "give for example 1.0") from None
