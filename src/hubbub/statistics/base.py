"""What every statistic offers: a bounded vector for each sample, and how far one sample can move it."""

from __future__ import annotations

from typing import Protocol

from hubbub.arrays import Floats


class Statistic(Protocol):
    """One sample -> one bounded vector; the sum over samples is what gets released."""

    @property
    def columns(self) -> int:
        """How many numbers one sample has."""
        ...

    @property
    def dimension(self) -> int:
        """The length of one sample's vector."""
        ...

    @property
    def magnitude(self) -> float:
        """The largest absolute value that a coordinate of the vector can take."""
        ...

    @property
    def sensitivity(self) -> float:
        """The largest L2 distance between the vectors of two samples (replace-one)."""
        ...

    @property
    def sensitivity_l1(self) -> float:
        """The largest L1 distance between the vectors of two samples (replace-one)."""
        ...

    def vectors(self, rows: Floats) -> Floats:
        """(n, columns) samples -> (n, dimension) vectors, every sample bounded first.

        Fresh numbers. The samples are in the domain: finite, and where the statistic has a method `inside`, those
        for which it is true (`statistics/domain.py` sees to the others).
        """
        ...

    def describe(self) -> dict[str, object]:
        """What goes into the study's canonical bytes: name, bounds, formula."""
        ...


def probability_of(statistic: Statistic) -> float:
    """With which probability a sample counts: 1, but for statistics of self-selected batches."""
    return float(getattr(statistic, "probability", 1.0))


def rows_at_once(statistic: Statistic) -> int | None:
    """How many samples a statistic wants to compute together, in its own threads; None where it does not care."""
    return getattr(statistic, "at_once", None)
