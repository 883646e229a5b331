"""A number between two known ends."""

from dataclasses import dataclass

import numpy as np

from hubbub.protocols import Description, Floats, Statistic, invalid


@dataclass(frozen=True)
class ToyRange(Statistic):
    """x -> x clipped to [low, high], counted from the middle of that range."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            if type(getattr(self, name)) is not float or not abs(getattr(self, name)) < 1e12:
                raise invalid(name, "a number with a decimal point, below 1e12", getattr(self, name), "correct it")
        if not self.low < self.high:
            raise invalid("high", f"above low={self.low}", self.high, "name the larger end last")

    @property
    def columns(self) -> int:
        return 1

    @property
    def dimension(self) -> int:
        return 1

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    @property
    def magnitude(self) -> float:
        return (self.high - self.low) / 2

    @property
    def sensitivity(self) -> float:
        return self.high - self.low  # one sample at the low end, the other at the high end

    @property
    def sensitivity_l1(self) -> float:
        return self.sensitivity  # of a vector of one number the same

    def vectors(self, rows: Floats) -> Floats:
        return np.clip(rows, self.low, self.high) - self.middle

    def describe(self) -> dict[str, object]:
        return {"statistic": "toy-range", "package": "hubbub-toys", "low": self.low, "high": self.high}

    @classmethod
    def of(cls, description: Description) -> "ToyRange":
        return cls(description["low"], description["high"])
