"""Noise of whole numbers is as private as it claims: by the exact law of what is released, on grids so coarse that the
law can be computed, and for two neighbours whose sums are as far apart as they can be.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ive

from contracts.test_statistics import STATISTICS, wild_rows
from hubbub.errors import InvalidInput
from hubbub.events import CloseEvent, GaussianEvent, SampledGaussianEvent, noise_multiplier_of
from hubbub.grid import Grid
from hubbub.privacy import Budget, GaussianMechanism, Population
from hubbub.privacy.accountant import epsilon_spent, fits
from hubbub.privacy.calibration import log_delta
from hubbub.privacy.mechanisms.discrete_gaussian import DiscreteGaussianMechanism, DiscreteGaussianNoise
from hubbub.privacy.mechanisms.discrete_laplace import DiscreteLaplaceMechanism, DiscreteLaplaceNoise
from hubbub.privacy.mechanisms.skellam import PER_COORDINATE, SkellamMechanism, SkellamNoise
from hubbub.privacy.mechanisms.whole import ceil_root, moved_l1, moved_l2
from hubbub.privacy.samplers import Cells, PoissonLaw
from hubbub.randomness import Randomness
from hubbub.statistics import Box, Means, OneHot, Regression
from laws import (
    Law,
    discrete_gaussian,
    hockey_stick,
    largest_log_ratio,
    mixed,
    polya_difference,
    skellam,
    together,
    two_sided_geometric,
)

BUDGET = Budget(1.0, 1e-5)
PEOPLE = [Population(2), Population(6, 1, 1), Population(9, 2, 3), Population(8, 1, 1, 24, 3, "client")]
ONE = Means((1.0,))


# how little whole numbers cost


@pytest.mark.parametrize("mechanism", [DiscreteGaussianMechanism(), SkellamMechanism()], ids=lambda each: each.name)
def test_whole_numbers_need_hardly_more_noise_than_continuous_ones(mechanism):
    """77 coordinates, 1000 clients, epsilon 1: at most 1 % more variance at the same budget."""
    statistic, people = Regression(Box((1.0,) * 11, 1.0)), Population(1000, 10, 10)
    assert statistic.dimension == 77
    stds = [
        law.within(BUDGET, [1.0])[0].settled(statistic, people).law(1000).std
        for law in (mechanism, GaussianMechanism())
    ]
    assert 1 - 1e-6 <= (stds[0] / stds[1]) ** 2 <= 1.01


# what is released, exactly


def coarse(mechanism, bits: int, people: Population, statistic=ONE):
    """On a grid of few steps: settled as it is for everybody, but for the check that would refuse some of them."""
    return mechanism.within(BUDGET, [1.0])[0].on(statistic, people, Grid(bits))


def honest(people: Population) -> int:
    """D clients are missing, C tell their share, and one subtracts its own."""
    return people.clients - people.dropouts - people.colluders - 1


@pytest.mark.parametrize("people", PEOPLE, ids=str)
@pytest.mark.parametrize("bits", [1, 2])
def test_released_discrete_gaussian_sums_are_as_private_as_their_event_claims(people: Population, bits: int):
    noise = coarse(DiscreteGaussianMechanism(), bits, people)
    assert isinstance(noise, DiscreteGaussianNoise)
    noise.check(ONE)
    law = together([discrete_gaussian(noise.amount)] * honest(people))
    claimed = math.exp(log_delta(noise.mechanism.noise_multiplier, BUDGET.epsilon))
    assert claimed <= BUDGET.delta
    deltas = [hockey_stick(law, law.shifted(by), BUDGET.epsilon) for by in range(1, noise.moved + 1)]
    assert deltas == sorted(deltas)
    assert deltas[-1] <= claimed
    ideal = math.exp(log_delta(math.sqrt(law.variance) / noise.moved, BUDGET.epsilon))
    assert deltas[-1] == pytest.approx(ideal, rel=0.01), "as normal noise of its variance"


@pytest.mark.parametrize("people", PEOPLE[:3], ids=str)
def test_released_skellam_sums_are_as_private_as_their_event_claims_up_to_its_ratio(people: Population):
    """On grids too coarse for the mechanism, so that its distance from normal noise, 901 / v, can be seen."""
    noise = coarse(SkellamMechanism(), 2, people)
    assert isinstance(noise, SkellamNoise)
    with pytest.raises(InvalidInput, match="fraction_bits"):
        noise.check(ONE)
    law = together([skellam(noise.amount)] * honest(people))
    assert law.variance == pytest.approx(honest(people) * noise.variance)
    ratio = PER_COORDINATE / law.variance
    delta = hockey_stick(law, law.shifted(noise.moved), BUDGET.epsilon + 2 * ratio)
    assert delta <= math.exp(ratio) * math.exp(log_delta(noise.mechanism.noise_multiplier, BUDGET.epsilon)) + 1e-20
    ideal = math.exp(log_delta(math.sqrt(law.variance) / noise.moved, BUDGET.epsilon))
    assert hockey_stick(law, law.shifted(noise.moved), BUDGET.epsilon) == pytest.approx(ideal, rel=0.1)


@pytest.mark.parametrize("people", PEOPLE, ids=str)
@pytest.mark.parametrize("budget", [Budget(0.5, 0.0), Budget(1.0, 0.0), Budget(1.0, 1e-6)], ids=str)
def test_released_discrete_laplace_sums_change_no_probability_by_more_than_claimed(people: Population, budget: Budget):
    noise = DiscreteLaplaceMechanism().within(budget, [1.0])[0].on(ONE, people, Grid(3))
    assert isinstance(noise, DiscreteLaplaceNoise)
    noise.check(ONE)
    share = polya_difference(noise.scale, 1 / honest(people), reach=25.0)
    law = together([share] * honest(people))
    epsilon = noise.mechanism.event().epsilon
    assert epsilon <= budget.epsilon
    found = largest_log_ratio(law, law.shifted(noise.moved), 1e-9)
    assert 0.9 * budget.epsilon < found <= epsilon * (1 + 1e-6)
    more = law + share
    assert largest_log_ratio(more, more.shifted(noise.moved), 1e-9) <= epsilon * (1 + 1e-6), "more shares hide more"


def test_several_coordinates_of_discrete_laplace_sums_share_one_epsilon():
    """Every way to divide what one sample can move (L1) between two coordinates, by the products of their laws."""
    statistic, people = Means((1.0, 0.5)), Population(4, 0, 1)
    noise = DiscreteLaplaceMechanism(2.0).on(statistic, people, Grid(1))
    law = two_sided_geometric(noise.scale, 4.0)
    for first in range(noise.moved + 1):
        moved = law.shifted(first), law.shifted(noise.moved - first)
        low, high = law.first + noise.moved, law.first + law.p.size - 1 - noise.moved
        both = np.outer(law.within(low, high), law.within(low, high))
        other = np.outer(moved[0].within(low, high), moved[1].within(low, high))
        assert np.abs(np.log(both / other)).max() <= 2.0 * (1 + 1e-9)


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_coins_leave_of_a_pure_epsilon_what_the_event_says(probability: float):
    """Over pairs of samples that are far apart, or where zero is: each counts with its vector or, by its coin, not."""
    mechanism = DiscreteLaplaceMechanism().within(Budget(0.7, 0.0), [1.0], probability)[0]
    noise = mechanism.on(ONE, Population(5, 1, 1), Grid(6))
    claimed = mechanism.event(probability).epsilon
    assert claimed == pytest.approx(math.log(1 + probability * math.expm1(mechanism.epsilon)))
    assert claimed == pytest.approx(0.7)
    law = two_sided_geometric(noise.scale, 30.0)
    places = range(-noise.moved, noise.moved + 1, noise.moved // 2)
    laws = {by: mixed((1 - probability, law), (probability, law.shifted(by))) for by in (0, noise.moved, *places)}
    ratios = {
        (one, two): largest_log_ratio(laws[one], laws[two], 1e-9)
        for one in laws for two in laws if abs(one - two) <= noise.moved
    }  # fmt: skip
    assert max(ratios.values()) <= claimed
    assert max(ratios.values()) > 0.95 * claimed


@pytest.mark.parametrize("probability", [1e-9, 1e-6, 1e-5, 1e-3, 0.3])
@pytest.mark.parametrize(("epsilon", "steps"), [(1e-6, 1), (0.01, 100), (1.0, 100_000), (800.0, 1)])
def test_rounds_with_coins_fit_the_budget_they_were_made_for(epsilon: float, steps: int, probability: float):
    budget = Budget(epsilon, 0.0)
    (one,) = set(DiscreteLaplaceMechanism().within(budget, [1.0] * steps, probability))
    spent = math.fsum([one.event(probability).epsilon] * steps)
    assert epsilon * (1 - 2e-12) <= spent <= epsilon
    assert fits([one.event(probability)] * steps, budget)


@pytest.mark.parametrize(("probability", "multiplier"), [(0.1, 0.7), (0.5, 1.6)])
def test_coins_leave_of_discrete_gaussian_noise_what_the_event_says(probability: float, multiplier: float):
    """Vectors no longer than half of what a replacement can move, as clipped gradients are."""
    mechanism = DiscreteGaussianMechanism(multiplier)
    noise = mechanism.on(ONE, Population(5, 1, 1), Grid(5))
    law = together([discrete_gaussian(noise.amount, 15.0)] * 2)
    epsilon = epsilon_spent([mechanism.event(probability)], BUDGET.delta)
    half = noise.moved // 2
    near, zero, far, away = (
        mixed((1 - probability, law), (probability, law.shifted(by))) for by in (-half, 0, half, noise.moved)
    )
    assert 0.5 * BUDGET.delta < hockey_stick(near, far, epsilon) <= BUDGET.delta
    assert hockey_stick(zero, far, epsilon) <= BUDGET.delta
    assert hockey_stick(zero, away, epsilon) > BUDGET.delta, "why a statistic with coins must be that short"


def test_events_of_laws_close_to_normal_state_their_distance():
    for mechanism in (DiscreteGaussianMechanism(2.0), SkellamMechanism(2.0)):
        plain, sampled = mechanism.event(), mechanism.event(0.25)
        assert isinstance(plain, CloseEvent)
        assert isinstance(sampled, CloseEvent)
        assert plain.ideal == GaussianEvent(2.0)
        assert sampled.ideal == SampledGaussianEvent(2.0, 0.25)
        assert (plain.ratio, plain.outside) == (mechanism.ratio, mechanism.outside)
        assert noise_multiplier_of(plain) == 2.0
        assert epsilon_spent([plain], 1e-5) >= epsilon_spent([GaussianEvent(2.0)], 1e-5)


# how close the laws are to what they are taken for


@pytest.mark.parametrize("count", [2, 3, 6])
@pytest.mark.parametrize("sigma", [0.5, 0.6, 0.7, 0.8])
def test_a_sum_of_discrete_gaussians_is_nearly_one(sigma: float, count: int):
    """Within the factor e^(5 n exp(-pi^2 s^2)), at deviations so small that the difference is seen."""
    law, one = together([discrete_gaussian(sigma)] * count), discrete_gaussian(sigma * math.sqrt(count))
    end = math.floor(12 * sigma * math.sqrt(count))
    found = np.abs(np.log(law.within(-end, end) / one.within(-end, end))).max()
    bound = 5 * count * math.exp(-((math.pi * sigma) ** 2))
    assert 1e-3 * bound < found <= bound


@pytest.mark.parametrize("variance", [1.0, 2.5])
@pytest.mark.parametrize("r", [0.35, 0.45, 0.6])
def test_a_discrete_gaussian_is_nearly_a_normal_draw_that_is_rounded_at_random(r: float, variance: float):
    """Within e^(5 exp(-2 pi^2 r^2)): y is normal of variance v - r^2, and rounded to x as exp(-(x - y)^2 / 2 r^2)."""
    y, step = np.linspace(-30, 30, 60 * 400 + 1, retstep=True)
    x = np.arange(-45, 46)
    rounding = np.exp(-((x[:, None] - y) ** 2) / (2 * r * r))
    rounding /= rounding.sum(axis=0)
    rounded = (rounding * np.exp(-(y**2) / (2 * (variance - r * r)))).sum(axis=1) * step
    rounded /= math.sqrt(2 * math.pi * (variance - r * r))
    law, end = discrete_gaussian(math.sqrt(variance)), math.floor(8 * math.sqrt(variance))
    found = np.abs(np.log(rounded[45 - end : 46 + end] / law.within(-end, end))).max()
    bound = 5 * math.exp(-2 * (math.pi * r) ** 2)
    assert 1e-3 * bound < found <= bound


@pytest.mark.parametrize("variance", [2e4, 3.3e5, 2.0**21, 5e7])
def test_skellam_is_within_its_bound_of_the_discrete_gaussian(variance: float):
    """Up to 12 deviations; and beyond lie less than 1e-30."""
    x = np.unique(np.linspace(0, 12 * math.sqrt(variance), 500).astype(int))
    exact = np.log(ive(x, variance)) + x**2 / (2 * variance) + 0.5 * math.log(2 * math.pi * variance)
    assert 0.5 * PER_COORDINATE / variance < np.abs(exact).max() <= PER_COORDINATE / variance
    if variance < 1e6:
        beyond = np.arange(math.floor(12 * math.sqrt(variance)) + 1, math.ceil(20 * math.sqrt(variance)))
        assert 2 * ive(beyond, variance).sum() < 1e-30


def test_on_the_grids_that_are_let_pass_the_laws_are_as_close_as_their_mechanisms_say():
    people, statistic = Population(1000, 10, 10), Regression(Box((1.0,) * 11, 1.0))
    gaussian = DiscreteGaussianMechanism(3.0).settled(statistic, people)
    assert 5 * math.exp(-((math.pi * 8) ** 2)) * 1e100 < gaussian.mechanism.ratio
    assert gaussian.least(statistic) == 64
    noise = SkellamMechanism(3.0).settled(statistic, people)
    total = noise.variance * people.shares
    assert PER_COORDINATE * statistic.dimension / total <= noise.mechanism.ratio
    short = SkellamNoise(people, noise.grid, noise.moved, noise.mechanism, noise.amount)
    least = short.least(statistic) * people.shares
    assert PER_COORDINATE * statistic.dimension / least <= noise.mechanism.ratio * (1 + 1e-9)


# how far one unit of privacy moves the sum


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("bits", [-1, 0, 3, 12])
def test_no_two_samples_are_further_apart_on_the_grid_than_stated(name: str, bits: int, rng: np.random.Generator):
    statistic, grid = STATISTICS[name], Grid(bits)
    words = grid.encode(statistic.vectors(wild_rows(statistic, rng, 600))).view(np.int64)
    words = np.concatenate([words, np.zeros((1, statistic.dimension), dtype=np.int64)])
    apart = words[:, None, :] - words[None, :, :]
    assert (apart**2).sum(axis=2).max() <= moved_l2(statistic, grid, Population(5)) ** 2
    assert np.abs(apart).sum(axis=2).max() <= moved_l1(statistic, grid, Population(5))
    party = Population(5, samples=20, largest=4, unit="client")
    assert moved_l1(statistic, grid, party) == 4 * moved_l1(statistic, grid, Population(5))
    assert moved_l2(statistic, grid, party) == 4 * moved_l2(statistic, grid, Population(5))


@pytest.mark.parametrize("bits", [1, 2, 3, 8])
def test_rounding_can_move_two_samples_further_apart_than_the_statistic_says(bits: int):
    """Bounds beside the middle between two points of the grid: rounding widens every coordinate by nearly a step."""
    bounds = (1.0 + 0.51 * 2.0**-bits,) * 5
    statistic, grid, people = Means(bounds), Grid(bits), Population(5)
    ends = grid.encode(statistic.vectors(np.array([bounds, [-each for each in bounds]]))).view(np.int64)
    apart = np.abs(ends[0] - ends[1])
    assert apart.sum() > statistic.sensitivity_l1 * 2.0**bits
    assert math.sqrt((apart**2).sum()) > statistic.sensitivity * 2.0**bits
    assert apart.sum() <= moved_l1(statistic, grid, people)
    assert (apart**2).sum() <= moved_l2(statistic, grid, people) ** 2


def test_lengths_are_rounded_up_to_whole_steps():
    """Four coordinates whose ends lie just beyond the middle of two points: 19.08 steps apart, and 21.07 on the grid."""
    bounds = (4.5 + 1e-9, 4.5 + 1e-9, 4.5 + 1e-9, 5.5 + 1e-9)
    for bits in (0, 5):
        statistic, grid = Means(tuple(each * 2.0**-bits for each in bounds)), Grid(bits)
        ends = grid.encode(np.array([statistic.bounds, statistic.bounds]) * [[1], [-1]]).view(np.int64)
        assert np.abs(ends[0] - ends[1]).tolist() == [10, 10, 10, 12]
        assert ((ends[0] - ends[1]) ** 2).sum() <= moved_l2(statistic, grid, Population(5)) ** 2


# amounts


@pytest.mark.parametrize("people", PEOPLE, ids=str)
def test_shares_that_are_counted_on_have_the_variance_that_the_event_claims(people: Population):
    """And hardly more: one step of sigma, or one count of a Poisson mean."""
    for mechanism in (DiscreteGaussianMechanism(1.7), SkellamMechanism(1.7)):
        for bits in (2, 8, 14):
            noise = mechanism.on(ONE, people, Grid(bits))
            wanted = (1.7 * noise.moved) ** 2 + 64
            assert honest(people) * noise.variance >= wanted
            less = type(noise)(people, noise.grid, noise.moved, mechanism, noise.amount - 1)
            assert honest(people) * less.variance < wanted
            with pytest.raises(InvalidInput, match="amount must be at least .* too little noise"):
                less.check(ONE)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 7.0])
def test_the_scale_of_discrete_laplace_noise_is_the_least_that_keeps_epsilon(epsilon: float):
    for bits in (3, 9, 20):
        noise = DiscreteLaplaceMechanism(epsilon).on(OneHot(4), PEOPLE[1], Grid(bits))
        assert Fraction(noise.moved, noise.scale) <= Fraction(epsilon) < Fraction(noise.moved, noise.scale - 1)
        less = DiscreteLaplaceNoise(noise.population, noise.grid, noise.moved, noise.mechanism, noise.scale - 1)
        with pytest.raises(InvalidInput, match="scale must be at least .* too little noise"):
            less.check(OneHot(4))
        nearer = DiscreteLaplaceNoise(noise.population, noise.grid, noise.moved - 1, noise.mechanism, noise.scale)
        with pytest.raises(InvalidInput, match="too little noise"):
            nearer.check(OneHot(4))


def test_roots_are_rounded_up():
    for number in (*range(40), Fraction(1, 3), Fraction(10**40 + 1), Fraction(10**41, 7)):
        root = ceil_root(Fraction(number))
        assert root * root >= number
        assert root == 0 or (root - 1) ** 2 < number


def test_epsilons_of_pure_rounds_add_up_to_the_budget_and_go_further_with_a_delta():
    pure = DiscreteLaplaceMechanism().within(Budget(2.0, 0.0), [1.0, 2.0, 1.0])
    assert sum(each.epsilon for each in pure) == pytest.approx(2.0)
    assert sum(each.epsilon for each in pure) <= 2.0
    assert pure[1].epsilon == pytest.approx(2 * pure[0].epsilon)
    few, many = (DiscreteLaplaceMechanism().within(Budget(1.0, delta), [1.0] * 30) for delta in (0.0, 1e-5))
    assert all(more.epsilon > 1.2 * less.epsilon for less, more in zip(few, many, strict=True))


def test_the_law_of_a_release_has_the_exact_variance_and_shape():
    people = Population(9, 2, 3)
    noise = DiscreteLaplaceMechanism(0.5).on(ONE, people, Grid(3))
    for count in range(1, 10):
        law = together([polya_difference(noise.scale, 1 / 3, 20.0)] * count) if count < 4 else None
        stated = noise.law(count)
        assert stated.shape == pytest.approx(count / 3)
        if law is not None:
            assert (stated.std / noise.grid.step) ** 2 == pytest.approx(law.variance, rel=1e-6)
    assert noise.law(3).std == pytest.approx(noise.sigma_std)
    assert [noise.law(3).law, noise.law(3).shape] == ["laplace", 1.0]
    assert all(one.std < two.std for one, two in pairwise(map(noise.law, range(10))))


def test_helpers_agree_with_closed_forms():
    """The laws that everything here is measured by."""
    np.testing.assert_allclose(
        together([polya_difference(3, 1 / 4)] * 4).within(-50, 50), two_sided_geometric(3).within(-50, 50), rtol=1e-9
    )
    x = np.arange(-20, 21)
    np.testing.assert_allclose(skellam(8.0).within(-20, 20), ive(np.abs(x), 16.0), rtol=1e-9)
    assert Law(0, np.array([0.25, 0.75])).mean == 0.75
    assert hockey_stick(two_sided_geometric(2), two_sided_geometric(2).shifted(3), 1.5) == pytest.approx(0, abs=1e-12)


def test_a_skellam_share_is_one_count_less_another():
    """At these rates no sample tells a difference of two counts from their sum, so it is looked at draw by draw."""
    noise = SkellamMechanism(2.0).settled(ONE, PEOPLE[1])
    cells, stream = Cells(PoissonLaw(noise.amount)), Randomness.simulation(1)
    first, second = cells.draw(500, stream), cells.draw(500, stream)
    shares = noise.shares(5, 100, Randomness.simulation(1)).view(np.int64).reshape(-1)
    np.testing.assert_array_equal(np.abs(shares), np.abs(first - second))
    assert (first + second != shares).mean() > 0.9
