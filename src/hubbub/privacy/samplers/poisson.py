"""The Poisson law, counted from its mean: probabilities of mean + x for whole numbers x."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from hubbub.arrays import Floats
from hubbub.privacy.samplers.decimals import around, pi

SIGMAS = 26
_RIGHT = 190  # digits
LEAST = 1 << 20
"""The smallest mean here; more than 26 deviations away lie then less than 10^-143 (Chernoff)."""
_STIRLING = tuple(
    Fraction(*each)
    for each in ((1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360), (1, 156), (-3617, 122400),
                 (43867, 244188), (-174611, 125400), (77683, 5796), (-236364091, 1506960), (657931, 300),
                 (-3392780147, 93960), (1723168255201, 2492028), (-7709321041217, 505920),
                 (151628697551, 396), (-26315271553053477373, 2418179400))
)  # fmt: skip
"""ln n! = (n + 1/2) ln n - n + ln(2 pi) / 2 + the sum of these over n, n^3, n^5, ..; the error is less than the first
term that is left out."""


@dataclass(frozen=True)
class PoissonLaw:
    """With a whole mean of at least 2^20."""

    mean: int

    def __post_init__(self) -> None:
        assert self.mean >= LEAST

    @property
    def sigma(self) -> float:
        """The deviation."""
        return math.sqrt(self.mean)

    @property
    def reach(self) -> int:
        """26 deviations."""
        return math.ceil(SIGMAS * self.sigma)

    def density(self, x: Floats) -> Floats:
        """ln p = -mean h(x / mean) - ln(2 pi (mean + x)) / 2 - 1 / 12 (mean + x), with h(y) = (1 + y) ln(1 + y) - y.

        h by its series y^2/2 - y^3/6 + y^4/12 - .., of which |y| < 0.026 leaves less than 2^-60 after ten terms.
        """
        y = x / self.mean
        h = np.zeros_like(y)
        for n in range(11, 1, -1):
            h *= y
            h += (-1) ** n / (n * (n - 1))
        count = x + self.mean
        log = -(x * y) * h - 1 / (12 * count)
        result: Floats = np.exp(log) / np.sqrt(2 * math.pi * count)
        return result

    def between(self, x: int, digits: int) -> tuple[Decimal, Decimal]:
        """mean^k e^-mean / k! by Stirling's series for k!, of which a mean of 2^20 makes 18 terms right to 190 digits.

        What differs only beyond them is decided as the series has it: as likely as 10^-190.
        """
        k = self.mean + x
        with localcontext() as context:
            context.prec = digits + 30  # the terms of the logarithm are as large as k ln k
            rest = sum(
                (Decimal(c.numerator) / c.denominator / Decimal(k) ** (2 * i + 1) for i, c in enumerate(_STIRLING)),
                Decimal(0),
            )
            log = k * (Decimal(self.mean) / k).ln() + x - rest
            value = log.exp() / (2 * pi(digits + 30) * k).sqrt()
            return around(value, digits) if digits <= _RIGHT else (value, value)
