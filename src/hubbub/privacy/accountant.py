"""What a list of events costs together.

Gaussian events compose exactly into one Gaussian (the multipliers' inverse squares add up), and pure ones by adding
their epsilons, so for these the answer is closed. Anything else, steps on self-selected batches among them, is composed
by dp_accounting's privacy loss distributions under replace-one, into which the Gaussians enter as that one event.

Laws that are only close to another (`CloseEvent`) are accounted for as that other law, within a smaller budget
(`ideal_budget`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from hubbub.budget import SMALLEST_EPSILON, Budget
from hubbub.errors import InvalidInput
from hubbub.events import CloseEvent, Event, GaussianEvent, PureEvent, SampledGaussianEvent, repeated
from hubbub.privacy.calibration import epsilon_of, log_delta, noise_multiplier

if TYPE_CHECKING:
    from dp_accounting import DpEvent

_SOLVED = 5e-3  # relative, of a multiplier found by bisection
_HOPELESS = 500.0  # an epsilon beyond which nothing is private
_LEAST = 0.4  # steps with less noise count as if nobody had been sampled: dp_accounting would take minutes
_LOUD = 0.05  # with less Gaussian noise (an epsilon of 200 and more) epsilons are added: composing would take gigabytes
_TINY = 1e-12  # a pure epsilon below counts as this one: 1 + e^epsilon would be 2
_MOST = 1e50  # multipliers count as no larger, and as none below 1/this, whose squares would not be numbers
_POINTS = 2e6  # of a loss, at most, so that composing takes seconds


def composed_multiplier(events: Iterable[GaussianEvent]) -> float:
    """The noise multiplier of the one Gaussian mechanism that equals all of them together."""
    inverse = 0.0
    for event in events:
        if event.noise_multiplier < 1 / _MOST:
            return 0.0
        if not math.isinf(event.noise_multiplier):
            inverse += min(event.noise_multiplier, _MOST) ** -2
    return math.inf if inverse == 0 else inverse**-0.5


def epsilon_spent(events: Sequence[Event], delta: float) -> float:
    """The smallest epsilon, at this delta, that covers all the events together; infinite where none does."""
    parts = _sorted(events)
    if parts.outside or parts.ratio:
        return _spent_closely(parts, delta)
    if delta == 0:
        return math.inf if parts.others or not math.isinf(parts.multiplier) else parts.pure
    if not parts.others:
        added = parts.pure + (0.0 if math.isinf(parts.multiplier) else epsilon_of(parts.multiplier, delta))
        if not parts.several:
            return added
        return min(added, float(_composed(parts).get_epsilon(delta)))
    plain = _unamplified(parts)
    if plain is not None and parts.multiplier < _LOUD:
        return epsilon_spent(plain, delta)
    found = float(_composed(parts).get_epsilon(delta))
    return found if plain is None else min(found, epsilon_spent(plain, delta))


def _spent_closely(parts: _Parts, delta: float) -> float:
    """Of the ideal laws at a smaller delta, and what their distance adds.

    What is lost of delta depends on epsilon (`ideal_budget`), so it is taken for the epsilon of delta / 2, which is no
    less than the answer as long as less than half is lost. Where more would be, the answer is "infinite".
    """
    most = epsilon_spent(parts.ideal, delta / 2) + 2 * parts.ratio
    left = ideal_delta(delta, most, parts.ratio, parts.outside)
    return math.inf if left < delta / 2 or delta == 0 else epsilon_spent(parts.ideal, left) + 2 * parts.ratio


def ideal_delta(delta: float, epsilon: float, ratio: float, outside: float) -> float:
    """What is left of delta for ideal laws where the real ones are so close to them (`ideal_budget`)."""
    return (delta - outside * math.exp(ratio) * (1 + math.exp(min(epsilon, 700.0)))) * math.exp(-ratio)


def ideal_budget(budget: Budget, ratio: float, outside: float) -> Budget | None:
    """What is left for ideal laws where the real ones are so close to them; None where nothing is.

    Let P and P' be the real laws for two neighbours, Q and Q' the ideal ones, k the ratio and o what is outside. Then
    P <= e^k Q + o <= e^k (e^e Q' + d) + o <= e^(k + e) (e^k P' + o) + e^k d + o.

    What is outside counts e^e times, so that a large e would cost all of the delta: e is then taken to be smaller, and
    what fits that budget fits the larger one. So much epsilon protects nobody anyway.
    """
    if budget.pure:
        return None
    epsilon = min(budget.epsilon, math.log(budget.delta / outside) - math.log(8)) if outside else budget.epsilon
    left, rest = ideal_delta(budget.delta, epsilon, ratio, outside), epsilon - 2 * ratio
    return Budget(rest, left) if left > 0 and rest >= SMALLEST_EPSILON else None


def fits(events: Sequence[Event], budget: Budget) -> bool:
    """True where all the events together stay within the budget."""
    parts = _sorted(events)
    if parts.outside or parts.ratio:
        inner = ideal_budget(budget, parts.ratio, parts.outside)
        return inner is not None and fits(parts.ideal, inner)
    if budget.pure:
        return not parts.others and math.isinf(parts.multiplier) and parts.pure <= budget.epsilon
    if _beyond(parts, budget):
        return False
    if not parts.others:
        if _added(parts, budget):
            return True
        return parts.several and _delta(parts, budget.epsilon) <= budget.delta
    plain = _unamplified(parts)
    if plain is not None and fits(plain, budget):
        return True
    return _delta(parts, budget.epsilon) <= budget.delta


def _beyond(parts: _Parts, budget: Budget) -> bool:
    """True where the Gaussian and pure events alone are known to cost more, by bounds that take no time.

    Gaussian ones by their own delta. All of them by the mean and deviation of their loss (that of randomised answers
    for pure ones): it exceeds mean - deviation with probability 1/2 at least (Cantelli), and by one more than epsilon
    then, which takes a delta of (1 - 1/e) / 2.
    """
    if parts.multiplier <= 0:
        return True
    if not math.isinf(parts.multiplier) and log_delta(parts.multiplier, budget.epsilon) > math.log(budget.delta):
        return True
    mean, variance = 0.5 / parts.multiplier**2, 1 / parts.multiplier**2
    for event in parts.pures:
        epsilon = min(event.epsilon, _HOPELESS)
        mean += event.steps * epsilon * math.tanh(epsilon / 2)
        variance += event.steps * (epsilon / math.cosh(epsilon / 2)) ** 2
    return budget.delta < 0.3 and mean - math.sqrt(variance) >= budget.epsilon + 1


def _added(parts: _Parts, budget: Budget) -> bool:
    """What pure events leave of epsilon is enough for the Gaussian ones. Exact where there is one kind of the two."""
    left = budget.epsilon - parts.pure
    if math.isinf(parts.multiplier):
        return left >= 0
    return left > 0 and log_delta(parts.multiplier, left) <= math.log(budget.delta)


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


def affordable_steps(budget: Budget, one: Event, most: int) -> int:
    """How many such releases the budget pays for, at most `most`; 0 where it does not pay for one."""

    def paid(steps: int) -> bool:
        return fits([repeated(one, steps)], budget)

    if paid(most):
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if paid(middle) else (low, middle)
    return low


@dataclass(frozen=True)
class _Parts:
    """Events by how they compose."""

    multiplier: float
    """Of all Gaussian ones together."""
    pures: tuple[PureEvent, ...]
    others: tuple[Event, ...]
    ratio: float
    outside: float
    ideal: tuple[Event, ...]
    """All events, each as the law that it is close to."""

    @property
    def pure(self) -> float:
        """What the pure events cost where their epsilons are added."""
        return math.fsum(event.epsilon * event.steps for event in self.pures)

    @property
    def several(self) -> bool:
        """True where adding the epsilons of pure events is more than they cost together, for a positive delta."""
        count = sum(event.steps for event in self.pures)
        return self.multiplier >= _LOUD and (count > 1 or (count == 1 and not math.isinf(self.multiplier)))


def _unamplified(parts: _Parts) -> list[Event] | None:
    """All steps as if nobody had been sampled: exact, and never less than what they cost. None with other events."""
    found: list[Event] = [GaussianEvent(parts.multiplier), *parts.pures]
    for event in parts.others:
        if not isinstance(event, SampledGaussianEvent):
            return None
        found.append(_plain(event))
    return found


def _plain(event: SampledGaussianEvent) -> GaussianEvent:
    return GaussianEvent(event.noise_multiplier / math.sqrt(event.steps))


def _sorted(events: Iterable[Event]) -> _Parts:
    gaussian: list[GaussianEvent] = []
    pures: list[PureEvent] = []
    others: list[Event] = []
    ideal: list[Event] = []
    ratio = outside = 0.0
    for event in events:
        while isinstance(event, CloseEvent):
            ratio, outside, event = ratio + event.ratio, outside + event.outside, event.ideal
        if isinstance(event, SampledGaussianEvent) and event.noise_multiplier > _MOST:
            event = replace(event, noise_multiplier=_MOST)
        ideal.append(event)
        if isinstance(event, GaussianEvent):
            gaussian.append(event)
        elif isinstance(event, SampledGaussianEvent) and (event.probability == 1 or event.noise_multiplier < _LEAST):
            gaussian.append(_plain(event))
        elif isinstance(event, PureEvent):
            pures.append(event)
        else:
            others.append(event)
    return _Parts(composed_multiplier(gaussian), tuple(pures), tuple(others), ratio, outside, tuple(ideal))


def _delta(parts: _Parts, epsilon: float) -> float:
    """The delta that goes with this epsilon; remembered, because many clients of one study ask for the same."""
    try:
        hash(parts)
    except TypeError:  # such as a composition of dp_accounting, which holds a list
        return _composed_delta(parts, epsilon)
    return _remembered_delta(parts, epsilon)


def _composed_delta(parts: _Parts, epsilon: float) -> float:
    return float(_composed(parts).get_delta(epsilon))


_remembered_delta = lru_cache(maxsize=256)(_composed_delta)


def _composed(parts: _Parts):  # type: ignore[no-untyped-def]  # dp_accounting is untyped
    from dp_accounting import GaussianDpEvent, NonPrivateDpEvent, UnsupportedEventError

    accountant = _accountant(_grid(parts))
    try:
        for event in _in_its_terms((*parts.pures, *parts.others)):
            accountant.compose(event)
    except UnsupportedEventError as error:
        raise InvalidInput(f"event must be one that dp_accounting can compose: {error}") from None
    if parts.multiplier <= 0:
        accountant.compose(NonPrivateDpEvent())
    elif not math.isinf(parts.multiplier):
        # dp_accounting counts noise per add-or-remove step, of which a replacement takes two; we count per replacement
        accountant.compose(GaussianDpEvent(2 * parts.multiplier))
    return accountant


def _accountant(interval: float):  # type: ignore[no-untyped-def]  # dp_accounting is untyped
    """dp_accounting's, but that it counts a repeated randomised response as often as it is repeated."""
    from dp_accounting import NeighboringRelation, RandomizedResponseDpEvent
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.pld.privacy_loss_distribution import from_randomized_response

    class Accountant(PLDAccountant):  # type: ignore[misc]  # untyped
        def _maybe_compose(self, event, count, do_compose):  # type: ignore[no-untyped-def]
            if not (
                isinstance(event, RandomizedResponseDpEvent) and do_compose and count > 1 and event.noise_parameter
            ):
                return super()._maybe_compose(event, count, do_compose)
            one = from_randomized_response(
                event.noise_parameter, event.num_buckets, value_discretization_interval=interval,
                neighboring_relation=self.neighboring_relation,
            )  # fmt: skip
            self._pld = self._pld.compose(one.self_compose(count))  # type: ignore[has-type]  # untyped
            return None

    return Accountant(NeighboringRelation.REPLACE_ONE, interval)


def _grid(parts: _Parts) -> float:
    """How finely dp_accounting cuts the loss: 1e-4, coarser where the loss is large (it rounds toward privacy)."""
    sampled = [each for each in parts.others if isinstance(each, SampledGaussianEvent) and each.noise_multiplier > 0]
    rough = sum(event.steps * (event.probability / event.noise_multiplier) ** 2 for event in sampled)
    reach = sum(event.steps * event.epsilon for event in parts.pures if event.epsilon <= _HOPELESS)
    return max(1e-4 * min(max(1.0, rough), 100.0), 2 * reach / _POINTS)


def _in_its_terms(events: Sequence[Event]) -> list[DpEvent]:
    """As dp_accounting knows them; equal steps are put together, so that they are composed at once."""
    from dp_accounting import SelfComposedDpEvent

    steps: Counter[SampledGaussianEvent | PureEvent] = Counter()
    found: list[DpEvent] = []
    for event in events:
        if isinstance(event, SampledGaussianEvent | PureEvent):
            steps[replace(event, steps=1)] += event.steps
        else:
            found.append(event)
    return found + [SelfComposedDpEvent(_in_its_term(event), count) for event, count in steps.items()]


def _in_its_term(event: SampledGaussianEvent | PureEvent) -> DpEvent:
    from dp_accounting import (
        GaussianDpEvent,
        NonPrivateDpEvent,
        NoOpDpEvent,
        PoissonSampledDpEvent,
        RandomizedResponseDpEvent,
    )

    if isinstance(event, PureEvent):  # of all pure mechanisms, a randomised answer to one question tells most
        if event.epsilon > _HOPELESS:
            return NonPrivateDpEvent()
        if not event.epsilon:
            return NoOpDpEvent()
        return RandomizedResponseDpEvent(2 / (1 + math.exp(max(event.epsilon, _TINY))), 2)
    if event.noise_multiplier <= 0:
        return NonPrivateDpEvent()
    # its multiplier is per add-or-remove step, of which a replacement takes two
    return PoissonSampledDpEvent(event.probability, GaussianDpEvent(2 * event.noise_multiplier))
