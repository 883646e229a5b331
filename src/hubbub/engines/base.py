"""What every engine offers: the noisy sum of a statistic over clients, as a Release."""

from __future__ import annotations

from typing import Protocol

from hubbub.arrays import Floats
from hubbub.privacy import Release
from hubbub.statistics import Statistic


class Engine(Protocol):
    """Runs the roles somewhere; a model only ever sees the Release."""

    def private_sum(self, rows: Floats, statistic: Statistic, noise_multiplier: float) -> Release:
        """Sum the statistic over the rows (one client each), with noise_multiplier sensitivities of noise.

        Raises InvalidInput or RoundRefused before anything is released.
        """
        ...
