"""What one row tells of a linear predictor: a bounded residual, and how much it is worth.

A response has, at the linear predictor eta that a public state gives a row,

    residual      a function of y and eta with mean zero where eta is the truth
    most          a bound of its absolute value, whatever y is
    information   how fast its mean grows with the true linear predictor, there

Of these the residual alone depends on y, which is what keeps the estimating equation of a Newton step unbiased: a row
may be weighted by anything that is made of the other two and of x (Mallows).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats
from hubbub.errors import InvalidInput, invalid
from hubbub.protocols import Description
from hubbub.statistics.bounds import positive

_LARGE = 1e4  # a mean from which on a Poisson count is taken for normal, in a first look
_FAR = 20.0  # linear predictors beyond it count as this far: e^20 is half a billion


class Working(NamedTuple):
    """One number for each row."""

    residual: Floats
    most: Floats
    information: Floats


class Response(Protocol):
    """A law of y given the linear predictor, with a residual that is bounded."""

    name: ClassVar[str]
    domain: ClassVar[str]
    """What y may be, for a message to its holder."""

    def inside(self, y: Floats) -> NDArray[np.bool_]:
        """Which values y can take."""
        ...

    def working(self, eta: Floats, y: Floats) -> Working:
        """At these linear predictors."""
        ...

    def describe(self) -> dict[str, Any]:
        """Name and numbers, for the study."""
        ...


class _YesNo(Response):
    domain = "0 or 1 in its last column"

    def inside(self, y: Floats) -> NDArray[np.bool_]:
        """Zeros and ones."""
        return np.asarray((y == 0) | (y == 1))

    def describe(self) -> dict[str, Any]:
        """The name is all there is."""
        return {"response": self.name}


@dataclass(frozen=True)
class Logit(_YesNo):
    """y is 1 with probability 1/(1 + e^-eta); the residual is y less that."""

    name: ClassVar[str] = "logit"

    def working(self, eta: Floats, y: Floats) -> Working:
        """The derivative of the log likelihood, and the Fisher information."""
        from scipy.special import expit

        eta = np.clip(eta, -_FAR, _FAR)
        mean, other = expit(eta), expit(-eta)
        return Working(y - mean, np.maximum(mean, other), mean * other)


@dataclass(frozen=True)
class Probit(_YesNo):
    """y is 1 with probability Phi(eta)."""

    name: ClassVar[str] = "probit"

    def working(self, eta: Floats, y: Floats) -> Working:
        """The derivative of the log likelihood, and the Fisher information."""
        from scipy.special import ndtr

        eta = np.clip(eta, -6.0, 6.0)
        mean, other = ndtr(eta), ndtr(-eta)
        slope = np.exp(-0.5 * eta**2) / np.sqrt(2 * np.pi) / (mean * other)
        information = slope**2 * mean * other
        return Working(slope * (y - mean), slope * np.maximum(mean, other), information)


class _Counts(Response):
    domain = "a whole number >= 0 in its last column"

    def inside(self, y: Floats) -> NDArray[np.bool_]:
        """Whole numbers from zero on."""
        return np.asarray((y >= 0) & (y == np.floor(y)))


@dataclass(frozen=True)
class Counts(_Counts):
    """y is Poisson with mean mu = e^eta; the residual is clipped at a band around mu, and its mean taken away.

    With z = (y - mu)/sqrt(mu) it is sqrt(mu) (clip(z, -k, k) - E clip(z, -k, k)), so its mean is exactly zero where eta
    is the truth (Cantoni and Ronchetti 2001), and no bound of y is needed. k = band sqrt(1 + mu doubt^2): the
    band is as wide as mu is in doubt, or Newton's method would not find its way from afar.
    """

    name: ClassVar[str] = "counts"
    band: float = 1.5
    doubt: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "band", positive("band", self.band))
        if not 0 <= self.doubt <= 10:
            raise invalid("doubt", "in 0..10", self.doubt, "0.1 is ten percent of the mean")

    def working(self, eta: Floats, y: Floats) -> Working:
        """The clipped residual, and the derivative of its mean by the true linear predictor."""
        mean = np.exp(np.clip(eta, -_FAR, _FAR))
        root, k = np.sqrt(mean), self.band * np.sqrt(1 + mean * self.doubt**2)
        middle, slope = _clipped_moments(mean, k)
        residual = root * (np.clip((y - mean) / root, -k, k) - middle)
        most = root * np.maximum(k - middle, np.minimum(k, root) + middle)
        return Working(residual, most, mean * slope)

    def describe(self) -> dict[str, Any]:
        """Name, band and doubt."""
        return {"response": self.name, "band": self.band, "doubt": self.doubt}


@dataclass(frozen=True)
class LogCounts(_Counts):
    """A first look at counts from an intercept alone: log((y + 1/2)/(mean + 1/2)), clipped, less its mean.

    Counts far above their mean pull it less than they pull a clipped residual, and it says nearly linearly what the
    logarithm of the mean depends on. The linear predictor is not looked at: it is that of the mean for every row.
    """

    name: ClassVar[str] = "log counts"
    band: float = 1.5
    mean: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "band", positive("band", self.band))
        object.__setattr__(self, "mean", positive("mean", self.mean))

    def working(self, eta: Floats, y: Floats) -> Working:
        """The clipped logarithm, and the derivative of its mean by the logarithm of the mean of y."""
        one, (middle, slope) = np.ones_like(eta), _log_moments(self.band, self.mean)
        residual = self._clipped(y) - middle
        return Working(residual, (self.band + abs(middle)) * one, slope * one)

    def _clipped(self, y: Floats) -> Floats:
        return _clipped_log(y, self.band, self.mean)

    def describe(self) -> dict[str, Any]:
        """Name, band and mean."""
        return {"response": self.name, "band": self.band, "mean": self.mean}


def _clipped_log(y: Floats, band: float, mean: float) -> Floats:
    return np.asarray(np.clip(np.log(np.maximum(y, 0) + 0.5) - np.log(mean + 0.5), -band, band))


@lru_cache(maxsize=64)
def _log_moments(band: float, mean: float) -> tuple[float, float]:
    """Of a Poisson count's clipped logarithm: its mean, and its covariance with the count."""
    from scipy.special import gammaln, xlogy

    if mean > _LARGE:  # as good as normal, with deviation 1/sqrt(mean)
        return 0.0, 1.0
    y = np.arange(0.0, mean + 12 * np.sqrt(mean) + 30)
    probability = np.exp(xlogy(y, mean) - mean - gammaln(y + 1))
    value = _clipped_log(y, band, mean)
    middle = float(probability @ value)
    return middle, float(probability @ (value * (y - mean)))


def response_from(description: Description) -> Response:
    """The response that describes itself so."""
    name = description["response"]
    if name == "counts":
        return Counts(description["band"], description["doubt"])
    if name == "log counts":
        return LogCounts(description["band"], description["mean"])
    if name in ("logit", "probit"):
        return Logit() if name == "logit" else Probit()
    raise InvalidInput("response must be logit, probit, counts or log counts, got another; update hubbub")


def _clipped_moments(mean: Floats, k: Floats) -> tuple[Floats, Floats]:
    """Of a Poisson count's z = (y - mean)/sqrt(mean) and c = clip(z, -k, k): E c and E c z.

    Sums over the counts within the band are differences of the distribution function, since
    y P(y) = mean P(y - 1); and E (y - mean) over the counts above j is mean P(j).
    """
    root = np.sqrt(mean)
    low, high = np.floor(mean - k * root), np.floor(mean + k * root)  # the band holds low + 1 .. high
    below = [_cumulative(high - shift, mean) - _cumulative(low - shift, mean) for shift in range(3)]
    first, second = mean * below[1], mean**2 * below[2] + mean * below[1]
    inner = (first - mean * below[0]) / root
    square = (second - 2 * mean * first + mean**2 * below[0]) / mean
    under, over = _cumulative(low, mean), 1 - _cumulative(high, mean)
    middle = k * (over - under) + inner
    slope = k * root * (_probability(high, mean) + _probability(low, mean)) + square
    return middle, np.maximum(slope, 0.0)


def _cumulative(count: Floats, mean: Floats) -> Floats:
    """P(y <= count); 0 below zero."""
    from scipy.special import pdtr

    return np.where(count < 0, 0.0, pdtr(np.maximum(count, 0), mean))


def _probability(count: Floats, mean: Floats) -> Floats:
    """P(y = count); 0 below zero."""
    from scipy.special import gammaln, xlogy

    count, known = np.maximum(count, 0), count >= 0
    return np.where(known, np.exp(xlogy(count, mean) - mean - gammaln(count + 1)), 0.0)
