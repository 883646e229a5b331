"""Expected sufficient statistics (Park et al. 2016, "VIPS"): the noisy sums of one step, averaged over the steps.

A conjugate-exponential model is refitted in every step from the sum over all rows of what the current posterior
expects them to say. The sums of earlier steps are not thrown away: with weights that fall, the average forgets where
the posterior started from, and its noise is smaller than that of a single step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.analyses.iterative.stepwise import NoisySum
from hubbub.arrays import Floats
from hubbub.errors import InvalidInput

FORGETTING = 0.7


@dataclass(frozen=True)
class Averaged:
    """The average of the steps' sums, and the variance of the noise in it."""

    value: Floats
    variance: Floats

    @classmethod
    def empty(cls, dimension: int) -> Averaged:
        """Before the first step."""
        return cls(np.zeros(dimension), np.zeros(dimension))

    def with_step(self, noisy: NoisySum, powers: Floats) -> Averaged:
        """The next step counts t^-power: power 1 is the plain mean, for what does not change from step to step."""
        weight = np.asarray((noisy.step + 1.0) ** -powers)
        value = (1 - weight) * self.value + weight * noisy.value
        variance = (1 - weight) ** 2 * self.variance + weight**2 * noisy.noise_std**2
        return Averaged(value, variance)


def fingerprint(*parts: object) -> str:
    """Of a program that is part of hubbub: its name, version and settings."""
    return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()


def named_columns(features: Sequence[str], *more: str) -> tuple[str, ...]:
    """The names of the columns, each given once, or one line that says so."""
    if isinstance(features, str):
        raise InvalidInput("features must be a list of names, got one text; write ['age', 'weight']")
    names = (*features, *more)
    if not features or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise InvalidInput("features and target must be distinct names, got others; name every column once")
    return names


def shortened(x: Floats, radius: float) -> Floats:
    """Rows longer than the radius are brought back to it."""
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(x * (radius / np.maximum(length, radius)))
