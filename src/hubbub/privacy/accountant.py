"""What a list of events costs together.

Gaussian events compose exactly into one Gaussian (the multipliers' inverse squares add up), so for
them the answer is closed. Anything else, steps on self-selected batches among them, is composed by
dp_accounting's privacy loss distributions under replace-one, into which the Gaussians enter as that one event.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from hubbub.budget import Budget
from hubbub.errors import InvalidInput
from hubbub.events import Event, GaussianEvent, SampledGaussianEvent
from hubbub.privacy.calibration import epsilon_of, log_delta, noise_multiplier

if TYPE_CHECKING:
    from dp_accounting import DpEvent

_SOLVED = 5e-3  # relative, of a multiplier found by bisection
_LEAST = 0.4  # steps with less noise count as if nobody had been sampled: dp_accounting would take minutes


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
    found = float(_composed(multiplier, others).get_epsilon(delta))
    plain = _unamplified(events)
    return found if plain is None else min(found, epsilon_spent(plain, delta))


def fits(events: Sequence[Event], budget: Budget) -> bool:
    """True where all the events together stay within the budget."""
    gaussian, others = _sorted(events)
    multiplier = composed_multiplier(gaussian)
    if not others:
        if multiplier <= 0:
            return False
        return math.isinf(multiplier) or log_delta(multiplier, budget.epsilon) <= math.log(budget.delta)
    plain = _unamplified(events)
    if plain is not None and fits(plain, budget):
        return True
    return _delta(multiplier, tuple(others), budget.epsilon) <= budget.delta


def shared_multipliers(budget: Budget, weights: Sequence[float]) -> list[float]:
    """Noise multipliers of several rounds whose *composition* meets the budget.

    The weights say how much louder one round may be than another: 1/multiplier is in proportion to its weight. Solved
    for the whole, never by dividing epsilon and delta.
    """
    if not weights or min(weights) <= 0:
        raise InvalidInput(f"weights must be positive, got weights={list(weights)}; name one per round")
    whole = noise_multiplier(budget)
    length = math.sqrt(sum(weight**2 for weight in weights))
    return [whole * length / weight for weight in weights]


@lru_cache(maxsize=256)
def sampled_multiplier(budget: Budget, probability: float, steps: int) -> float:
    """The noise multiplier of every one of these steps, so that all of them together meet the budget.

    From the multiplier without amplification, which always suffices, downward, then by bisection; the answer is the end
    that was checked to meet the budget. Less noise than 0.4 is not looked for: dp_accounting would take minutes.
    """
    enough = noise_multiplier(budget) * math.sqrt(steps)
    if probability == 1 or enough <= _LEAST:
        return enough
    short = max(enough / 2, _LEAST)
    while fits([SampledGaussianEvent(short, probability, steps)], budget):
        if short == _LEAST:
            return short
        enough, short = short, max(short / 2, _LEAST)
    while enough / short > 1 + _SOLVED:
        middle = math.sqrt(enough * short)
        if fits([SampledGaussianEvent(middle, probability, steps)], budget):
            enough = middle
        else:
            short = middle
    return enough


def affordable_steps(budget: Budget, multiplier: float, probability: float, most: int) -> int:
    """How many steps of this noise the budget pays for, at most `most`; 0 where it does not pay for one."""

    def paid(steps: int) -> bool:
        return fits([SampledGaussianEvent(multiplier, probability, steps)], budget)

    if paid(most):
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if paid(middle) else (low, middle)
    return low


def _unamplified(events: Sequence[Event]) -> list[GaussianEvent] | None:
    """All steps as if nobody had been sampled: exact, and never less than what they cost. None with other events."""
    found = []
    for event in events:
        if isinstance(event, SampledGaussianEvent):
            found.append(GaussianEvent(event.noise_multiplier / math.sqrt(event.steps)))
        elif isinstance(event, GaussianEvent):
            found.append(event)
        else:
            return None
    return found


def _sorted(events: Iterable[Event]) -> tuple[list[GaussianEvent], list[Event]]:
    gaussian: list[GaussianEvent] = []
    others: list[Event] = []
    for event in events:
        if isinstance(event, GaussianEvent):
            gaussian.append(event)
        elif isinstance(event, SampledGaussianEvent) and (event.probability == 1 or event.noise_multiplier < _LEAST):
            gaussian.append(GaussianEvent(event.noise_multiplier / math.sqrt(event.steps)))
        else:
            others.append(event)
    return gaussian, others


def _delta(multiplier: float, others: tuple[Event, ...], epsilon: float) -> float:
    """The delta that goes with this epsilon; remembered, because many clients of one study ask for the same."""
    try:
        hash(others)
    except TypeError:  # such as a composition of dp_accounting, which holds a list
        return _composed_delta(multiplier, others, epsilon)
    return _remembered_delta(multiplier, others, epsilon)


def _composed_delta(multiplier: float, others: tuple[Event, ...], epsilon: float) -> float:
    return float(_composed(multiplier, others).get_delta(epsilon))


_remembered_delta = lru_cache(maxsize=256)(_composed_delta)


def _composed(multiplier: float, others: Sequence[Event]):  # type: ignore[no-untyped-def]  # dp_accounting is untyped
    from dp_accounting import GaussianDpEvent, NeighboringRelation, NonPrivateDpEvent, UnsupportedEventError
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(NeighboringRelation.REPLACE_ONE, _grid(others))
    try:
        for event in _in_its_terms(others):
            accountant.compose(event)
    except UnsupportedEventError as error:
        raise InvalidInput(f"event must be one that dp_accounting can compose: {error}") from None
    if multiplier <= 0:
        accountant.compose(NonPrivateDpEvent())
    elif not math.isinf(multiplier):
        # dp_accounting counts noise per add-or-remove step, of which a replacement takes two; we count per replacement
        accountant.compose(GaussianDpEvent(2 * multiplier))
    return accountant


def _grid(events: Sequence[Event]) -> float:
    """How finely dp_accounting cuts the loss: 1e-4, coarser where the loss is large (it rounds toward privacy)."""
    sampled = [event for event in events if isinstance(event, SampledGaussianEvent) and event.noise_multiplier > 0]
    rough = sum(event.steps * (event.probability / event.noise_multiplier) ** 2 for event in sampled)
    return 1e-4 * min(max(1.0, rough), 100.0)


def _in_its_terms(events: Sequence[Event]) -> list[DpEvent]:
    """As dp_accounting knows them; equal sampled steps are put together, so that they are composed at once."""
    from dp_accounting import GaussianDpEvent, NonPrivateDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent

    steps: Counter[tuple[float, float]] = Counter()
    found: list[DpEvent] = []
    for event in events:
        if isinstance(event, SampledGaussianEvent):
            steps[event.noise_multiplier, event.probability] += event.steps
        else:
            found.append(event)
    for (multiplier, probability), count in steps.items():
        if multiplier <= 0:
            found.append(NonPrivateDpEvent())
        else:  # its multiplier is per add-or-remove step, of which a replacement takes two
            sampled = PoissonSampledDpEvent(probability, GaussianDpEvent(2 * multiplier))
            found.append(SelfComposedDpEvent(sampled, count))
    return found
