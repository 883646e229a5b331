"""Where all walkers are, and what a move tells about itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats


@dataclass(frozen=True)
class Variances:
    """Of the noise in every released number, each in units of its mean; released numbers are S, q and y'y.

    Normal noise has the one variance that it has: `FIXED`, which stands for all walkers. Laplace noise is normal noise
    whose variance was drawn for each released number, and every walker has its own idea of them.
    """

    S: Floats
    """(walkers, p, p), symmetric: a term and its mirror image were released once."""
    q: Floats
    """(walkers, p)."""
    yy: Floats
    """(walkers,)."""

    @property
    def fixed(self) -> bool:
        """True where one value stands for all."""
        return self is FIXED

    def taken(self, rows: NDArray[np.intp] | NDArray[np.bool_] | slice) -> Variances:
        """Those of some of the walkers."""
        return self if self.fixed else Variances(self.S[rows], self.q[rows], self.yy[rows])


FIXED = Variances(np.ones((1, 1, 1)), np.ones((1, 1)), np.ones(1))
"""Every variance is its mean."""


@dataclass(frozen=True)
class Sums:
    """The exact sum of uu' of each walker, with what makes it up: S = axes diag(values) axes'. Always positive."""

    S: Floats
    """(walkers, p, p)."""
    values: Floats
    """(walkers, p)."""
    axes: Floats
    """(walkers, p, p), a column for each value."""

    @classmethod
    def of(cls, S: Floats) -> Sums:
        """Of given matrices, positive definite ones."""
        values, axes = np.linalg.eigh(S)
        return cls(S, np.maximum(values, 1e-300), axes)

    def taken(self, rows: NDArray[np.intp] | NDArray[np.bool_] | slice) -> Sums:
        """Those of some of the walkers."""
        return Sums(self.S[rows], self.values[rows], self.axes[rows])

    def put(self, rows: NDArray[np.intp], others: Sums) -> Sums:
        """With others for some of the walkers."""
        parts = tuple(part.copy() for part in (self.S, self.values, self.axes))
        for part, other in zip(parts, (others.S, others.values, others.axes), strict=True):
            part[rows] = other
        return Sums(*parts)


@dataclass(frozen=True)
class State:
    """One row for each walker. Kernels make a new state and leave the arrays of the old one alone."""

    level: Floats
    """The common level of log S_jj and log n V."""
    spread: Floats
    """Deviation of the terms of log S."""
    log_S: Floats  # noqa: N815  # S is its name in the paper
    """(walkers, p, p): the logarithm of the matrix S, in the axes of the noisy S (and up to its trace, where that is
    known)."""
    sums: Sums
    """What follows from it."""
    hyper: Floats
    """(walkers, 3): log n V, logit R2 and logit of the power: the variance of y, the share of it that x explains, and
    how far the prior of coefficients follows S."""
    model: NDArray[np.intp]
    """Which of the compared models each walker is in."""
    likelihood: Floats
    """Of what was seen of q and squares at this state, kept so that no move computes it twice."""
    variances: Variances = FIXED
    """Of the noise, as each walker takes it to be."""

    @property
    def S(self) -> Floats:  # noqa: N802  # as above
        """(walkers, p, p): the exact sum of uu'."""
        return self.sums.S

    @property
    def walkers(self) -> int:
        """How many there are."""
        return len(self.level)


@dataclass(frozen=True)
class Info:
    """What a move tells about itself."""

    moved: float
    """Share of the walkers that are elsewhere now."""
    probabilities: Floats | None = None
    """Of the compared models, from the move that chooses among them."""


def halves(walkers: int) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Each half of the walkers with the other one, whose differences it moves along."""
    first, second = slice(0, walkers // 2), slice(walkers // 2, None)
    return (first, second), (second, first)


def symmetric(rng: np.random.Generator, walkers: int, p: int) -> Floats:
    """Symmetric normal matrices: deviation 1 on the diagonal, 1/sqrt(2) off it."""
    normal = rng.standard_normal((walkers, p, p))
    return np.asarray((normal + np.swapaxes(normal, -1, -2)) / 2)
