"""A release: the noisy sum, with everything one must know to use it and to trust it."""

from __future__ import annotations

from dataclasses import dataclass

from hubbub.arrays import Floats
from hubbub.events import Event
from hubbub.population import Population


@dataclass(frozen=True)
class NoiseLaw:
    """What a posterior is told of the noise in a release: its law, and its standard deviation in each coordinate.

    Every law here is normal noise, of a fixed variance or of a random one: with `shape` k the variance of each
    coordinate is std^2 / k times a draw of Gamma(k), so that the noise is a difference of two such gamma draws of scale
    std / sqrt(2k). k = 1 is Laplace noise; more contributors than the mechanism counts on give a larger k.
    """

    law: str
    """What people call it: "normal", "laplace"."""
    std: float
    shape: float | None = None
    """Of the gamma law of the variances; None where the variance is fixed."""


@dataclass(frozen=True)
class Trust:
    """Which Computes may conspire, and which must be honest, for the shares to hide what they hide."""

    computes: int
    """M, all of them."""
    conspiring: int
    """So many of them, whichever they are, learn nothing from what they hold together."""
    sentence: str
    """The assumption in words: what must not happen."""


@dataclass(frozen=True)
class Setting:
    """Where the roles ran, and who could see samples there."""

    name: str
    statement: str
    """One sentence for the privacy report."""
    aggregator: bool = False
    """True where one trusted party saw every sample and added all the noise."""


@dataclass(frozen=True)
class Release:
    """The noisy sum over the clients of one round."""

    value: Floats
    """The sum over all contributors, with noise."""
    noise: NoiseLaw
    """The law and the scale of the noise in each coordinate."""
    n: int
    """How many samples are in the sum."""
    clients: int
    """How many clients contributed them, each with one share of the noise."""
    event: Event
    """What the accountant is told."""
    protection: Protection
    """How it was made, and against whom it protects."""

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise in each coordinate."""
        return self.noise.std

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
    trust: Trust | None
    """In which Computes; None where there were none."""
    sensitivity: float
    sigma_std: float
    sigma_client: float
    dimension: int
    statistic: str
    mechanism: str
    reservation: str | None
    """What the figures of the mechanism take for granted."""
    fraction_bits: int | None
    sealed: str | None
    """The HPKE suite of the sealed shares, or None where shares stayed in one process."""
    setting: Setting
    """Where the roles ran."""
    generator: str
    """What drew noise and shares."""
    secure_generator: bool
    colluders: int = 0
    """Simulated colluders, who added no noise."""

    @property
    def computes(self) -> int:
        """M, the number of Computes; 1 stands for a trusted aggregator."""
        return 1 if self.trust is None else self.trust.computes
