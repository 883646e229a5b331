"""Bounds that hold with the stated probability, and attacks that find what there is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from hubbub.audit.evidence import (
    Rates,
    Scores,
    at_least,
    at_most,
    epsilon_of_rates,
    least_epsilon,
    least_epsilon_of_guesses,
    least_mu,
    mu_of_rates,
)
from hubbub.audit.views import classifier, histogram
from hubbub.audit.worst import widest_pair
from hubbub.privacy.calibration import epsilon_of


@pytest.mark.parametrize(("count", "trials"), [(0, 10), (3, 10), (10, 10), (57, 1000)])
def test_clopper_and_pearson_are_scipys(count: int, trials: int):
    found = stats.binomtest(count, trials).proportion_ci(0.98, "exact")
    assert at_least(count, trials, 0.01) == pytest.approx(found.low, abs=1e-12)
    assert at_most(count, trials, 0.01) == pytest.approx(found.high, abs=1e-12)


def test_rates_are_turned_into_epsilon_both_ways():
    """Randomised response of epsilon ln 3 is told apart with 3/4 and 1/4; passing and not passing count alike."""
    assert epsilon_of_rates(Rates(0.25, 0.75), 0.0) == pytest.approx(math.log(3))
    assert epsilon_of_rates(Rates(0.9, 0.99), 0.0) == pytest.approx(math.log(10))
    assert epsilon_of_rates(Rates(0.5, 0.5), 0.0) == 0.0
    assert epsilon_of_rates(Rates(0.1, 0.2), 0.1) == 0.0
    assert mu_of_rates(Rates(stats.norm.sf(1.0), 0.5)) == pytest.approx(1.0)


def test_the_bound_is_below_the_truth_as_often_as_it_says():
    """Normal laws one deviation apart, 400 attempts with an error of 5 %: at most 8.9 % are above (99.99 %)."""
    rng, above = np.random.default_rng(0), 0
    for _ in range(400):
        scores = Scores(rng.standard_normal(400), 1 + rng.standard_normal(400))
        above += least_mu(scores, 0.05) > 1.0
    assert above <= stats.binom.isf(1e-4, 400, 0.05)


def test_with_many_trials_the_bound_comes_close():
    rng = np.random.default_rng(1)
    normal = Scores(rng.standard_normal(200_000), 1 + rng.standard_normal(200_000))
    assert 0.95 < least_mu(normal, 1e-4) < 1.0
    laplace = Scores(rng.laplace(0, 1, 200_000), rng.laplace(1, 1, 200_000))  # pure, epsilon 1
    assert 0.9 < least_epsilon(laplace, 0.0, 1e-4) < 1.0
    assert least_epsilon(normal, 1e-5, 1e-4) < epsilon_of(1.0, 1e-5)


def test_nothing_is_found_where_nothing_is():
    rng = np.random.default_rng(2)
    same = rng.integers(0, 8, 4000).tolist(), rng.integers(0, 8, 4000).tolist()
    assert least_epsilon(histogram(*same), 0.0, 1e-6) == 0.0
    bits = [rng.integers(0, 2, (2000, 30)).astype(float) for _ in range(2)]
    assert least_epsilon(classifier(*bits), 0.0, 1e-6) == 0.0


def test_black_boxes_find_what_a_view_tells():
    rng = np.random.default_rng(3)
    told = rng.integers(0, 8, 4000).tolist(), (rng.integers(0, 8, 4000) // 2).tolist()
    assert least_epsilon(histogram(*told), 0.0, 1e-6) > 0.5
    bits = [rng.integers(0, 2, (2000, 30)).astype(float) for _ in range(2)]
    bits[1][:, 7] = rng.random(2000) < 0.8
    assert least_epsilon(classifier(*bits), 0.0, 1e-6) > 0.3


def test_guesses_of_one_run():
    """Without delta it is a binomial test of randomised response; delta only lowers the bound."""
    found = least_epsilon_of_guesses(90, 100, 1000, 0.0, 0.01)
    assert stats.binom.sf(89, 100, 1 / (1 + math.exp(-found))) == pytest.approx(0.01, rel=1e-6)
    assert 0 < least_epsilon_of_guesses(90, 100, 1000, 1e-6, 0.01) <= found
    assert least_epsilon_of_guesses(90, 100, 1000, 1e-4, 0.01) < found
    assert least_epsilon_of_guesses(52, 100, 1000, 0.0, 0.01) == 0.0
    assert least_epsilon_of_guesses(100, 100, 100, 0.0, 1e-6) == pytest.approx(1.91, abs=0.02)


@pytest.mark.parametrize(("order", "widest"), [(1, 6.0), (2, math.sqrt(14))])
def test_the_widest_pair_is_found(order: int, widest: float):
    """Rows that are clipped to a box of unequal sides, in both norms; half of the sides is what one can be off."""
    box = np.array([0.5, 1.0, 1.5])
    pair = widest_pair(lambda rows: np.clip(rows, -box, box), 3, order, np.random.default_rng(0))
    first, second = (np.clip(each, -box, box) for each in pair)
    assert np.linalg.norm(first - second, order) == pytest.approx(widest)
