"""Where the values of each column lie, and how widely: a histogram that is fine near zero and coarse far away."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import whole
from hubbub.protocols import Statistic
from hubbub.statistics.bounds import positive


@dataclass(frozen=True)
class ColumnHistogram(Statistic):
    """x -> for each column the unit vector of its bin; edges at 0 and at +-c_j/2, +-c_j/4, .., +-c_j/2^(octaves-1).

    One sample counts once in each of the D columns, so replacing it moves D ones at most, however many bins
    there are.
    """

    bounds: tuple[float, ...]
    octaves: int = 8

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", tuple(positive("bound", c) for c in self.bounds))
        whole("octaves", self.octaves, 2, "8 octaves tell sizes down to 1/128 of the bound")

    @property
    def columns(self) -> int:
        """One number per bound."""
        return len(self.bounds)

    @property
    def bins(self) -> int:
        """Bins of one column, the lowest values first."""
        return 2 * self.octaves

    @property
    def dimension(self) -> int:
        """The bins of all columns, one column after the other."""
        return len(self.bounds) * self.bins

    @property
    def magnitude(self) -> float:
        """A sample counts once."""
        return 1.0

    @property
    def sensitivity(self) -> float:
        """In each column one bin loses 1 and another gains 1."""
        return float(np.sqrt(2.0 * len(self.bounds)))

    @property
    def sensitivity_l1(self) -> float:
        """In each column one bin loses 1 and another gains 1."""
        return 2.0 * len(self.bounds)

    @property
    def edges(self) -> Floats:
        """The inner edges of the bins, in units of a column's bound."""
        outer = 2.0 ** -np.arange(self.octaves - 1, 0, -1.0)
        return np.concatenate([-outer[::-1], [0.0], outer])

    def vectors(self, rows: Floats) -> Floats:
        """The unit vectors of each row's bins."""
        bins = np.searchsorted(self.edges, rows / np.asarray(self.bounds), side="left")
        return np.asarray(np.eye(self.bins)[bins].reshape(rows.shape[0], self.dimension))

    def table(self, counts: Floats) -> Floats:
        """(columns, bins) from the flat vector."""
        return counts.reshape(self.columns, self.bins)

    def describe(self) -> dict[str, object]:
        """Name, bounds and bins, for the study."""
        return {"statistic": "column histogram", "bounds": list(self.bounds), "octaves": self.octaves}
