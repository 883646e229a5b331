"""The default method: standardised rows in a ball, the quick posterior, and fits that have no hope."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fits import fit_auto
from hubbub import Budget, Ledger, LocalEngine
from hubbub.analyses.linear.auto import LABELS, choose_ball, weights
from hubbub.analyses.linear.noise_aware import sample_posterior
from hubbub.analyses.linear.shrinkage import in_original_units, shrinkage_posterior, shrunk_covariance
from hubbub.engines import TrustedAggregator
from hubbub.privacy import shared_multipliers
from hubbub.statistics import Box

BUDGET = Budget(1.0, 1e-5)


def simulate(n: int, d: int, seed: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([n, d, seed])
    X = rng.standard_normal((n, d)) * scale
    beta = rng.standard_normal(d) / np.sqrt(d) / scale
    return np.column_stack([X, X @ beta + rng.standard_normal(n)]), beta


def fitted(rows: np.ndarray, budget: Budget, seed: int, **options):
    d = rows.shape[1] - 1
    multipliers = shared_multipliers(budget, weights(options.get("norm")))
    return fit_auto(rows, Box((7.5,) * d, 7.5), multipliers, TrustedAggregator(seed), **options)


@pytest.mark.parametrize("norm", [None, 3.0])
def test_all_rounds_spend_the_budget_together(norm: float | None):
    rows, _ = simulate(500, 3, 0)
    ledger = Ledger(BUDGET)
    multipliers = shared_multipliers(BUDGET, weights(norm))
    fit_auto(rows, Box((7.5,) * 3, 7.5), multipliers, LocalEngine(), norm=norm, ledger=ledger)
    assert [entry.label for entry in ledger.entries] == list(LABELS)
    assert ledger.epsilon == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("scale", [0.05, 1.0])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("norm", [None, 4.0])
def test_with_little_noise_both_posteriors_are_least_squares(scale: float, intercept: bool, norm: float | None):
    rows, beta = simulate(20_000, 4, 1, scale)
    fit = fitted(rows, Budget(1e6, 1e-5), 1, intercept=intercept, norm=None if norm is None else norm * scale)
    quick = in_original_units(shrinkage_posterior(fit.released), fit.released)
    draws = sample_posterior(fit.released)
    for mean, residual in (
        (quick.coefficients.mean[:-1], quick.residual_variance),
        (draws.coefficients.mean(axis=0), draws.residual_variance.mean()),
    ):
        np.testing.assert_allclose(mean, beta, atol=0.04 / scale)
        if intercept:
            assert residual == pytest.approx(1.0, rel=0.1)


def test_mean_and_units_of_the_columns_do_not_matter(rng: np.random.Generator):
    """Shifted and stretched data give shifted and stretched coefficients."""
    rows, beta = simulate(20_000, 3, 2)
    stretch, shift = np.array([10.0, 0.1, 1.0, 5.0]), np.array([300.0, 0.2, -3.0, 50.0])
    moved = rows * stretch + shift
    middle, half = shift + stretch * 0.7, 8 * stretch
    multipliers = shared_multipliers(BUDGET, weights())
    fit = fit_auto(moved - middle, Box(tuple(half[:3]), half[3]), multipliers, TrustedAggregator(3))
    draws = sample_posterior(fit.released)
    expected = beta * stretch[3] / stretch[:3]
    np.testing.assert_allclose(draws.coefficients.mean(axis=0), expected, atol=0.15 * np.abs(expected).max())
    at_mean = draws.intercept + draws.coefficients @ (shift - middle)[:3] + middle[3]
    assert at_mean.mean() == pytest.approx(50.0, abs=1.0)


def test_shrinkage_leaves_exact_sums_alone_and_flattens_pure_noise(rng: np.random.Generator):
    d, n = 6, 1000
    sums = np.diag(np.arange(1.0, 7.0)) * n
    S, left = shrunk_covariance(sums, 0.0, n)
    np.testing.assert_allclose(S, sums)
    assert left == 0.0
    noise = np.triu(rng.standard_normal((d, d)), 1)
    pure = np.eye(d) * n + 50 / np.sqrt(2) * (noise + noise.T)
    S, left = shrunk_covariance(pure, 50.0, n)
    assert np.abs(S - np.diag(np.diag(S))).max() < 0.5 * np.abs(pure - np.diag(np.diag(pure))).max()
    assert 0 <= left < 50.0**2 / 2


@pytest.mark.parametrize(("n", "d"), [(5, 2), (20, 50), (3, 1), pytest.param(50, 200, marks=pytest.mark.long)])
def test_hopeless_fits_stay_near_zero_and_finite(n: int, d: int):
    """Tiny n, many columns: both posteriors go to the prior, never to nonsense."""
    rows, _ = simulate(n, d, 2)
    fit = fitted(rows, Budget(0.1, 1e-5), 0)
    quick = in_original_units(shrinkage_posterior(fit.released), fit.released)
    draws = sample_posterior(fit.released, draws=200)
    assert np.abs(quick.coefficients.mean[:-1]).max() < 20
    assert np.linalg.eigvalsh(quick.coefficients.covariance).min() >= -1e-9
    low, middle, high = np.quantile(draws.coefficients, [0.05, 0.5, 0.95], axis=0)
    assert np.isfinite(draws.coefficients).all()
    assert ((low < 0) & (high > 0)).mean() > 0.8  # as the prior has it
    assert np.abs(middle).max() < 5
    assert (draws.residual_variance > 0).all()


@pytest.mark.parametrize("norm", [None, 5.0])
def test_one_extreme_value_does_not_decide_whether_there_is_a_result(norm: float | None):
    rows, _ = simulate(200, 2, 4)
    rows[0, 0], rows[1, 2] = 1e300, -1e308
    fit = fitted(rows * 1e-10, BUDGET, 0, norm=norm)
    assert len(fit.rounds) == len(LABELS)
    assert np.isfinite(sample_posterior(fit.released, draws=100).coefficients).all()


@pytest.mark.parametrize("norm", [None, 5.0])
def test_rows_beyond_the_bounds_are_shortened_as_a_whole(norm: float | None, rng: np.random.Generator):
    """Clipping x and y on their own, as the paper does, would bend the line: y goes beyond its bound in 4 % of rows."""
    X, beta = rng.standard_t(4, size=(50_000, 2)), np.array([2.0, -1.5])
    rows = np.column_stack([X, X @ beta + rng.standard_normal(50_000)])
    found = sample_posterior(fitted(rows, Budget(1e6, 1e-5), 1, norm=norm).released).coefficients.mean(axis=0)
    clipped = np.clip(rows, -7.5, 7.5)
    bent = np.linalg.lstsq(clipped[:, :2], clipped[:, 2], rcond=None)[0]
    assert np.abs(bent - beta).max() > 0.1
    np.testing.assert_allclose(found, beta, atol=0.03)


def test_ball_widens_with_plenty_of_data_and_never_looks_at_it():
    few, many = choose_ball(300, 10, 4.0), choose_ball(100_000, 10, 4.0)
    assert few.radius < many.radius
    assert few.y is not None
    assert many.y is not None
    assert few.y < many.y


def test_the_weight_of_y_costs_xy_little_and_spares_xx_noise():
    """Beside every other weight of the same ball: noise is in units of xx and, divided by the weight, of xy."""
    ball = choose_ball(1000, 10, 4.0)
    others = ball.weight * np.linspace(0.5, 2.0, 301)
    of_xx = np.array([replace(ball, weight=weight).sensitivity(True) for weight in others])
    least, equal = (of_xx / others).min(), (of_xx / others).argmin()
    assert ball.sensitivity(True) / ball.weight < 1.014 * least
    assert ball.sensitivity(True) < 0.87 * of_xx[equal]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d", "epsilon"), [pytest.param(300, 10, 1.0, marks=pytest.mark.long), (1000, 2, 1.0)])
def test_intervals_cover(n: int, d: int, epsilon: float):
    """90 % intervals hold the truth 80 to 97 % of the time over 30 studies (the plug-in: 6 to 60)."""
    hits = []
    for seed in range(30):
        rows, beta = simulate(n, d, seed)
        draws = sample_posterior(fitted(rows, Budget(epsilon, 1e-5), seed).released, draws=400)
        low, high = np.quantile(draws.coefficients, [0.05, 0.95], axis=0)
        hits.append((low < beta) & (beta < high))
    assert 0.80 < np.mean(hits) < 0.97


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d", "epsilon", "studies"), [(20, 30, 100.0, 3), (12, 10, 1e4, 8), (8, 3, 1e4, 20)])
def test_few_rows_and_little_noise_are_no_reason_for_certainty(n: int, d: int, epsilon: float, studies: int):
    """Sums that are close to singular: 90 % intervals hold the truth at least 80 % of the time (10 to 60 if stuck)."""
    hits = []
    for seed in range(studies):
        rows, beta = simulate(n, d, seed)
        release = fitted(rows, Budget(epsilon, 1e-5), seed, intercept=True).released
        low, high = np.quantile(sample_posterior(release, draws=400).coefficients, [0.05, 0.95], axis=0)
        hits.append((low < beta) & (beta < high))
    assert np.mean(hits) > 0.8
