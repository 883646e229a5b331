"""A release: the noisy sum, with everything one must know to use it and to trust it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hubbub.arrays import Floats
from hubbub.events import Event
from hubbub.population import Population
from hubbub.shown import facts_html

NEARLY_NORMAL = 1e4
"""A `NoiseLaw.shape` from which on noise is taken as normal: its random variance varies by 1 % or less."""
_LEAST_DISTANCE = 1e-6  # from zero, in scales, at which a density is computed
_LARGE_ORDER = 30.0  # of a Bessel function: beyond it numbers overflow, and an expansion is exact to 1e-6


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

    @property
    def normal(self) -> bool:
        """True where the noise is normal, or as good as normal."""
        return self.shape is None or self.shape > NEARLY_NORMAL

    def scaled(self, factor: float) -> NoiseLaw:
        """The law of the same noise in other units."""
        return replace(self, std=factor * self.std)

    def at_least(self, std: float) -> NoiseLaw:
        """With at least this standard deviation, for a density where there is no noise."""
        return self if self.std >= std else replace(self, std=std)

    def log_density(self, noise: Floats) -> Floats:
        """Logarithm of the density at each of these values; the deviation must not be zero."""
        if self.shape is None or self.normal:
            return np.asarray(-0.5 * (noise / self.std) ** 2 - np.log(self.std * np.sqrt(2 * np.pi)))
        scale = self.std / np.sqrt(2 * self.shape)
        if self.shape == 1:
            return np.asarray(-np.abs(noise) / scale - np.log(2 * scale))
        return np.asarray(_log_gamma_difference(np.abs(noise) / scale, self.shape) - np.log(scale))


@dataclass(frozen=True)
class Trust:
    """Which Computes may conspire, and which must be honest, for the shares to hide what they hide."""

    computes: int
    """M, all of them."""
    conspiring: int
    """So many of them, whichever they are, learn nothing from what they hold together."""
    sentence: str
    """The assumption in words: what must not happen."""
    proviso: str = ""
    """What is not promised beside that, in words for the privacy report; empty where there is nothing to say."""
    contradicting: int | None = None
    """So many of them may sign contradicting statements about one round (two lists of clients, or a list and a refusal)
    on live nodes; None is any number, where nothing is released or refused for good before all of them have signed."""
    exposed: tuple[tuple[int, float], ...] = ()
    """Sizes of larger groups, with the part of all clients that each of them can expect to read."""

    def beyond(self, clients: int) -> str:
        """The proviso, with the numbers of clients that it means where there are so many."""
        if not self.exposed:
            return self.proviso
        numbers = [(size, clients * part) for size, part in self.exposed]
        found = ", ".join(f"{f'{count:.2g}' if count < 10 else round(count)} with {size}" for size, count in numbers)
        return f"{self.proviso}; of {clients} clients these are about {found}"


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

    def _repr_html_(self) -> str:
        p = self.protection
        return facts_html("Release", {
            "statistic": p.statistic, "numbers": p.dimension, "samples": self.n,
            "clients": f"{self.clients} ({self.dropouts} missing)", "mechanism": p.mechanism,
            "noise": f"{self.noise.law}, standard deviation {self.noise_std:.4g} in each number",
            "sensitivity": f"{p.sensitivity:.4g}", "setting": p.setting.statement, "drawn by": p.generator,
        })  # fmt: skip


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


def _log_gamma_difference(x: Floats, shape: float) -> Floats:
    """Log density of the difference of two Gamma(shape) draws at x or -x.

    It is (x/2)^v K_v(x) / (sqrt(pi) Gamma(shape)) with v = shape - 1/2 and the modified Bessel function K, which is
    infinite at x = 0 where the product is not: so x stops short of it.
    """
    from scipy.special import gammaln, kve

    x, order = np.maximum(x, _LEAST_DISTANCE), shape - 0.5
    log_bessel = _log_bessel(x, order) if order > _LARGE_ORDER else np.log(kve(order, x)) - x
    return np.asarray(order * np.log(x / 2) + log_bessel - gammaln(shape) - 0.5 * np.log(np.pi))


def _log_bessel(x: Floats, order: float) -> Floats:
    """Logarithm of K_order(x) for a large order, by the first terms of Debye's expansion."""
    root = np.hypot(1.0, x / order)
    p = 1 / root
    first, second = (3 * p - 5 * p**3) / 24, (81 * p**2 - 462 * p**4 + 385 * p**6) / 1152
    exponent = root + np.log(x / order / (1 + root))
    series = np.log1p(-first / order + second / order**2)
    return np.asarray(0.5 * np.log(np.pi / (2 * order) * p) - order * exponent + series)
