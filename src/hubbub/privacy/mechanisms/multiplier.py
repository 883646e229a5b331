"""What laws have in common whose amount is a multiple of the sensitivity, and that account as Gaussian noise does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from hubbub.errors import invalid
from hubbub.events import CloseEvent, GaussianEvent, SampledGaussianEvent
from hubbub.privacy.accountant import ideal_budget, sampled_multiplier, shared_multipliers
from hubbub.protocols import Budget, Description, Event, Mechanism


@dataclass(frozen=True)
class MultiplierMechanism(Mechanism):
    """Noise of `noise_multiplier` sensitivities (replace-one, L2), shared among the clients.

    Its law is normal, or so close to normal noise that the difference can be stated: probabilities differ by a factor
    e^`ratio` and a term `outside` at most (`CloseEvent`).
    """

    name: ClassVar[str]
    ratio: ClassVar[float] = 0.0
    outside: ClassVar[float] = 0.0
    smallest_delta: ClassVar[float] = 0.0

    noise_multiplier: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.noise_multiplier) and self.noise_multiplier >= 0):
            raise invalid("noise_multiplier", "finite and >= 0", self.noise_multiplier, "derive it from a budget")

    def within(self, budget: Budget, weights: Sequence[float], probability: float = 1.0) -> tuple[Self, ...]:
        """Solved for the composition of all rounds, never by dividing epsilon and delta.

        Where samples select themselves the rounds must have equal weights.
        """
        ideal = self._ideal(budget, len(weights))
        if probability == 1:
            return tuple(self._with(multiplier) for multiplier in shared_multipliers(ideal, weights))
        if len(set(weights)) != 1:
            raise invalid("weights", "equal where samples select themselves", list(weights)[:3], "use equal ones")
        return (self._with(sampled_multiplier(ideal, probability, len(weights))),) * len(weights)

    def _with(self, multiplier: float) -> Self:
        return replace(self, noise_multiplier=multiplier)

    def _ideal(self, budget: Budget, rounds: int) -> Budget:
        """What is left of a budget for normal noise."""
        if budget.pure:
            raise invalid(
                "delta", f"positive for the mechanism {self.name}, whose tails no pure epsilon covers", 0,
                "give a delta below 1/N, or use the mechanism discrete-laplace",
            )  # fmt: skip
        ratio, outside = self.ratio * rounds, self.outside * rounds
        ideal = ideal_budget(budget, ratio, outside)
        if ideal is None or budget.delta < self.smallest_delta:
            raise invalid(
                "budget", f"at least delta={max(self.smallest_delta, 100 * outside):.3g} and "
                f"epsilon={max(2e-6, 4 * ratio):.3g} for {rounds} round(s) of the mechanism {self.name}", str(budget),
                "choose a larger one",
            )  # fmt: skip
        return ideal

    def event(self, probability: float = 1.0) -> Event:
        """A Gaussian event, a sampled one where samples select themselves, or one that is close to that."""
        ideal = (
            GaussianEvent(self.noise_multiplier)
            if probability == 1
            else SampledGaussianEvent(self.noise_multiplier, probability)
        )
        return CloseEvent(ideal, self.ratio, self.outside) if self.ratio or self.outside else ideal

    def describe(self) -> dict[str, object]:
        """Name and multiplier, for the round's record."""
        return {"mechanism": self.name, "noise_multiplier": float(self.noise_multiplier)}

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        multiplier = description["noise_multiplier"]
        if not isinstance(multiplier, float):
            raise invalid("noise_multiplier", "a number with a decimal point", repr(multiplier)[:40], "make it again")
        return cls(multiplier)
