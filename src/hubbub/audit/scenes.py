"""Who takes part, and what an adversary has in hand besides the release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.arrays import Floats
from hubbub.audit.worst import Pair
from hubbub.engines import LocalEngine
from hubbub.population import Unit


@dataclass(frozen=True)
class Scene:
    """K clients of whom D may be missing and C may collude, as the study says; and how many really do.

    The victim is the last client. The adversary knows every sample but the victim's, and the noise of the clients
    who tell it.
    """

    clients: int
    dropouts: int = 0
    colluders: int = 0
    holds: int = 1
    unit: Unit = "sample"
    absent: int = 0
    """Clients that never send: the first ones."""
    tell: int = 0
    """Clients who tell their noise, the curious one among them: those after the absent ones. Here they add none, which
    is the same to whoever could subtract it."""

    @property
    def left(self) -> int:
        """Clients whose noise the adversary does not know."""
        return self.clients - self.absent - self.tell

    def engine(self, **options: Any) -> LocalEngine:
        """A new one, with noise that was never drawn before."""
        return LocalEngine(
            computes=3,
            dropouts=self.dropouts,
            colluding=self.colluders,
            holds=self.holds,
            unit=self.unit,
            absent=tuple(range(self.absent)),
            colluders=tuple(range(self.absent, self.absent + self.tell)),
            **options,
        )

    def neighbours(self, pair: Pair, others: Floats | None = None) -> tuple[Floats, Floats]:
        """Two data sets of which one holds the one sample where the other holds the other.

        That is the victim's last sample, or all of its samples where the unit is the client. All other samples are
        alike: the one of the pair, or the one that is given.
        """
        first = np.tile(pair.one if others is None else others, (self.clients * self.holds, 1))
        second, changed = first.copy(), self.holds if self.unit == "client" else 1
        first[-changed:], second[-changed:] = pair.one, pair.other
        return first, second

    def present(self, rows: Floats) -> Floats:
        """The rows of those who send."""
        return rows[self.absent * self.holds :]


SCENES = {
    "public release": Scene(12),
    "curious client": Scene(12, tell=1),
    "colluders and a curious client": Scene(24, colluders=20, tell=21),
    "the same after dropouts": Scene(24, dropouts=10, colluders=10, absent=10, tell=11),
    "parties with many samples": Scene(8, dropouts=1, colluders=1, holds=25, absent=1, tell=2),
    "whole parties as the unit": Scene(8, dropouts=1, colluders=1, holds=25, unit="client", absent=1, tell=2),
}
"""Adversaries of docs/threat-model.md who see the sum and know the noise of some clients."""
FEW = Scene(4, tell=1)
"""For checks of bounds: the adversary subtracts its own share."""
