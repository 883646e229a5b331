"""The mean of rows of bounded length, and how far they lie from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import whole
from hubbub.protocols import Statistic
from hubbub.statistics.bounds import positive


@dataclass(frozen=True)
class Spread(Statistic):
    """x -> (x, |x|^2 / B) with |x| <= B: longer rows are shortened first.

    The square comes for free: for |x| = B and |z| = r the squared distance is at most
    (B + r)^2 (1 + (B - r)^2/B^2), which is largest at r = B, where it is (2B)^2 without the square too.
    """

    norm: float
    features: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", positive("x_norm", self.norm))
        whole("features", self.features, 1, "count the columns of X")

    @property
    def columns(self) -> int:
        """The features."""
        return self.features

    @property
    def dimension(self) -> int:
        """The features and their squared length."""
        return self.features + 1

    @property
    def magnitude(self) -> float:
        """No coordinate exceeds the bound of the length."""
        return self.norm

    @property
    def sensitivity(self) -> float:
        """Two opposite rows of full length."""
        return 2 * self.norm

    @property
    def sensitivity_l1(self) -> float:
        """Of the row by Cauchy-Schwarz, and of its squared length."""
        return (2 * float(np.sqrt(self.features)) + 1) * self.norm

    def vectors(self, rows: Floats) -> Floats:
        """The shortened rows with their squared lengths."""
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        x = rows * (self.norm / np.maximum(length, self.norm))
        return np.hstack([x, np.square(x).sum(axis=1, keepdims=True) / self.norm])

    def describe(self) -> dict[str, object]:
        """Name and bound, for the study."""
        return {"statistic": "spread", "norm": self.norm, "features": self.features}
