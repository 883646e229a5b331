"""What to compare with: no privacy, noise added to every sample on its own (input perturbation), and AdaSSP."""

from __future__ import annotations

import numpy as np

from hubbub.arrays import Floats
from hubbub.protocols import Budget
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


RISK = 0.05
"""AdaSSP's rho: how often the noise in X'X may be larger than its ridge allows for."""


def ada_ssp(X: Floats, y: Floats, budget: Budget, rng: np.random.Generator) -> Floats:
    """Coefficients by AdaSSP (Wang 2018, Algorithm 2), for rows of length at most 1, |y| <= 1, and no intercept.

    A trusted party adds noise to the smallest eigenvalue of X'X, to X'X and to X'y, each for a third of epsilon and
    delta, and chooses from the first how large a ridge the second needs. Calibrated as published, for adding or
    removing a row. Its noise comes from a simulation's generator in double precision: a baseline, no release.
    """
    d = X.shape[1]
    spread = ada_ssp_spread(budget)
    gram = X.T @ X
    lowest = ada_ssp_lowest(float(np.linalg.eigvalsh(gram)[0]), budget, rng.normal())
    noise = np.triu(rng.normal(size=(d, d)))
    noisy = gram + spread * (noise + np.triu(noise, 1).T) + ada_ssp_ridge(d, lowest, budget) * np.eye(d)
    return np.asarray(np.linalg.solve(noisy, X.T @ y + spread * rng.normal(size=d)))


def ada_ssp_spread(budget: Budget) -> float:
    """Standard deviation of the noise in every number: sqrt(log(6/delta)) / (epsilon/3)."""
    return float(np.sqrt(np.log(6 / budget.delta)) / (budget.epsilon / 3))


def ada_ssp_lowest(eigenvalue: float, budget: Budget, normal: float) -> float:
    """The smallest eigenvalue, noisy and lowered by log(6/delta) / (epsilon/3): rarely too large, never negative."""
    lowered = eigenvalue + ada_ssp_spread(budget) * normal - np.log(6 / budget.delta) / (budget.epsilon / 3)
    return max(0.0, float(lowered))


def ada_ssp_ridge(d: int, lowest: float, budget: Budget) -> float:
    """What is added to the diagonal: sqrt(d log(6/delta) log(2 d^2/rho)) / (epsilon/3), less the lowest eigenvalue."""
    enough = np.sqrt(d * np.log(6 / budget.delta) * np.log(2 * d**2 / RISK)) / (budget.epsilon / 3)
    return max(0.0, float(enough) - lowest)
