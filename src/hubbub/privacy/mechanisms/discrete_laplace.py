"""The distributed discrete Laplace mechanism: pure differential privacy, without a delta.

The sum of K - D - C - 1 shares is discrete Laplace noise, exp(-|x| / b) for whole x, with a scale b of
Delta_1 / epsilon (L1, on the grid, rounded up): one unit of privacy moves every probability by a factor e^epsilon at
most. More shares are more noise, added to what is private already.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

from hubbub.arrays import Words
from hubbub.errors import InvalidInput, invalid
from hubbub.events import PureEvent
from hubbub.grid import Grid
from hubbub.population import Population
from hubbub.privacy.accountant import fits
from hubbub.privacy.mechanisms.whole import WholeNoise, choose_grid, moved_l1, too_coarse, too_fine, too_little
from hubbub.privacy.samplers import Clusters
from hubbub.privacy.samplers.clusters import LARGEST
from hubbub.protocols import Budget, Description, Mechanism, NoiseLaw, Statistic
from hubbub.randomness import Randomness

NOISE_TAIL = 100.0  # times K / (K-D-C-1): scales that all noise exceeds with probability 10^-40; it would wrap around
LEAST = 8  # steps that the scale spans at least, so that rounding does not eat it
_HEADROOM = 1e-12  # relative; above the rounding errors of a sum of epsilons
_SOLVED = 1e-3  # relative, of an epsilon found by bisection
_OVERFLOWS = 700.0  # an epsilon whose exponential a double hardly holds


@dataclass(frozen=True)
class DiscreteLaplaceMechanism(Mechanism):
    """Discrete Laplace noise that is worth `epsilon` for what one unit of privacy can move (L1)."""

    epsilon: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise invalid("epsilon", "positive and finite", self.epsilon, "derive it from a budget")

    def within(self, budget: Budget, weights: Sequence[float], probability: float = 1.0) -> tuple[Self, ...]:
        """In proportion to the weights, so that the epsilons add up to the budget's.

        With a positive delta as much more than that as the composition of all rounds allows.
        """
        if not weights or min(weights) <= 0:
            raise InvalidInput(f"weights must be positive, got weights={list(weights)[:3]}; name one per round")
        whole = math.fsum(weights)

        def rounds(factor: float) -> tuple[Self, ...]:
            spent = (budget.epsilon * factor * (1 - _HEADROOM) * weight / whole for weight in weights)
            return tuple(type(self)(_without_coins(each, probability)) for each in spent)

        low, high = 1.0, math.sqrt(len(weights))
        while not budget.pure and high / low > 1 + _SOLVED:
            middle = math.sqrt(low * high)
            tried: tuple[Self, ...] = rounds(middle)
            kept = fits([each.event(probability) for each in tried], budget)
            low, high = (middle, high) if kept else (low, middle)
        return rounds(low)

    def event(self, probability: float = 1.0) -> PureEvent:
        """Pure; less where samples select themselves, since a sample may not count at all."""
        return PureEvent(_with_coins(self.epsilon, probability))

    def settled(
        self, statistic: Statistic, population: Population, fraction_bits: int | None = None
    ) -> DiscreteLaplaceNoise:
        """Choose the grid, count its rounding into the sensitivity, and round the scale up to whole steps."""
        if not math.isfinite(statistic.sensitivity_l1):
            raise invalid(
                "sensitivity_l1", "finite for the mechanism discrete-laplace", statistic.sensitivity_l1,
                "bound every coordinate of the statistic, or use the mechanism discrete-gaussian",
            )  # fmt: skip
        scale = population.weight * statistic.sensitivity_l1 / self.epsilon
        tail = NOISE_TAIL * scale * population.clients / population.shares
        share = scale / math.sqrt(population.shares)
        noise = self.on(statistic, population, choose_grid(statistic, share, tail, population, fraction_bits))
        noise.check(statistic)
        return noise

    def on(self, statistic: Statistic, population: Population, grid: Grid) -> DiscreteLaplaceNoise:
        """On a grid that somebody else has chosen, unchecked."""
        moved = moved_l1(statistic, grid, population)
        return DiscreteLaplaceNoise(population, grid, moved, self, math.ceil(moved / Fraction(self.epsilon)))

    def describe(self) -> dict[str, object]:
        """Name and epsilon, for the round's record."""
        return {"mechanism": "discrete-laplace", "epsilon": float(self.epsilon)}

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        epsilon = description["epsilon"]
        if not isinstance(epsilon, float):
            raise invalid("epsilon", "a number with a decimal point", repr(epsilon)[:40], "make it again")
        return cls(epsilon)


def _with_coins(epsilon: float, probability: float) -> float:
    """ln(1 + q (e^epsilon - 1)): what is left where a sample counts with the probability q only."""
    if probability == 1:
        return epsilon
    if epsilon < _OVERFLOWS:  # right to the last digits, also where hardly anything is left
        return math.log1p(probability * math.expm1(epsilon))
    return epsilon + math.log(probability + (1 - probability) * math.exp(-epsilon))


def _without_coins(epsilon: float, probability: float) -> float:
    """The epsilon of which coins leave this much: ln(1 + (e^epsilon - 1) / q)."""
    if probability == 1:
        return epsilon
    if epsilon < 1:
        return math.log1p(math.expm1(epsilon) / probability)
    return epsilon + math.log((1 - (1 - probability) * math.exp(-epsilon)) / probability)


@dataclass(frozen=True)
class DiscreteLaplaceNoise(WholeNoise):
    """Each of K clients adds one of K - D - C - 1 equal shares of discrete Laplace noise of this scale, in steps."""

    mechanism: DiscreteLaplaceMechanism
    scale: int

    @property
    def sigma_std(self) -> float:
        """Standard deviation a trusted aggregator would add to each coordinate."""
        return self.grid.step / (math.sqrt(2) * math.sinh(0.5 / self.scale))

    @property
    def sigma_client(self) -> float:
        """Standard deviation that one client adds to each coordinate, whatever number of samples it holds."""
        return self.sigma_std / math.sqrt(self.population.shares)

    @cached_property
    def _clusters(self) -> Clusters:
        return Clusters(self.scale, self.population.shares)

    def add(self, words: Words, randomness: Randomness) -> None:
        """A share for each word: mostly nothing, where there are many clients."""
        self._clusters.add(words, randomness)

    def law(self, contributors: int) -> NoiseLaw:
        """Laplace where as many contribute as are counted on, and a sum of more such shares otherwise."""
        if not contributors:
            return NoiseLaw("laplace", 0.0)
        shape = contributors / self.population.shares
        return NoiseLaw("laplace", self.sigma_client * math.sqrt(contributors), shape)

    def check(self, statistic: Statistic) -> None:
        """Refuse noise that is too small or too coarse for this statistic, and a sum that could overflow."""
        wanted = self.mechanism.on(statistic, self.population, self.grid)
        if self.moved < wanted.moved or self.scale < wanted.scale:
            raise too_little("scale", wanted.scale, self.scale)
        if self.scale < LEAST or statistic.sensitivity_l1 < self.grid.step * statistic.dimension:
            raise too_coarse(f"{LEAST} steps", self.grid)
        tail = NOISE_TAIL * self.scale * self.population.clients / self.population.shares
        total = self.population.n * statistic.magnitude / self.grid.step + tail
        if self.scale > LARGEST or total >= 2.0**63:
            raise too_fine(self.grid)

    def describe(self) -> dict[str, object]:
        """Canonical description, for the hash of a round."""
        return {
            **self.mechanism.describe(), "moved": self.moved, "scale": self.scale,
            "fraction_bits": self.grid.fraction_bits,
        }  # fmt: skip
