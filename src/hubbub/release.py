"""A release: the noisy sum, with everything one must know to use it and to trust it."""

from __future__ import annotations

from dataclasses import dataclass

from hubbub.arrays import Floats
from hubbub.events import GaussianEvent, SampledGaussianEvent
from hubbub.population import Population


@dataclass(frozen=True)
class Release:
    """The noisy sum over the clients of one round."""

    value: Floats
    """The sum over all contributors, with noise."""
    noise_std: float
    """Standard deviation of the noise in each coordinate."""
    n: int
    """How many samples are in the sum."""
    clients: int
    """How many clients contributed them, each with one share of the noise."""
    event: GaussianEvent | SampledGaussianEvent
    """What the accountant is told."""
    protection: Protection
    """How it was made, and against whom it protects."""

    @property
    def dropouts(self) -> int:
        """How many of the enrolled clients are missing."""
        return self.protection.population.clients - self.clients

    @property
    def colluders_covered(self) -> int:
        """Against how many colluding clients this release protects."""
        return self.protection.population.covered(self.dropouts)


@dataclass(frozen=True)
class Protection:
    """How a release was made: everything the guarantee depends on besides the budget."""

    population: Population
    computes: int
    sensitivity: float
    sigma_std: float
    sigma_client: float
    dimension: int
    statistic: str
    fraction_bits: int | None
    sealed: str | None
    """The HPKE suite of the sealed shares, or None where shares stayed in one process."""
    setting: str
    """Where the roles ran: 'one process', 'trusted aggregator', ..."""
    generator: str
    """What drew noise and shares."""
    secure_generator: bool
    colluders: int = 0
    """Simulated colluders, who added no noise."""
