"""What several events cost together, by two methods."""

from __future__ import annotations

import math

import dp_accounting
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.errors import InvalidInput
from hubbub.privacy import (
    Budget,
    GaussianEvent,
    SampledGaussianEvent,
    composed_multiplier,
    epsilon_spent,
    fits,
    noise_multiplier,
    shared_multipliers,
)


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
