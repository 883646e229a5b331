"""Many rounds over the same rows: planned once, then one sum after the other at changing states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import InvalidInput
from hubbub.privacy import Release
from hubbub.roles import RoundPlan
from hubbub.statistics import Statistic, probability_of

Chosen = NDArray[np.intp] | None
"""Which rows take part in a round; None is all of them."""


@dataclass(frozen=True)
class Series:
    """A plan, and how the engine runs one round of it."""

    plan: RoundPlan
    _run: Callable[[RoundPlan, Chosen], Release]

    def private_sum(self, statistic: Statistic, chosen: Chosen = None) -> Release:
        """The noisy sum of a statistic that differs from the planned one in its state alone."""
        if _bounds(statistic) != _bounds(self.plan.statistic):
            raise InvalidInput("statistic must keep the bounds it was planned with, got others; plan a new series")
        return self._run(replace(self.plan, statistic=statistic), chosen)


def _bounds(statistic: Statistic) -> tuple[float, ...]:
    return (
        statistic.columns, statistic.dimension, statistic.magnitude, statistic.sensitivity, probability_of(statistic)
    )  # fmt: skip
