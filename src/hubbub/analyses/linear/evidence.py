"""What all rounds of sums say together: what a posterior is made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.analyses.linear.turned import Uneven
from hubbub.arrays import Floats


@dataclass(frozen=True)
class Look:
    """What one round says of u'y: in standard units, with what clipping took away put back. Noise is its deviation.

    Where rows were turned the sums are those of u all the same, and the noise is that of the turned rows.
    """

    around: Floats
    xy: Floats
    """Sum of u (y - u'around)."""
    xy_noise: float
    square: float
    """Sum of (y - u'around)^2."""
    square_noise: float
    """Infinite where another round says it better."""

    def moved(self, to: Floats, xx: Floats) -> tuple[Floats, Floats]:
        """The sums with residuals around other coefficients, for this XX' or for many."""
        step = self.around - to
        xy = self.xy + xx @ step
        return xy, np.asarray(self.square + (xy + self.xy) @ step)


@dataclass(frozen=True)
class Evidence:
    """All looks at one data set together, around the coefficients of the last one."""

    xx: Floats
    noise_std: float
    shape: float | None
    looks: tuple[Look, ...]
    blurred: bool = False
    """True where it is taken for noisier than it is."""
    uneven: Uneven | None = None
    """Its noise, where some looks are at turned rows: `noise_std` is then only its size."""

    @property
    def around(self) -> Floats:
        """Of the last look."""
        return self.looks[-1].around

    @property
    def xy_noise(self) -> float:
        """Of all looks weighted by how much they tell."""
        return float(sum(look.xy_noise**-2.0 for look in self.looks) ** -0.5)

    def together(self) -> tuple[Floats, float]:
        """Sum of u (y - u'around), and of its square, with the noisy XX' taken as it is."""
        moved = [look.moved(self.around, self.xx) for look in self.looks]
        squares = np.array([look.square_noise**-2.0 for look in self.looks])
        square = float(squares @ [float(square) for _, square in moved] / squares.sum())
        if self.uneven is not None:
            return self.uneven.pooled([part for part, _ in moved]), square
        weights = np.array([look.xy_noise**-2.0 for look in self.looks]) * self.xy_noise**2
        return np.asarray(sum(w * part for w, (part, _) in zip(weights, moved, strict=True))), square
