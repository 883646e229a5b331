"""Statistics of counts: a bounded count, and which of k categories a sample falls into."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats
from hubbub.errors import whole
from hubbub.protocols import Statistic
from hubbub.statistics.bounds import positive


@dataclass(frozen=True)
class Count(Statistic):
    """x -> x clipped to [0, bound]: a yes/no (bound 1) or a number of events.

    With `whole` only whole numbers count, of a yes/no only 0 and 1; what is none counts as zero.
    """

    bound: float = 1.0
    whole: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", positive("bound", self.bound))

    @property
    def columns(self) -> int:
        """One count."""
        return 1

    @property
    def dimension(self) -> int:
        """One count."""
        return 1

    @property
    def magnitude(self) -> float:
        """The bound."""
        return self.bound

    @property
    def sensitivity(self) -> float:
        """From nothing to the bound."""
        return self.bound

    @property
    def sensitivity_l1(self) -> float:
        """The same."""
        return self.bound

    @property
    def domain(self) -> str:
        """What a sample may be."""
        if not self.whole:
            return "finite numbers"
        return "0 or 1" if self.bound == 1 else "a finite whole number >= 0"

    def inside(self, rows: Floats) -> NDArray[np.bool_] | None:
        """Which rows hold a count."""
        if not self.whole:
            return None
        values = rows[:, 0]
        known = (values >= 0) & (values == np.floor(values))
        return np.asarray(known & (values <= 1) if self.bound == 1 else known)

    def vectors(self, rows: Floats) -> Floats:
        """Clip to [0, bound]."""
        return np.clip(rows, 0.0, self.bound)

    def describe(self) -> dict[str, object]:
        """Name and bound, for the study."""
        return {"statistic": "count", "bound": self.bound, **({"whole": True} if self.whole else {})}


@dataclass(frozen=True)
class OneHot(Statistic):
    """category 0..k-1 -> the unit vector of that category."""

    categories: int

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "categories", whole("categories", self.categories, 2, "name every category that can occur")
        )

    @property
    def columns(self) -> int:
        """The category's number."""
        return 1

    @property
    def dimension(self) -> int:
        """One count per category."""
        return self.categories

    @property
    def magnitude(self) -> float:
        """A sample counts once."""
        return 1.0

    @property
    def sensitivity(self) -> float:
        """One category loses 1, another gains 1."""
        return float(np.sqrt(2.0))

    @property
    def sensitivity_l1(self) -> float:
        """One category loses 1, another gains 1."""
        return 2.0

    @property
    def domain(self) -> str:
        """What a sample may be."""
        return f"a whole number in 0..{self.categories - 1}"

    def inside(self, rows: Floats) -> NDArray[np.bool_]:
        """Which rows hold one of the categories."""
        codes = rows[:, 0]
        return np.asarray((codes >= 0) & (codes < self.categories) & (codes == np.floor(codes)))

    def vectors(self, rows: Floats) -> Floats:
        """The unit vector of each row's category; zero where it is none of them."""
        known = self.inside(rows)
        vectors = np.eye(self.categories)[np.where(known, rows[:, 0], 0.0).astype(np.intp)]
        vectors[~known] = 0.0
        return vectors

    def describe(self) -> dict[str, object]:
        """Name and size, for the study."""
        return {"statistic": "one-hot", "categories": self.categories}
