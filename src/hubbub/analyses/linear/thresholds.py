"""Projection thresholds by grid search on auxiliary data (the paper's Algorithm 2, step 3).

Nothing here touches private data: it depends on N, d and the noise alone, so it costs no budget and
is computed once per (N, d, noise).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from hubbub.analyses.linear.repair import repaired
from hubbub.arrays import Floats
from hubbub.privacy import Population
from hubbub.statistics import Box, Formula

GRID = np.linspace(0.1, 2.1, 20)  # in standard deviations
REPEATS = 10
_MOST_AUXILIARY = 5000  # beyond that the sums are scaled up: their relative spread no longer matters


def find_thresholds(
    clients: int,
    features: int,
    multiplier: float,
    population: Population | None = None,
    formula: Formula = "tight",
    prior_precision: float = 1.0,
    noise_precision: float = 1.0,
    noise_power: int = 1,
) -> tuple[float, float]:
    """The pair (for x, for y), in standard deviations, with the best prediction under its own noise.

    The grid is coarse and the thresholds change slowly with N, so N is rounded (in steps of 10 %): fits of
    about the same size share one search. `population` says how many share the noise; by default every row is a client
    and all are counted on. `noise_power` 4 repeats the slip of the paper's published
    program, which scales the noise of the search by the fourth power of the sensitivity.
    """
    about = max(2, round(float(np.exp(np.round(np.log(clients), 1)))))
    spread = (Population(clients) if population is None else population).spread
    rounded = float(f"{multiplier * spread:.3g}")
    return _search(about, features, rounded, formula, prior_precision, noise_precision, noise_power)


@lru_cache(maxsize=1024)
def _search(*settings: Any) -> tuple[float, float]:
    search = _Search(*settings)
    rng = np.random.default_rng([search.clients, search.d])
    repeats = REPEATS if search.d <= 30 else 2  # wide problems vary less from one auxiliary set to the next
    error = np.sum([search.errors(rng) for _ in range(repeats)], axis=0)
    best_x, best_y = np.unravel_index(np.argmin(error), error.shape)
    return float(search.grid[best_x]), float(search.grid[best_y])


@dataclass(frozen=True)
class _Search:
    clients: int
    d: int
    multiplier: float
    formula: Formula
    prior_precision: float
    noise_precision: float
    noise_power: int

    @property
    def grid(self) -> Floats:
        """The paper's grid; every third point of it where each one is costly."""
        return GRID if self.d <= 30 else GRID[1::3]

    def errors(self, rng: np.random.Generator) -> Floats:
        """Expected absolute prediction error for every pair of thresholds, on one auxiliary data set.

        A new x ~ N(0, I) is predicted with error x'(b - beta) + e, which is normal, so the expectation
        over test points is known: sqrt(2/pi) sqrt(1/noise_precision + |b - beta|^2).
        """
        n = min(self.clients, _MOST_AUXILIARY)
        x = rng.standard_normal((n, self.d))
        beta = rng.standard_normal(self.d) / np.sqrt(self.prior_precision)
        y = x @ beta + rng.standard_normal(n) / np.sqrt(self.noise_precision)
        clipped_y = np.clip(y[:, None], -self.limit_y, self.limit_y)
        noise_xx, noise_xy = _symmetric_noise(rng, self.d), rng.standard_normal(self.d)
        error = np.empty((self.grid.size, self.grid.size))
        for i, p in enumerate(self.grid):
            clipped = np.clip(x, -p, p) * np.sqrt(self.clients / n)
            xx, xy = clipped.T @ clipped, clipped.T @ clipped_y * np.sqrt(self.clients / n)
            sigma = self.noise_std[i]
            b = self._means(xx + sigma[:, None, None] * noise_xx, xy.T + sigma[:, None] * noise_xy)
            error[i] = np.sqrt(2 / np.pi * (1 / self.noise_precision + np.sum((b - beta) ** 2, axis=1)))
        return error

    @cached_property
    def limit_y(self) -> Floats:
        """Bounds of y on the grid, in units of its standard deviation."""
        return self.grid * float(np.sqrt(self.d / self.prior_precision + 1 / self.noise_precision))

    @cached_property
    def noise_std(self) -> Floats:
        """The noise that each pair of thresholds implies."""
        sensitivity = [
            [Box((x,) * self.d, y).sensitivity(False, self.formula) for y in self.limit_y] for x in self.grid
        ]
        return np.asarray(self.multiplier * np.power(sensitivity, self.noise_power))

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
