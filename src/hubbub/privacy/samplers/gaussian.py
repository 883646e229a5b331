"""The discrete Gaussian: probabilities in proportion to exp(-x^2 / 2 sigma^2) for whole numbers x."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np

from hubbub.arrays import Floats
from hubbub.privacy.samplers.decimals import around, pi

SIGMAS = 26
"""Draws end there; beyond lie less than 2 exp(-26^2 / 2) = 10^-146."""
LEAST = 8
"""The smallest sigma here: the sum of all exp(-x^2 / 2 sigma^2) is then sigma sqrt(2 pi), but for a factor between 1
and 1 + 10^-500 (Poisson's summation: 1 + 2 exp(-2 pi^2 sigma^2) + ..)."""


@dataclass(frozen=True)
class DiscreteGaussianLaw:
    """With a whole sigma of at least 8 steps."""

    steps: int

    def __post_init__(self) -> None:
        assert self.steps >= LEAST

    @property
    def sigma(self) -> float:
        """The deviation."""
        return float(self.steps)

    @property
    def reach(self) -> int:
        """26 deviations."""
        return SIGMAS * self.steps

    def density(self, x: Floats) -> Floats:
        """x^2 is exact up to 2^53, and otherwise off by 2^-53: the exponent, at most 350, is off by 2^-43."""
        scaled = x / self.sigma
        scaled *= scaled
        scaled *= -0.5
        np.exp(scaled, out=scaled)
        scaled *= 1 / (self.sigma * math.sqrt(2 * math.pi))
        return scaled

    def between(self, x: int, digits: int) -> tuple[Decimal, Decimal]:
        """By the decimal module's exp, which is rounded correctly."""
        with localcontext() as context:
            context.prec = digits + 10
            exponent = -Decimal(x * x) / (2 * self.steps * self.steps)
            value = exponent.exp() / (self.steps * (2 * pi(digits + 10)).sqrt())
            return around(value, digits)
