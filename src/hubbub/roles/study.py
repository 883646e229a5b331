"""The study: what all parties agree on before a single share is sent, identified by its hash.

Whatever is not in the study cannot change the noise.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from hubbub.errors import InvalidInput, invalid
from hubbub.privacy import Event, Population
from hubbub.protocols import Mechanism, RoundNoise, RoundSpec, SecureSum, Statistic, Steps
from hubbub.securesum import Additive, PublicKey, check_computes


@dataclass(frozen=True)
class RoundPlan:
    """One round, settled: what becomes of a row, what is summed, on which grid, and how much noise each client adds."""

    statistic: Statistic
    noise: RoundNoise
    mechanism: Mechanism
    steps: Steps = ()

    @property
    def dimension(self) -> int:
        """Length of the vectors summed in this round."""
        return self.statistic.dimension

    @property
    def population(self) -> Population:
        """Who takes part."""
        return self.noise.population

    @property
    def event(self) -> Event:
        """What the accountant is told: where clients select themselves, with which probability."""
        return self.mechanism.event(self.statistic.probability)

    def check(self) -> None:
        """Refuse a plan that misstates its sensitivity, whose noise rounding would eat, or whose sum could overflow.

        A client checks this on its own. Whether there is enough noise is a matter of the budget, which `contribute`
        checks by the mechanism's event where it is given. Noise and mechanism belong together where both come from
        one description, as in `settle_round` and in the records of a study made elsewhere.
        """
        if self.statistic.probability < 1 and self.population.weight > 1:
            raise invalid(
                "unit", "'sample' where samples select themselves, since each has a coin of its own", "'client'",
                "let all samples count in every step, or let each client hold one",
            )  # fmt: skip
        self.noise.check(self.statistic)

    def describe(self) -> dict[str, object]:
        """Canonical description, for the study's hash."""
        steps = {"steps": [dict(step) for step in self.steps]} if self.steps else {}
        return {
            "statistic": self.statistic.describe(), "dimension": self.dimension, **self.noise.describe(), **steps,
        }  # fmt: skip


def settle_round(spec: RoundSpec, population: Population, fraction_bits: int | None = None) -> RoundPlan:
    """What a round over these clients comes to: its grid and its noise, before any data is touched."""
    noise = spec.mechanism.settled(spec.statistic, population, fraction_bits)
    plan = RoundPlan(spec.statistic, noise, spec.mechanism, tuple(spec.steps))
    plan.check()
    return plan


@dataclass(frozen=True)
class Study:
    """Who takes part, the M Computes' keys, how sums are kept secret, and every round.

    A study whose rounds are settled one after the other (docs/decisions/0010) has a `Study` for each of them: `first`
    is then that round's number, and `agreement` the digest of the signed records it was made from.
    """

    population: Population
    keys: tuple[PublicKey, ...]
    rounds: tuple[RoundPlan, ...]
    first: int = 0
    agreement: bytes = b""
    scheme: SecureSum | None = None
    """Additive sharing among all Computes where it is left out."""

    def __post_init__(self) -> None:
        check_computes(len(self.keys))
        if self.scheme is not None and self.scheme.computes != len(self.keys):
            raise invalid("scheme", f"for {len(self.keys)} Computes", self.scheme.computes, "make the study again")
        if self.first and not self.agreement:
            raise invalid("first", "0 without an agreement", self.first, "name the records that the round comes from")
        if len({key.data for key in self.keys}) != len(self.keys):
            raise InvalidInput("keys must be distinct, got one key for two Computes; each Compute needs its own")
        for plan in self.rounds:
            plan.check()
            if plan.population != self.population:
                raise InvalidInput(
                    f"rounds must be planned for {self.population}, got {plan.population}; plan them again"
                )

    @property
    def computes(self) -> int:
        """M, the number of Computes."""
        return len(self.keys)

    @cached_property
    def secure_sum(self) -> SecureSum:
        """How sums are kept secret."""
        return Additive(len(self.keys)) if self.scheme is None else self.scheme

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
        if self.scheme is not None:
            content["scheme"] = self.scheme.describe()
        if self.agreement:
            content |= {"agreement": self.agreement.hex(), "first": self.first}
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the canonical bytes: the study's name."""
        return hashlib.sha256(self.canonical()).digest()
