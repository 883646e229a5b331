"""What to compare with: no privacy, and noise added to every sample on its own (input perturbation)."""

from __future__ import annotations

from hubbub.arrays import Floats
from hubbub.randomness import Randomness
from hubbub.statistics import Box, Gram, Means


def exact_gram(rows: Floats) -> Gram:
    """The sums of the data as it is: nothing clipped, no noise, no privacy."""
    X, y = rows[:, :-1], rows[:, -1]
    return Gram(X.T @ X, X.T @ y, float(y @ y))


def input_perturbation_gram(rows: Floats, bound: Box, multiplier: float, randomness: Randomness) -> Gram:
    """Each client clips its sample to the bounds and adds the full noise to it: local privacy.

    Everybody may see the noisy samples; the sums are taken from them as if they were the data.
    """
    assert bound.y is not None
    sigma = multiplier * Means((*bound.x, bound.y)).sensitivity
    return exact_gram(bound.apply(rows) + sigma * randomness.normals(rows.shape))
