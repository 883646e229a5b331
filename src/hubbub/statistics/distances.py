"""How far values lie from zero: a histogram of their absolute values."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import InvalidInput
from hubbub.protocols import Statistic
from hubbub.statistics.bounds import positive


@dataclass(frozen=True)
class Distances(Statistic):
    """x -> the unit vector of the bin of |x|; bins lie between ascending edges, the last one is open.

    A sample counts in one bin, so replacing it moves two counts by 1 at most.
    """

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        edges = tuple(positive("edge", edge) for edge in self.edges)
        if not edges or any(a >= b for a, b in pairwise(edges)):
            raise InvalidInput(f"edges must ascend, got {len(edges)} others; give for example 0.5, 1, 2")
        object.__setattr__(self, "edges", edges)

    @property
    def columns(self) -> int:
        """One number."""
        return 1

    @property
    def dimension(self) -> int:
        """The bins, that around zero first."""
        return len(self.edges) + 1

    @property
    def magnitude(self) -> float:
        """A sample counts once."""
        return 1.0

    @property
    def sensitivity(self) -> float:
        """One bin loses 1 and another gains 1."""
        return float(np.sqrt(2.0))

    @property
    def sensitivity_l1(self) -> float:
        """One bin loses 1 and another gains 1."""
        return 2.0

    def vectors(self, rows: Floats) -> Floats:
        """The unit vectors of each row's bin."""
        bins = np.searchsorted(np.asarray(self.edges), np.abs(rows[:, 0]), side="left")
        return np.asarray(np.eye(self.dimension)[bins])

    def describe(self) -> dict[str, object]:
        """Name and edges, for the study."""
        return {"statistic": "distances", "edges": list(self.edges)}
