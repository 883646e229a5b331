"""What several events cost together, by two methods."""

from __future__ import annotations

import json
import math
import time
import tracemalloc

import dp_accounting
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from hubbub.errors import InvalidInput
from hubbub.events import event_fields, event_of, repeated
from hubbub.privacy import (
    Budget,
    CloseEvent,
    GaussianEvent,
    PureEvent,
    SampledGaussianEvent,
    affordable_steps,
    composed_multiplier,
    epsilon_spent,
    fits,
    noise_multiplier,
    shared_multipliers,
)
from hubbub.privacy.accountant import _beyond, _sorted, ideal_budget, ideal_delta


def test_composition_of_gaussians_agrees_with_dp_accounting():
    multipliers = [1.5, 2.0, 4.0]
    accountant = dp_accounting.pld.PLDAccountant()
    for m in multipliers:
        accountant.compose(dp_accounting.GaussianDpEvent(m))
    ours = epsilon_spent([GaussianEvent(m) for m in multipliers], 1e-5)
    assert ours <= accountant.get_epsilon(1e-5) <= ours + 1e-3


def test_other_events_are_composed_by_dp_accounting_under_replace_one():
    """A replacement is a removal and an addition: dp_accounting's multiplier 4 is ours of 2."""
    sampled = dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(2.0))
    accountant = dp_accounting.pld.PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    for event in (dp_accounting.GaussianDpEvent(4.0), sampled, dp_accounting.GaussianDpEvent(6.0)):
        accountant.compose(event)
    events = [GaussianEvent(2.0), sampled, GaussianEvent(3.0)]
    assert epsilon_spent(events, 1e-5) == pytest.approx(accountant.get_epsilon(1e-5), abs=1e-3)
    assert fits(events, Budget(10.0, 1e-5))
    assert not fits(events, Budget(1.0, 1e-5))


def test_foreign_gaussian_costs_what_ours_of_half_its_multiplier_does():
    foreign, ours = [dp_accounting.GaussianDpEvent(4.0)], [GaussianEvent(2.0)]
    assert epsilon_spent(ours, 1e-5) <= epsilon_spent(foreign, 1e-5) <= epsilon_spent(ours, 1e-5) + 1e-3


@settings(max_examples=100, deadline=None)
@given(
    epsilon=st.floats(0.01, 50),
    weights=st.lists(st.floats(0.05, 1), min_size=1, max_size=6),
)
def test_shared_multipliers_meet_the_budget_exactly(epsilon: float, weights: list[float]):
    budget = Budget(epsilon, 1e-5)
    events = [GaussianEvent(m) for m in shared_multipliers(budget, weights)]
    assert fits(events, budget)
    assert epsilon_spent(events, 1e-5) == pytest.approx(epsilon, rel=1e-6)


def test_shared_multipliers_need_less_noise_than_dividing_epsilon_and_delta():
    budget = Budget(1.0, 1e-5)
    for multiplier, part in zip(shared_multipliers(budget, [0.3, 0.7]), (0.3, 0.7), strict=True):
        assert multiplier < noise_multiplier(Budget(part, part * 1e-5))


@pytest.mark.parametrize("weights", [[], [0.0, 1.0], [-1.0]])
def test_bad_weights_are_one_line(weights: list[float]):
    with pytest.raises(InvalidInput, match="weights must be positive"):
        shared_multipliers(Budget(1, 1e-5), weights)


def test_no_noise_costs_everything_and_no_event_costs_nothing():
    assert composed_multiplier([GaussianEvent(1.0), GaussianEvent(0.0)]) == 0.0
    assert math.isinf(epsilon_spent([GaussianEvent(0.0)], 1e-5))
    assert not fits([GaussianEvent(0.0)], Budget(100, 0.1))
    assert not fits([GaussianEvent(0.0), dp_accounting.GaussianDpEvent(5.0)], Budget(100, 0.1))
    assert epsilon_spent([], 1e-5) == 0.0
    assert fits([], Budget(1e-3, 1e-9))


@pytest.mark.parametrize("event", [dp_accounting.UnsupportedDpEvent(), dp_accounting.LaplaceDpEvent(1.0)])
def test_event_without_a_replace_one_account_is_one_line(event: dp_accounting.DpEvent):
    with pytest.raises(InvalidInput, match="event must be one that dp_accounting can compose"):
        fits([event], Budget(1, 1e-5))


def test_steps_with_hardly_any_noise_count_unsampled():
    """An analyst cannot keep a Compute busy for minutes with a round that it will refuse anyway."""
    for multiplier in (1e-3, 0.05, 0.39):
        sampled, plain = SampledGaussianEvent(multiplier, 0.5), GaussianEvent(multiplier)
        assert epsilon_spent([sampled], 1e-5) == epsilon_spent([plain], 1e-5)
        assert not fits([sampled], Budget(1.0, 1e-5))


# pure events


def gaussian_delta(multiplier: float, epsilon: float) -> float:
    """Of a Gaussian mechanism, for an epsilon of either sign (Balle and Wang 2018)."""
    return float(
        ndtr(0.5 / multiplier - epsilon * multiplier)
        - math.exp(epsilon) * ndtr(-0.5 / multiplier - epsilon * multiplier)
    )


def optimal_delta(one: float, count: int, epsilon: float, multiplier: float | None = None) -> float:
    """Of `count` pure mechanisms of epsilon `one` each (Kairouz, Oh and Viswanath 2015), and perhaps a Gaussian one.

    The worst pure mechanism answers a question truly with probability e^one / (1 + e^one).
    """
    total = 0.0
    for wrong in range(count + 1):
        chance = math.comb(count, wrong) * math.exp((count - wrong) * one) / (1 + math.exp(one)) ** count
        left = epsilon - (count - 2 * wrong) * one
        total += chance * (max(0.0, -math.expm1(left)) if multiplier is None else gaussian_delta(multiplier, left))
    return total


def optimal_epsilon(one: float, count: int, delta: float, multiplier: float | None = None) -> float:
    low, high = 0.0, count * one + 50.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if optimal_delta(one, count, middle, multiplier) <= delta else (middle, high)
    return high


@given(st.lists(st.tuples(st.floats(0.001, 2), st.integers(1, 50)), min_size=1, max_size=6))
def test_without_a_delta_pure_epsilons_add_up(parts: list[tuple[float, int]]):
    events = [PureEvent(epsilon, steps) for epsilon, steps in parts]
    whole = math.fsum(epsilon * steps for epsilon, steps in parts)
    assert epsilon_spent(events, 0.0) == pytest.approx(whole, rel=1e-14)
    assert fits(events, Budget(whole * (1 + 1e-12), 0.0))
    assert not fits(events, Budget(whole * (1 - 1e-9), 0.0))


@pytest.mark.parametrize(("one", "count"), [(0.1, 1), (0.1, 2), (0.05, 40), (0.3, 15), (1.0, 4), (2.0, 3), (0.01, 300)])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_with_a_delta_pure_events_cost_what_optimal_composition_says(one: float, count: int, delta: float):
    exact = optimal_epsilon(one, count, delta)
    for events in ([PureEvent(one)] * count, [PureEvent(one, count)], [repeated(PureEvent(one), count)]):
        spent = epsilon_spent(events, delta)
        assert spent <= one * count * (1 + 1e-12)
        if count > 1:
            assert exact - 1e-6 <= spent <= min(exact + 1e-4 * count, one * count) + 1e-9
        assert fits(events, Budget(spent + 1e-9, delta))
        if spent > 0.01:
            assert not fits(events, Budget(0.98 * exact, delta))


@pytest.mark.parametrize(("one", "count", "multiplier"), [(0.5, 1, 2.0), (0.1, 10, 3.0), (1.0, 2, 1.0)])
def test_pure_and_gaussian_events_together_cost_what_their_losses_add_up_to(one: float, count: int, multiplier: float):
    events = [PureEvent(one, count), GaussianEvent(multiplier)]
    exact, apart = optimal_epsilon(one, count, 1e-5, multiplier), one * count + epsilon_spent(events[1:], 1e-5)
    spent = epsilon_spent(events, 1e-5)
    assert exact - 1e-6 <= spent <= min(exact + 2e-4 * (count + 1), apart)
    assert fits(events, Budget(spent + 1e-6, 1e-5))
    assert not fits(events, Budget(0.97 * exact, 1e-5))


def test_a_repeated_randomised_response_counts_as_often_as_it_is_repeated():
    """dp_accounting 0.6 counts `SelfComposedDpEvent` of a randomised response once, whatever its count is."""
    one, count = 0.2, 12
    answer = dp_accounting.RandomizedResponseDpEvent(2 / (1 + math.exp(one)), 2)
    exact = optimal_epsilon(one, count, 1e-6)
    nested = dp_accounting.ComposedDpEvent([dp_accounting.SelfComposedDpEvent(answer, count)])
    for events in (
        [dp_accounting.SelfComposedDpEvent(answer, count)],
        [answer] * count,
        [nested],
        [PureEvent(one, count)],
    ):
        assert epsilon_spent(events, 1e-6) == pytest.approx(exact, abs=1e-4 * count)
    half = [dp_accounting.SelfComposedDpEvent(answer, count // 2), PureEvent(one, count // 2)]
    assert epsilon_spent(half, 1e-6) == pytest.approx(exact, abs=1e-4 * count)


def test_no_pure_epsilon_covers_events_that_are_not_pure():
    sampled, close = SampledGaussianEvent(2.0, 0.1), CloseEvent(GaussianEvent(50.0), 1e-6, 1e-20)
    for event in (GaussianEvent(1e6), sampled, close, dp_accounting.GaussianDpEvent(100.0)):
        assert math.isinf(epsilon_spent([PureEvent(0.1), event], 0.0))
        assert not fits([PureEvent(0.1), event], Budget(1e6, 0.0))
    assert fits([], Budget(1.0, 0.0))
    assert epsilon_spent([PureEvent(0.0, 5)], 0.0) == 0.0
    assert epsilon_spent([PureEvent(0.0, 5), GaussianEvent(2.0)], 1e-5) == epsilon_spent([GaussianEvent(2.0)], 1e-5)
    assert not fits([PureEvent(600.0), PureEvent(1.0)], Budget(100.0, 1e-5))


@pytest.mark.parametrize("tiny", [5e-324, 1e-16, 1e-13])
def test_a_pure_event_may_cost_next_to_nothing(tiny: float):
    events = [PureEvent(tiny, 3), GaussianEvent(10.0)]
    assert epsilon_spent(events, 1e-5) == pytest.approx(epsilon_spent(events[1:], 1e-5), abs=1e-9)
    assert fits([*events, SampledGaussianEvent(20.0, 0.1)], Budget(1.0, 1e-5))


@pytest.mark.parametrize("bad", [-1.0, math.nan])
def test_a_pure_event_has_an_epsilon_and_steps(bad: float):
    with pytest.raises(InvalidInput, match="epsilon must be at least 0"):
        PureEvent(bad)
    with pytest.raises(InvalidInput, match="steps must be"):
        PureEvent(1.0, 0)
    for field in ("ratio", "outside"):
        with pytest.raises(InvalidInput, match=f"{field} must be in"):
            CloseEvent(GaussianEvent(1.0), **{"ratio": 0.0, "outside": 0.0, field: bad})


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_affordable_pure_steps_are_paid_for_and_one_more_is_not(delta: float):
    budget, one = Budget(1.0, delta), PureEvent(0.031)
    steps = affordable_steps(budget, one, 1000)
    assert steps == 32 if delta == 0 else steps > 32
    assert fits([repeated(one, steps)], budget)
    assert not fits([repeated(one, steps + 1)], budget)


HEAVY = {
    "many pure steps": [PureEvent(0.1, 100_000)],
    "hopeless pure events": [PureEvent(499.0), PureEvent(498.5, 3)],
    "a pure event that is no bound at all": [PureEvent(math.inf), PureEvent(1.0)],
    "a pure event and hardly any Gaussian noise": [PureEvent(0.3), GaussianEvent(1e-3)],
    "steps on batches and hardly any Gaussian noise": [SampledGaussianEvent(2.0, 0.1), GaussianEvent(1e-3)],
    "all kinds": [PureEvent(0.3), SampledGaussianEvent(2.0, 0.1), GaussianEvent(1e-3)],
}


@pytest.mark.parametrize("name", HEAVY)
def test_what_is_refused_anyway_takes_no_time_and_no_memory(name: str):
    """Nobody keeps a Compute or a client's ledger busy with events whose losses have billions of points."""
    tracemalloc.start()
    started = time.process_time()
    try:
        assert not fits(HEAVY[name], Budget(1.0, 1e-5))
        assert epsilon_spent(HEAVY[name], 1e-5) > 100
        assert tracemalloc.get_traced_memory()[1] < 600e6
        assert time.process_time() - started < 30
    finally:
        tracemalloc.stop()


@settings(max_examples=300, deadline=None)
@given(
    st.floats(0.01, 5), st.integers(1, 60), st.floats(0.1, 5), st.sampled_from([1e-9, 1e-5, 0.1, 0.29]), st.floats(0.5, 2)
)  # fmt: skip
def test_what_is_refused_quickly_really_costs_more(
    one: float, count: int, multiplier: float, delta: float, part: float
):
    """Budgets around the exact cost of some pure events and one Gaussian."""
    budget = Budget(max(1e-3, part * optimal_epsilon(one, count, delta, multiplier)), delta)
    if _beyond(_sorted([PureEvent(one, count), GaussianEvent(multiplier)]), budget):
        assert optimal_delta(one, count, budget.epsilon, multiplier) > delta * (1 - 1e-9)


@pytest.mark.parametrize("multiplier", [5e-324, 1e-170, 1e-60, 1e60, 1e160, 1e308])
def test_multipliers_of_all_sizes_have_a_cost(multiplier: float):
    """A round's record may hold any number: too little noise is refused, too much costs next to nothing."""
    gaussian, sampled = GaussianEvent(multiplier), SampledGaussianEvent(multiplier, 0.5, 3)
    for events in ([gaussian], [CloseEvent(gaussian, 1e-100, 1e-100)], [gaussian, PureEvent(0.1)], [sampled]):
        assert fits(events, Budget(1.0, 1e-5)) == (multiplier > 1)
        spent = epsilon_spent(events, 1e-5)
        assert spent < 0.11 if multiplier > 1 else spent > 1e5


# events that are close to others


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.0, 1.5), st.floats(0.001, 0.3), st.floats(0.0, 0.05))
def test_what_close_laws_lose_is_never_more_than_stated(seed: int, epsilon: float, spread: float, outside: float):
    """Random laws of two neighbours, and real ones near them: within a factor but for one outcome that is off."""
    rng = np.random.default_rng(seed)
    ideal = rng.dirichlet(np.ones(30), size=2)
    real = ideal * np.exp(rng.uniform(-spread, spread, ideal.shape))
    real[:, 1:] *= (1 - ideal[:, :1]) / real[:, 1:].sum(axis=1, keepdims=True)
    real[:, 0] = ideal[:, 0]
    ratio = float(np.abs(np.log(real[:, 1:] / ideal[:, 1:])).max())
    real[0] = (1 - outside) * real[0]
    real[0, 0] += outside
    ratio -= math.log(1 - outside)
    outside = float(max(real[:, 0].max(), ideal[:, 0].max()))  # the first outcome is off, and counts as outside
    left = float(np.maximum(ideal[0] - math.exp(epsilon) * ideal[1], 0.0).sum())
    found = float(np.maximum(real[0] - math.exp(epsilon + 2 * ratio) * real[1], 0.0).sum())
    allowed = math.exp(ratio) * (left + outside * (1 + math.exp(epsilon + 2 * ratio)))
    assert found <= allowed + 1e-12
    assert ideal_delta(allowed, epsilon + 2 * ratio, ratio, outside) == pytest.approx(left, abs=1e-9)


@pytest.mark.parametrize(("ratio", "outside"), [(1e-6, 1e-20), (1e-100, 1e-100), (1e-3, 1e-8), (0.01, 0.0)])
def test_close_events_cost_their_ideal_and_their_distance(ratio: float, outside: float):
    ideals = [GaussianEvent(3.0), PureEvent(0.1, 4), GaussianEvent(9.0)]
    if ratio == 1e-3:
        ideals[2] = SampledGaussianEvent(2.0, 0.1, 5)  # by another road, which takes longer
    close = [CloseEvent(event, ratio, outside) for event in ideals]
    plain, spent = epsilon_spent(ideals, 1e-5), epsilon_spent(close, 1e-5)
    assert plain + 6 * ratio <= spent + 1e-12
    assert spent <= epsilon_spent(ideals, (1e-5 - 60 * outside) * math.exp(-3 * ratio)) + 6 * ratio + 1e-6
    assert fits(close, Budget(spent + 1e-5, 1e-5))
    assert not fits(close, Budget(0.98 * plain, 1e-5))
    both = CloseEvent(CloseEvent(GaussianEvent(3.0), ratio, outside), ratio, outside)
    twice = CloseEvent(GaussianEvent(3.0), 2 * ratio, 2 * outside)
    assert epsilon_spent([both], 1e-5) == pytest.approx(epsilon_spent([twice], 1e-5))
    assert repeated(close[0], 4) == CloseEvent(GaussianEvent(1.5), 4 * ratio, 4 * outside)


@pytest.mark.parametrize("outside", [1e-20, 1e-100])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 1e-3])
def test_what_fits_a_budget_fits_every_larger_one(outside: float, delta: float):
    """What lies outside counts e^epsilon times, and still an epsilon of 1000 pays for what one of 1 does."""
    events = [CloseEvent(GaussianEvent(20.0), 1e-6, outside), PureEvent(0.1)]
    for epsilon in (1.0, 10.0, 37.0, 50.0, 230.0, 1000.0):
        assert fits(events, Budget(epsilon, delta)), epsilon
    assert not fits(events, Budget(0.1, delta))


def test_close_events_whose_distance_eats_the_delta_cost_everything():
    far = CloseEvent(GaussianEvent(3.0), 0.0, 1e-5)
    assert math.isinf(epsilon_spent([far], 1e-5))
    assert not fits([far], Budget(5.0, 1e-5))
    assert ideal_budget(Budget(5.0, 1e-5), 0.0, 1e-5) is None
    assert not fits([CloseEvent(GaussianEvent(30.0), 0.4, 0.0)], Budget(0.7, 1e-5))


@pytest.mark.parametrize(
    "event",
    [
        GaussianEvent(2.5), SampledGaussianEvent(1.5, 0.25, 7), PureEvent(0.3), PureEvent(0.3, 9),
        CloseEvent(GaussianEvent(2.5), 1e-6, 1e-20), CloseEvent(SampledGaussianEvent(1.5, 0.25, 7), 1e-100, 1e-100),
        CloseEvent(PureEvent(0.5, 2), 0.1, 0.0), dp_accounting.RandomizedResponseDpEvent(0.5, 4),
    ],
    ids=str,
)  # fmt: skip
def test_events_are_read_back_from_their_fields(event):
    assert event_of(json.loads(json.dumps(event_fields(event), allow_nan=False))) == event
