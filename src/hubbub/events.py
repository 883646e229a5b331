"""What was done, apart from what it costs: events feed any accountant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from hubbub.errors import invalid, whole

if TYPE_CHECKING:
    from dp_accounting import DpEvent


@dataclass(frozen=True)
class GaussianEvent:
    """One Gaussian mechanism; the multiplier is sigma over the replace-one L2 sensitivity."""

    noise_multiplier: float


@dataclass(frozen=True)
class SampledGaussianEvent:
    """So many Gaussian mechanisms, in each of which a sample counts with this probability, by a coin that nobody sees.

    The multiplier is sigma over the replace-one L2 sensitivity, as in `GaussianEvent`.
    """

    noise_multiplier: float
    probability: float
    steps: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.probability <= 1:
            raise invalid("probability", "in (0, 1]", self.probability, "use the batch over the number of clients")
        whole("steps", self.steps, 1, "count the steps")


Event: TypeAlias = "GaussianEvent | SampledGaussianEvent | DpEvent"
"""A release of hubbub, or an event of dp_accounting that the user adds.

Such an event is read in dp_accounting's own terms (its noise over the add-or-remove sensitivity) and charged under
replace-one, like everything here; one for which dp_accounting has no replace-one account is refused.
"""
