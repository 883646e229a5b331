"""The distributed Skellam mechanism: each client adds the difference of two Poisson counts.

After Agarwal, Kairouz and Liu (2021). Skellam noise is closed under sums: whoever is missing, the noise is Skellam with
a smaller rate. At the rates here it is close to the discrete Gaussian of its variance v (`docs/privacy.md`, section 7):
within 12 deviations probabilities differ by a factor e^(901 / v) at most for each coordinate, and beyond lie 2 10^-31.
The grid is refused where all coordinates together could differ by more than `ratio`; `outside` is enough for 10^10
coordinates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hubbub.arrays import Words
from hubbub.privacy.mechanisms.nearly_normal import NearlyNormalMechanism, NearlyNormalNoise
from hubbub.privacy.samplers import Cells, PoissonLaw
from hubbub.privacy.samplers.poisson import LEAST
from hubbub.protocols import Statistic
from hubbub.randomness import Randomness

PER_COORDINATE = 901
"""Over the variance: a bound for the logarithm of the largest factor in one coordinate. c^4 / 24 + 1 = 865 for c = 12
deviations would do."""


@dataclass(frozen=True)
class SkellamNoise(NearlyNormalNoise):
    """A share is the difference of two Poisson counts; its amount is their mean."""

    @staticmethod
    def amount_of(variance: Fraction) -> int:
        """Half of it, for each of the two."""
        return math.ceil(variance / 2)

    @property
    def variance(self) -> int:
        """Of one share, in squared steps."""
        return 2 * self.amount

    def least(self, statistic: Statistic) -> float:
        """So that all coordinates together are as close to normal as the mechanism says."""
        return max(2 * LEAST, PER_COORDINATE * statistic.dimension / (self.population.shares * self.mechanism.ratio))

    def draw(self, words: Words, randomness: Randomness) -> None:
        """One count is added, and one taken away; their means cancel."""
        cells = _cells(self.amount)
        for _ in range(2):
            cells.add(words, randomness)
            np.negative(words, out=words)


@lru_cache(maxsize=16)  # simulations settle the same round again and again
def _cells(mean: int) -> Cells:
    return Cells(PoissonLaw(mean))


@dataclass(frozen=True)
class SkellamMechanism(NearlyNormalMechanism):
    """Skellam noise: exact whole numbers, closed under sums, and nearly the account of normal noise."""

    name = "skellam"
    ratio = 1e-6
    outside = 1e-20
    noise = SkellamNoise
