"""What laws of whole numbers have in common: encode first, then add integer noise.

A vector on the grid is a vector of whole numbers, and how far two of them can be apart is one, too: rounding moves each
coordinate by half a step at most, so that a difference grows by one step in each coordinate at most. Nothing after that
is rounded, and nothing depends on how a machine computes: grid and noise are settled in whole numbers and fractions.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats, Words
from hubbub.errors import InvalidInput, invalid
from hubbub.grid import Grid, choose_fraction_bits
from hubbub.population import Population
from hubbub.protocols import RoundNoise, Statistic
from hubbub.randomness import Randomness

FINEST_BITS = 28
"""A client's noise deviates by 2^27 to 2^28 steps, where the ring has room for so many: fine enough for rounding not to
matter (a million clients that are all rounded the same way move the sum by 4 10^-6 of its noise)."""


@dataclass(frozen=True)
class WholeNoise(RoundNoise):
    """A client's share of the noise as whole numbers of steps of the grid."""

    population: Population
    grid: Grid
    moved: int
    """How far one unit of privacy can move the sum, in steps, rounded up, in the norm that the law goes by."""

    @property
    def sensitivity(self) -> float:  # type: ignore[override]  # an attribute there
        """The same in the units of the statistic."""
        return self.moved * self.grid.step

    @abstractmethod
    def add(self, words: Words, randomness: Randomness) -> None:
        """Add one share to each of these contiguous words."""

    def shares(self, clients: int, dimension: int, randomness: Randomness) -> Words:
        """Whole numbers, exactly drawn."""
        words = np.zeros((clients, dimension), dtype=np.uint64)
        self.add(words, randomness)
        return words

    def noisy_words(
        self,
        vectors: Floats,
        randomness: Randomness,
        silent: NDArray[np.bool_] | None = None,
        room: Floats | None = None,
    ) -> Words:
        """The vectors are rounded to the grid in the room that is given, and then the noise is added."""
        words = self.grid.encode(vectors, out=np.empty(vectors.shape) if room is None else room)
        if silent is None:
            self.add(words, randomness)
        else:
            loud = words[~silent]
            self.add(loud, randomness)
            words[~silent] = loud
        return words


def moved_l2(statistic: Statistic, grid: Grid, population: Population) -> int:
    """Delta + sqrt(d) steps, rounded up, for one sample, and as many times that as samples count together."""
    dimension = statistic.dimension
    return population.weight * (_steps(statistic.sensitivity, dimension, grid) + math.isqrt(dimension - 1) + 1)


def moved_l1(statistic: Statistic, grid: Grid, population: Population) -> int:
    """Delta_1 + d steps, rounded up, for one sample, and as many times that as samples count together."""
    dimension = statistic.dimension
    return population.weight * (_steps(statistic.sensitivity_l1, dimension, grid) + dimension)


def _steps(length: float, dimension: int, grid: Grid) -> int:
    """In steps, rounded up. Vectors are computed in doubles, so that two may be a little further apart than stated.

    A length is a sum over d numbers, of which each addition errs by 2^-53: 2^-40 is enough for d up to 4096, and
    d 2^-52 beyond (`docs/privacy.md`, section 7.1).
    """
    error = Fraction(max(dimension, 1 << 12), 1 << 52)
    return math.ceil(Fraction(length) * (1 + error) * Fraction(2) ** grid.fraction_bits)


def choose_grid(
    statistic: Statistic, deviation: float, tail: float, population: Population, wanted: int | None
) -> Grid:
    """The finest grid on which a sum over all samples and the noise of all clients fit the ring.

    `deviation` is what one client's share deviates by, and `tail` what the noise of all clients together stays within.
    """
    if not (math.isfinite(deviation) and math.isfinite(tail)):
        raise invalid(
            "epsilon", "so large that the noise is a number", "a smaller one", "raise it, or lower the bounds"
        )
    total, one = population.n * statistic.magnitude + tail, statistic.magnitude
    bits = choose_fraction_bits(total, one, wanted)
    finest = FINEST_BITS - math.frexp(deviation)[1] if deviation > 0 else bits
    return Grid(min(bits, finest) if wanted is None else wanted)


def too_coarse(least: str, grid: Grid) -> InvalidInput:
    """Refused: the noise spans too few steps of the grid for its law to be what it is taken for."""
    return invalid(
        "fraction_bits", f"so large that the noise spans at least {least}, and a vector more than rounding moves it",
        grid.fraction_bits,
        "leave it out; if that does not help, the ring is too small: fewer clients, tighter bounds or a larger epsilon",
    )  # fmt: skip


def too_little(field: str, least: int, found: int) -> InvalidInput:
    """Refused: shares that are too small for what the statistic can move on this grid."""
    return invalid(
        field, f"at least {least}, for what the statistic can move on this grid", found,
        "do not take part: the study would add too little noise",
    )  # fmt: skip


def too_fine(grid: Grid) -> InvalidInput:
    """Refused: on this grid the noise, or the sum, may not fit into a word."""
    return invalid("fraction_bits", "so small that the sum fits the ring", grid.fraction_bits, "leave it out")


def ceil_root(number: Fraction) -> int:
    """The smallest whole number whose square is no less."""
    least = math.ceil(number)
    return 0 if least <= 0 else math.isqrt(least - 1) + 1
