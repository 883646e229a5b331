"""Rows of later rounds, turned: stretched along the axes along which the first sums say that they hardly vary.

Noise is the same along all axes of the rows as they are summed. Where columns are nearly collinear, some axes vary less
than that noise, and nothing is seen along them. So the rounds about residuals sum A u in place of u, with a symmetric
matrix A that makes the axes alike, as far as the noise let them be seen at all. In the units of u the noise of such a
round is small along the axes that A stretches and large along those that it shrinks (docs/decisions/0031).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats
from hubbub.statistics import Gram

_BISECTIONS = 60
_MOST_STRETCH = 1e3  # of an axis beside another one: six digits are to do


class Axes(NamedTuple):
    """Of a turn A = along diag(stretch) along'."""

    along: Floats
    """A column for each axis."""
    stretch: Floats

    @classmethod
    def of(cls, turn: Floats) -> Axes:
        """Of a symmetric positive definite matrix."""
        stretch, along = np.linalg.eigh(turn)
        return cls(along, stretch)


class Pooled(NamedTuple):
    """XX' of all looks together, in the axes of the turn, and its noise there, term by term.

    Off the diagonal the deviation is `noise` over the square root of two, as everywhere.
    """

    axes: Axes
    terms: Floats
    noise: Floats
    more: float
    """Deviation that the first look has beside its noise, so that it agrees with those at turned rows."""

    @property
    def xx(self) -> Floats:
        """In the units of u."""
        along = self.axes.along
        return np.asarray(along @ self.terms @ along.T)


@dataclass(frozen=True)
class Uneven:
    """The noise of looks that are not all at the same rows: in the axes of the turn it is independent."""

    axes: Axes
    xx: Floats
    """(p, p): standard deviations of the terms of XX' of all looks together."""
    xy: Floats
    """(looks, p): standard deviations of each look's u'y."""

    def louder(self, factor: float) -> Uneven:
        """The same, with all standard deviations multiplied by the factor."""
        return Uneven(self.axes, self.xx * factor, self.xy * factor)

    @property
    def xy_together(self) -> Floats:
        """(p,): of u'y of all looks, weighted by how much they tell along each axis."""
        return np.asarray(np.sum(self.xy**-2.0, axis=0) ** -0.5)

    @property
    def weights(self) -> Floats:
        """(looks, p): of the looks along each axis."""
        return np.asarray(self.xy**-2.0 * self.xy_together**2)

    def pooled(self, products: list[Floats]) -> Floats:
        """u'y of all looks together, from those of each: (..., p)."""
        along, parts = self.axes.along, zip(self.weights, products, strict=True)
        return np.asarray(sum((q @ along) * weight for weight, q in parts) @ along.T)


def choose_turn(xx: Floats, noise: float, n: int) -> Floats | None:
    """A, to six digits, from the first XX' and its noise; nothing where every axis is seen well enough, or none is.

    An axis with the eigenvalue v is stretched by 1/sqrt(v), but no further than one at the upper end of what noise
    alone makes of eigenvalues. The rows keep their mean square length, so that about as many are shortened as before.
    A is symmetric, and so the same from whichever eigenvectors it is made.
    """
    p = len(xx)
    values, along = np.linalg.eigh(xx)
    floor = max(math.sqrt(2 * p) * noise, float(values[-1]) / _MOST_STRETCH**2)
    if p == 1 or values[0] > floor or values[-1] <= floor:
        return None
    stretch = np.maximum(values, floor) ** -0.5
    length = float(np.clip(np.trace(xx), TUNING.least_turned_length * p * n, p * n))
    after = max(float(np.sum(stretch**2 * values)), float(np.sum(values > floor)), 1.0)
    turn = math.sqrt(length / after) * (along * stretch) @ along.T
    return np.vectorize(lambda value: float(f"{value:.6g}"))((turn + turn.T) / 2)  # type: ignore[no-any-return]


def straight(sums: Gram, turn: Floats | None) -> Gram:
    """Sums of turned rows, in the units of rows as they were."""
    if turn is None:
        return sums
    back = np.linalg.inv(turn)
    return Gram(back @ sums.xx @ back.T, back @ sums.xy, sums.yy)


def turned(sums: Gram, turn: Floats) -> Gram:
    """The other way around."""
    return Gram(turn @ sums.xx @ turn.T, turn @ sums.xy, sums.yy)


def left_turn(turn: Floats, rows: Floats) -> Floats:
    """The turn of what is left where all columns but some are left out: with it noise is again alike along all axes.

    In the units of u the noise of sums of turned rows has the covariance A^-2 (for XX' on either side); of that these
    rows and columns are left.
    """
    back = np.linalg.inv(turn)
    values, along = np.linalg.eigh((back @ back.T)[np.ix_(rows, rows)])
    return np.asarray((along * values**-0.5) @ along.T)


def pool(first: Floats, first_noise: float, turn: Floats, others: list[Floats], noises: list[float]) -> Pooled:
    """XX' of the first look and of those at turned rows, all in the units of u, each term weighted by its noise.

    The first look shortened other rows, and so it saw another matrix. Where the two differ by more than their noise
    explains, the first one is taken for as noisy as makes them agree.
    """
    axes = Axes.of(turn)
    away = np.outer(axes.stretch, axes.stretch)
    terms = [axes.along.T @ each @ axes.along for each in (first, *others)]
    precisions = np.array(noises) ** -2.0
    later = np.tensordot(precisions / precisions.sum(), terms[1:], axes=1)
    later_noise = precisions.sum() ** -0.5 / away
    gap, p = (terms[0] - later) ** 2, len(first)
    gap = gap * (2 - np.eye(p))  # off the diagonal noise has half the variance

    def unexplained(more: float) -> bool:
        law = first_noise**2 + more**2 + later_noise**2
        return bool(np.sum(np.triu(gap / law)) > p * (p + 1) / 2)

    more = 0.0
    if unexplained(more):
        low, high = 0.0, float(np.sqrt(gap.max()) * p)
        for _ in range(_BISECTIONS):
            more = (low + high) / 2
            low, high = (more, high) if unexplained(more) else (low, more)
    weights = (first_noise**2 + more**2) ** -1.0, later_noise**-2.0
    total = weights[0] + weights[1]
    return Pooled(axes, (weights[0] * terms[0] + weights[1] * later) / total, total**-0.5, more)
