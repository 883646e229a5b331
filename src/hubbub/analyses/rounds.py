"""How a model asks for noisy sums: the ledger is charged for all its rounds first, then the engine runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats
from hubbub.errors import NOTHING_RELEASED, InvalidInput
from hubbub.privacy import Entry, GaussianEvent, Ledger, Population, Release
from hubbub.privacy.report import Round
from hubbub.statistics import Statistic


class Engine(Protocol):
    """Runs the roles somewhere; a model only ever sees the Release."""

    def population(self, samples: int) -> Population:
        """Who takes part where there are so many rows, and how many of them the noise does without."""
        ...

    def private_sum(self, rows: Floats, statistic: Statistic, noise_multiplier: float) -> Release:
        """Sum the statistic over the rows (one client each), with noise_multiplier sensitivities of noise.

        Raises InvalidInput or RoundRefused only where nothing is released and nothing can be any more, since the
        charge is then given back; an engine that cannot be sure raises something else, such as PerhapsReleased.
        """
        ...


class Series(Protocol):
    """Many rounds over the same rows, planned once."""

    def private_sum(self, statistic: Statistic, chosen: NDArray[np.intp] | None = None) -> Release:
        """The noisy sum of a statistic that differs from the planned one in its state alone, over the chosen rows."""
        ...


@dataclass(frozen=True)
class RoundByRound:
    """A series with an engine that has none of its own: every round is planned anew."""

    engine: Engine
    rows: Floats
    noise_multiplier: float

    def private_sum(self, statistic: Statistic, chosen: NDArray[np.intp] | None = None) -> Release:
        """One round."""
        rows = self.rows if chosen is None else self.rows[chosen]
        return self.engine.private_sum(rows, statistic, self.noise_multiplier)


def series_of(
    engine: Engine, rows: Floats, statistic: Statistic, noise_multiplier: float, clients: int | None = None
) -> Series:
    """The engine's own series, or one that asks it every time; `clients` is the size of batches that one chooses."""
    if hasattr(engine, "series"):
        series: Series = engine.series(rows, statistic, noise_multiplier, clients)
        return series
    if clients is not None:
        raise InvalidInput(
            "selection must be 'self' on this engine, whose clients are the same in every round, got 'trainer'; "
            "let the clients select themselves"
        )
    return RoundByRound(engine, rows, noise_multiplier)


class Rounds:
    """The rounds of one fit, charged together: a fit that cannot be paid for to the end is not begun.

    What certainly was not released (NOTHING_RELEASED) is given back; after any other error it counts as spent.
    """

    def __init__(self, engine: Engine, ledger: Ledger | None, plan: Sequence[tuple[str, float]]) -> None:
        self._engine = engine
        self._ledger = ledger
        self._due = [Entry(label, GaussianEvent(multiplier)) for label, multiplier in plan]
        self.done: tuple[Round, ...] = ()

    def __enter__(self) -> Rounds:
        if self._ledger is not None:
            self._ledger.charge_entries(self._due)
        return self

    def run(self, rows: Floats, statistic: Statistic) -> Release:
        """The next round."""
        entry = self._due[0]
        assert isinstance(entry.event, GaussianEvent)
        release = self._engine.private_sum(rows, statistic, entry.event.noise_multiplier)
        self._due.pop(0)
        self.done = (*self.done, Round(entry.label, release))
        return release

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._ledger is not None and isinstance(error, NOTHING_RELEASED):
            self._ledger.refund(self._due)
