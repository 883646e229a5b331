"""What was done, apart from what it costs: events feed any accountant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from dp_accounting import DpEvent


@dataclass(frozen=True)
class GaussianEvent:
    """One Gaussian mechanism; the multiplier is sigma over the replace-one L2 sensitivity."""

    noise_multiplier: float


Event: TypeAlias = "GaussianEvent | DpEvent"
"""A release of hubbub, or an event of dp_accounting that the user adds.

Such an event is read in dp_accounting's own terms (its noise over the add-or-remove sensitivity) and charged under
replace-one, like everything here; one for which dp_accounting has no replace-one account is refused.
"""
