"""Arithmetic modulo the prime p = 2^64 - 2^32 + 1 on whole arrays of words.

A field element is a word below p. Since 2^64 = 2^32 - 1 and 2^96 = -1 modulo p, a product of two words is brought back
below p by shifts and three additions, so NumPy's 64-bit words are enough and no element becomes a Python integer.

Signed whole numbers v are elements, too: v modulo p. Sums of elements are then sums of the numbers, whatever happens in
between, and a sum is read back exactly where it lies within ±(p - 1)/2 = ±(2^63 - 2^31): `of_signed` and `to_signed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hubbub.arrays import Words
from hubbub.randomness import Randomness
from hubbub.securesum.seeds import Generator, expand_seed

PRIME = 2**64 - 2**32 + 1
LARGEST = (PRIME - 1) // 2
"""The largest absolute value of a total that is read back as it is."""

_P, _LARGEST, _LOW, _HALF = np.uint64(PRIME), np.uint64(LARGEST), np.uint64(2**32 - 1), np.uint64(32)
_FEW_MORE = 16  # words expanded beyond those asked for, where one was no element; one word in 2^32 is none


def reduced(words: Words) -> Words:
    """Any words modulo p. For a word w < p the sum w + 2^32 - 1 is larger than w; for others it wraps to w - p."""
    found: Words = np.minimum(words, words + _LOW)
    return found


def subtract_from(total: Words, other: Words) -> None:
    """Elements minus elements, in place. The others may also be p itself, which stands for zero.

    Where the difference is negative it has wrapped around, and p is added: modulo 2^64, 2^32 - 1 is subtracted.
    """
    negative = total < other
    total -= other
    total -= negative * _LOW


def add_to(total: Words, other: Words) -> None:
    """Elements plus elements, in place."""
    subtract_from(total, _P - other)


def times(words: Words, factor: Words | np.uint64) -> Words:
    """Any words times any words, as elements.

    The product is a pair of words, low + 2^64 high, put together from products of 32-bit halves; each intermediate sum
    is at most (2^32 - 1)^2 + 2^32 - 1 < 2^64. With high = h0 + 2^32 h1 it equals low + h0 (2^32 - 1) - h1 modulo p,
    where h0 (2^32 - 1) <= (2^32 - 1)^2 < p and h1 < 2^32.
    """
    a0, a1, b0, b1 = words & _LOW, words >> _HALF, factor & _LOW, factor >> _HALF
    lowest = a0 * b0
    middle = a0 * b1 + (lowest >> _HALF)
    other = a1 * b0 + (middle & _LOW)
    high = a1 * b1 + (middle >> _HALF) + (other >> _HALF)
    found = reduced((other << _HALF) | (lowest & _LOW))
    subtract_from(found, high >> _HALF)
    add_to(found, (high & _LOW) * _LOW)
    return found


def sum_of_rows(words: Words) -> Words:
    """The sum of fewer than 2^31 rows of any words, as elements.

    The upper halves are added up without overflow. What they leave of the wrapped sum of the whole words is the sum of
    the lower halves, below 2^63, so exact as well.
    """
    high = (words >> _HALF).sum(axis=0, dtype=np.uint64)
    low = words.sum(axis=0, dtype=np.uint64) - (high << _HALF)
    found = reduced(low)
    add_to(found, (high & _LOW) << _HALF)  # 2^32 (high modulo 2^32) <= p - 1
    add_to(found, (high >> _HALF) * _LOW)  # 2^64 times the rest
    return found


def of_signed(words: Words) -> Words:
    """Two's complement words as elements: a negative v, whose word is 2^64 + v, becomes p + v."""
    return words - (words >> np.uint64(63)) * _LOW


def to_signed(elements: Words) -> Words:
    """Elements as two's complement words of the number within ±(p - 1)/2 that they stand for."""
    return elements + (elements > _LARGEST).astype(np.uint64) * _LOW


def fill_uniform(out: Words, randomness: Randomness) -> None:
    """Overwrite a contiguous array with independent uniform elements, exactly: words from p on are drawn again."""
    randomness.fill_words(out)
    while out.max(initial=0) >= _P:
        wrong = np.flatnonzero(out.reshape(-1) >= _P)
        out.reshape(-1)[wrong] = randomness.words(wrong.size)


def expand_elements(seed: bytes, dimension: int, generator: Generator) -> Words:
    """`dimension` uniform elements from a seed: the first words of its expansion that are below p."""
    words = expand_seed(seed, dimension, generator)
    found, size = words[words < _P], dimension
    while found.size < dimension:
        size += _FEW_MORE
        words = expand_seed(seed, size, generator)
        found = words[words < _P]
    return found[:dimension]


@lru_cache(maxsize=1024)
def weights(places: tuple[int, ...], at: int) -> tuple[int, ...]:
    """Lagrange's: the value of a polynomial of degree below t at `at` is that at t places, times these, added up."""
    found = []
    for one in places:
        above = below = 1
        for other in places:
            if other != one:
                above, below = above * (at - other) % PRIME, below * (one - other) % PRIME
        found.append(above * pow(below, -1, PRIME) % PRIME)
    return tuple(found)


def value_at(at: int, places: Sequence[int], values: Sequence[Words]) -> Words:
    """The values at `at` of the polynomials that have these values at these places, one for each coordinate."""
    total = np.zeros_like(values[0])
    for factor, value in zip(weights(tuple(places), at), values, strict=True):
        add_to(total, times(value, np.uint64(factor)))
    return total
