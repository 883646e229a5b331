"""What laws of whole numbers have in common that are close to normal noise, and account as it does."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from hubbub.arrays import Words
from hubbub.grid import Grid
from hubbub.population import Population
from hubbub.privacy.mechanisms.multiplier import MultiplierMechanism
from hubbub.privacy.mechanisms.whole import WholeNoise, choose_grid, moved_l2, too_coarse, too_fine, too_little
from hubbub.privacy.samplers.cells import LARGEST
from hubbub.protocols import NoiseLaw, Statistic
from hubbub.randomness import Randomness

SMOOTH = 8
"""Steps. The part of the noise that makes normal noise whole, and that the account leaves out."""
NOISE_TAIL = 32.0  # deviations that the noise of all clients exceeds with probability 10^-220; it would wrap around


@dataclass(frozen=True)
class NearlyNormalMechanism(MultiplierMechanism):
    """Exact whole numbers, and the account of normal noise."""

    noise: ClassVar[type[NearlyNormalNoise]]

    def settled(
        self, statistic: Statistic, population: Population, fraction_bits: int | None = None
    ) -> NearlyNormalNoise:
        """Choose the grid, count its rounding into the sensitivity, and round a client's share up to whole numbers."""
        rough = self.noise_multiplier * population.weight * statistic.sensitivity / math.sqrt(population.shares)
        tail = NOISE_TAIL * rough * math.sqrt(population.clients)
        noise = self.on(statistic, population, choose_grid(statistic, rough, 2 * tail, population, fraction_bits))
        noise.check(statistic)
        return noise

    def on(self, statistic: Statistic, population: Population, grid: Grid) -> NearlyNormalNoise:
        """On a grid that somebody else has chosen, unchecked."""
        moved = moved_l2(statistic, grid, population)
        wanted = Fraction(self.noise_multiplier) ** 2 * moved**2
        share = (wanted + SMOOTH**2) / population.shares if wanted else Fraction(0)
        return self.noise(population, grid, moved, self, self.noise.amount_of(share))


@dataclass(frozen=True)
class NearlyNormalNoise(WholeNoise):
    """Each of K clients adds one share to every coordinate of what it sends.

    K - D - C - 1 of them (`Population.shares`) have the variance that a trusted aggregator would have added, and the
    square of `SMOOTH` steps more.
    """

    mechanism: NearlyNormalMechanism
    amount: int
    """Of one share, as a whole number: what it means is the law's own."""

    @staticmethod
    @abstractmethod
    def amount_of(variance: Fraction) -> int:
        """The least amount that has this variance at least, in squared steps."""

    @property
    @abstractmethod
    def variance(self) -> int:
        """Of one share, in squared steps."""

    @abstractmethod
    def least(self, statistic: Statistic) -> float:
        """The variance of a share from which on the law is as close to normal as its mechanism says."""

    @abstractmethod
    def draw(self, words: Words, randomness: Randomness) -> None:
        """Add one share to each of these contiguous words."""

    def add(self, words: Words, randomness: Randomness) -> None:
        """One share for each word; none where the mechanism has no noise."""
        if self.amount:
            self.draw(words, randomness)

    @property
    def sigma_std(self) -> float:
        """Standard deviation a trusted aggregator would add to each coordinate."""
        return self.mechanism.noise_multiplier * self.sensitivity

    @property
    def sigma_client(self) -> float:
        """Standard deviation that one client adds to each coordinate, whatever number of samples it holds."""
        return math.sqrt(self.variance) * self.grid.step

    def law(self, contributors: int) -> NoiseLaw:
        """As good as normal, with the variance of so many shares."""
        return NoiseLaw("normal", self.sigma_client * math.sqrt(contributors))

    def check(self, statistic: Statistic) -> None:
        """Refuse noise that is too small or too coarse for this statistic, and a sum that could overflow."""
        wanted = self.mechanism.on(statistic, self.population, self.grid)
        if self.moved < wanted.moved or self.amount < wanted.amount:
            raise too_little("amount", wanted.amount, self.amount)
        least = self.least(statistic)
        if 0 < self.variance < least or statistic.sensitivity < self.grid.step * math.sqrt(statistic.dimension):
            raise too_coarse(f"{math.sqrt(least):.0f} steps", self.grid)
        tail = NOISE_TAIL * math.sqrt(self.variance * self.population.clients)
        total = self.population.n * statistic.magnitude / self.grid.step + tail
        if self.variance > LARGEST**2 or total >= 2.0**63:
            raise too_fine(self.grid)

    def describe(self) -> dict[str, object]:
        """Canonical description, for the hash of a round."""
        return {
            **self.mechanism.describe(), "moved": self.moved, "amount": self.amount,
            "fraction_bits": self.grid.fraction_bits,
        }  # fmt: skip
