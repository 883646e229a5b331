"""Exact draws that others are made of: uniform numbers below a bound, and Poisson counts of a rational mean."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats
from hubbub.privacy.samplers.comparison import MARGIN, growing
from hubbub.randomness import Randomness

Integers = NDArray[np.int64]

_WHOLE = 16  # large means are sums of draws of this one
_LIMIT = 128  # counts in the table of doubles; larger ones are found in decimals


def uniform(bound: int, count: int, randomness: Randomness) -> Integers:
    """So many numbers from 0 to bound - 1, all equally likely: bits, drawn again where they are too large."""
    mask = np.uint64((1 << (bound - 1).bit_length()) - 1)
    found = (randomness.words(count) & mask).view(np.int64)
    while (again := np.flatnonzero(found >= bound)).size:
        found[again] = (randomness.words(again.size) & mask).view(np.int64)
    return found


def poisson(mean: Fraction, randomness: Randomness, margin: float = MARGIN) -> int:
    """One Poisson count of any mean: the sum of as many of mean 16 as fit, and of one for the rest."""
    whole = int(mean // _WHOLE)
    rest = _inverted(mean - whole * _WHOLE, 1, randomness, margin)
    return int(rest.sum() + _inverted(Fraction(_WHOLE), whole, randomness, margin).sum())


def _inverted(mean: Fraction, count: int, randomness: Randomness, margin: float) -> Integers:
    """By inversion: the count is the number of cumulated probabilities that a uniform number is not below."""
    words = randomness.words(count)
    cumulated = _cumulated(mean)
    uniforms = words.astype(np.float64) * 2.0**-64
    found = np.searchsorted(cumulated, uniforms, side="right")
    above = cumulated[np.minimum(found, _LIMIT)] - uniforms
    under = uniforms - np.where(found > 0, cumulated[np.minimum(found, _LIMIT) - 1], -1.0)
    for i in np.flatnonzero((np.minimum(above, under) <= margin) | (found > _LIMIT)):
        found[i] = _exactly(mean, int(words[i]), randomness)
    return found


@lru_cache(maxsize=64)
def _cumulated(mean: Fraction) -> Floats:
    """The probabilities of at most 0, 1, 2, .. as doubles, with errors below 2^-45."""
    terms = np.concatenate([[1.0], np.cumprod(float(mean) / np.arange(1, _LIMIT + 1))])
    result: Floats = np.cumsum(terms) * np.exp(-float(mean))
    return result


def _exactly(mean: Fraction, bits: int, randomness: Randomness) -> int:
    attempts = growing(bits, randomness)
    while True:
        lowest, highest, digits = next(attempts)
        with localcontext() as context:
            context.prec = digits + 10
            term = (-Decimal(mean.numerator) / mean.denominator).exp()
            before, total, error, k = Decimal(0), term, Decimal(10) ** (5 - digits), 0
            while Fraction(total - error) <= lowest and k < 20 * digits:
                k += 1
                term = term * mean.numerator / mean.denominator / k
                before, total = total, total + term
            if highest <= Fraction(total - error) and (k == 0 or Fraction(before + error) <= lowest):
                return k
