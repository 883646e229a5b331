"""How large the values of each column are: a histogram of their logarithms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import whole
from hubbub.statistics.bounds import positive


@dataclass(frozen=True)
class ScaleHistogram:
    """x -> for each column the unit vector of its bin of log2(c_j/|x_j|): 0..1, 1..2, .., and the rest.

    One sample counts once in each of the D columns, so replacing it moves D ones at most.
    """

    bounds: tuple[float, ...]
    bins: int = 8

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", tuple(positive("bound", c) for c in self.bounds))
        whole("bins", self.bins, 2, "8 bins tell sizes down to 1/128 of the bound")

    @property
    def columns(self) -> int:
        """One number per bound."""
        return len(self.bounds)

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

    def vectors(self, rows: Floats) -> Floats:
        """The unit vectors of each row's bins."""
        share = np.minimum(np.abs(rows) / np.asarray(self.bounds), 1.0)
        with np.errstate(divide="ignore"):
            bins = np.minimum(np.floor(-np.log2(share)), self.bins - 1).astype(np.intp)
        return np.asarray(np.eye(self.bins)[bins].reshape(rows.shape[0], self.dimension))

    def sizes(self, counts: Floats, quantile: float = 0.68) -> Floats:
        """The quantile of |x_j| in each column, from (noisy) counts; 0.68 is one deviation of a normal column.

        Negative counts become zero; within a bin the logarithm is taken to be uniform.
        """
        table = np.maximum(counts.reshape(len(self.bounds), self.bins), 0.0)[:, ::-1]  # smallest values first
        total = table.sum(axis=1, keepdims=True)
        table = np.where(total > 0, table / np.where(total > 0, total, 1.0), 1 / self.bins)
        reached = np.cumsum(table, axis=1)
        bin_ = np.minimum((reached < quantile).sum(axis=1), self.bins - 1)
        column = np.arange(len(self.bounds))
        before = reached[column, bin_] - table[column, bin_]
        inside = np.clip((quantile - before) / np.maximum(table[column, bin_], 1e-12), 0.0, 1.0)
        return np.asarray(np.asarray(self.bounds) * 2.0 ** (bin_ - self.bins + inside))

    def describe(self) -> dict[str, object]:
        """Name, bounds and bins, for the study."""
        return {"statistic": "scale histogram", "bounds": list(self.bounds), "bins": self.bins}
