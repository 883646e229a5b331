"""Normal values: GaussianMean (their variance is known) and Gaussian (it is not). Each is an Analysis of one sum.

Each has a prior, asks for one noisy sum, and gives the posterior, which counts the mechanism's noise. Values beyond a
bound are clipped, and the posterior knows: it takes the sum for one of clipped values (`clipped`). Gaussian, where the
sums say that hardly anything is clipped, mixes the conjugate posteriors of all exact sums that may lie behind the noisy
ones (`plausible`). Values that are no numbers count as zero, and whoever holds them is warned of how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from hubbub.analyses.families.clipped import (
    clipped_normals,
    log_likelihood,
    log_likelihood_of_both,
    rough_log_likelihood,
)
from hubbub.analyses.families.family import Family
from hubbub.analyses.families.grids import FAR, FAR_OUT, line, plane
from hubbub.analyses.families.plausible import plausible_moments
from hubbub.analyses.families.posteriors import GridPosterior, NormalVariancePosterior
from hubbub.analyses.families.priors import prior_mean_of, prior_number
from hubbub.arrays import Floats
from hubbub.errors import invalid
from hubbub.protocols import Description, Release, Statistic
from hubbub.statistics import MeanAndSquare, Means
from hubbub.statistics.bounds import positive

_RANGE = 30.0  # e-folds around the bound that a deviation is looked for in
_LITTLE = 0.02  # of the deviation of a noisy sum of squares: what clipping may take from it before it counts
_DRAWS = 1000


@dataclass(frozen=True)
class GaussianMean(Family[GridPosterior]):
    """x ~ N(theta, variance I) with known variance, and theta ~ N(prior_mean, prior_variance I) where that is given.

    Without a prior variance theta is flat as far as sqrt(bound^2 + variance) from the prior mean, and beyond it thins
    out as its distance^-2. Values are clipped to [-bound, bound], and the posterior counts that and the noise: prior
    times the density of a noisy sum of clipped values. `names` are those of the columns; otherwise they are numbered.
    """

    kind: ClassVar[str] = "gaussian-mean"
    label: ClassVar[str] = "mean"
    bound: float | Sequence[float]
    variance: float
    prior_mean: float = 0.0
    prior_variance: float | None = None
    names: tuple[str, ...] = ()

    def checked(self) -> GaussianMean:
        """With every setting as a plain number, or one line that says what is wrong."""
        bounds = tuple(positive("bound", each) for each in self._bounds())
        if self.names and len(self.names) != len(bounds):
            raise invalid("names", f"{len(bounds)} names, one per bound", len(self.names), "name each column")
        names = tuple(map(str, self.names)) or (("value",) if len(bounds) == 1 else _numbered("value", len(bounds)))
        spread = None if self.prior_variance is None else prior_number("prior_variance", self.prior_variance)
        return GaussianMean(
            bounds, prior_number("variance", self.variance), prior_mean_of(self.prior_mean), spread, names
        )

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

    def posterior(self, release: Release) -> GridPosterior:
        """Of the mean."""
        me = self.checked()
        columns = [me._of_column(bound, seen, release) for bound, seen in zip(me._bounds(), release.value, strict=True)]
        points, weights = zip(*columns, strict=True)
        return GridPosterior(np.stack(points, axis=1), np.stack(weights, axis=1))

    def _of_column(self, bound: float, seen: float, release: Release) -> tuple[Floats, Floats]:
        """Means on a grid, which is even in asinh(mean / unit), and their weights."""
        n, std = release.n, np.sqrt(self.variance)
        unit = float(np.hypot(bound, std))
        spread = None if self.prior_variance is None else np.sqrt(self.prior_variance)

        def log_prior(x: Floats) -> Floats:
            away = (unit * np.sinh(x) - self.prior_mean) / (unit if spread is None else spread)
            log = -2 * np.log(np.maximum(np.abs(away), 1.0)) if spread is None else -0.5 * away**2
            return np.asarray(log + np.log(np.cosh(x)))

        def log_weight(x: Floats, likelihood: Callable[..., Floats]) -> Floats:
            law = clipped_normals(unit * np.sinh(x), std, bound)
            return np.asarray(log_prior(x) + likelihood(law, n, seen, release.noise, whole=False))

        reach = FAR_OUT * unit if spread is None else FAR * spread
        low, high = min(self.prior_mean - reach, -FAR * unit), max(self.prior_mean + reach, FAR * unit)
        x, weights = line(
            lambda x: log_weight(x, log_likelihood), np.arcsinh(low / unit), np.arcsinh(high / unit),
            lambda x: log_weight(x, rough_log_likelihood),
        )  # fmt: skip
        return unit * np.sinh(x), weights

    def beyond(self, posterior: GridPosterior) -> float:
        """Of all values, in the column that has most of them."""
        me = self.checked()
        return float(_beyond(posterior.sample(_DRAWS, seed=0), np.sqrt(me.variance), np.array(me._bounds())).max())

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
class Gaussian(Family[NormalVariancePosterior | GridPosterior]):
    """x ~ N(mu, v), both unknown, with a normal-inverse-gamma prior of those parts that are given.

    Without them it is flat in the mean and the standard deviation as far as the bound from the prior mean, and beyond
    it thins out as the distance^-3 of both: where noise leaves the variance open, the prior decides, and a vague
    inverse gamma would say that it is next to nothing.

    Where hardly anything is clipped, as far as the sums tell, the posterior mixes conjugate ones. Otherwise it is
    prior times the density of noisy sums of clipped values, the exact sums taken as normal with the moments that
    these have.
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
            None if given is None else prior_number(field, given)
            for field, given in (
                ("prior_count", self.prior_count),
                ("prior_shape", self.prior_shape),
                ("prior_scale", self.prior_scale),
            )
        )
        bound, mean = MeanAndSquare(self.bound).bound, prior_mean_of(self.prior_mean)
        return Gaussian(bound, mean, count, shape, scale, str(self.column))

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def statistic(self) -> Statistic:
        """The value and its square, in units of the bound."""
        return MeanAndSquare(self.bound)

    def posterior(self, release: Release) -> NormalVariancePosterior | GridPosterior:
        """Of mean and variance."""
        me = self.checked()
        found = me._unclipped(release)
        mean, std = found.location / me.bound, np.sqrt(found.scale / (found.shape + 0.5)) / me.bound
        deviation = np.hypot(release.noise.std, np.sqrt(release.n * (2 * std**4 + 4 * (mean * std) ** 2)))
        lost = np.sum(found.weights * release.n * _lost_squares(mean, std) / deviation)
        return found if lost < _LITTLE else me._of_clipped(release)

    def _unclipped(self, release: Release) -> NormalVariancePosterior:
        """The posterior if no value were clipped."""
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

    def _of_clipped(self, release: Release) -> GridPosterior:
        """On a grid of asinh(mean) and the logarithm of the deviation, both in units of the bound."""
        count = 0.0 if self.prior_count is None else self.prior_count
        shape = -1.0 if self.prior_shape is None else self.prior_shape  # p(mean, variance) ~ variance^-1/2
        scale = 0.0 if self.prior_scale is None else self.prior_scale / self.bound**2
        center = self.prior_mean / self.bound

        def log_prior(mean: Floats, log_std: Floats) -> Floats:
            squared = np.exp(2 * log_std)
            given = -(2 * shape + 1) * log_std - (scale + count * (mean - center) ** 2 / 2) / squared
            away = (mean - center) ** 2 if self.prior_count is None else 0.0
            away = away + (squared if self.prior_shape is None else 0.0)
            return np.asarray(given - 1.5 * np.log(np.maximum(away, 1.0)))

        def log_weight(x: Floats, log_std: Floats) -> Floats:
            mean, log_std = np.broadcast_arrays(np.sinh(x), log_std)
            law = clipped_normals(mean.ravel(), np.exp(log_std.ravel()), 1.0)
            log = log_likelihood_of_both(law, release.n, release.value, release.noise).reshape(mean.shape)
            return np.asarray(log + log_prior(mean, log_std) + np.log(np.cosh(x)))

        far = np.arcsinh(abs(center) + FAR_OUT)
        x, log_std, weights = plane(
            log_weight, -far, far, lambda x: (np.full(x.shape, -_RANGE), np.full(x.shape, _RANGE))
        )
        points = np.column_stack([self.bound * np.sinh(x), (self.bound * np.exp(log_std)) ** 2])
        return GridPosterior(points, weights)

    def beyond(self, posterior: NormalVariancePosterior | GridPosterior) -> float:
        """Of all values."""
        mean, variance = posterior.sample(_DRAWS, seed=0).T
        return float(_beyond(mean, np.sqrt(variance), self.checked().bound))

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


def _numbered(stem: str, count: int) -> tuple[str, ...]:
    return tuple(f"{stem}{j}" for j in range(count))


def _lost_squares(mean: Floats, std: Floats) -> Floats:
    """What clipping to [-1, 1] takes from the square of a normal value, on average."""
    from scipy.special import ndtr

    lost = np.zeros(np.shape(mean))
    for side in (mean, -mean):
        z = (1 - side) / std
        tail, density = ndtr(-z), np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        lost += (side**2 + std**2 - 1) * tail + std * (side + 1) * density
    return lost


def _beyond(mean: Floats, std: Floats | float, bound: Floats | float) -> Floats:
    """Share of normal values beyond a bound, averaged over draws of their mean and deviation."""
    from scipy.special import ndtr

    return np.asarray(np.mean(ndtr((-bound - mean) / std) + ndtr((mean - bound) / std), axis=0))
