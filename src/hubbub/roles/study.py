"""The study: what all parties agree on before a single share is sent, identified by its hash.

Whatever is not in the study cannot change the noise.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hubbub.errors import invalid
from hubbub.privacy import DistributedGaussian, check_population
from hubbub.securesum import FixedPoint, PublicKey, check_computes, choose_fraction_bits
from hubbub.statistics import Statistic

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
    statistic: Statistic,
    noise_multiplier: float,
    clients: int,
    tolerated: int,
    fraction_bits: int | None = None,
) -> RoundPlan:
    """Choose the grid, add its rounding to the sensitivity, and scale the noise to that.

    Rounding moves each coordinate by at most half a step, so between neighbours by at most one:
    the sensitivity on the grid is Delta + sqrt(d) 2^-f.
    """
    check_population(clients, tolerated)
    rough = DistributedGaussian(noise_multiplier, 2 * statistic.sensitivity, clients, tolerated)
    reach = statistic.magnitude + NOISE_TAIL * rough.sigma_client
    bits = choose_fraction_bits(clients, reach, fraction_bits)
    rounding = float(np.sqrt(statistic.dimension)) * 2.0**-bits
    if rounding > statistic.sensitivity:
        raise invalid(
            "fraction_bits",
            f"enough that rounding ({rounding:.3g}) stays below the sensitivity ({statistic.sensitivity:.3g})",
            bits, "the ring is too small: use fewer clients, tighter bounds or a larger budget",
        )  # fmt: skip
    mechanism = DistributedGaussian(noise_multiplier, statistic.sensitivity + rounding, clients, tolerated)
    return RoundPlan(statistic, mechanism, FixedPoint(bits))


@dataclass(frozen=True)
class Study:
    """N clients, T tolerated, the M Computes' keys, and every round."""

    clients: int
    tolerated: int
    keys: tuple[PublicKey, ...]
    rounds: tuple[RoundPlan, ...]

    def __post_init__(self) -> None:
        check_population(self.clients, self.tolerated)
        check_computes(len(self.keys))

    @property
    def computes(self) -> int:
        """M, the number of Computes."""
        return len(self.keys)

    def canonical(self) -> bytes:
        """The same bytes for the same study, on every machine."""
        content = {
            "hubbub": 1,
            "clients": self.clients,
            "tolerated": self.tolerated,
            "computes": [{"suite": key.suite, "key": key.data.hex()} for key in self.keys],
            "rounds": [plan.describe() for plan in self.rounds],
        }
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the canonical bytes: the study's name."""
        return hashlib.sha256(self.canonical()).digest()
