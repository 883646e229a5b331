"""Shares of discrete Laplace noise: numbers of which m add up to one draw of it.

Discrete Laplace noise of scale b takes x with probability in proportion to exp(-|x| / b). It is the difference of two
geometric draws, and each of these can be cut into m equal shares (Polya, or negative binomial with 1/m failures). Such
a share is a sum of clusters: for every size k = 1, 2, 3, .. there are Poisson many, exp(-k / b) / (k m) on average. So
a share is mostly zero, and rarely large; and the clusters of many numbers are drawn together.

Sizes below b are proposed octave by octave, [2^j, 2^(j+1)), with the mean 1/m each, and the size k is kept with the
chance 2^j exp(-k / b) / k. Sizes k = V b + U from b on (U < b) are proposed with the mean 2^-V / m for each V, and kept
with the chance 2^V b exp(-k / b) / k. All means are rational and all chances are compared exactly (`comparison`). No
size is cut off, as pure differential privacy demands, up to V = 900: there doubles would end, and a V beyond is as
likely as 2^-900.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats, Words
from hubbub.privacy.samplers.comparison import MARGIN, below
from hubbub.privacy.samplers.counts import poisson, uniform
from hubbub.privacy.samplers.decimals import around
from hubbub.randomness import Randomness

Integers = NDArray[np.int64]

LARGEST = 1 << 52
"""Of the scale: its numbers are then exact as doubles."""
_PROPOSED = 1 << 14  # clusters proposed at a time, roughly: 128 KB in each array, inside the second-level cache


@dataclass(frozen=True)
class Clusters:
    """One share of m, of discrete Laplace noise of scale b (both whole)."""

    scale: int
    shares: int
    margin: float = MARGIN

    def __post_init__(self) -> None:
        assert 1 <= self.scale <= LARGEST
        assert self.shares >= 1

    @cached_property
    def _octaves(self) -> int:
        return self.scale.bit_length()

    def add(self, words: Words, randomness: Randomness) -> None:
        """Add one share to each of these contiguous words, in place."""
        if not words.flags.c_contiguous:
            raise ValueError("words must be contiguous: others are flattened as a copy, and their noise would be lost")
        flat = words.reshape(-1)
        together = max(1, _PROPOSED * self.shares // (2 * self._octaves + 2))
        for start in range(0, flat.size, together):
            block = flat[start : start + together]
            proposed = poisson(Fraction(2 * block.size * (self._octaves + 1), self.shares), randomness)
            sizes = self._kept(proposed, randomness)
            places = uniform(block.size, sizes.size, randomness)
            np.add.at(block, places, sizes.view(np.uint64))

    def draw(self, count: int, randomness: Randomness) -> Integers:
        """So many shares."""
        words = np.zeros(count, dtype=np.uint64)
        self.add(words, randomness)
        return words.view(np.int64)

    def _kept(self, proposed: int, randomness: Randomness) -> Integers:
        """The sizes that are kept of so many, each with a sign of its own."""
        octave = uniform(self._octaves + 1, proposed, randomness)
        head = octave[octave < self._octaves]
        parts = self._head(head, randomness), self._tail(proposed - head.size, randomness)
        sizes, factors = (np.concatenate(each) for each in zip(*parts, strict=True))
        words = randomness.words(2 * sizes.size).reshape(2, -1)
        kept = self._accepted(sizes, factors, words[0], randomness)
        signs = 1 - 2 * (words[1] & np.uint64(1)).view(np.int64)
        signed: Integers = (sizes * signs)[kept]
        return signed

    def _head(self, octave: Integers, randomness: Randomness) -> tuple[Integers, Floats]:
        """Sizes below b, uniform in their octave, and the factor 2^j of their chance."""
        low = np.left_shift(np.int64(1), octave)
        sizes = low + (randomness.words(octave.size) & (low - 1).view(np.uint64)).view(np.int64)
        inside = sizes < self.scale
        return sizes[inside], low[inside].astype(np.float64)

    def _tail(self, count: int, randomness: Randomness) -> tuple[Integers, Floats]:
        """Sizes from b on, and the factor 2^V b of their chance. V is the number of coins until the first head."""
        v = np.ones(count, dtype=np.int64)
        tossing = np.arange(count)
        while tossing.size:
            tossing = tossing[(randomness.words(tossing.size) & np.uint64(1)).astype(bool)]
            v[tossing] += 1
        sizes = v * self.scale + uniform(self.scale, count, randomness)
        return sizes, np.ldexp(float(self.scale), v)

    def _accepted(self, sizes: Integers, factors: Floats, words: Words, randomness: Randomness) -> NDArray[np.bool_]:
        """Kept with the chance factor exp(-k / b) / k."""

        def between(i: int, digits: int) -> tuple[Fraction, Fraction]:
            k = int(sizes[i])
            with localcontext() as context:
                context.prec = digits + 10
                value = (-Decimal(k) / self.scale).exp() * int(factors[i]) / k
                least, most = around(value, digits)
            return Fraction(least), Fraction(most)

        chance = factors / sizes * np.exp(-sizes / self.scale)
        return below(words, chance, self.margin, between, randomness)
