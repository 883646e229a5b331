"""What a list of events costs together.

Gaussian events compose exactly into one Gaussian (the multipliers' inverse squares add up), so for
them the answer is closed. Anything else is composed by dp_accounting's privacy loss distributions
under replace-one, into which the Gaussians enter as that one event.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from hubbub.errors import InvalidInput
from hubbub.privacy.budget import Budget
from hubbub.privacy.calibration import epsilon_of, log_delta, noise_multiplier
from hubbub.privacy.events import Event, GaussianEvent


def composed_multiplier(events: Iterable[GaussianEvent]) -> float:
    """The noise multiplier of the one Gaussian mechanism that equals all of them together."""
    inverse = 0.0
    for event in events:
        if event.noise_multiplier <= 0:
            return 0.0
        inverse += event.noise_multiplier**-2
    return math.inf if inverse == 0 else inverse**-0.5


def epsilon_spent(events: Sequence[Event], delta: float) -> float:
    """The smallest epsilon, at this delta, that covers all the events together."""
    gaussian, others = _sorted(events)
    multiplier = composed_multiplier(gaussian)
    if not others:
        return 0.0 if math.isinf(multiplier) else epsilon_of(multiplier, delta)
    return float(_composed(multiplier, others).get_epsilon(delta))


def fits(events: Sequence[Event], budget: Budget) -> bool:
    """True where all the events together stay within the budget."""
    gaussian, others = _sorted(events)
    multiplier = composed_multiplier(gaussian)
    if not others:
        if multiplier <= 0:
            return False
        return math.isinf(multiplier) or log_delta(multiplier, budget.epsilon) <= math.log(budget.delta)
    return bool(_composed(multiplier, others).get_delta(budget.epsilon) <= budget.delta)


def split(budget: Budget, shares: Sequence[float]) -> list[float]:
    """Noise multipliers of several rounds whose *composition* meets the budget.

    The shares say how much louder one round may be than another: 1/multiplier is in proportion to
    its share. Solved for the whole, never by dividing epsilon and delta.
    """
    if not shares or min(shares) <= 0:
        raise InvalidInput(f"shares must be positive, got shares={list(shares)}; name one per round")
    whole = noise_multiplier(budget)
    length = math.sqrt(sum(share**2 for share in shares))
    return [whole * length / share for share in shares]


def _sorted(events: Iterable[Event]) -> tuple[list[GaussianEvent], list[Event]]:
    gaussian: list[GaussianEvent] = []
    others: list[Event] = []
    for event in events:
        if isinstance(event, GaussianEvent):
            gaussian.append(event)
        else:
            others.append(event)
    return gaussian, others


def _composed(multiplier: float, others: Sequence[Event]):  # type: ignore[no-untyped-def]  # dp_accounting is untyped
    from dp_accounting import GaussianDpEvent, NeighboringRelation, NonPrivateDpEvent, UnsupportedEventError
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(NeighboringRelation.REPLACE_ONE)
    try:
        for event in others:
            accountant.compose(event)
    except UnsupportedEventError as error:
        raise InvalidInput(f"event must be one that dp_accounting can compose: {error}") from None
    if multiplier <= 0:
        accountant.compose(NonPrivateDpEvent())
    elif not math.isinf(multiplier):
        # dp_accounting counts noise per add-or-remove step, of which a replacement takes two; we count per replacement
        accountant.compose(GaussianDpEvent(2 * multiplier))
    return accountant
