"""From rows to vectors, as every client does it: the public steps, the statistic, and the coin of a batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats
from hubbub.randomness import Randomness
from hubbub.roles.study import RoundPlan
from hubbub.statistics import bounded_vectors


class Outside(NamedTuple):
    """How many samples the statistic had no vector for, and where the first one stands among the rows."""

    number: int = 0
    first: int | None = None

    def and_then(self, other: Outside, start: int) -> Outside:
        """Together with what was found in the rows from `start` on."""
        later = None if other.first is None else start + other.first
        return Outside(self.number + other.number, later if self.first is None else self.first)


def vectors_of(plan: RoundPlan, rows: Floats, randomness: Randomness, *, hide: bool = False) -> tuple[Floats, Outside]:
    """The clients' vectors; in a self-selected batch zero for each one that lost its own coin.

    A coin protects a client as noise does, so it comes from the same stream. Noise is added to zeros, too. With `hide`
    the work is the same whether a coin is won or lost, so that how long a client takes does not tell. A sample that
    the statistic has no vector for (NaN, an unknown category) gives zero, too, and is counted: no sample makes this
    fail.
    """
    statistic, probability = plan.statistic, plan.statistic.probability
    chosen: NDArray[np.bool_] | None = None
    if probability < 1:
        chosen = randomness.words(rows.shape[0]) < np.uint64(int(probability * 2.0**64))  # rounded down: toward privacy
    if chosen is None or hide:
        vectors, wrong = bounded_vectors(statistic, rows, plan.steps)
        vectors = vectors if chosen is None else np.where(chosen[:, None], vectors, 0.0)
    else:
        vectors, wrong = np.zeros((rows.shape[0], statistic.dimension)), None
        if chosen.any():
            vectors[chosen], found = bounded_vectors(statistic, rows[chosen], plan.steps)
            if found is not None:
                wrong = np.zeros(rows.shape[0], dtype=bool)
                wrong[chosen] = found
    return vectors, Outside() if wrong is None else Outside(int(wrong.sum()), int(np.argmax(wrong)))
