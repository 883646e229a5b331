"""Several statistics of one sample in one round, each with its share of the sensitivity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats
from hubbub.protocols import Statistic


@dataclass(frozen=True)
class Stacked(Statistic):
    """(x, z, ..) -> the parts' vectors one after the other, part i scaled so that it moves by sqrt(shares[i]).

    With shares that sum to 1 the whole has sensitivity 1, and part i bears the noise it would bear alone,
    divided by sqrt(shares[i]).
    """

    parts: tuple[Statistic, ...]
    shares: tuple[float, ...]

    @property
    def columns(self) -> int:
        """The columns of the parts side by side."""
        return sum(part.columns for part in self.parts)

    @property
    def dimension(self) -> int:
        """The vectors of the parts one after the other."""
        return sum(part.dimension for part in self.parts)

    @property
    def weights(self) -> tuple[float, ...]:
        """What each part is multiplied by."""
        return tuple(float(np.sqrt(s)) / part.sensitivity for part, s in zip(self.parts, self.shares, strict=True))

    @property
    def magnitude(self) -> float:
        """The largest weighted term of any part."""
        return max(w * part.magnitude for w, part in zip(self.weights, self.parts, strict=True))

    @property
    def sensitivity(self) -> float:
        """The parts' sensitivities at right angles."""
        return float(np.sqrt(sum(self.shares)))

    @property
    def sensitivity_l1(self) -> float:
        """The sum of the parts' sensitivities."""
        return sum(w * part.sensitivity_l1 for w, part in zip(self.weights, self.parts, strict=True))

    def inside(self, rows: Floats) -> NDArray[np.bool_]:
        """Which rows every part has a vector for."""
        known = np.ones(rows.shape[0], dtype=bool)
        for part, block in zip(self.parts, self._blocks(rows), strict=True):
            if (mine := part.inside(block)) is not None:
                known &= mine
        return known

    def vectors(self, rows: Floats) -> Floats:
        """The parts' vectors, each of its own columns."""
        blocks = zip(self.parts, self.weights, self._blocks(rows), strict=True)
        return np.hstack([w * part.vectors(block) for part, w, block in blocks])

    def _blocks(self, rows: Floats) -> list[Floats]:
        """The columns of each part."""
        return np.split(rows, np.cumsum([part.columns for part in self.parts])[:-1], axis=1)

    def unstack(self, vector: Floats, noise_std: float) -> list[tuple[Floats, float]]:
        """For each part its vector in its own units, and the standard deviation of the noise in it."""
        cuts = np.cumsum([part.dimension for part in self.parts])[:-1]
        return [(block / w, noise_std / w) for block, w in zip(np.split(vector, cuts), self.weights, strict=True)]

    def describe(self) -> dict[str, object]:
        """The parts and their shares, for the study."""
        return {
            "statistic": "stacked",
            "parts": [part.describe() for part in self.parts],
            "shares": list(self.shares),
        }
