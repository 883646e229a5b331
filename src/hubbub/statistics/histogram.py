"""Where the values of each column lie, and how widely: two digits of every value, counted apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import invalid, whole
from hubbub.protocols import Statistic
from hubbub.statistics.bounds import positive


@dataclass(frozen=True)
class ColumnHistogram(Statistic):
    """x -> for each column two unit vectors: of the wide bin that x lies in, and of the place within that bin.

    The wide bins divide -c_j to c_j evenly, and the places each of them. Counts of places are over all wide bins
    together: they tell a narrow column apart to `wide * places` parts of its bounds, wherever it lies, for the noise of
    `wide + places` counts. One sample counts once in each of the two, so replacing it moves so much at most, however
    many bins there are. `share` is the part of the squared signal that the wide bins get.
    """

    bounds: tuple[float, ...]
    wide: int = 10
    places: int = 64
    share: float = 0.7

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", tuple(positive("bound", c) for c in self.bounds))
        whole("wide", self.wide, 2, "10 wide bins tell where most columns lie")
        whole("places", self.places, 2, "64 places in each of 10 wide bins tell 1/640 of the bounds")
        object.__setattr__(self, "share", positive("share", self.share))
        if self.share >= 1:
            raise invalid("share", "below 1", self.share, "0.7 leaves something for the places")

    @property
    def columns(self) -> int:
        """One number per bound."""
        return len(self.bounds)

    @property
    def dimension(self) -> int:
        """The wide bins of all columns, one column after the other, then all places."""
        return len(self.bounds) * (self.wide + self.places)

    @property
    def magnitude(self) -> float:
        """A sample counts once."""
        return float(np.max(self.weights))

    @property
    def sensitivity(self) -> float:
        """In each column one bin loses its weight and another gains it, in both counts."""
        return float(np.sqrt(2.0 * len(self.bounds)))

    @property
    def sensitivity_l1(self) -> float:
        """The same."""
        return float(2.0 * len(self.bounds) * np.sum(self.weights))

    @property
    def weights(self) -> Floats:
        """What a sample adds to its wide bin, and to its place; their squares add up to one."""
        return np.sqrt([self.share, 1 - self.share])

    def vectors(self, rows: Floats) -> Floats:
        """The unit vectors of each row's bins, weighted."""
        parts = self.wide * self.places
        cell = np.clip(np.floor((rows / np.asarray(self.bounds) + 1) / 2 * parts), 0, parts - 1).astype(np.intp)
        wide, places = (
            np.eye(size) * weight for size, weight in zip((self.wide, self.places), self.weights, strict=True)
        )
        count = rows.shape[0]
        return np.hstack([
            wide[cell // self.places].reshape(count, -1), places[cell % self.places].reshape(count, -1)
        ])  # fmt: skip

    def tables(self, sums: Floats, noise_std: float) -> tuple[tuple[Floats, float], tuple[Floats, float]]:
        """(columns, wide bins) and (columns, places) as counts, each with the noise in it."""
        wide, places = np.split(sums, [self.columns * self.wide])
        first, second = (float(weight) for weight in self.weights)
        return (
            (wide.reshape(self.columns, -1) / first, noise_std / first),
            (places.reshape(self.columns, -1) / second, noise_std / second),
        )

    def describe(self) -> dict[str, object]:
        """Name, bounds and bins, for the study."""
        return {
            "statistic": "column histogram", "bounds": list(self.bounds), "wide": self.wide, "places": self.places,
            "share": self.share,
        }  # fmt: skip
