"""What every law of noise must do: enough of it for the budget, the stated law, and nothing that depends on luck.

A new mechanism is one line in MECHANISMS. A package with a mechanism of its own calls `check_mechanism` in its tests.
Statistical checks have a false alarm rate of FALSE_ALARM each, and fixed seeds.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats
from scipy.special import hyp2f1

from conftest import FALSE_ALARM
from contracts.structure import satisfies
from hubbub.errors import InvalidInput
from hubbub.privacy import MECHANISMS as REGISTRY
from hubbub.privacy import Budget, GaussianMechanism, Population, epsilon_spent, fits
from hubbub.privacy.mechanisms import DiscreteGaussianMechanism, DiscreteLaplaceMechanism, SkellamMechanism
from hubbub.protocols import Mechanism, RoundNoise
from hubbub.randomness import Randomness
from hubbub.statistics import Means, OneHot, Regression
from hubbub.statistics.bounds import Box

MECHANISMS: dict[str, Mechanism] = {
    "gaussian": GaussianMechanism(1.0),
    "gaussian, little": GaussianMechanism(0.25),
    "discrete-gaussian": DiscreteGaussianMechanism(1.0),
    "discrete-gaussian, little": DiscreteGaussianMechanism(0.25),
    "discrete-laplace": DiscreteLaplaceMechanism(0.5),
    "discrete-laplace, little": DiscreteLaplaceMechanism(6.0),
    "skellam": SkellamMechanism(1.0),
    "skellam, little": SkellamMechanism(0.25),
}
STATISTICS = [Means((1.0, 2.0, 3.0)), OneHot(5), Regression(Box((1.0, 0.5), 2.0))]
POPULATIONS = [Population(2), Population(50, 5, 4), Population(10, 1, 1, 80, 8, unit="client")]
BUDGETS = [Budget(0.1, 1e-6), Budget(1.0, 1e-5), Budget(8.0, 1e-9)]
BOUND = stats.norm.isf(FALSE_ALARM / 2)


PURE = Budget(1.0, 0.0)


def stirred(noise: RoundNoise) -> float:
    """The least chance that a share is not zero. One of a few clusters (law with a shape) often is; others hardly are.

    For a difference of two negative binomials the chance of zero has a closed form.
    """
    law = noise.law(1)
    if law.shape is None:
        return 1.0
    q = np.exp(-np.sqrt(2 * law.shape) * noise.grid.step / law.std)
    return float(1 - (1 - q) ** (2 * law.shape) * hyp2f1(law.shape, law.shape, 1.0, q * q))


def settled(mechanism: Mechanism) -> list[RoundNoise]:
    return [mechanism.settled(statistic, people) for statistic in STATISTICS for people in POPULATIONS]


def it_has_all_members(mechanism: Mechanism) -> None:
    satisfies(mechanism, Mechanism)
    satisfies(mechanism.settled(STATISTICS[0], POPULATIONS[0]), RoundNoise)


def rounds_together_stay_within_the_budget(mechanism: Mechanism) -> None:
    for budget in BUDGETS:
        for weights in ([1.0], [0.3, 0.7], [1.0] * 20, [5.0, 1.0, 1.0]):
            found = mechanism.within(budget, weights)
            assert len(found) == len(weights)
            events = [each.event() for each in found]
            assert fits(events, budget)
            assert epsilon_spent(events, budget.delta) > 0.5 * budget.epsilon, "most of the budget is used"


def a_budget_without_delta_is_kept_or_refused_in_one_line(mechanism: Mechanism) -> None:
    """Kept by events that need no delta either, or refused, as hubbub's own laws do, as a bad delta with a remedy."""
    for weights in ([1.0], [0.3, 0.7], [1.0] * 20):
        for probability in (1.0, 0.2):
            try:
                found = mechanism.within(PURE, weights if probability == 1 else [1.0] * len(weights), probability)
            except InvalidInput as refused:
                assert "\n" not in str(refused)
                if mechanism.describe()["mechanism"] in REGISTRY._own:
                    assert str(refused).startswith("delta must be positive")
                    assert "; give a delta" in str(refused)
                assert not fits([mechanism.event()], Budget(1e6, 0.0))
                continue
            events = [each.event(probability) for each in found]
            assert fits(events, PURE)
            assert 0.9 < epsilon_spent(events, 0.0) <= 1.0


def self_selected_rounds_stay_within_the_budget_with_no_more_noise(mechanism: Mechanism) -> None:
    budget, steps = Budget(1.0, 1e-5), 8
    sampled, plain = (mechanism.within(budget, [1.0] * steps, probability) for probability in (0.2, 1.0))
    assert fits([each.event(0.2) for each in sampled], budget)
    noise = [each[0].settled(STATISTICS[0], POPULATIONS[1]).sigma_std for each in (sampled, plain)]
    assert noise[0] <= noise[1] * (1 + 1e-9)


def twice_the_weight_is_half_the_noise(mechanism: Mechanism) -> None:
    one, two = mechanism.within(Budget(1.0, 1e-5), [1.0, 2.0])
    quiet, loud = (each.settled(STATISTICS[0], POPULATIONS[1]).sigma_std for each in (two, one))
    assert loud / quiet == pytest.approx(2.0, rel=0.05)


def its_own_amount_does_not_matter_within_a_budget(mechanism: Mechanism) -> None:
    again = mechanism.within(Budget(0.5, 1e-7), [1.0])[0]
    for weights in ([1.0], [0.3, 0.7]):
        found = [each.describe() for each in mechanism.within(Budget(1.0, 1e-5), weights)]
        assert [each.describe() for each in again.within(Budget(1.0, 1e-5), weights)] == found


def bad_weights_are_one_line(mechanism: Mechanism) -> None:
    for weights in ([], [0.0, 1.0], [-1.0]):
        with pytest.raises(InvalidInput):
            mechanism.within(Budget(1.0, 1e-5), weights)


def everybody_settles_the_same_noise(mechanism: Mechanism) -> None:
    """Twice here, from its description elsewhere, and on the grid that was found."""
    elsewhere = REGISTRY.read(json.loads(json.dumps(mechanism.describe())))
    for statistic in STATISTICS:
        for people in POPULATIONS:
            noise = mechanism.settled(statistic, people)
            text = json.dumps(noise.describe(), allow_nan=False)
            bits = noise.grid.fraction_bits
            for other in (
                mechanism.settled(statistic, people),
                elsewhere.settled(statistic, people),
                mechanism.settled(statistic, people, bits),
            ):
                assert json.dumps(other.describe(), allow_nan=False) == text
                assert (other.population, other.grid) == (noise.population, noise.grid)
            noise.check(statistic)


def noise_is_scaled_to_what_one_unit_of_privacy_can_move(mechanism: Mechanism) -> None:
    for statistic in STATISTICS:
        for people in POPULATIONS:
            noise = mechanism.settled(statistic, people)
            assert noise.population == people
            assert noise.sensitivity >= people.weight * statistic.sensitivity
            assert noise.law(people.shares).std >= noise.sigma_std * (1 - 1e-9), "who is counted on adds enough"
            assert noise.law(1).std == pytest.approx(noise.sigma_client)
            stds = [noise.law(n).std for n in (0, 1, 2, people.clients)]
            assert stds == sorted(stds)
            assert stds[0] == 0.0


def summed_shares_have_the_stated_deviation(mechanism: Mechanism) -> None:
    """40000 coordinates; the error of a variance is estimated from the fourth moment, whatever the law."""
    for seed, noise in enumerate(settled(mechanism)):
        for contributors in (1, 5):
            words = noise.shares(contributors, 40_000, Randomness.simulation(seed))
            assert words.shape == (contributors, 40_000)
            sums = noise.grid.decode(words.sum(axis=0, dtype=np.uint64)) / noise.law(contributors).std
            error = np.sqrt((np.mean(sums**4) - np.mean(sums**2) ** 2) / sums.size)
            assert abs(np.mean(sums**2) - 1) < BOUND * error
            assert abs(np.mean(sums)) < BOUND / np.sqrt(sums.size)


def words_of_both_ways_have_the_stated_deviation(mechanism: Mechanism) -> None:
    """`noisy_words` for clients with one sample, as `encoded` and `shares` for others."""
    vectors = np.random.default_rng(0).uniform(-1, 1, size=(2000, 20))
    before = vectors.copy()
    for noise in settled(mechanism):
        room = np.empty(vectors.shape)
        words = noise.noisy_words(vectors, Randomness.simulation(1))
        np.testing.assert_array_equal(words, noise.noisy_words(vectors, Randomness.simulation(1), None, room))
        np.testing.assert_array_equal(vectors, before)
        added = (noise.grid.decode(words) - vectors).ravel() / noise.sigma_client
        error = np.sqrt((np.mean(added**4) - np.mean(added**2) ** 2) / added.size)
        assert abs(np.mean(added**2) - 1) < BOUND * error
        still = np.abs(added) * noise.sigma_client <= noise.grid.step  # no more than rounding does
        least = stirred(noise)
        assert np.mean(~still) > least - 0.01 - BOUND * np.sqrt(least * (1 - least) / added.size)
        assert np.unique(added[~still]).size > 0.5 * np.sum(~still)


def two_draws_are_never_alike(mechanism: Mechanism) -> None:
    noise = mechanism.settled(STATISTICS[0], POPULATIONS[1])
    randomness = Randomness.simulation(3)
    first, second = (noise.shares(1, 100, randomness) for _ in range(2))
    assert (first != second).mean() > 0.9 * stirred(noise)
    np.testing.assert_array_equal(noise.shares(1, 100, Randomness.simulation(3)), first)


def encoded_words_are_the_vectors_to_a_step(mechanism: Mechanism) -> None:
    for statistic in STATISTICS:
        vectors = np.random.default_rng(2).uniform(-1, 1, (50, statistic.dimension)) * statistic.magnitude
        for people in POPULATIONS:
            noise = mechanism.settled(statistic, people)
            words = noise.encoded(vectors.copy())
            assert words.dtype == np.uint64
            assert np.abs(noise.grid.decode(words) - vectors).max() <= noise.grid.step


def silent_clients_add_none(mechanism: Mechanism) -> None:
    vectors, silent = np.ones((6, 50)), np.array([True, False, False, True, True, False])
    for noise in settled(mechanism):
        added = noise.grid.decode(noise.noisy_words(vectors, Randomness.simulation(4), silent)) - vectors
        assert np.abs(added[silent]).max() <= noise.grid.step
        assert (np.abs(added[~silent]) > noise.grid.step).mean() > 0.5 * stirred(noise)


def unsafe_grids_are_refused(mechanism: Mechanism) -> None:
    """One that could overflow or show the last bits of a double, and one on which rounding would eat the noise."""
    for statistic in STATISTICS:
        for people in POPULATIONS:
            for bits in (300, -300):
                with pytest.raises(InvalidInput, match="fraction_bits must be .*, got fraction_bits="):
                    mechanism.settled(statistic, people, bits)


def description_reads_back(mechanism: Mechanism) -> None:
    description = json.loads(json.dumps(mechanism.describe(), allow_nan=False))
    again = REGISTRY.read(description)
    assert type(again) is type(mechanism)
    assert again.describe() == mechanism.describe()
    assert again.event() == mechanism.event()
    with pytest.raises(InvalidInput):
        REGISTRY.read({**description, "unknown": 1})
    with pytest.raises(InvalidInput):
        REGISTRY.read({"mechanism": description["mechanism"]})


CHECKS: list[Callable[[Mechanism], None]] = [
    it_has_all_members,
    rounds_together_stay_within_the_budget,
    a_budget_without_delta_is_kept_or_refused_in_one_line,
    self_selected_rounds_stay_within_the_budget_with_no_more_noise,
    twice_the_weight_is_half_the_noise,
    its_own_amount_does_not_matter_within_a_budget,
    bad_weights_are_one_line,
    everybody_settles_the_same_noise,
    noise_is_scaled_to_what_one_unit_of_privacy_can_move,
    summed_shares_have_the_stated_deviation,
    words_of_both_ways_have_the_stated_deviation,
    two_draws_are_never_alike,
    encoded_words_are_the_vectors_to_a_step,
    silent_clients_add_none,
    unsafe_grids_are_refused,
    description_reads_back,
]


def check_mechanism(mechanism: Mechanism) -> None:
    """All of the contract, for one mechanism; for the tests of a package that brings one."""
    for check in CHECKS:
        check(mechanism)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", MECHANISMS)
def test_contract(name: str, check: Callable[[Mechanism], None]):
    check(MECHANISMS[name])


def test_every_registered_mechanism_is_here():
    assert {str(mechanism.describe()["mechanism"]) for mechanism in MECHANISMS.values()} >= set(REGISTRY._own)
