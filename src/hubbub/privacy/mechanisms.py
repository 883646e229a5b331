"""The distributed Gaussian mechanism: N clients each add a share of the noise (Theorem 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import invalid, whole
from hubbub.privacy.events import GaussianEvent
from hubbub.randomness import Randomness


@dataclass(frozen=True)
class DistributedGaussian:
    """Each client adds variance sigma_std^2 / (N - T - 1) to every coordinate.

    T clients may collude or drop out; the 1 is the client who subtracts its own share. What is left
    still has the variance sigma_std^2 that a trusted aggregator would have added.
    """

    noise_multiplier: float
    sensitivity: float
    clients: int
    tolerated: int = 0
    held: int = 1
    """The most samples that one client holds: it knows, and can subtract, as many shares of the noise."""

    def __post_init__(self) -> None:
        check_population(self.clients, self.tolerated, self.held)
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
        """Standard deviation that is added to each coordinate of one sample."""
        return self.sigma_std / math.sqrt(self.clients - self.tolerated - self.held)

    def sigma_release(self, contributors: int) -> float:
        """Standard deviation of the noise in a sum of this many contributors."""
        return self.sigma_client * math.sqrt(contributors)

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


def check_population(clients: int, tolerated: int, held: int = 1) -> None:
    """N - T - 1 >= 1, or one line that says what to change; `held` stands for the 1 where a client holds more."""
    whole("clients", clients, 2, "one client alone cannot hide; enrol more")
    whole("tolerated", tolerated, 0, "give the number of clients that may collude or drop out")
    whole("held", held, 1, "a client holds one sample at least")
    if clients - tolerated - held < 1:
        limit = f"at most N - {held + 1} = {clients - held - 1} for N={clients} clients"
        limit += "" if held == 1 else f" of whom one holds {held}"
        raise invalid(
            "tolerated", limit, tolerated,
            f"tolerate fewer or enrol more clients (Theorem 1 needs N - T - {held} >= 1)",
        )  # fmt: skip
