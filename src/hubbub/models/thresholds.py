"""Projection thresholds by grid search on auxiliary data (the paper's Algorithm 2, step 3).

Nothing here touches private data: it depends on N, d and the noise alone, so it costs no budget and
is computed once per (N, d, noise).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hubbub.arrays import Floats
from hubbub.models.repair import repaired
from hubbub.statistics import Box, Formula

GRID = np.linspace(0.1, 2.1, 20)  # in standard deviations
REPEATS = 10
_MOST_AUXILIARY = 5000  # beyond that the sums are scaled up: their relative spread no longer matters


@lru_cache(maxsize=256)
def find_thresholds(
    clients: int,
    features: int,
    multiplier: float,
    tolerated: int = 0,
    formula: Formula = "tight",
    prior_precision: float = 1.0,
    noise_precision: float = 1.0,
    seed: int = 0,
) -> tuple[float, float]:
    """The pair (for x, for y), in standard deviations, with the best prediction under its own noise."""
    rng = np.random.default_rng([seed, clients, features])
    spread = np.sqrt(clients / (clients - tolerated - 1))
    search = _Search(clients, features, multiplier * spread, formula, prior_precision, noise_precision)
    error = sum(search.errors(rng) for _ in range(REPEATS))
    best_x, best_y = np.unravel_index(np.argmin(error), (GRID.size, GRID.size))
    return float(GRID[best_x]), float(GRID[best_y])


@dataclass(frozen=True)
class _Search:
    clients: int
    d: int
    multiplier: float
    formula: Formula
    prior_precision: float
    noise_precision: float

    def errors(self, rng: np.random.Generator) -> Floats:
        """Expected absolute prediction error for every pair of thresholds, on one auxiliary data set.

        A new x ~ N(0, I) is predicted with error x'(b - beta) + e, which is normal, so the expectation
        over test points is known: sqrt(2/pi) sqrt(1/noise_precision + |b - beta|^2).
        """
        n = min(self.clients, _MOST_AUXILIARY)
        x = rng.standard_normal((n, self.d))
        beta = rng.standard_normal(self.d) / np.sqrt(self.prior_precision)
        y = x @ beta + rng.standard_normal(n) / np.sqrt(self.noise_precision)
        limit_y = GRID * y.std()
        clipped_y = np.clip(y[:, None], -limit_y, limit_y)
        noise_xx, noise_xy = _symmetric_noise(rng, self.d), rng.standard_normal(self.d)
        error = np.empty((GRID.size, GRID.size))
        for i, p in enumerate(GRID):
            clipped = np.clip(x, -p, p) * np.sqrt(self.clients / n)
            xx, xy = clipped.T @ clipped, clipped.T @ clipped_y * np.sqrt(self.clients / n)
            sigma = np.array([self._noise_std(p, c) for c in limit_y])
            b = self._means(xx + sigma[:, None, None] * noise_xx, xy.T + sigma[:, None] * noise_xy)
            error[i] = np.sqrt(2 / np.pi * (1 / self.noise_precision + np.sum((b - beta) ** 2, axis=1)))
        return error

    def _noise_std(self, x: float, y: float) -> float:
        """The noise that this pair of thresholds implies."""
        return self.multiplier * Box((x,) * self.d, y).sensitivity(target_square=False, formula=self.formula)

    def _means(self, xx: Floats, xy: Floats) -> Floats:
        """Posterior means of a stack of problems, repaired as the paper does (docs/decisions/0004)."""
        values, vectors = np.linalg.eigh(xx)
        rotated = np.einsum("kij,ki->kj", vectors, xy)
        precision = self.prior_precision + self.noise_precision * repaired(values, "flip", 0.0)
        means: Floats = np.einsum("kij,kj->ki", vectors, self.noise_precision * rotated / precision)
        return means


def _symmetric_noise(rng: np.random.Generator, d: int) -> Floats:
    upper = np.triu(rng.standard_normal((d, d)))
    return upper + np.triu(upper, 1).T
