"""The distributed discrete Gaussian mechanism: each client adds whole numbers of an exact law (the default).

Sums of discrete Gaussians are not discrete Gaussian, and a discrete Gaussian is not a rounded normal. Both are so
nearly what they are taken for that the difference is stated and accounted for (`docs/privacy.md`, section 7, has the
proofs):

- in each coordinate a sum of n shares of deviation s steps is within a factor e^(3 n exp(-pi^2 s^2)) of the discrete
  Gaussian of variance n s^2 (after Kairouz, Liu and Steinke 2021);
- which is within a factor e^(5 exp(-2 pi^2 r^2)) of what rounding at random makes of normal noise of variance
  n s^2 - r^2, whoever's whole numbers it is added to. What is made of a release costs no privacy, so the account is
  that of normal noise;
- a share ends at 26 deviations, and what lies beyond, less than 10^-146 of it, is spread over the others.

With s and r of at least 8 steps, and K clients that send d numbers with K d up to 10^39, all this together is below the
`ratio` and the `outside` of 10^-100 that are accounted for.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from hubbub.arrays import Words
from hubbub.privacy.mechanisms.nearly_normal import NearlyNormalMechanism, NearlyNormalNoise
from hubbub.privacy.mechanisms.whole import ceil_root
from hubbub.privacy.samplers import Cells, DiscreteGaussianLaw
from hubbub.privacy.samplers.gaussian import LEAST
from hubbub.protocols import Statistic
from hubbub.randomness import Randomness


@dataclass(frozen=True)
class DiscreteGaussianNoise(NearlyNormalNoise):
    """A share is a discrete Gaussian; its amount is its deviation in steps."""

    @staticmethod
    def amount_of(variance: Fraction) -> int:
        """The deviation."""
        return ceil_root(variance)

    @property
    def variance(self) -> int:
        """Of one share, in squared steps."""
        return self.amount**2

    def least(self, statistic: Statistic) -> float:
        """Of 8 steps."""
        return LEAST**2

    def draw(self, words: Words, randomness: Randomness) -> None:
        """A discrete Gaussian for each word."""
        _cells(self.amount).add(words, randomness)


@lru_cache(maxsize=16)  # simulations settle the same round again and again
def _cells(deviation: int) -> Cells:
    return Cells(DiscreteGaussianLaw(deviation))


@dataclass(frozen=True)
class DiscreteGaussianMechanism(NearlyNormalMechanism):
    """Discrete Gaussian noise: exact whole numbers, and the account of normal noise."""

    name = "discrete-gaussian"
    ratio = 1e-100
    outside = 1e-100
    noise = DiscreteGaussianNoise
