"""The distributed Gaussian mechanism: each client adds one share of the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import invalid
from hubbub.events import GaussianEvent
from hubbub.population import Population
from hubbub.randomness import Randomness


@dataclass(frozen=True)
class DistributedGaussian:
    """Each of K clients adds variance sigma_std^2 / (K - D - C - 1) to every coordinate of what it sends.

    D clients may be missing, C may collude, and one more subtracts its own share (`Population`). What is left still has
    the variance sigma_std^2 that a trusted aggregator would have added.
    """

    noise_multiplier: float
    sensitivity: float
    population: Population

    def __post_init__(self) -> None:
        if not (math.isfinite(self.noise_multiplier) and self.noise_multiplier >= 0):
            raise invalid("noise_multiplier", "finite and >= 0", self.noise_multiplier, "derive it from a budget")
        if not (math.isfinite(self.sensitivity) and self.sensitivity > 0):
            raise invalid("sensitivity", "positive and finite", self.sensitivity, "take it from the statistic")

    @property
    def sigma_std(self) -> float:
        """Standard deviation a trusted aggregator would add to each coordinate."""
        return self.noise_multiplier * self.sensitivity

    @property
    def sigma_client(self) -> float:
        """Standard deviation that one client adds to each coordinate, whatever number of samples it holds."""
        return self.sigma_std / math.sqrt(self.population.shares)

    def sigma_release(self, clients: int) -> float:
        """Standard deviation of the noise in a sum to which this many clients contributed."""
        return self.sigma_client * math.sqrt(clients)

    @property
    def event(self) -> GaussianEvent:
        """What the accountant is told."""
        return GaussianEvent(self.noise_multiplier)


def add_share(vectors: Floats, sigma_client: float, randomness: Randomness, out: Floats | None = None) -> Floats:
    """The vectors with one client's noise share added to each row; `out` is contiguous room for them."""
    if sigma_client == 0.0:
        return vectors
    noise = np.empty(vectors.shape) if out is None else out
    randomness.fill_normals(noise, sigma_client)
    noise += vectors
    return noise
