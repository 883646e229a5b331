"""Who counts in this round: everybody, or whoever wins a coin that no one else sees."""

from __future__ import annotations

import numpy as np

from hubbub.arrays import Floats
from hubbub.randomness import Randomness
from hubbub.statistics import Statistic, bounded_vectors, probability_of


def vectors_of(statistic: Statistic, rows: Floats, randomness: Randomness, *, hide: bool = False) -> Floats:
    """The clients' vectors; in a self-selected batch zero for each one that lost its own coin.

    A coin protects a client as noise does, so it comes from the same stream. Noise is added to zeros, too. With `hide`
    the work is the same whether a coin is won or lost, so that how long a client takes does not tell. A sample that
    the statistic has no vector for (NaN, an unknown category) gives zero, too: no sample makes this fail.
    """
    probability = probability_of(statistic)
    if probability == 1:
        return bounded_vectors(statistic, rows)
    chosen = randomness.words(rows.shape[0]) < np.uint64(int(probability * 2.0**64))  # rounded down: toward privacy
    if hide:
        return np.where(chosen[:, None], bounded_vectors(statistic, rows), 0.0)
    vectors = np.zeros((rows.shape[0], statistic.dimension))
    if chosen.any():
        vectors[chosen] = bounded_vectors(statistic, rows[chosen])
    return vectors
