"""The default method: scaled rows in a ball, and a posterior that knows about the noise."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub import Budget, Ledger, LocalEngine, PrivateLinearRegression
from hubbub.models.scaled import SHARES, choose_ball, fit_scaled
from hubbub.models.shrinkage import NoisyGram, in_original_units, shrinkage_posterior, shrunk_covariance
from hubbub.privacy import split
from hubbub.statistics import Box, Gram

BUDGET = Budget(1.0, 1e-5)


def simulate(n: int, d: int, seed: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([n, d, seed])
    X = rng.standard_normal((n, d)) * scale
    beta = rng.standard_normal(d) / np.sqrt(d) / scale
    return np.column_stack([X, X @ beta + rng.standard_normal(n)]), beta


def fitted(rows: np.ndarray, budget: Budget, seed: int):
    d = rows.shape[1] - 1
    fit = fit_scaled(rows, Box((7.5,) * d, 7.5), split(budget, SHARES), LocalEngine(seed=seed))
    return fit, in_original_units(shrinkage_posterior(fit.gram), fit.gram, fit.scales)


def test_two_rounds_spend_the_budget_together():
    rows, _ = simulate(500, 3, 0)
    ledger = Ledger(BUDGET)
    fit_scaled(rows, Box((7.5,) * 3, 7.5), split(BUDGET, SHARES), LocalEngine(), ledger=ledger)
    assert [entry.label for entry in ledger.entries] == ["scales", "regression"]
    assert ledger.epsilon == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("scale", [0.05, 1.0])
def test_with_little_noise_it_is_the_least_squares_estimate(scale: float):
    rows, beta = simulate(20_000, 4, 1, scale)
    _, posterior = fitted(rows, Budget(1e6, 1e-5), 1)
    np.testing.assert_allclose(posterior.coefficients.mean, beta, atol=0.03 / scale)
    assert posterior.residual_variance == pytest.approx(1.0, rel=0.25)


def test_shrinkage_leaves_exact_sums_alone_and_flattens_pure_noise(rng: np.random.Generator):
    d, n = 6, 1000
    exact = Gram(np.diag(np.arange(1.0, 7.0)) * n, np.zeros(d), float(n))
    S, left = shrunk_covariance(NoisyGram(exact, n, 0.0, 1.0))
    np.testing.assert_allclose(S, exact.xx)
    assert left == 0.0
    noise = np.triu(rng.standard_normal((d, d)), 1)
    pure = Gram(np.eye(d) * n + 50 / np.sqrt(2) * (noise + noise.T), np.zeros(d), float(n))
    S, left = shrunk_covariance(NoisyGram(pure, n, 50.0, 1.0))
    assert np.abs(S - np.diag(np.diag(S))).max() < 0.5 * np.abs(pure.xx - np.diag(np.diag(pure.xx))).max()
    assert 0 <= left < 50.0**2 / 2


@pytest.mark.parametrize(("n", "d"), [(5, 2), (20, 50), (50, 200), (3, 1)])
def test_hopeless_fits_stay_near_zero_and_finite(n: int, d: int):
    """Tiny n, many columns: the posterior goes to the prior, never to nonsense."""
    rows, _ = simulate(n, d, 2)
    for seed in range(5):
        _, posterior = fitted(rows, Budget(0.1, 1e-5), seed)
        assert np.isfinite(posterior.coefficients.mean).all()
        assert np.linalg.eigvalsh(posterior.coefficients.covariance).min() >= -1e-9
        assert np.abs(posterior.coefficients.mean).max() < 20
        assert 0 < posterior.residual_variance < 1e4


def test_one_extreme_value_does_not_decide_whether_there_is_a_result():
    """Values beyond the public bounds are clipped before anything else, however large they are."""
    rows, _ = simulate(200, 2, 4)
    rows[0, 0] = 1e300
    fit, _ = fitted(rows * 1e-10, BUDGET, 0)
    assert len(fit.rounds) == 2


def test_ball_widens_with_plenty_of_data_and_never_looks_at_it():
    few, many = choose_ball(300, 10, 4.0), choose_ball(100_000, 10, 4.0)
    assert few.radius < many.radius
    assert few.y is not None
    assert many.y is not None
    assert few.y < many.y
    assert few.weight * few.y == pytest.approx(few.radius)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d", "epsilon"), [(1000, 10, 1.0), (10_000, 10, 1.0), (1000, 10, 10.0), (1000, 2, 1.0)])
def test_intervals_cover(n: int, d: int, epsilon: float):
    """90 % intervals hold the truth 80 to 96 % of the time over 80 studies (measured 85 to 90; the plug-in: 6 to 60)."""
    hits = []
    for seed in range(80):
        rows, beta = simulate(n, d, seed)
        _, posterior = fitted(rows, Budget(epsilon, 1e-5), seed)
        low, high = posterior.coefficients.interval(0.9).T
        hits.append((low < beta) & (beta < high))
    assert 0.80 < np.mean(hits) < 0.96


def test_it_is_the_default_and_learns_the_residual_variance():
    rows, beta = simulate(5000, 3, 3)
    rows[:, -1] *= 2  # residual standard deviation 2
    model = PrivateLinearRegression(BUDGET, x_bound=7.5, y_bound=15.0, engine=LocalEngine(seed=1))
    model.fit(rows[:, :-1], rows[:, -1])
    np.testing.assert_allclose(model.coef_, 2 * beta, atol=0.25)
    _, std = model.predict(rows[:100, :-1], return_std=True)
    assert std.mean() == pytest.approx(2.0, rel=0.3)
    assert [r.label for r in model.privacy_.rounds] == ["scales", "regression"]
