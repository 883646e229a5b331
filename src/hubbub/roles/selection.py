"""Who counts in this round: everybody, or whoever wins a coin that no one else sees."""

from __future__ import annotations

import numpy as np

from hubbub.arrays import Floats
from hubbub.randomness import Randomness
from hubbub.statistics import Statistic, probability_of


def vectors_of(statistic: Statistic, rows: Floats, randomness: Randomness, *, hide: bool = False) -> Floats:
    """The clients' vectors; in a self-selected batch zero for each one that lost its own coin.

    A coin protects a client as noise does, so it comes from the same stream. Noise is added to zeros, too. With `hide`
    the work is the same whether a coin is won or lost, so that how long a client takes does not tell.
    """
    probability = probability_of(statistic)
    if probability == 1:
        return statistic.vectors(rows)
    chosen = randomness.words(rows.shape[0]) < np.uint64(int(probability * 2.0**64))  # rounded down: toward privacy
    if hide:
        return np.where(chosen[:, None], statistic.vectors(rows), 0.0)
    vectors = np.zeros((rows.shape[0], statistic.dimension))
    if chosen.any():
        vectors[chosen] = statistic.vectors(rows[chosen])
    return vectors
