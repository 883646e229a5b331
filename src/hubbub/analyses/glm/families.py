"""The families: what y is, how its mean follows from a linear predictor, and which looks are taken at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hubbub.analyses.glm.tuning import TUNING
from hubbub.arrays import Floats
from hubbub.statistics.log_link import Counts, Logarithms, OverdispersedCounts, PositiveNumbers
from hubbub.statistics.responses import Logit, Probit, Response


@dataclass(frozen=True)
class Family:
    """A law of y given a linear predictor."""

    name: str
    responses: tuple[Response, ...]
    """Of each Newton step, in order."""
    shares: tuple[float, ...]
    """Parts of the squared signal: of the round of columns, then of each step."""
    mean: Callable[[Floats], Floats]
    """Of y, by the linear predictor."""
    link: Callable[[float], float]
    """The linear predictor at which y has this mean."""
    attenuation: float
    """By how much a first look makes coefficients smaller: a normal linear predictor of deviation s comes out as
    s/sqrt(1 + attenuation s^2) from an intercept alone, where as many say yes as no."""
    intercept: float
    """Prior deviation of the intercept at the columns' means."""
    domain: str = "0 or 1"
    """What y is."""

    @property
    def yes_no(self) -> bool:
        """True where y is 0 or 1."""
        return isinstance(self.responses[-1], Logit | Probit)

    @property
    def whole(self) -> bool:
        """True where y is a whole number."""
        return not isinstance(self.responses[-1], PositiveNumbers)

    @property
    def dispersed(self) -> bool:
        """True where the law has a dispersion that is learned."""
        return hasattr(self.responses[-1], "dispersion")

    def response(self, number: int, dispersion: float) -> Response:
        """Of the step of this number, with the dispersion that the steps before it found."""
        found = self.responses[number]
        return replace(found, dispersion=dispersion) if hasattr(found, "dispersion") else found  # type: ignore[type-var]

    def attenuated(self, origin: float) -> float:
        """The attenuation, with the linear predictor at the mean of y. A rare yes of logit is as good as log-linear."""
        mean = float(self.mean(np.array([origin]))[0])
        return self.attenuation * 4 * mean * (1 - mean) if self.name == "bernoulli" else self.attenuation

    @property
    def rough(self) -> int:
        """How many of the first steps only say where to look: their residuals have a mean at the truth."""
        return sum(isinstance(response, Logarithms) for response in self.responses)

    def start(self, mean: float) -> float:
        """The linear predictor at this released mean of y."""
        low, high = (0.02, 0.98) if self.yes_no else (0.02, 1e8) if self.whole else (1e-4, 1.0)
        return float(self.link(float(np.clip(mean, low, high))))

    def link_slope(self, eta: float) -> float:
        """How much the linear predictor changes with the mean of y, there."""
        step = 1e-3
        low, high = self.mean(np.array([eta - step, eta + step]))
        return 2 * step / float(high - low)

    def intercept_at(self, origin: float, centre: float, scale: float) -> float:
        """The intercept with which rows have on average the mean at `origin`, their offsets being about normal."""
        return origin - centre - (0.0 if self.yes_no else 0.5 * min(scale, 2.0) ** 2)


def _expit(eta: Floats) -> Floats:
    from scipy.special import expit

    return np.asarray(expit(eta))


def _ndtr(eta: Floats) -> Floats:
    from scipy.special import ndtr

    return np.asarray(ndtr(eta))


def _ndtri(mean: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(mean))


def _exp(eta: Floats) -> Floats:
    return np.exp(np.minimum(eta, 700.0))


def _steps(law: Callable[[float], Response], whole: bool = True) -> tuple[Response, ...]:
    """A first look at logarithms, then Newton steps of less and less doubt."""
    return (Logarithms(_T.pilot_band, whole), *(law(doubt) for doubt in _T.doubts))


def _log(mean: float) -> float:
    return float(np.log(mean))


_T = TUNING
_COUNT = "a whole number >= 0"
FAMILIES = {
    family.name: family
    for family in (
        Family(
            "bernoulli", (Logit(),) * 3, _T.yes_no_shares, _expit, lambda mean: float(np.log(mean / (1 - mean))),
            np.pi / 8, _T.intercept,
        ),
        Family("probit", (Probit(),) * 3, _T.yes_no_shares, _ndtr, _ndtri, 1.0, _T.intercept / 1.7),
        Family(
            "poisson", _steps(lambda doubt: Counts(_T.band, doubt)), _T.count_shares, _exp, _log, 0.0,
            _T.count_intercept, _COUNT,
        ),
        Family(
            "negative-binomial", _steps(lambda doubt: OverdispersedCounts(_T.band, doubt, _T.dispersion)),
            _T.count_shares, _exp, _log, 0.0, _T.count_intercept, _COUNT,
        ),
        Family(
            "gamma", _steps(lambda doubt: PositiveNumbers(_T.band, doubt, _T.dispersion), whole=False),
            _T.count_shares, _exp, _log, 0.0, _T.count_intercept, "a number > 0",
        ),
    )
}  # fmt: skip
"""Every family, by name."""
