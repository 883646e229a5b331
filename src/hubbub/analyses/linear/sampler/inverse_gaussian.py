"""Draws of the generalised inverse Gaussian law, many at once: what a variance follows, given what it made.

A variance v with a gamma prior, v^(k-1) exp(-k v), that made a normal number e, has the density

    v^(index - 1) exp(-(rate v + square / v) / 2)        index = k - 1/2, rate = 2k, square = e^2.

The logarithm of v has a log-concave density, so two tangents and a plateau lie above it and little is rejected,
whatever the parameters (the method of Devroye, Statistics and Computing 24, 2014, whose tangent points are used).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats

_LEAST = 1e-10  # of sqrt(rate * square), so that a residual of exactly zero is no special case


def inverse_gaussian(rng: np.random.Generator, index: float, rate: float, square: Floats) -> Floats:
    """One draw for each element of `square`; index is any number, rate is positive, square is not negative."""
    omega = np.maximum(np.sqrt(rate * square), _LEAST)
    around = np.hypot(omega, index) + abs(index)
    hat = _Hat.over(omega**2 / around, abs(index))
    log = np.empty(omega.shape)
    todo = np.ones(omega.shape, dtype=bool)
    while todo.any():
        proposed, kept = hat.taken(todo).propose(rng)
        places = np.flatnonzero(todo)[kept]
        log.flat[places] = proposed[kept]
        todo.flat[places] = False
    if index < 0:  # the reciprocal follows the same law with the index turned around
        return np.asarray(omega**2 / rate / around * np.exp(-log))
    return np.asarray(around / rate * np.exp(log))


@dataclass(frozen=True)
class _Hat:
    """What lies above the density of x = log(v / mode), which is exp(-alpha (cosh x - 1) - index (e^x - x - 1)).

    The density is 1 at x = 0 and at most that. The hat is 1 between `left` and `right`, and exponential beyond.
    """

    alpha: Floats
    index: float
    left: Floats
    """Where the left tangent reaches 1."""
    right: Floats
    left_length: Floats
    """On which the left tangent falls by a factor e, and so its area."""
    right_length: Floats

    @classmethod
    def over(cls, alpha: Floats, index: float) -> _Hat:
        """With tangents where the density has fallen to about 1/e."""
        t, s = _right_point(alpha, index), -_left_point(alpha, index)
        right_length, left_length = -1 / _slope(t, alpha, index), 1 / _slope(s, alpha, index)
        right = t + right_length * _height(t, alpha, index)
        left = s - left_length * _height(s, alpha, index)
        return cls(alpha, index, left, right, left_length, right_length)

    def taken(self, which: NDArray[np.bool_]) -> _Hat:
        """The hats over some of the densities, in one row."""
        parts = (self.left, self.right, self.left_length, self.right_length)
        return _Hat(self.alpha[which], self.index, *(part[which] for part in parts))

    def propose(self, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        """A draw from each hat, and whether it lies below the density, too."""
        plateau = self.right - self.left
        place = rng.uniform(size=self.left.shape) * (plateau + self.left_length + self.right_length)
        beyond = rng.standard_exponential(self.left.shape)
        on_left, on_right = place > plateau + self.right_length, place > plateau
        x = np.where(on_right, self.right + self.right_length * beyond, self.left + place)
        x = np.where(on_left, self.left - self.left_length * beyond, x)
        hat = np.where(on_right, -beyond, 0.0)
        return x, np.log(rng.uniform(size=x.shape)) + hat <= _height(x, self.alpha, self.index)


def _height(x: Floats, alpha: Floats, index: float) -> Floats:
    """Logarithm of the density, 0 at x = 0."""
    return np.asarray(-2 * alpha * np.sinh(x / 2) ** 2 - index * (np.expm1(x) - x))


def _slope(x: Floats, alpha: Floats, index: float) -> Floats:
    """Derivative of `_height`."""
    return np.asarray(-alpha * np.sinh(x) - index * np.expm1(x))


def _right_point(alpha: Floats, index: float) -> Floats:
    """Where the right tangent touches: near -height = 1, in closed form."""
    drop = -_height(np.ones_like(alpha), alpha, index)
    far = np.log(4 / (alpha + 2 * index))
    return np.where(drop > 2, np.sqrt(2 / (alpha + index)), np.where(drop < 0.5, far, 1.0))


def _left_point(alpha: Floats, index: float) -> Floats:
    """The same on the left, as a positive distance."""
    drop = -_height(-np.ones_like(alpha), alpha, index)
    far = np.log1p(1 / alpha + np.sqrt(1 / alpha**2 + 2 / alpha))
    far = np.minimum(far, 1 / max(index, 1e-12))
    return np.where(drop > 2, np.sqrt(4 / (alpha * np.cosh(1) + index)), np.where(drop < 0.5, far, 1.0))
