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

from hubbub.arrays import Floats
from hubbub.errors import OutOfDomainWarning, invalid
from hubbub.protocols import Statistic, Steps
from hubbub.statistics.preparation import prepare


def bounded_vectors(statistic: Statistic, rows: Floats, steps: Steps = ()) -> tuple[Floats, NDArray[np.bool_] | None]:
    """The statistic's vectors of the rows after these steps; goes through whatever the samples are.

    A sample outside the statistic's domain gives zero. Also which samples those are, None where there are none.
    """
    rows, wrong = prepare(rows, steps)
    if rows.shape[1] != statistic.columns:
        raise invalid("rows", f"{statistic.columns} columns after all steps", rows.shape[1], "check columns and steps")
    known = statistic.inside(rows)
    if known is not None and not known.all():
        wrong = ~known if wrong is None else wrong | ~known
    if wrong is None:
        return statistic.vectors(rows), None
    vectors = np.zeros((rows.shape[0], statistic.dimension))
    if not wrong.all():
        vectors[~wrong] = statistic.vectors(rows[~wrong])
    return vectors, wrong


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
