"""What a column may be, and the counts that one expects of it: normal, with a long tail, or of two values."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats

_TAILS = (
    (0.0, 0.05), (0.0, 0.1), (0.0, 0.2), (0.0, 0.4),
    (0.6, 0.1), (0.6, 0.3), (0.9, 0.1), (0.9, 0.3), (0.97, 0.1), (0.97, 0.3),
)  # fmt: skip
"""Of columns with a long tail the share that is normal, and the tail's mean length in units of the bound."""
_SHARES = 1 / (1 + np.exp(-np.linspace(-4, 4, 17)))  # of ones, in a column of two values


class Kinds(NamedTuple):
    """One row for each kind; centres and deviations in units of a column's bound."""

    mean: Floats
    deviation: Floats
    wide: Floats
    """(kinds, wide bins): the shares of a column of this kind."""
    places: Floats
    """(rows, places): the shares of the places within a wide bin, whichever that is. Many kinds have the same."""
    which: NDArray[np.intp]
    """The row of `places` that each kind has."""
    prior: Floats
    """Logarithm of what each is worth among normal and long-tailed kinds, or among those of two values."""

    @property
    def two(self) -> int:
        """How many are of two values: the last ones."""
        return _SHARES.size


@lru_cache(maxsize=8)
def kinds(wide: int, places: int) -> Kinds:
    """All kinds that are held against the counts of a column histogram with so many bins."""
    least = 2 / wide / places
    normal = _normal(wide, places, least * 2.0 ** np.arange(0, np.log2(1 / least), 0.5), 0.25)
    normal = normal._replace(prior=normal.prior + np.log(0.5))  # two to the octave
    parts = _joined(normal, _tailed(wide, places)), _two_values(wide, places)
    return _joined(*(part._replace(prior=part.prior - np.logaddexp.reduce(part.prior)) for part in parts))


def _joined(*parts: Kinds) -> Kinds:
    before = np.cumsum([0, *(len(part.places) for part in parts)])
    moved = (part._replace(which=part.which + rows) for part, rows in zip(parts, before, strict=False))
    return Kinds(*(np.concatenate(columns) for columns in zip(*moved, strict=True)))


def _normal(wide: int, places: int, deviations: Floats, apart: float) -> Kinds:
    """Normal columns of these deviations, with centres so many deviations apart."""
    width, found = 2 / wide, []
    for size in deviations:
        steps = min(max(1, round(width / (apart * size))), round(places / apart))  # alike in every wide bin
        centres = (np.arange(wide * steps) + 0.5) * width / steps - 1
        octaves = np.log2(size / TUNING.usual_scale) / TUNING.scale_octaves
        usual = (1 - TUNING.elsewhere) * np.exp(-0.5 * octaves**2) + TUNING.any_scale
        near = np.exp(-0.5 * (centres / TUNING.off_middle) ** 2) / (TUNING.off_middle * np.sqrt(2 * np.pi))
        where = ((1 - TUNING.elsewhere) * near + TUNING.elsewhere / 2) * 2 / centres.size
        inside = _bins(np.linspace(-1, 1, wide + 1)[1:-1], centres, size)
        found.append(
            Kinds(
                centres,
                np.full(centres.size, size),
                inside,
                *_folded(centres, size, wide, places),
                np.log(usual * where),
            )
        )
    return _joined(*found)


def _tailed(wide: int, places: int) -> Kinds:
    """Narrow normal columns, or single values, of which some part has an exponential tail to one side.

    Single values come with a tail only: a column that never takes another value has nothing to tell a regression, so
    its scale is of no importance, and where others are rare it is they that the scale must fit.
    """
    least = 2 / wide / places
    core = _normal(wide, places, least * np.array([0.25, *2.0 ** np.arange(np.log2(places))]), 1.0)
    edges = np.linspace(-1, 1, wide + 1)
    middles = (edges[:-1] + edges[1:]) / 2
    each = np.log(TUNING.long_tails / (1 - TUNING.long_tails) / (2 * len(_TAILS)))
    found = []
    for most, length in _TAILS:
        right = np.diff(-np.exp(-np.maximum(edges[1:-1] - core.mean[:, None], 0) / length), prepend=-1.0, append=0.0)
        left = np.diff(np.exp(-np.maximum(core.mean[:, None] - edges[1:-1], 0) / length), prepend=0.0, append=1.0)
        for tail in (right, left):
            centre = tail @ middles
            square = np.sum(tail * (middles - centre[:, None]) ** 2, axis=1)
            mean = most * core.mean + (1 - most) * centre
            second = most * (core.deviation**2 + core.mean**2) + (1 - most) * (square + centre**2)
            found.append(
                Kinds(
                    mean, np.sqrt(np.maximum(second - mean**2, core.deviation**2)),
                    most * core.wide + (1 - most) * tail, most * core.places + (1 - most) / places, core.which,
                    core.prior + each,
                )
            )  # fmt: skip
    return _joined(*found)


def _two_values(wide: int, places: int) -> Kinds:
    """The ends of the bounds, in many shares."""
    in_wide, in_places = np.zeros((_SHARES.size, wide)), np.zeros((_SHARES.size, places))
    for ends in (in_wide, in_places):
        ends[:, 0], ends[:, -1] = 1 - _SHARES, _SHARES
    deviation = 2 * np.sqrt(_SHARES * (1 - _SHARES))
    return Kinds(2 * _SHARES - 1, deviation, in_wide, in_places, np.arange(_SHARES.size), np.zeros(_SHARES.size))


def _bins(edges: Floats, mean: Floats, deviation: float) -> Floats:
    """(k, bins): the probability of each bin for normal columns."""
    from scipy.special import ndtr

    below = ndtr((edges - mean[:, None]) / deviation)
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


def _folded(mean: Floats, deviation: float, wide: int, places: int) -> tuple[Floats, NDArray[np.intp]]:
    """The probability of each place within a wide bin, whichever that is, for normal columns; and who has which."""
    width = 2 / wide
    if deviation > width:
        return np.full((1, places), 1 / places), np.zeros(mean.size, dtype=np.intp)
    phases, which = np.unique(np.round((mean + 1) / width % 1, 9) % 1, return_inverse=True)
    reach = 1 + int(np.ceil(5 * deviation / width))
    edges = np.arange(-reach * places, (reach + 1) * places + 1) / places
    unfolded = _bins(edges[1:-1], phases, deviation / width)
    return unfolded.reshape(phases.size, 2 * reach + 1, places).sum(axis=1), which
