"""The budget (epsilon, delta) that an analysis may spend."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hubbub.errors import invalid

SMALLEST_EPSILON = 1e-6  # below, the calibration would lose its digits


@dataclass(frozen=True)
class Budget:
    """(epsilon, delta)-differential privacy, replace-one: what one sample may reveal at most.

    delta = 0 asks for pure differential privacy, which Laplace noise gives and Gaussian noise does not.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _number("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _number("delta", self.delta))
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise invalid("epsilon", "positive and finite", self.epsilon, "1 is common, above 5 protects little")
        if self.epsilon < SMALLEST_EPSILON:
            raise invalid(
                "epsilon", f"at least {SMALLEST_EPSILON:g}", self.epsilon, "smaller ones leave nothing but noise"
            )
        if not 0 <= self.delta < 1:
            raise invalid("delta", "at least 0 and below 1", self.delta, "choose it below 1/N, e.g. 1e-5")

    @property
    def pure(self) -> bool:
        """True where nothing may go wrong at all: delta = 0."""
        return self.delta == 0

    def __str__(self) -> str:
        return f"(epsilon={self.epsilon:g}, delta={self.delta:g})"


def _number(field: str, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # whatever it is, float() decides
    except (TypeError, ValueError):
        raise invalid(field, "a number", repr(value), "give for example 1.0 or 1e-5") from None
