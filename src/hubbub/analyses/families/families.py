"""Families that need one sum: Gaussian mean and variance, Bernoulli, categorical, Poisson. Each is an Analysis.

Each has a prior, asks for one noisy sum, and gives the posterior: the conjugate ones of all exact sums that may lie
behind the noisy one, mixed as their prior and the noise make them likely (`plausible`). So the intervals count the
mechanism's noise. Values beyond a bound are clipped, which no posterior here makes up for. Values that the family does
not know (NaN, a Bernoulli 7, an unknown category) do not stop a fit, because a refusal would tell that there is one:
they count as zero (for `Categorical`: for no category), and whoever holds them is warned of how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from hubbub.analyses.families.family import Family, FamilyFit, FamilyState
from hubbub.analyses.families.plausible import (
    plausible_count,
    plausible_counts,
    plausible_moments,
    plausible_variances,
)
from hubbub.analyses.posterior import (
    DirichletPosterior,
    NormalMixturePosterior,
    NormalPosterior,
    NormalVariancePosterior,
    ScalarPosterior,
)
from hubbub.arrays import Floats
from hubbub.errors import invalid, whole
from hubbub.protocols import Description, Release, Statistic
from hubbub.statistics import Count, MeanAndSquare, Means, OneHot
from hubbub.statistics.bounds import positive

_LARGEST = 1e12  # parameter of a prior, in the units of the data


@dataclass(frozen=True)
class GaussianMean(Family[NormalPosterior | NormalMixturePosterior]):
    """x ~ N(theta, variance I) with known variance and theta ~ N(prior_mean, prior_variance I).

    Where the noise of the mechanism is normal, so is the posterior. Laplace noise is normal with a random variance,
    and the posterior a mixture of normal ones over that. Both count the noise exactly. `names` are those of the
    columns; without them they are numbered.
    """

    kind: ClassVar[str] = "gaussian-mean"
    label: ClassVar[str] = "mean"
    bound: float | Sequence[float]
    variance: float
    prior_mean: float = 0.0
    prior_variance: float = 1e6
    names: tuple[str, ...] = ()

    def checked(self) -> GaussianMean:
        """With every setting as a plain number, or one line that says what is wrong."""
        bounds = tuple(positive("bound", each) for each in self._bounds())
        if self.names and len(self.names) != len(bounds):
            raise invalid("names", f"{len(bounds)} names, one per bound", len(self.names), "name each column")
        names = tuple(map(str, self.names)) or (("value",) if len(bounds) == 1 else _numbered("value", len(bounds)))
        return GaussianMean(
            bounds, _positive("variance", self.variance), _finite(self.prior_mean),
            _positive("prior_variance", self.prior_variance), names,
        )  # fmt: skip

    def _bounds(self) -> Sequence[float]:
        several = isinstance(self.bound, Sequence | np.ndarray) and np.ndim(self.bound)
        return self.bound if several else [self.bound]  # type: ignore[return-value,list-item]  # as just tested

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.checked().names

    @property
    def statistic(self) -> Statistic:
        """The clipped values."""
        return Means(tuple(self._bounds()))

    def posterior(self, release: Release) -> NormalPosterior | NormalMixturePosterior:
        """Of the mean."""
        me, n, seen = self.checked(), release.n, release.value / release.n
        if release.noise.normal:
            mean, variance = me._given(seen, np.asarray(me.variance / n + (release.noise_std / n) ** 2))
            return NormalPosterior(mean, np.eye(mean.size) * variance)
        spread = me.prior_variance + me.variance / n
        noise, weights = plausible_variances(seen - me.prior_mean, spread, release.noise.scaled(1 / n))
        return NormalMixturePosterior(weights, *me._given(seen, me.variance / n + noise))

    def _given(self, seen: Floats, observed: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of the posterior where means were seen with this variance."""
        precision = 1 / self.prior_variance + 1 / observed
        mean = (self.prior_mean / self.prior_variance + seen / observed) / precision
        return mean, 1 / precision

    def quantities(self) -> tuple[str, ...]:
        """The mean of each column."""
        return tuple(f"mean of {name}" for name in self.columns)

    def settings(self) -> dict[str, Any]:
        """Plain JSON values."""
        me = self.checked()
        return {
            "bound": list(me._bounds()), "variance": me.variance, "prior_mean": me.prior_mean,
            "prior_variance": me.prior_variance, "names": list(me.names),
        }  # fmt: skip

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        d = description
        return cls(tuple(d["bound"]), d["variance"], d["prior_mean"], d["prior_variance"], tuple(d["names"]))


@dataclass(frozen=True)
class Gaussian(Family[NormalVariancePosterior]):
    """x ~ N(mu, v), both unknown, with a normal-inverse-gamma prior of those parts that are given.

    Without them it is flat in the mean and the standard deviation, as far as the bound lets them be: where noise
    leaves the variance open, the prior decides, and a vague inverse gamma would say that it is next to nothing.
    """

    kind: ClassVar[str] = "gaussian"
    label: ClassVar[str] = "mean and square"
    bound: float
    prior_mean: float = 0.0
    prior_count: float | None = None
    prior_shape: float | None = None
    prior_scale: float | None = None
    column: str = "value"

    def checked(self) -> Gaussian:
        """With every setting as a plain number, or one line that says what is wrong."""
        if self.prior_shape is not None and self.prior_scale is None:
            raise invalid("prior_scale", "given where prior_shape is", None, "give both, or neither")
        count, shape, scale = (
            None if given is None else _positive(field, given)
            for field, given in (
                ("prior_count", self.prior_count),
                ("prior_shape", self.prior_shape),
                ("prior_scale", self.prior_scale),
            )
        )
        bound, mean = MeanAndSquare(self.bound).bound, _finite(self.prior_mean)
        return Gaussian(bound, mean, count, shape, scale, str(self.column))

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def statistic(self) -> Statistic:
        """The value and its square, in units of the bound."""
        return MeanAndSquare(self.bound)

    def posterior(self, release: Release) -> NormalVariancePosterior:
        """Of mean and variance."""
        me, n, center = self.checked(), release.n, self.checked().prior_mean
        prior_count = 0.0 if me.prior_count is None else me.prior_count
        prior_shape = -1.0 if me.prior_shape is None else me.prior_shape  # p(mu, v) ~ v^-1/2
        prior_scale = 0.0 if me.prior_scale is None else me.prior_scale
        count, shape = prior_count + n, max(prior_shape + n / 2, 0.5)

        def scale(mean: Floats, square: Floats) -> Floats:
            shift = prior_count * n / count * (mean - center) ** 2
            return np.asarray(prior_scale + square / 2 + shift / 2)

        def log_prior(mean: Floats, log_square: Floats) -> Floats:
            return np.asarray((n - 1) / 2 * log_square - shape * np.log(scale(mean, np.exp(log_square))))

        units = np.array([me.bound, me.bound**2])
        mean, square, weights = plausible_moments(
            log_prior, n, release.value * units, [release.noise.scaled(unit) for unit in units], me.bound
        )
        location = (prior_count * center + n * mean) / count
        return NormalVariancePosterior(weights, location, scale(mean, square), count, shape)

    def quantities(self) -> tuple[str, ...]:
        """Mean and variance."""
        return ("mean", "variance")

    def settings(self) -> dict[str, Any]:
        """Plain JSON values."""
        me = self.checked()
        return {
            "bound": me.bound, "prior_mean": me.prior_mean, "prior_count": me.prior_count,
            "prior_shape": me.prior_shape, "prior_scale": me.prior_scale, "column": me.column,
        }  # fmt: skip

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        d = description
        return cls(d["bound"], d["prior_mean"], d["prior_count"], d["prior_shape"], d["prior_scale"], d["column"])


@dataclass(frozen=True)
class Bernoulli(Family[ScalarPosterior]):
    """x in {0, 1} with success probability theta ~ Beta(a, b)."""

    kind: ClassVar[str] = "bernoulli"
    label: ClassVar[str] = "successes"
    prior: tuple[float, float] = (1.0, 1.0)
    column: str = "value"

    def checked(self) -> Bernoulli:
        """With every setting as a plain number, or one line that says what is wrong."""
        return Bernoulli(_pair(self.prior, "a", "b"), str(self.column))

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def statistic(self) -> Statistic:
        """1 for a success."""
        return Count(1.0, whole=True)

    def posterior(self, release: Release) -> ScalarPosterior:
        """Of the success probability."""
        (a, b), n = self.checked().prior, release.n
        count, weights = plausible_count(
            lambda k: _log_ways(k, a) + _log_ways(n - k, b), release.value[0], release.noise, n
        )
        return ScalarPosterior(weights, "beta", (a + count, b + (n - count)))

    def quantities(self) -> tuple[str, ...]:
        """The probability."""
        return ("probability",)

    def settings(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"prior": list(self.checked().prior), "column": self.column}

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        a, b = description["prior"]
        return cls((a, b), description["column"])


@dataclass(frozen=True)
class Categorical(Family[DirichletPosterior]):
    """x in 0..k-1 with probabilities theta ~ Dirichlet(prior, .., prior)."""

    kind: ClassVar[str] = "categorical"
    label: ClassVar[str] = "categories"
    categories: int
    prior: float = 1.0
    column: str = "value"

    def checked(self) -> Categorical:
        """With every setting as a plain number, or one line that says what is wrong."""
        return Categorical(OneHot(self.categories).categories, _positive("prior", self.prior), str(self.column))

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def statistic(self) -> Statistic:
        """1 for the category."""
        return OneHot(self.categories)

    def posterior(self, release: Release) -> DirichletPosterior:
        """Of the probabilities."""
        prior = self.checked().prior
        counts, weights = plausible_counts(release.n, release.value, release.noise, prior)
        return DirichletPosterior(weights, prior + counts)

    def quantities(self) -> tuple[str, ...]:
        """The probability of each category."""
        return tuple(f"probability of {k}" for k in range(self.categories))

    def settings(self) -> dict[str, Any]:
        """Plain JSON values."""
        me = self.checked()
        return {"categories": me.categories, "prior": me.prior, "column": me.column}

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        categories = whole("categories", description["categories"], 2, "name every category", most=1_000_000)
        return cls(categories, description["prior"], description["column"])


@dataclass(frozen=True)
class PoissonRate(Family[ScalarPosterior]):
    """x ~ Poisson(rate), counts clipped to [0, bound], with rate ~ Gamma(shape, rate)."""

    kind: ClassVar[str] = "poisson"
    label: ClassVar[str] = "events"
    bound: float
    prior: tuple[float, float] = (0.5, 1e-3)
    column: str = "value"

    def checked(self) -> PoissonRate:
        """With every setting as a plain number, or one line that says what is wrong."""
        prior, bound = _pair(self.prior, "shape", "rate"), Count(self.bound).bound
        if bound < 1:
            raise invalid("bound", "at least 1", bound, "give the most events that one client may count with")
        return PoissonRate(bound, prior, str(self.column))

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def statistic(self) -> Statistic:
        """The clipped number of events."""
        return Count(self.bound, whole=True)

    def posterior(self, release: Release) -> ScalarPosterior:
        """Of the rate."""
        me, n = self.checked(), release.n
        shape, rate = me.prior
        decay = np.log1p(rate / n)
        count, weights = plausible_count(
            lambda k: _log_ways(k, shape) - k * decay, release.value[0], release.noise, n * me.bound
        )
        return ScalarPosterior(weights, "gamma", (shape + count, np.full(count.size, rate + n)))

    def quantities(self) -> tuple[str, ...]:
        """The rate."""
        return ("rate",)

    def settings(self) -> dict[str, Any]:
        """Plain JSON values."""
        me = self.checked()
        return {"bound": me.bound, "prior": list(me.prior), "column": me.column}

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        shape, rate = description["prior"]
        return cls(description["bound"], (shape, rate), description["column"])


__all__ = ["Bernoulli", "Categorical", "FamilyFit", "FamilyState", "Gaussian", "GaussianMean", "PoissonRate"]


def _numbered(stem: str, count: int) -> tuple[str, ...]:
    return tuple(f"{stem}{j}" for j in range(count))


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
