"""Gaussian noise of given amounts, whatever the budget asks for: how a reproduction adds the paper's own noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hubbub.privacy import GaussianMechanism
from hubbub.protocols import Budget
from hubbub.statistics import Box


@dataclass(frozen=True, init=False)
class GivenNoise(GaussianMechanism):
    """The Gaussian mechanism with one noise multiplier for each round, taken as they are.

    Not calibrated to any budget: a report compares the two, and says so where the noise spends more.
    """

    multipliers: tuple[float, ...] = ()

    def __init__(self, multipliers: Sequence[float]) -> None:
        object.__setattr__(self, "noise_multiplier", 1.0)
        object.__setattr__(self, "multipliers", tuple(multipliers))

    def within(  # type: ignore[override]  # plain ones, each with its own amount
        self, budget: Budget, weights: Sequence[float], probability: float = 1.0
    ) -> tuple[GaussianMechanism, ...]:
        """The given ones."""
        assert len(weights) == len(self.multipliers)
        return tuple(GaussianMechanism(multiplier) for multiplier in self.multipliers)


Interval = tuple[float, float]


def numbered_columns(bound: Box) -> tuple[tuple[str, ...], Interval, tuple[Interval, ...]]:
    """Names of the features of a box, and the bounds of y and x as intervals."""
    assert bound.y is not None
    return tuple(f"x{j}" for j in range(bound.features)), (-bound.y, bound.y), tuple((-c, c) for c in bound.x)
