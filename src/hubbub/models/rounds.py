"""How a model asks for a noisy sum: the ledger is charged first, the engine runs, the round is noted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hubbub.arrays import Floats
from hubbub.privacy import GaussianEvent, Ledger, Release
from hubbub.privacy.report import Round
from hubbub.statistics import Statistic


class SumEngine(Protocol):
    """The one thing a model asks of an engine."""

    def private_sum(self, rows: Floats, statistic: Statistic, noise_multiplier: float) -> Release:
        """The noisy sum of a statistic over clients."""
        ...


def check_rounds(ledger: Ledger | None, multipliers: Sequence[float]) -> None:
    """Refuse a fit that the ledger could not pay for to the end, before its first round."""
    if ledger is not None:
        ledger.check(*(GaussianEvent(m) for m in multipliers))


def run_round(
    engine: SumEngine,
    ledger: Ledger | None,
    label: str,
    rows: Floats,
    statistic: Statistic,
    multiplier: float,
) -> Round:
    """One accounted release."""
    if ledger is None:
        return Round(label, engine.private_sum(rows, statistic, multiplier))
    with ledger.spending(label, GaussianEvent(multiplier)):
        return Round(label, engine.private_sum(rows, statistic, multiplier))
