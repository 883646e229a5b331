"""What one row tells of a linear predictor: a bounded residual, and how much it is worth.

A response has, at the linear predictor eta that a public state gives a row,

    residual      a function of y and eta with mean zero where eta is the truth
    most          a bound of its absolute value, whatever y is
    information   how fast its mean grows with the true linear predictor, there
    spread        where the law has a dispersion: a function of y and eta in [-1, 1] with mean zero at the true one

Of these residual and spread alone depend on y, which is what keeps the estimating equation of a Newton step unbiased: a
row may be weighted by anything that is made of the other two and of x (Mallows). Yes and no are here; counts and other
positive numbers, whose mean has a logarithmic link, in `log_link.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats

FAR = 20.0  # linear predictors beyond it count as this far: e^20 is half a billion


class Working(NamedTuple):
    """One number for each row."""

    residual: Floats
    most: Floats
    information: Floats
    spread: Floats | None = None


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

        eta = np.clip(eta, -FAR, FAR)
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
