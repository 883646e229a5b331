"""The regression statistic: a sample's unique products x_j x_k (j <= k), x_j y and, if asked, y^2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import invalid
from hubbub.protocols import Statistic
from hubbub.statistics.bounds import Ball, Box, Formula


class Gram(NamedTuple):
    """The sums a linear regression needs: XX' (d x d), X'y (d) and y'y (None where not asked for)."""

    xx: Floats
    xy: Floats
    yy: float | None


@dataclass(frozen=True)
class Regression(Statistic):
    """(x, y) -> flat vector of d(d+1)/2 + d (+1) weighted products, bounded first.

    A bound without y gives the d(d+1)/2 products of the features alone.
    """

    bound: Box | Ball
    target_square: bool = False
    formula: Formula = "tight"

    def __post_init__(self) -> None:
        if self.target_square and self.bound.y is None:
            raise invalid("target_square", "False without a target", True, "give the bound of y")

    @property
    def features(self) -> int:
        """d, the number of features."""
        return self.bound.features

    @property
    def columns(self) -> int:
        """Columns of one row: the features, then the target if there is one."""
        return self.features + int(self.bound.y is not None)

    @property
    def dimension(self) -> int:
        """Number of unique terms."""
        d, D = self.features, self.columns
        return d * (d + 1) // 2 + d * (D - d) + int(self.target_square)

    @property
    def magnitude(self) -> float:
        """Largest absolute value of a coordinate."""
        return self.bound.magnitude(self.target_square)

    @property
    def sensitivity(self) -> float:
        """Replace-one L2 sensitivity."""
        return self.bound.sensitivity(self.target_square, self.formula)

    @property
    def sensitivity_l1(self) -> float:
        """Replace-one L1 sensitivity."""
        return self.bound.sensitivity_l1(self.target_square, self.formula)

    def vectors(self, rows: Floats) -> Floats:
        """One vector per row: for each j the products of x_j with x_j..x_d and y; last, y^2."""
        u = self.bound.apply(rows)
        out = np.empty((rows.shape[0], self.dimension))
        for j, block in self._blocks():
            np.multiply(u[:, j : j + 1], u[:, j:], out=out[:, block])
        if self.target_square:
            np.square(u[:, -1], out=out[:, -1])
        if set(self.bound.weights) != {1.0}:
            out *= self._weights()
        return out

    def unflatten(self, vector: Floats) -> Gram:
        """Back from the flat vector (one sample's, or a sum) to the symmetric matrix and X'y."""
        if vector.shape != (self.dimension,):
            raise invalid("vector", f"of length {self.dimension}", vector.shape, "use the statistic that made it")
        plain = vector / self._weights()
        d = self.features
        xx, xy = np.empty((d, d)), np.zeros(d)
        for j, block in self._blocks():
            terms = plain[block]
            xx[j, j:] = xx[j:, j] = terms[: d - j]
            if self.columns > d:
                xy[j] = terms[-1]
        return Gram(xx, xy, float(plain[-1]) if self.target_square else None)

    def describe(self) -> dict[str, object]:
        """Name, bounds and formula, for the study."""
        return {
            "statistic": "regression",
            "target_square": self.target_square,
            "formula": self.formula,
            **self.bound.describe(),
        }

    def _blocks(self) -> Iterator[tuple[int, slice]]:
        """For each feature j, where its products with x_j.. and y stand in the vector."""
        start = 0
        for j in range(self.features):
            stop = start + self.columns - j
            yield j, slice(start, stop)
            start = stop

    def _weights(self) -> Floats:
        square, cross, target, target_square = self.bound.weights
        weights = np.full(self.dimension, cross)
        for _, block in self._blocks():
            weights[block.start] = square
            if self.columns > self.features:
                weights[block.stop - 1] = target
        if self.target_square:
            weights[-1] = target_square
        return weights
