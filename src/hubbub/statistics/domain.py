"""Samples that a statistic has no vector for: NaN, infinity, an unknown category.

A sample like that must not be refused where samples are private: who is missing, or that a round fails, would tell
something about it that no noise covers. It counts as the zero vector, and whoever runs the process that holds it is
told, nobody else. (In a simulation that is who runs the engine; on Spark the driver gets their number.)

Zero is within the stated sensitivity of every vector: for all statistics but two it is what the sample zero gives,
and for the one-hot vectors (one-hot, column histogram) zero is nearer to each vector than two of them can be to one
another. docs/decisions/0017 has the list.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats, rows_not_finite
from hubbub.errors import OutOfDomainWarning
from hubbub.protocols import Statistic
from hubbub.statistics.preparation import FAR


def outside(statistic: Statistic, rows: Floats) -> NDArray[np.bool_] | None:
    """Which samples the statistic has no vector for; None where there are none."""
    wrong, known = rows_not_finite(rows), statistic.inside(rows)
    if known is not None:
        wrong = ~known if wrong is None else wrong | ~known
    return wrong if wrong is not None and wrong.any() else None


def bounded_vectors(statistic: Statistic, rows: Floats) -> tuple[Floats, NDArray[np.bool_] | None]:
    """The statistic's vectors, zero for each sample outside its domain; goes through whatever the samples are.

    Also which samples those are, None where there are none.
    """
    wrong, rows = outside(statistic, rows), within_reach(rows)
    if wrong is None:
        return statistic.vectors(rows), None
    vectors = statistic.vectors(np.where(wrong[:, None], 0.0, rows))
    vectors[wrong] = 0.0
    return vectors, wrong


def within_reach(rows: Floats) -> Floats:
    """The rows, with what lies beyond any bound brought nearer, so that squares stay numbers."""
    if rows.max(initial=0.0) <= FAR and rows.min(initial=0.0) >= -FAR:  # False where one is NaN
        return rows
    return np.clip(rows, -FAR, FAR)


def warn_outside(field: str, statistic: Statistic, wrong: int, rows: int, first: int | None = None) -> None:
    """Warn whoever holds these samples that some count as zero. Says where the first is, never what it is."""
    if wrong:
        where = "" if first is None else f", the first in row {first}"
        warnings.warn(outside_text(field, statistic.domain, wrong, rows, where), OutOfDomainWarning, stacklevel=3)


def outside_text(field: str, domain: str, wrong: int, rows: int, where: str = "") -> str:
    """What whoever holds the samples is told."""
    return (
        f"{field} must be {domain} to count, got {wrong} of {rows} that are not{where}; each of them counts as zero "
        "(said here only: correct them if you can, and keep this to yourself, because no noise covers it)"
    )
