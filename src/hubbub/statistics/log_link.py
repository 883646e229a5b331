"""Responses whose mean is e^eta: counts, counts that vary more than a Poisson law says, and positive numbers.

All are clipped around their mean and what clipping does to the mean is taken away, which takes the law's distribution
function (`Law`). So no bound of y is needed, and one absurd y does no harm.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats
from hubbub.errors import invalid
from hubbub.statistics.bounds import positive
from hubbub.statistics.responses import FAR, Response, Working

_LARGE = 9.2  # logarithm of a mean from which on a Poisson count is taken for normal, in a first look: e^9.2 is 10^4
_PARABOLA = 2.25  # how far c^2 - a c can be from its mean, in k^2, where |c| and |a| are at most k
_DISPERSIONS = (1e-6, 1e3)


class Moments(NamedTuple):
    """Of z = (y - mean)/deviation and c = clip(z, -k, k), under the law of y."""

    middle: Floats
    """E c."""
    slope: Floats
    """E c z: how fast E c grows with the true linear predictor, in deviations over means."""
    second: Floats
    """E c^2."""
    turn: Floats
    """E c^2 z over E c z, within -k..k: how fast E c^2 grows beside E c, as the linear predictor does."""


class _LogLink(Response):
    """y has mean mu = e^eta and a standard deviation of mu times `relative`; its residual is clipped at a band.

    With z = (y - mu)/deviation it is clip(z, -k, k) - E clip(z, -k, k) over the relative deviation, so its mean is
    exactly zero where eta (and the dispersion) is the truth (Cantoni and Ronchetti 2001). The band k is as wide as mu
    is in doubt, k^2 = band^2 (1 + (doubt/relative)^2), or Newton's method would not find its way from afar.
    """

    band: float
    doubt: float

    @abstractmethod
    def relative(self, mean: Floats) -> Floats:
        """Standard deviation of y, of its mean."""

    @abstractmethod
    def moments(self, mean: Floats, k: Floats, dispersion: Floats | float | None = None) -> Moments:
        """Of the clipped residual, under the law with this mean, and with this dispersion where it is another one."""

    def working(self, eta: Floats, y: Floats) -> Working:
        """The clipped residual, and the derivative of its mean by the true linear predictor."""
        mean, root, k = self._band(eta)
        middle, slope, second, turn = self.moments(mean, k)
        clipped = np.clip((y - mean) / mean * root, -k, k)
        most = root * np.maximum(k - middle, np.minimum(k, root) + middle)
        spread = (clipped**2 - second - turn * (clipped - middle)) / (_PARABOLA * k**2)
        return Working(root * (clipped - middle), most, root**2 * slope, spread)

    def _band(self, eta: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean of y, that over its deviation, and the band."""
        mean = np.exp(np.clip(eta, -FAR, FAR))
        root = 1 / self.relative(mean)
        return mean, root, self.band * np.sqrt(1 + (self.doubt * root) ** 2)


class Dispersed(_LogLink):
    """A law whose variance has a parameter beside the mean.

    What a row says of it is c^2 - turn c, c being the clipped residual in deviations, less the mean of that, over
    2.25 k^2. Its mean does not change with the linear predictor, to first order: else a mean that is a little off
    looked like dispersion. As |turn| <= k, the parabola lies within -k^2/4 and 2 k^2, and what is said within -1 and 1.
    """

    dispersion: float

    def under(self, eta: Floats, dispersion: Floats | float) -> tuple[Floats, Floats]:
        """The means of residual and spread where the dispersion truly is another one, or each of several (in rows)."""
        mean, root, k = self._band(eta)
        own, other = self.moments(mean, k), self.moments(mean, k, dispersion)
        middle, second = other.middle - own.middle, other.second - own.second
        return root * middle, (second - own.turn * middle) / (_PARABOLA * k**2)

    def describe(self) -> dict[str, Any]:
        """Name, band, doubt and dispersion."""
        return {"response": self.name, "band": self.band, "doubt": self.doubt, "dispersion": self.dispersion}


class _Counts(Response):
    domain: ClassVar[str] = "a whole number >= 0 in its last column"

    def inside(self, y: Floats) -> NDArray[np.bool_]:
        """Whole numbers from zero on."""
        return np.asarray((y >= 0) & (y == np.floor(y)))


@dataclass(frozen=True)
class Counts(_LogLink, _Counts):
    """y is Poisson with mean e^eta."""

    name: ClassVar[str] = "counts"
    band: float = 1.5
    doubt: float = 0.0

    def __post_init__(self) -> None:
        _check(self)

    def relative(self, mean: Floats) -> Floats:
        """Standard deviation over mean: mean^-1/2."""
        return np.asarray(mean**-0.5)

    def moments(self, mean: Floats, k: Floats, dispersion: Floats | float | None = None) -> Moments:
        """Of the clipped residual, by the incomplete gamma function."""
        from scipy.special import pdtr

        return _moments_of_counts(mean, k, np.sqrt(mean), 0.0, lambda count, _: pdtr(count, mean))

    def describe(self) -> dict[str, Any]:
        """Name, band and doubt."""
        return {"response": self.name, "band": self.band, "doubt": self.doubt}


@dataclass(frozen=True)
class OverdispersedCounts(Dispersed, _Counts):
    """y is negative binomial with mean mu = e^eta and variance mu + dispersion mu^2."""

    name: ClassVar[str] = "overdispersed counts"
    band: float = 1.5
    doubt: float = 0.0
    dispersion: float = 0.5

    def __post_init__(self) -> None:
        _check(self)

    def relative(self, mean: Floats) -> Floats:
        """Square root of 1/mu + dispersion."""
        return np.sqrt(1 / mean + self.dispersion)

    def moments(self, mean: Floats, k: Floats, dispersion: Floats | float | None = None) -> Moments:
        """By the incomplete beta function: y P(y) is mu times the same law of a shape larger by one, at y - 1."""
        from scipy.special import betainc

        true = self.dispersion if dispersion is None else dispersion
        shape, chance = 1 / true, 1 / (1 + mean * true)
        return _moments_of_counts(
            mean, k, 1 / self.relative(mean), true, lambda count, order: betainc(shape + order, count + 1, chance)
        )


@dataclass(frozen=True)
class PositiveNumbers(Dispersed):
    """y has a gamma law with mean mu = e^eta and variance dispersion mu^2."""

    name: ClassVar[str] = "positive numbers"
    domain: ClassVar[str] = "a number > 0 in its last column"
    band: float = 1.5
    doubt: float = 0.0
    dispersion: float = 0.5

    def __post_init__(self) -> None:
        _check(self)

    def inside(self, y: Floats) -> NDArray[np.bool_]:
        """What is above zero."""
        return np.asarray(y > 0)

    def relative(self, mean: Floats) -> Floats:
        """The same for every mean."""
        return np.full_like(mean, np.sqrt(self.dispersion))

    def moments(self, mean: Floats, k: Floats, dispersion: Floats | float | None = None) -> Moments:
        """Those of y/mu, which do not depend on mu, by the incomplete gamma function."""
        from scipy.special import gammainc

        true, root = self.dispersion if dispersion is None else dispersion, 1 / self.relative(mean)
        shape = 1 / true
        ends = [shape * np.maximum(1 + side * k / root, 0.0) for side in (-1, 1)]
        at = [[gammainc(shape + order, end) for end in ends] for order in range(4)]
        sums = [high - low for low, high in at]
        sums[2:] = [(1 + true) * sums[2], (1 + true) * (1 + 2 * true) * sums[3]]
        return _moments(k, root, at, sums)


def _check(response: Any) -> None:
    object.__setattr__(response, "band", positive("band", response.band))
    if not 0 <= response.doubt <= 10:
        raise invalid("doubt", "in 0..10", response.doubt, "0.1 is ten percent of the mean")
    least, most = _DISPERSIONS
    if not least <= getattr(response, "dispersion", 1.0) <= most:
        raise invalid("dispersion", f"in {least:g}..{most:g}", response.dispersion, "it is of 1 and more for wild data")


class _Cumulative(Protocol):
    def __call__(self, count: Floats, order: int, /) -> Floats: ...


def _moments_of_counts(
    mean: Floats, k: Floats, root: Floats, dispersion: Floats | float, cumulative: _Cumulative
) -> Moments:
    """By `cumulative(j - o, o)`: the share up to j of y (y - 1) .. (y - o + 1), whose law is one of counts plus o."""
    low, high = (np.floor(mean * (1 + side * k / root)) for side in (-1, 1))  # the band holds low + 1 .. high
    at = [
        [np.where(end < order, 0.0, cumulative(np.maximum(end - order, 0.0), order)) for end in (low, high)]
        for order in range(4)
    ]
    below, first, *rest = (upper - lower for lower, upper in at)
    second, third = (1 + dispersion) * rest[0], (1 + dispersion) * (1 + 2 * dispersion) * rest[1]
    return _moments(k, root, at, [below, first, second + first / mean, third + 3 * second / mean + first / mean**2])


def _moments(k: Floats, root: Floats, at: list[list[Floats]], sums: list[Floats]) -> Moments:
    """From the cumulative shares of 1 and of y at the two ends of the band, and the sums of (y/mean)^0 .. 3 within it.

    The sum of y/mean - 1 above an end is the share of 1 up to it less that of y/mean.
    """
    (under, up_to), shares_of_y, *_ = at
    over, (zero, one, two, three) = 1 - up_to, sums
    inner, square = root * (one - zero), root**2 * (two - 2 * one + zero)
    above_low, above_high = (root * (a - b) for a, b in zip(at[0], shares_of_y, strict=True))
    middle, second = k * (over - under) + inner, k**2 * (over + under) + square
    slope = np.maximum(np.nan_to_num(k * (above_high + above_low) + square), 0.0)
    cube = k**2 * (above_high - above_low) + root**3 * (three - 3 * two + 3 * one - zero)
    turn = np.nan_to_num(cube / np.maximum(slope, 1e-300))
    return Moments(
        np.clip(np.nan_to_num(middle), -k, k), slope, np.clip(np.nan_to_num(second), 0.0, k**2), np.clip(turn, -k, k)
    )


@dataclass(frozen=True)
class Logarithms(Response):
    """A first look from an intercept and offsets alone: log((y + add)/(mu + add)), clipped, less its mean.

    A y far above its mean pulls it less than it pulls a clipped residual, and it says nearly linearly what the
    logarithm of the mean depends on. What is taken away is the mean under a Poisson law for `whole` numbers (add is
    1/2), and nothing for others (add is 0): it only says where to look, so the law needs not be right.
    """

    name: ClassVar[str] = "logarithms"
    band: float = 1.5
    whole: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "band", positive("band", self.band))
        if not isinstance(self.whole, bool):
            raise invalid("whole", "true or false", repr(self.whole)[:80], "true is for counts")

    @property
    def domain(self) -> str:  # type: ignore[override]  # of an instance
        """What y may be."""
        return Counts.domain if self.whole else PositiveNumbers.domain

    def inside(self, y: Floats) -> NDArray[np.bool_]:
        """As of the law that is looked for."""
        return (Counts() if self.whole else PositiveNumbers()).inside(y)

    def working(self, eta: Floats, y: Floats) -> Working:
        """The clipped logarithm, and the derivative of its mean by the logarithm of the mean of y."""
        eta = np.clip(eta, -FAR, FAR)
        if not self.whole:
            with np.errstate(divide="ignore"):
                residual = np.clip(np.log(np.maximum(y, 0)) - eta, -self.band, self.band)
            return Working(residual, np.full_like(eta, self.band), np.ones_like(eta))
        middle, slope = (np.interp(eta, _GRID, part) for part in _log_moments(self.band))
        residual = _clipped_log(y, self.band, np.exp(eta)) - middle
        return Working(residual, self.band + np.abs(middle), slope)

    def describe(self) -> dict[str, Any]:
        """Name, band and kind of numbers."""
        return {"response": self.name, "band": self.band, "whole": self.whole}


_GRID = np.arange(-FAR, _LARGE + 0.05, 0.05)


def _clipped_log(y: Floats, band: float, mean: Floats | float) -> Floats:
    return np.asarray(np.clip(np.log(np.maximum(y, 0) + 0.5) - np.log(mean + 0.5), -band, band))


@lru_cache(maxsize=4)
def _log_moments(band: float) -> tuple[Floats, Floats]:
    """Of a Poisson count's clipped logarithm: its mean, and its covariance with the count, for means of the grid.

    From the last one on it is as good as normal, with deviation 1/sqrt(mean).
    """
    from scipy.special import gammaln, xlogy

    found = np.zeros((2, _GRID.size))
    found[1, -1] = 1.0
    for i, mean in enumerate(np.exp(_GRID[:-1]).tolist()):
        y = np.arange(max(0.0, np.floor(mean - 12 * np.sqrt(mean))), mean + 12 * np.sqrt(mean) + 30)
        probability = np.exp(xlogy(y, mean) - mean - gammaln(y + 1))
        value = _clipped_log(y, band, mean)
        found[:, i] = probability @ value, probability @ (value * (y - mean))
    return found[0], found[1]
