"""The study: what all parties agree on before a single share is sent, identified by its hash.

Whatever is not in the study cannot change the noise.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hubbub.errors import InvalidInput, invalid
from hubbub.privacy import DistributedGaussian, GaussianEvent, Population, SampledGaussianEvent
from hubbub.securesum import FixedPoint, PublicKey, check_computes, choose_fraction_bits
from hubbub.statistics import Statistic, probability_of

STEPS_PER_SIGMA = 8.0
"""A client's noise spans this many steps of the grid at least, so that rounding does not eat it."""
FINEST_BITS = 30
"""A step of the grid is no less than about 2^-30 of a client's noise: the last bits of a double depend on what was
added to what, and a coarser grid cuts them off."""
NOISE_TAIL = 10.0  # no draw of the generator lies further out than 9.35 standard deviations


@dataclass(frozen=True)
class RoundPlan:
    """One round, settled: what is summed, on which grid, and how much noise each client adds."""

    statistic: Statistic
    mechanism: DistributedGaussian
    fixed_point: FixedPoint

    @property
    def dimension(self) -> int:
        """Length of the vectors summed in this round."""
        return self.statistic.dimension

    @property
    def event(self) -> GaussianEvent | SampledGaussianEvent:
        """What the accountant is told: where clients select themselves, with which probability."""
        probability = probability_of(self.statistic)
        multiplier = self.mechanism.noise_multiplier
        return GaussianEvent(multiplier) if probability == 1 else SampledGaussianEvent(multiplier, probability)

    def check(self) -> None:
        """Refuse a plan that misstates its sensitivity, whose noise rounding would eat, or whose sum could overflow.

        A client checks this on its own: a study made elsewhere is not taken at its word. Whether the noise
        multiplier is large enough is a matter of the budget, which `contribute` checks where it is given.
        """
        if probability_of(self.statistic) < 1 and self.mechanism.population.weight > 1:
            raise invalid(
                "unit", "'sample' where samples select themselves, since each has a coin of its own", "'client'",
                "let all samples count in every step, or let each client hold one",
            )  # fmt: skip
        step, sigma = self.fixed_point.step, self.mechanism.sigma_client
        least = sensitivity_on_grid(self.statistic, self.fixed_point, self.mechanism.population)
        if self.statistic.sensitivity < step * float(np.sqrt(self.dimension)):
            raise _too_coarse(sigma, self.fixed_point)
        check_steps_per_sigma(sigma, self.fixed_point)
        if reach(self.statistic, sigma, self.mechanism.population) >= 2.0 ** (63 - self.fixed_point.fraction_bits):
            raise invalid(
                "fraction_bits", "so small that the sum fits the ring", self.fixed_point.fraction_bits, "leave it out"
            )
        if self.mechanism.sensitivity < least * (1 - 1e-12):
            raise invalid(
                "sensitivity",
                f"at least {least:.6g}, what the statistic can move on this grid",
                self.mechanism.sensitivity,
                "do not take part: the study would add too little noise",
            )

    def describe(self) -> dict[str, object]:
        """Canonical description, for the study's hash."""
        return {
            "statistic": self.statistic.describe(),
            "dimension": self.dimension,
            "sensitivity": self.mechanism.sensitivity,
            "noise_multiplier": self.mechanism.noise_multiplier,
            "sigma_client": self.mechanism.sigma_client,
            "fraction_bits": self.fixed_point.fraction_bits,
        }


def plan_round(
    statistic: Statistic, noise_multiplier: float, population: Population, fraction_bits: int | None = None
) -> RoundPlan:
    """Choose the grid, add its rounding to the sensitivity, and scale the noise to that.

    Rounding moves each coordinate by at most half a step, so between neighbours by at most one: on the grid one
    vector moves by at most Delta + sqrt(d) 2^-f.
    """
    rough = DistributedGaussian(noise_multiplier, 2 * population.weight * statistic.sensitivity, population)
    bits = choose_bits(statistic, rough.sigma_client, population, fraction_bits)
    sensitivity = sensitivity_on_grid(statistic, FixedPoint(bits), population)
    mechanism = DistributedGaussian(noise_multiplier, sensitivity, population)
    plan = RoundPlan(statistic, mechanism, FixedPoint(bits))
    plan.check()
    return plan


def choose_bits(statistic: Statistic, sigma: float, population: Population, wanted: int | None = None) -> int:
    """Fraction bits of the grid: the finest on which the sum fits and that noise of this deviation asks for.

    `sigma` is what one client adds, or up to twice as much. A finer grid that is wanted is refused.
    """
    total, one = reach(statistic, sigma, population), statistic.magnitude + NOISE_TAIL * sigma
    bits = choose_fraction_bits(total, one, wanted)
    if sigma == 0:
        return bits
    finest = finest_bits(sigma)
    if wanted is not None and wanted > finest:
        raise invalid("fraction_bits", _finest(finest), wanted, f"use {finest} or leave it out")
    return min(bits, finest)


def finest_bits(sigma: float) -> int:
    """Fraction bits of the finest grid for noise of which one client adds this deviation."""
    return FINEST_BITS - math.floor(math.log2(sigma))


def _finest(bits: int) -> str:
    return (
        f"at most {bits}: on a finer grid, below 2^-{FINEST_BITS} of a client's noise, the last bits of a double show"
    )


def check_steps_per_sigma(sigma: float, grid: FixedPoint) -> None:
    """Refuse a grid on which rounding would eat noise of this deviation."""
    if 0 < sigma < STEPS_PER_SIGMA * grid.step:
        raise _too_coarse(sigma, grid)


def _too_coarse(sigma: float, grid: FixedPoint) -> InvalidInput:
    return invalid(
        "fraction_bits",
        f"so large that a step is at most 1/{STEPS_PER_SIGMA:g} of a client's noise ({sigma:.3g})",
        grid.fraction_bits,
        "leave it out; if that does not help, the ring is too small for so many clients",
    )


def check_finest(plan: RoundPlan) -> None:
    """Refuse a round on so fine a grid that the last bits of double precision would show."""
    sigma, bits = plan.mechanism.sigma_client, plan.fixed_point.fraction_bits
    if sigma > 0 and bits > finest_bits(sigma):
        raise invalid("fraction_bits", _finest(finest_bits(sigma)), bits, "plan the round again")


def reach(statistic: Statistic, sigma: float, population: Population) -> float:
    """The largest number that a sum over all samples, with the noise of all clients, can hold."""
    return population.n * statistic.magnitude + population.clients * NOISE_TAIL * sigma


def sensitivity_on_grid(statistic: Statistic, fixed_point: FixedPoint, population: Population) -> float:
    """Delta + sqrt(d) 2^-f for one sample, and as many times that as samples count together."""
    one = statistic.sensitivity + float(np.sqrt(statistic.dimension)) * fixed_point.step
    return population.weight * one


@dataclass(frozen=True)
class Study:
    """Who takes part, the M Computes' keys, and every round.

    A study whose rounds are settled one after the other (docs/decisions/0010) has a `Study` for each of them: `first`
    is then that round's number, and `agreement` the digest of the signed records it was made from.
    """

    population: Population
    keys: tuple[PublicKey, ...]
    rounds: tuple[RoundPlan, ...]
    first: int = 0
    agreement: bytes = b""

    def __post_init__(self) -> None:
        check_computes(len(self.keys))
        if self.first and not self.agreement:
            raise invalid("first", "0 without an agreement", self.first, "name the records that the round comes from")
        if len({key.data for key in self.keys}) != len(self.keys):
            raise InvalidInput("keys must be distinct, got one key for two Computes; each Compute needs its own")
        for plan in self.rounds:
            plan.check()
            if plan.mechanism.population != self.population:
                raise InvalidInput(
                    f"rounds must be planned for {self.population}, got {plan.mechanism.population}; plan them again"
                )

    @property
    def computes(self) -> int:
        """M, the number of Computes."""
        return len(self.keys)

    def plan(self, number: int) -> RoundPlan:
        """The plan of this round."""
        if not 0 <= number - self.first < len(self.rounds):
            last = self.first + len(self.rounds) - 1
            raise invalid("round", f"in {self.first}..{last}", number, "the study has no other round")
        return self.rounds[number - self.first]

    def canonical(self) -> bytes:
        """The same bytes for the same study, on every machine."""
        content: dict[str, object] = {
            **self.population.describe(),
            "computes": [{"suite": key.suite, "key": key.data.hex()} for key in self.keys],
            "rounds": [plan.describe() for plan in self.rounds],
        }
        if self.agreement:
            content |= {"agreement": self.agreement.hex(), "first": self.first}
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the canonical bytes: the study's name."""
        return hashlib.sha256(self.canonical()).digest()
