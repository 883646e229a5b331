"""Budget -> noise: exact, never below the budget, and the same as dp_accounting says."""

from __future__ import annotations

import math

import dp_accounting
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr
from scipy.stats import norm

from hubbub.errors import InvalidInput
from hubbub.privacy import Budget, calibration, noise_multiplier
from hubbub.privacy.calibration import analytic_multiplier, classic_multiplier, epsilon_of, log_delta

EPSILONS = [0.01, 0.1, 0.5, 1.0, 3.16, 10.0, 31.6, 100.0, 1000.0]
DELTAS = [1e-12, 1e-6, 1e-4, 0.05, 0.5]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_agrees_with_dp_accounting_in_both_directions(epsilon: float, delta: float):
    ours = analytic_multiplier(Budget(epsilon, delta))
    assert ours == pytest.approx(dp_accounting.get_sigma_gaussian(epsilon, delta), rel=1e-6)
    assert dp_accounting.get_epsilon_gaussian(ours, delta) == pytest.approx(epsilon, rel=1e-6)
    assert epsilon_of(ours, delta) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 5.0])
def test_agrees_with_the_privacy_loss_distribution(epsilon: float):
    """A second method that shares nothing with the first: PLD accounting, which rounds upward."""
    accountant = dp_accounting.pld.PLDAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(analytic_multiplier(Budget(epsilon, 1e-5))))
    assert epsilon - 1e-6 <= accountant.get_epsilon(1e-5) <= epsilon + 1e-3


@settings(max_examples=300, deadline=None)
@given(
    epsilon=st.floats(1e-3, 1e3),
    log10_delta=st.floats(-15, -0.01),
)
def test_never_falls_below_the_budget(epsilon: float, log10_delta: float):
    budget = Budget(epsilon, 10**log10_delta)
    multiplier = analytic_multiplier(budget)
    assert log_delta(multiplier, epsilon) <= math.log(budget.delta)
    assert log_delta(multiplier * (1 - 1e-6), epsilon) > math.log(budget.delta)  # and wastes next to nothing


@settings(max_examples=200, deadline=None)
@given(multiplier=st.floats(0.02, 100), log10_delta=st.floats(-12, -0.1))
def test_epsilon_of_is_rounded_upward(multiplier: float, log10_delta: float):
    delta = 10**log10_delta
    epsilon = epsilon_of(multiplier, delta)
    assert log_delta(multiplier, epsilon) <= math.log(delta)
    assert epsilon == 0 or log_delta(multiplier, epsilon * (1 - 1e-6) - 1e-9) > math.log(delta)


def test_log_delta_is_the_textbook_formula_where_that_can_be_evaluated():
    for multiplier, epsilon in [(1.0, 1.0), (3.0, 0.2), (0.5, 4.0)]:
        m = 1 / multiplier
        textbook = norm.cdf(m / 2 - epsilon / m) - math.exp(epsilon) * norm.cdf(-m / 2 - epsilon / m)
        assert math.exp(log_delta(multiplier, epsilon)) == pytest.approx(textbook, rel=1e-9)


def test_large_epsilon_is_stable():
    """Where e^epsilon overflows, the first term alone is left."""
    multiplier = analytic_multiplier(Budget(2000.0, 1e-6))
    m = 1 / multiplier
    assert float(log_ndtr(m / 2 - 2000.0 / m)) == pytest.approx(math.log(1e-6), rel=0.02)


def test_classic_is_the_papers_formula_and_wastes_noise():
    budget = Budget(0.5, 1e-5)
    expected = math.sqrt(2 * math.log(1.25 / 1e-5)) / 0.5
    assert noise_multiplier(budget, "classic") == pytest.approx(expected)
    assert noise_multiplier(budget, "classic") > noise_multiplier(budget)


@pytest.mark.parametrize("epsilon", [1.0, 3.0, 31.6])
def test_classic_is_refused_outside_its_range(epsilon: float):
    budget = Budget(epsilon, 1e-4)
    with pytest.raises(InvalidInput, match="epsilon must be below 1 for the classic calibration"):
        noise_multiplier(budget, "classic")
    assert noise_multiplier(budget, "classic", not_a_guarantee=True) == classic_multiplier(budget)


def test_classic_at_large_epsilon_really_is_no_guarantee():
    """Why it is refused: at the paper's largest epsilon the classic noise meets a larger one only."""
    assert epsilon_of(classic_multiplier(Budget(31.6, 1e-4)), 1e-4) > 31.6


def test_unknown_calibration_is_one_line():
    with pytest.raises(InvalidInput, match="calibration must be 'analytic' or 'classic', got calibration='guess'"):
        noise_multiplier(Budget(1, 1e-5), "guess")  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [1e-3, 0.03, 1.0, 20.0, 500.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-9, 1e-4, 0.3])
def test_never_falls_below_the_budget_in_sixty_digits(epsilon: float, delta: float):
    """The budget holds in exact arithmetic too, not only as far as a double can tell."""
    multiplier = analytic_multiplier(Budget(epsilon, delta))
    with mpmath.workdps(300):
        m = 1 / mpmath.mpf(multiplier)
        e = mpmath.mpf(epsilon)
        exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        assert exact <= mpmath.mpf(delta)
        assert exact >= mpmath.mpf(delta) * (1 - mpmath.mpf("1e-4"))


def test_log_ndtr_agrees_with_scipy():
    points = np.concatenate([np.linspace(-60, 9, 4000), [-1e3, -1e6, 0.0, 30.0]])
    np.testing.assert_allclose([calibration.log_ndtr(x) for x in points], log_ndtr(points), rtol=2e-13, atol=1e-300)
