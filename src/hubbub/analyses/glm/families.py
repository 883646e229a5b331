"""The families: what y is, how its mean follows from a linear predictor, and which looks are taken at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hubbub.analyses.glm.tuning import TUNING
from hubbub.arrays import Floats
from hubbub.statistics.responses import Counts, LogCounts, Logit, Probit, Response


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
    yes_no: bool

    def response(self, number: int, origin: float) -> Response:
        """Of the step of this number, with the linear predictor at the mean of y."""
        found = self.responses[number]
        return replace(found, mean=float(f"{np.exp(origin):.6g}")) if isinstance(found, LogCounts) else found

    def attenuated(self, origin: float) -> float:
        """The attenuation, with the linear predictor at the mean of y. A rare yes of logit is as good as log-linear."""
        mean = float(self.mean(np.array([origin]))[0])
        return self.attenuation * 4 * mean * (1 - mean) if self.name == "bernoulli" else self.attenuation

    @property
    def rough(self) -> int:
        """How many of the first steps only say where to look: their residuals have a mean at the truth."""
        return sum(isinstance(response, LogCounts) for response in self.responses)

    def start(self, mean: float) -> float:
        """The linear predictor to start from, where the released mean of y is this."""
        low, high = (0.02, 0.98) if self.yes_no else (0.02, 1e8)
        return float(self.link(float(np.clip(mean, low, high))))


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


_T = TUNING
FAMILIES = {
    family.name: family
    for family in (
        Family(
            "bernoulli", (Logit(),) * 3, _T.yes_no_shares, _expit, lambda mean: float(np.log(mean / (1 - mean))),
            np.pi / 8, _T.intercept, True,
        ),
        Family("probit", (Probit(),) * 3, _T.yes_no_shares, _ndtr, _ndtri, 1.0, _T.intercept / 1.7, True),
        Family(
            "poisson", (LogCounts(_T.pilot_band), *(Counts(_T.band, doubt) for doubt in _T.doubts)), _T.count_shares,
            _exp, lambda mean: float(np.log(mean)), 0.0, _T.count_intercept, False,
        ),
    )
}  # fmt: skip
"""Every family, by name."""
