"""From a noisy histogram of each column to where it lies and how widely it varies.

Post-processing of a release: it sees noisy counts and the noise in them, never the data. Noise of any law counts by its
variance here: what is read off is a unit for the next round with a doubt beside it, no posterior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hubbub.analyses.linear.kinds import kinds
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats
from hubbub.statistics import ColumnHistogram


@dataclass(frozen=True)
class Columns:
    """Centre and scale of each column, and the standard deviation of the scale's logarithm (how sure it is)."""

    centre: Floats
    scale: Floats
    doubt: Floats


def cautious_target(columns: Columns) -> Columns:
    """The last column with a larger scale where it is in doubt: a target clipped too hard tells the wrong thing."""
    scale = columns.scale.copy()
    scale[-1] *= np.exp(max(0.0, columns.doubt[-1] - TUNING.sure))
    return Columns(columns.centre, scale, columns.doubt)


def histogram(bounds: tuple[float, ...], multiplier: float, clients: int) -> ColumnHistogram:
    """What the first round sums of columns with these bounds, around the middle of each.

    It has so many L2 sensitivities of noise. Where counts are loud, there are fewer places, and they count less: what
    is told of wide bounds is worth little there.
    """
    loud = multiplier * math.sqrt(2 * len(bounds)) > TUNING.loud * clients
    return ColumnHistogram(bounds, TUNING.wide_bins, TUNING.places[loud], TUNING.wide_share[loud])


def read_columns(
    counted: ColumnHistogram,
    sums: Floats,
    n: int,
    noise_std: float,
    *,
    centre: bool,
    zero_one: Sequence[bool] | None = None,
) -> Columns:
    """Centre and scale (the standard deviation) of each column; without `centre` distances are taken from zero.

    Columns of many kinds (kinds.py) are held against the counts, the noise being known. Where the bounds are 0 and 1
    (`zero_one`) a column of two values is what one expects.
    """
    expected = tuple(zero_one or [False] * counted.columns)
    return _read(counted, np.asarray(sums, dtype=np.float64).tobytes(), n, noise_std, centre, expected)[0]


def doubt_of_centres(
    counted: ColumnHistogram, sums: Floats, n: int, noise_std: float, zero_one: Sequence[bool]
) -> Floats:
    """The standard deviation of each column's centre, as `read_columns` finds it."""
    return _read(counted, np.asarray(sums, dtype=np.float64).tobytes(), n, noise_std, True, tuple(zero_one))[1]


@lru_cache(maxsize=1)  # every later round of a fit reads the same release
def _read(
    counted: ColumnHistogram, sums: bytes, n: int, noise_std: float, centre: bool, zero_one: tuple[bool, ...]
) -> tuple[Columns, Floats]:
    """The same, from what can be compared, with the doubt of the centres; nobody may write to what is found."""
    known = kinds(counted.wide, counted.places)
    two = np.where(zero_one, TUNING.two_values, TUNING.few_two_values)[:, None]
    evidence = known.prior + np.repeat(
        np.log(np.hstack([1 - two, two])), [known.prior.size - known.two, known.two], axis=1
    )
    tables = counted.tables(np.frombuffer(sums), noise_std)
    expectations = _expectations(counted.wide, counted.places, n, *(noise for _, noise in tables))
    likelihoods = []
    for (counts, _), expected in zip(tables, expectations, strict=True):
        shares = counts / n
        likelihoods.append(shares @ expected.linear - 0.5 * (shares**2 @ expected.precision + expected.constant))
    wide, places = likelihoods
    evidence += wide + places[:, known.which]
    weights = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    sizes = np.log(known.deviation if centre else np.hypot(known.mean, known.deviation))
    size = weights @ sizes
    doubt = np.sqrt(np.maximum(weights @ sizes**2 - size**2, 0.0))
    bounds = np.asarray(counted.bounds)
    where = weights @ known.mean if centre else np.zeros(counted.columns)
    found = Columns(where * bounds, np.exp(size) * bounds, doubt)
    off = bounds * np.sqrt(np.maximum(weights @ known.mean**2 - (weights @ known.mean) ** 2, 0.0))
    for values in (found.centre, found.scale, found.doubt, off):
        values.setflags(write=False)
    return found, off


class _Expected(NamedTuple):
    """What makes the likelihood of counts under every kind a product of matrices; of the places each row once."""

    precision: Floats
    """(bins, kinds): one over the variance of a bin's share."""
    linear: Floats
    """(bins, kinds): the expected share times that."""
    constant: Floats


@lru_cache(maxsize=1)  # a fit asks several times, and an audit or a simulation thousands of times for the same
def _expectations(wide: int, places: int, n: int, *noises: float) -> tuple[_Expected, ...]:
    """For the wide bins and the places, with so much noise in their counts of so many clients."""
    known, found = kinds(wide, places), []
    for expected, noise in zip((known.wide, known.places), noises, strict=True):
        variance = (noise / n) ** 2 + expected * (1 - expected) / n + TUNING.bin_shape**2
        constant = np.sum(expected**2 / variance + np.log(variance), axis=1)
        found.append(_Expected((1 / variance).T, (expected / variance).T, constant))
    return tuple(found)


def share_at_ends(counted: ColumnHistogram, sums: Floats, n: int, noise_std: float) -> Floats:
    """(columns, 2): how many values at least lie at the lower and the upper end of the bounds, or beyond.

    Those are in the outermost wide bin and in the outermost place. Less two deviations of the noise, so that what is
    said of them is rarely said by chance.
    """
    ends = [(counts[:, [0, -1]] - 2 * noise) / n for counts, noise in counted.tables(sums, noise_std)]
    return np.minimum(*ends)
