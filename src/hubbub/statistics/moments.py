"""Statistics with one number per column: means, second moments, and both for one variable."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hubbub.arrays import Floats
from hubbub.protocols import Statistic
from hubbub.statistics.bounds import positive


@dataclass(frozen=True)
class _PerColumn(Statistic):
    """One number out for each number in, |x_j| clipped to bounds[j] first."""

    bounds: tuple[float, ...]
    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", tuple(positive("bound", c) for c in self.bounds))

    @property
    def columns(self) -> int:
        """One number per bound."""
        return len(self.bounds)

    @property
    def dimension(self) -> int:
        """As many numbers as the sample has."""
        return len(self.bounds)

    @cached_property
    def _limit(self) -> float | Floats:
        """One number where all bounds are the same: NumPy clips several times faster by a scalar."""
        return self.bounds[0] if len(set(self.bounds)) == 1 else np.asarray(self.bounds)

    def _clipped(self, rows: Floats) -> Floats:
        return np.clip(rows, -self._limit, self._limit)

    def describe(self) -> dict[str, object]:
        """Name and bounds, for the study."""
        return {"statistic": self.name, "bounds": list(self.bounds)}


class SecondMoments(_PerColumn):
    """x -> (x_1^2, .., x_k^2): each square lies in [0, c_j^2]."""

    name = "second moments"

    @property
    def magnitude(self) -> float:
        """The largest square."""
        return max(self.bounds) ** 2

    @property
    def sensitivity(self) -> float:
        """sqrt(sum c_j^4): every square can move by c_j^2, and all can at once."""
        return float(np.sqrt(np.sum(np.power(self.bounds, 4))))

    @property
    def sensitivity_l1(self) -> float:
        """sum c_j^2."""
        return float(np.sum(np.square(self.bounds)))

    def vectors(self, rows: Floats) -> Floats:
        """Clip, then square."""
        return np.square(self._clipped(rows))


class Means(_PerColumn):
    """x -> x, clipped."""

    name = "means"

    @cached_property
    def magnitude(self) -> float:
        """The largest bound."""
        return max(self.bounds)

    @cached_property
    def sensitivity(self) -> float:
        """From one corner of the box to the opposite one."""
        return float(2 * np.linalg.norm(self.bounds))

    @property
    def sensitivity_l1(self) -> float:
        """The same two corners."""
        return float(2 * np.sum(self.bounds))

    def vectors(self, rows: Floats) -> Floats:
        """Clip."""
        return self._clipped(rows)


@dataclass(frozen=True)
class MeanAndSquare(Statistic):
    """x -> (x/c, (x/c)^2) for one bounded variable: in units of c the square comes for free.

    (a - b)^2 + (a^2 - b^2)^2 = (a - b)^2 (1 + (a + b)^2) with |a|, |b| <= 1 is largest at a = -b = 1,
    where it is 4: the same as for the mean alone. docs/privacy.md has the two lines of proof.
    """

    bound: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", positive("bound", self.bound))

    @property
    def columns(self) -> int:
        """One variable."""
        return 1

    @property
    def dimension(self) -> int:
        """The value and its square."""
        return 2

    @property
    def magnitude(self) -> float:
        """In units of the bound, one."""
        return 1.0

    @property
    def sensitivity(self) -> float:
        """Two, whatever the bound."""
        return 2.0

    @property
    def sensitivity_l1(self) -> float:
        """|a - b| (1 + |a + b|) with |a - b| + |a + b| <= 2: largest at |a - b| = 3/2, where it is 9/4."""
        return 2.25

    def vectors(self, rows: Floats) -> Floats:
        """Clip, scale, square."""
        scaled = np.clip(rows, -self.bound, self.bound) / self.bound
        return np.hstack([scaled, np.square(scaled)])

    def describe(self) -> dict[str, object]:
        """Name and bound, for the study."""
        return {"statistic": "mean and square", "bound": self.bound}
