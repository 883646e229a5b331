"""The distributed Gaussian mechanism: each client adds one share of the noise, drawn in double precision.

Vectors and noise are rounded to the grid. `docs/privacy.md`, section 6, proves that rounding what was added, as
`noisy_words` does for clients with one sample, is no worse than adding what was rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats, Words
from hubbub.errors import InvalidInput, invalid
from hubbub.grid import Grid, choose_fraction_bits
from hubbub.population import Population
from hubbub.privacy.mechanisms.multiplier import MultiplierMechanism
from hubbub.protocols import NoiseLaw, RoundNoise, RoundSpec, Statistic, Steps
from hubbub.randomness import Randomness

STEPS_PER_SIGMA = 8.0
"""A client's noise spans this many steps of the grid at least, so that rounding does not eat it."""
FINEST_BITS = 30
"""A step of the grid is no less than about 2^-30 of a client's noise: the last bits of a double depend on what was
added to what, and a coarser grid cuts them off."""
NOISE_TAIL = 10.0  # no draw of the generator lies further out than 9.35 standard deviations


@dataclass(frozen=True)
class GaussianMechanism(MultiplierMechanism):
    """Normal noise, drawn in double precision: what the paper uses, for reproducing it."""

    name = "gaussian"
    smallest_delta = 1e-15
    """No draw lies beyond 9.35 deviations, where a true normal lies with probability 1e-20: a smaller delta would
    promise what the generator does not keep."""

    def settled(self, statistic: Statistic, population: Population, fraction_bits: int | None = None) -> GaussianNoise:
        """Choose the grid, add its rounding to the sensitivity, and scale the noise to that.

        Rounding moves each coordinate by at most half a step, so between neighbours by at most one: on the grid one
        vector moves by at most Delta + sqrt(d) 2^-f.
        """
        rough = self.noise_multiplier * 2 * population.weight * statistic.sensitivity / math.sqrt(population.shares)
        if not math.isfinite(rough):
            raise invalid("noise_multiplier", "so small that the noise is a number", self.noise_multiplier, "lower it")
        noise = self.on(statistic, population, Grid(_choose_bits(statistic, rough, population, fraction_bits)))
        noise.check(statistic)
        return noise

    def on(self, statistic: Statistic, population: Population, grid: Grid) -> GaussianNoise:
        """On a grid that somebody else has chosen, unchecked."""
        return GaussianNoise(self.noise_multiplier, sensitivity_on_grid(statistic, grid, population), population, grid)

    @property
    def reservation(self) -> str:
        """Draws are doubles."""
        return (
            "noise is drawn in double precision and then rounded to the grid: the figures are those of the ideal "
            "Gaussian mechanism"
        )


@dataclass(frozen=True)
class GaussianNoise(RoundNoise):
    """Each of K clients adds variance sigma_std^2 / (K - D - C - 1) to every coordinate of what it sends.

    D clients may be missing, C may collude, and one more subtracts its own share (`Population`). What is left still has
    the variance sigma_std^2 that a trusted aggregator would have added.
    """

    noise_multiplier: float
    sensitivity: float
    population: Population
    grid: Grid

    def __post_init__(self) -> None:
        GaussianMechanism(self.noise_multiplier)
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

    def shares(self, clients: int, dimension: int, randomness: Randomness) -> Words:
        """Normal draws, rounded to the grid."""
        noise = np.empty((clients, dimension))
        randomness.fill_normals(noise, self.sigma_client)
        return self.grid.encode(noise, out=noise)

    def noisy_words(
        self,
        vectors: Floats,
        randomness: Randomness,
        silent: NDArray[np.bool_] | None = None,
        room: Floats | None = None,
    ) -> Words:
        """Noise is added to the vectors, and both are rounded together: one pass, in the room that is given."""
        room = np.empty(vectors.shape) if room is None else room
        if self.sigma_client == 0.0:
            return self.grid.encode(vectors, out=room)
        randomness.fill_normals(room, self.sigma_client)
        if silent is not None:
            room[silent] = 0.0
        room += vectors
        return self.grid.encode(room, out=room)

    def law(self, contributors: int) -> NoiseLaw:
        """Normal, with the variance of so many shares."""
        return NoiseLaw("normal", self.sigma_client * math.sqrt(contributors))

    def check(self, statistic: Statistic) -> None:
        """Refuse noise that misstates its sensitivity or that rounding would eat, and a sum that could overflow."""
        step, sigma = self.grid.step, self.sigma_client
        if statistic.sensitivity < step * math.sqrt(statistic.dimension):
            raise _too_coarse(sigma, self.grid)
        if 0 < sigma < STEPS_PER_SIGMA * step:
            raise _too_coarse(sigma, self.grid)
        if _reach(statistic, sigma, self.population) >= 2.0 ** (63 - self.grid.fraction_bits):
            raise invalid(
                "fraction_bits", "so small that the sum fits the ring", self.grid.fraction_bits, "leave it out"
            )
        least = sensitivity_on_grid(statistic, self.grid, self.population)
        if self.sensitivity < least * (1 - 1e-12):
            raise invalid(
                "sensitivity", f"at least {least:.6g}, what the statistic can move on this grid", self.sensitivity,
                "do not take part: the study would add too little noise",
            )  # fmt: skip

    def describe(self) -> dict[str, object]:
        """Canonical description, for the hash of a round."""
        return {
            "sensitivity": self.sensitivity, "noise_multiplier": self.noise_multiplier,
            "sigma_client": self.sigma_client, "fraction_bits": self.grid.fraction_bits,
        }  # fmt: skip


def gaussian_round(statistic: Statistic, noise_multiplier: float, label: str = "sum", steps: Steps = ()) -> RoundSpec:
    """A round by itself, with so many sensitivities of Gaussian noise."""
    return RoundSpec(label, statistic, GaussianMechanism(noise_multiplier), steps)


def sensitivity_on_grid(statistic: Statistic, grid: Grid, population: Population) -> float:
    """Delta + sqrt(d) 2^-f for one sample, and as many times that as samples count together."""
    one = statistic.sensitivity + float(np.sqrt(statistic.dimension)) * grid.step
    return population.weight * one


def _choose_bits(statistic: Statistic, sigma: float, population: Population, wanted: int | None = None) -> int:
    """Fraction bits of the grid: the finest on which the sum fits and that noise of this deviation asks for.

    `sigma` is what one client adds, or up to twice as much. A finer grid that is wanted is refused.
    """
    total, one = _reach(statistic, sigma, population), statistic.magnitude + NOISE_TAIL * sigma
    bits = choose_fraction_bits(total, one, wanted)
    if sigma == 0:
        return bits
    finest = _finest_bits(sigma)
    if wanted is not None and wanted > finest:
        raise invalid("fraction_bits", _finest(finest), wanted, f"use {finest} or leave it out")
    return min(bits, finest)


def _finest_bits(sigma: float) -> int:
    """Fraction bits of the finest grid for noise of which one client adds this deviation."""
    return FINEST_BITS - math.floor(math.log2(sigma))


def _finest(bits: int) -> str:
    return (
        f"at most {bits}: on a finer grid, below 2^-{FINEST_BITS} of a client's noise, the last bits of a double show"
    )


def _too_coarse(sigma: float, grid: Grid) -> InvalidInput:
    return invalid(
        "fraction_bits",
        f"so large that a step is at most 1/{STEPS_PER_SIGMA:g} of a client's noise ({sigma:.3g})",
        grid.fraction_bits,
        "leave it out; if that does not help, the ring is too small for so many clients",
    )


def _reach(statistic: Statistic, sigma: float, population: Population) -> float:
    """The largest number that a sum over all samples, with the noise of all clients, can hold."""
    return population.n * statistic.magnitude + population.clients * NOISE_TAIL * sigma
