"""Is a uniform number below a chance? Decided in doubles where that is safe, and otherwise in decimals.

A uniform number is an endless row of random bits, of which 64 are drawn at first. The chance is known as a double, with
a bound for its error, and to as many decimal digits as one likes. Where the two differ by more than the error the
doubles tell the truth. Where they do not, more digits and more bits do: what is decided is always what endless
precision would decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats, Words
from hubbub.randomness import Randomness

MARGIN = 2.0**-36
"""Doubles decide only what differs by more, relative to the numbers that were added up. Sums, products, roots and
exponentials of a few doubles err by less than 2^-40 (numpy's `exp` by 2^-50)."""
_DIGITS = 40  # of the first attempt in decimals; every further one has twice as many

Between = Callable[[int, int], tuple[Fraction, Fraction]]
"""(number of the comparison, digits) -> two numbers that the chance lies between."""


def below(
    words: Words, chance: Floats, error: Floats | float, between: Between, randomness: Randomness
) -> NDArray[np.bool_]:
    """For each word: whether the uniform number that begins with its bits is below the chance."""
    gap = chance - words.astype(np.float64) * 2.0**-64
    found: NDArray[np.bool_] = gap > 0
    for i in np.flatnonzero(np.abs(gap) <= error + 2.0**-50):
        found[i] = _exactly(int(words[i]), int(i), between, randomness)
    return found


def _exactly(bits: int, number: int, between: Between, randomness: Randomness) -> bool:
    attempts = growing(bits, randomness)
    while True:  # as likely as 10^-digits for one more attempt
        lowest, highest, digits = next(attempts)
        least, most = between(number, digits)
        if highest <= least or most <= lowest:
            return highest <= least


def growing(bits: int, randomness: Randomness) -> Iterator[tuple[Fraction, Fraction, int]]:
    """A uniform number of which 64 bits are known, as the interval it lies in, with more bits for more digits."""
    known, digits = 64, _DIGITS
    while True:
        while known < 4 * digits:
            bits = bits << 64 | int(randomness.words(1)[0])
            known += 64
        yield Fraction(bits, 1 << known), Fraction(bits + 1, 1 << known), digits
        digits *= 2
