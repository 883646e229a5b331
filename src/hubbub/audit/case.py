"""What the auditor finds out about one claim."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from hubbub.budget import Budget

_LARGEST = 1000.0  # what an infinite epsilon is printed as
_ROUNDING = 1e-6  # relative, of an epsilon that is computed and not estimated


@dataclass(frozen=True)
class Setting:
    """How an audit is made: what is claimed, how often it is tried, and how sure a refutation is."""

    budget: Budget
    trials: int
    """Runs of the pipeline for each of two neighbouring data sets (fewer where one run has many canaries)."""
    error: float
    """The probability that one sound claim is called refuted."""


@dataclass(frozen=True)
class Case:
    """One claim, and what became of the attempt to refute it."""

    name: str
    claimed: float
    """The epsilon that is claimed against this adversary, at the budget's delta."""
    lower_bound: float
    """Epsilon is no less than this, but for the stated error."""
    use: float | None
    """Which share of the claimed epsilon the largest signal that was found really uses, exactly; None where there is
    no such number."""
    refuted: bool
    method: str
    trials: int

    @classmethod
    def of(cls, name: str, claimed: float, lower_bound: float, use: float | None, method: str, trials: int) -> Case:
        """Refuted where more is lost than claimed: surely (the bound) or exactly (the use)."""
        refuted = lower_bound > claimed * (1 + _ROUNDING) or (use is not None and not use <= 1 + _ROUNDING)
        found = min(lower_bound, _LARGEST)
        used = None if use is None else (min(use, _LARGEST) if not math.isnan(use) else _LARGEST)
        return cls(name, claimed, found, used, refuted, method, trials)

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "name": self.name, "claimed": self.claimed, "lower_bound": self.lower_bound, "use": self.use,
            "refuted": self.refuted, "method": self.method, "trials": self.trials,
        }  # fmt: skip


@dataclass(frozen=True)
class Check:
    """One attempt to refute a claim."""

    name: str
    attempt: Callable[[Setting, str], Case]
    """From the setting and the name to the case."""

    def run(self, setting: Setting) -> Case:
        """What is found."""
        return self.attempt(setting, self.name)
