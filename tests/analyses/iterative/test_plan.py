"""Steps, batches and noise: what is claimed is what dp_accounting says, and nothing is claimed that batches do not give."""

from __future__ import annotations

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from scipy.stats import norm

from hubbub.analyses.iterative.plan import Schedule, epochs, make_plan
from hubbub.errors import BudgetExceeded, InvalidInput
from hubbub.privacy import (
    GAUSSIAN,
    Budget,
    GaussianEvent,
    Ledger,
    Population,
    SampledGaussianEvent,
    epsilon_spent,
    fits,
    noise_multiplier,
)
from hubbub.statistics import Count

BUDGET = Budget(1.0, 1e-5)
REPLACE_ONE = dp_accounting.NeighboringRelation.REPLACE_ONE


def plan_of(steps=100, batch=None, selection="self", multiplier=None, clients=1000, budget=BUDGET):
    schedule = Schedule(steps=steps, batch=batch, selection=selection, noise_multiplier=multiplier)
    return make_plan(schedule, budget, Population(clients), GAUSSIAN, "steps", lambda probability: Count(1.0))


@pytest.mark.parametrize(("steps", "batch"), [(100, 100), (30, 500)])
def test_self_selected_epsilon_agrees_with_an_independent_composition(steps: int, batch: int):
    """In dp_accounting's terms: noise over the add-or-remove sensitivity C, of which ours (2C) is twice."""
    plan = plan_of(steps, batch)
    accountant = PLDAccountant(REPLACE_ONE)
    sigma_over_clip = 2 * plan.noise_multiplier
    event = dp_accounting.GaussianDpEvent(sigma_over_clip)
    accountant.compose(dp_accounting.PoissonSampledDpEvent(batch / 1000, event), steps - 1)
    accountant.compose(dp_accounting.PoissonSampledDpEvent(batch / 1000, event))
    claimed = epsilon_spent([plan.event(steps)], BUDGET.delta)
    assert claimed == pytest.approx(accountant.get_epsilon(BUDGET.delta), rel=2e-3)
    assert 0.99 * BUDGET.epsilon < claimed <= BUDGET.epsilon


def test_everybody_in_every_step_is_a_composition_of_gaussians():
    plan = plan_of(50)
    accountant = PLDAccountant(REPLACE_ONE)
    accountant.compose(dp_accounting.GaussianDpEvent(2 * plan.noise_multiplier), 50)
    claimed = epsilon_spent([plan.event(50)], BUDGET.delta)
    assert claimed <= accountant.get_epsilon(BUDGET.delta) <= claimed + 2e-3
    assert plan.noise_multiplier == pytest.approx(noise_multiplier(BUDGET) * np.sqrt(50))


def test_self_selected_batches_need_less_noise_and_their_pair_is_the_worst():
    """Any two gradients no longer than C: none is told apart better than the opposite ones that dp_accounting takes."""
    assert plan_of(100, 100).noise_multiplier < 0.2 * plan_of(100).noise_multiplier
    q, sigma = 0.2, 1.0
    x = np.linspace(-9, 9, 40_001)

    def delta(a: float, b: float, epsilon: float) -> float:
        densities = [(1 - q) * norm.pdf(x, 0, sigma) + q * norm.pdf(x, mean, sigma) for mean in (a, b)]
        return float(np.trapezoid(np.maximum(densities[0] - np.exp(epsilon) * densities[1], 0), x))

    for epsilon in (0.05, 0.3, 1.0):
        worst = delta(1, -1, epsilon)
        for a in np.linspace(-1, 1, 9):
            for b in np.linspace(-1, 1, 9):
                assert delta(a, b, epsilon) <= worst + 1e-9


def test_a_picked_client_pays_for_its_own_steps_only_and_nothing_is_amplified():
    plan = plan_of(100, 100, "trainer")
    counts = np.bincount(plan.picked.ravel(), minlength=1000)
    assert counts.tolist() == [10] * 1000
    assert plan.event(100) == GaussianEvent(plan.noise_multiplier / np.sqrt(10))
    assert plan.noise_multiplier == pytest.approx(noise_multiplier(BUDGET) * np.sqrt(10))
    assert plan.probability == 1.0


def test_epochs_pick_every_client_once_before_any_twice():
    picked = epochs(10, 3, 7, np.random.default_rng(1))
    assert picked.shape == (7, 3)
    for first in (0, 3):
        assert len(set(picked[first : first + 3].ravel())) == 9


@pytest.mark.parametrize("selection", ["self", "trainer"])
def test_given_noise_the_run_stops_at_the_budget(selection):
    plan = plan_of(5000, 100, selection, multiplier=6.0)
    assert 0 < plan.steps < 5000
    assert fits([plan.event(plan.steps)], BUDGET)
    more = plan_of(plan.steps + (1 if selection == "self" else 10), 100, selection, multiplier=0.0)
    event = more.event(more.steps)
    louder = (
        SampledGaussianEvent(6.0, event.probability, event.steps)
        if selection == "self"
        else GaussianEvent(6.0 / np.sqrt(more.participations(more.steps)))
    )
    assert not fits([louder], BUDGET)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch": 1001}, r"batch must be a whole number in 1..1000, got batch=1001"),
        ({"batch": 0}, r"batch must be a whole number in 1..1000"),
        ({"steps": 0}, r"steps must be a whole number in 1..100000, got steps=0"),
        ({"selection": "luck"}, r"selection must be 'self' or 'trainer', got selection='luck'"),
        ({"multiplier": 0.5}, r"budget must pay for at least one step, got \(epsilon=1, delta=1e-05\)"),
        ({"multiplier": 0.5, "batch": 10, "selection": "trainer"}, r"budget must pay for at least one step"),
        ({"multiplier": -1.0}, r"noise_multiplier must be finite and >= 0"),
        ({"clients": 1}, r"clients must be a whole number >= 2"),
    ],
)
def test_bad_plans_are_one_line(arguments, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        plan_of(**arguments)
    assert "\n" not in str(caught.value)


def test_ledger_keeps_sampled_steps_beside_others_and_in_a_file(tmp_path):
    sampled, plain = SampledGaussianEvent(3.0, 0.1, 50), GaussianEvent(8.0)
    ledger = Ledger(Budget(2.0, 1e-5), tmp_path / "ledger.json")
    ledger.charge("training", sampled)
    ledger.charge("mean", plain)
    again = Ledger.open(tmp_path / "ledger.json")
    assert [entry.event for entry in again.entries] == [sampled, plain]
    accountant = PLDAccountant(REPLACE_ONE)
    poisson = dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(6.0))
    accountant.compose(poisson, 50)
    accountant.compose(dp_accounting.GaussianDpEvent(16.0))
    assert again.epsilon == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-3)
    with pytest.raises(BudgetExceeded):
        again.charge("too much", SampledGaussianEvent(0.5, 0.5, 100))
    again.exchange(again.entries[:1], ())
    assert [entry.event for entry in Ledger.open(tmp_path / "ledger.json").entries] == [plain]
