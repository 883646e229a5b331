"""Many exact draws from a law of whole numbers with one hump.

The probabilities p(x) stand over the axis like a hill. Cut the axis into buckets of 2^w points and fill each bucket,
as high as its lowest point allows, with equal cells: a cell is one bucket's width and holds the probability 2^-b. A
draw is b bits that choose a cell and w bits that choose a point in it: one look into a table. What the cells leave free
(some percent: the slope on top of the full cells, and the tails) is drawn by rejection from a frame around it.

Cells hold dyadic probabilities, so that the fast way is exact with whole numbers alone. Rejection compares a uniform
number with p(x), in doubles only where these cannot be wrong (`comparison`). So every x comes with its probability
p(x), as far as the buckets reach (`Law.reach`). What lies beyond falls to the draws beside the cells, as rejection has
it: with o beyond (less than 10^-143 for the laws here) these are likelier by a factor 1 + 10^5 o at most, since they
make up 10^-5 of all draws at least. `docs/privacy.md`, section 7.7, has the proof.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats, Words
from hubbub.privacy.samplers.comparison import MARGIN, below
from hubbub.randomness import Randomness

Integers = NDArray[np.int64]

CELL_BITS = 15
"""2^15 cells: their table of 64 KB stays in the cache, and 98 % of the draws find their number in it."""
BUCKETS_PER_SIGMA = 32
"""At least; at most twice as many, since a bucket is a power of two wide."""
LARGEST = 1 << 54
"""Of sigma: the bits that choose a cell and those that choose a point in it are then different bits of one word."""
_SLOT_BITS = 15  # slots of the frame around what the cells leave free
_BLOCK = 1 << 14  # words drawn at a time: 128 KB in each array, inside the second-level cache
_TOGETHER = 1 << 17  # words whose draws beside the cells are made together, so that these are many


class Law(Protocol):
    """A law of whole numbers x that rises up to x = -1, and falls from x = 0 on (p(-1) <= p(0))."""

    @property
    def sigma(self) -> float:
        """Its standard deviation, roughly: for the width of the buckets."""
        ...

    @property
    def reach(self) -> int:
        """No x is drawn that lies more than a bucket beyond -reach or reach."""
        ...

    def density(self, x: Floats) -> Floats:
        """p(x) in double precision, within 2^-40 of itself."""
        ...

    def between(self, x: int, digits: int) -> tuple[Decimal, Decimal]:
        """Two numbers that p(x) lies between, closer together the more digits there are."""
        ...


class Cells:
    """The table of a law, and draws from it."""

    def __init__(self, law: Law, margin: float = MARGIN, cell_bits: int = CELL_BITS) -> None:
        assert law.sigma <= LARGEST
        self.law = law
        self._margin = margin
        self._bits = cell_bits
        self._width = max(0, int(np.floor(np.log2(law.sigma / BUCKETS_PER_SIGMA))))
        size = 1 << self._width
        half = -(-law.reach // size)
        starts = np.arange(-half, half, dtype=np.int64) * size
        ends = starts + (size - 1)
        lowest = self.law.density(np.where(starts < 0, starts, ends).astype(np.float64))
        highest = self.law.density(np.where(starts < 0, ends, starts).astype(np.float64))
        per_cell = 2.0 ** -(self._bits + self._width)  # of each point in a cell
        counts = np.floor(lowest * (1 - MARGIN) / per_cell).astype(np.int64)
        self._used = int(counts.sum())
        self._table = np.zeros(1 << self._bits, dtype=np.int16)  # the bucket of each cell, counted from the middle
        self._table[: self._used] = np.repeat(np.arange(-half, half), counts)
        self._starts, self._filled = starts, counts * per_cell
        self._frame(highest * (1 + MARGIN) - self._filled)

    def _frame(self, free: Floats) -> None:
        """A height for every bucket that is nowhere below what the cells leave free: a whole number of slots."""
        self._slot = float(free.sum()) * (1 + MARGIN) / ((1 << _SLOT_BITS) - free.size)
        self._heights = np.ceil(free / self._slot * (1 + MARGIN)).astype(np.int64)
        self._slots = np.full(1 << _SLOT_BITS, -1, dtype=np.int16)  # the bucket of each; few are left over
        self._slots[: self._heights.sum()] = np.repeat(np.arange(free.size), self._heights)

    def add(self, words: Words, randomness: Randomness) -> None:
        """Add one draw to each of these contiguous words, in place."""
        if not words.flags.c_contiguous:
            raise ValueError("words must be contiguous: others are flattened as a copy, and their noise would be lost")
        flat = words.reshape(-1)
        for start in range(0, flat.size, _TOGETHER):
            part = flat[start : start + _TOGETHER]
            left = self._add_cells(part, randomness)
            part[left] += self._rest(left.size, randomness).view(np.uint64)

    def draw(self, count: int, randomness: Randomness) -> Integers:
        """So many numbers."""
        words = np.zeros(count, dtype=np.uint64)
        self.add(words, randomness)
        return words.view(np.int64)

    def _add_cells(self, words: Words, randomness: Randomness) -> Integers:
        """Add a draw to each word that meets a cell, and return where the others are."""
        drawn = np.empty(min(words.size, _BLOCK), dtype=np.uint64)
        cells, bucket = np.empty_like(drawn), np.empty(drawn.size, dtype=np.int64)
        left = []
        for start in range(0, words.size, _BLOCK):
            block = words[start : start + _BLOCK]
            drawn, cells, bucket = drawn[: block.size], cells[: block.size], bucket[: block.size]
            randomness.fill_words(drawn)
            np.right_shift(drawn, np.uint64(64 - self._bits), out=cells)
            np.copyto(bucket, self._table.take(cells.view(np.int64)))
            np.left_shift(bucket, self._width, out=bucket)
            drawn &= np.uint64((1 << self._width) - 1)
            drawn += bucket.view(np.uint64)
            missed = np.flatnonzero(cells >= np.uint64(self._used))
            drawn[missed] = 0
            block += drawn
            left.append(missed + start)
        found: Integers = np.concatenate([np.empty(0, dtype=np.int64), *left])
        return found

    def _rest(self, count: int, randomness: Randomness) -> Integers:
        """So many draws of what the cells leave free, by rejection."""
        found = np.empty(count, dtype=np.int64)
        have = 0
        while have < count:
            some = self._tried(2 * (count - have) + 16, randomness)[: count - have]
            found[have : have + some.size] = some
            have += some.size
        return found

    def _tried(self, count: int, randomness: Randomness) -> Integers:
        """Points below the frame, as many of them as are below the law too."""
        words = randomness.words(2 * count).reshape(2, count)
        bucket = self._slots.take((words[0] >> np.uint64(64 - _SLOT_BITS)).view(np.int64))
        if (outside := bucket < 0).any():
            words, bucket = words[:, ~outside], bucket[~outside]
        x = self._starts.take(bucket) + (words[0] & np.uint64((1 << self._width) - 1)).view(np.int64)
        found: Integers = x[self._below(x, bucket, words[1], randomness)]
        return found

    def _below(self, x: Integers, bucket: Integers, words: Words, randomness: Randomness) -> NDArray[np.bool_]:
        """Where a uniform part of the bucket's free height ends below p(x); the words are its first 64 bits."""
        density, height = self.law.density(x.astype(np.float64)), self._heights.take(bucket) * self._slot
        filled = self._filled.take(bucket)

        def between(i: int, digits: int) -> tuple[Fraction, Fraction]:
            below_it = Fraction(float(filled[i]))  # exact: a whole number of cells
            exact = int(self._heights[bucket[i]]) * Fraction(self._slot)
            least, most = self.law.between(int(x[i]), digits)
            return (Fraction(least) - below_it) / exact, (Fraction(most) - below_it) / exact

        chance = (density - filled) / height
        return below(words, chance, self._margin * (density / height + 1), between, randomness)
