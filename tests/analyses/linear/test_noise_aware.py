"""The noise-aware posterior: calibrated to its own model by simulation, exact where there is no noise, sane where hopeless."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest

from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.noise_aware import Prior, sample_posterior
from hubbub.analyses.linear.released import Released, clipped_target
from hubbub.analyses.linear.sampler.chains import sweep
from hubbub.analyses.linear.sampler.start import start
from hubbub.analyses.linear.sampler.target import Target
from hubbub.analyses.linear.tuning import TUNING
from hubbub.statistics import Ball, Gram


def released(S, q, yy, n: int, noise: float, weight: float, radius: float, *, intercept: bool = False, y: float = 1e6,
             doubt: float = 0.3):  # fmt: skip
    d = len(q) - int(intercept)
    columns = Columns(np.zeros(d + 1), np.ones(d + 1), np.full(d + 1, doubt))
    return Released(Gram(S, q, yy), n, noise, Ball(radius, len(q), y=y, weight=weight), columns, intercept)


def symmetric(rng: np.random.Generator, p: int) -> np.ndarray:
    normal = rng.standard_normal((p, p))
    return (normal + normal.T) / 2


def simulate(rng: np.random.Generator, shape: Released, models: list[list[int]] | None = None):
    """Everything drawn from the prior, then the noisy sums: what the posterior is exact for."""
    target = Target(shape, Prior(), models)
    p, n, top = target.p, target.n, target.most / target.p
    while True:
        level = np.log(top) + np.log(TUNING.least_level) * rng.uniform()
        off = top * np.exp(rng.uniform(*np.log(TUNING.off_diagonal)))
        expected = np.exp(level) * target.pattern(target.off_centre * rng.standard_normal((1, p)))[0]
        S = expected + off * symmetric(rng, p)
        np.fill_diagonal(S, np.diag(expected) * np.exp(target.doubt[:-1] * rng.standard_normal(p)))
        # where the trace is known, draws that come close to it are taken for draws given it
        if (0.98 * target.most if target.full else 0.0) <= np.trace(S) <= target.most and np.linalg.eigvalsh(S)[0] > 0:
            S *= target.most / np.trace(S) if target.full else 1.0
            break
    hyper = np.array([[level + target.doubt[-1] * rng.standard_normal(), rng.logistic()]])
    model = int(rng.integers(len(target.models)))
    s2, t = target.variances(S[None], hyper, np.array([model]))
    beta = np.sqrt(t[0]) * rng.standard_normal(p)
    q = S @ beta + np.sqrt(s2[0]) * np.linalg.cholesky(S) @ rng.standard_normal(p)
    yy = q @ np.linalg.solve(S, q) + s2[0] * rng.chisquare(n - p)
    noise, weight = shape.noise_std, shape.ball.weight
    k = shape.shape
    loud = np.ones((p + 2, p + 2)) if k is None else np.sqrt(rng.gamma(k, 1 / k, (p + 2, p + 2)))
    sums = Gram(
        S + noise * symmetric(rng, p) * (np.triu(loud) + np.triu(loud, 1).T)[:p, :p],
        q + noise / weight / np.sqrt(2) * rng.standard_normal(p) * loud[p, :p],
        float(yy + noise / weight**2 * rng.standard_normal() * loud[-1, -1]),
    )
    residual = s2[0] / shape.shortening(S[None])[0]
    return replace(shape, sums=sums), beta, residual, model


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "n", "noise", "radius", "intercept", "studies", "doubt", "law"),
    [(2, 300, 8.0, 0.7, False, 50, 0.3, None), (3, 1000, 30.0, 1.4, True, 50, 0.3, None),
     (6, 500, 15.0, 1.2, False, 30, 0.3, None), (3, 300, 20.0, 0.99, True, 30, 0.6, None),
     (3, 1000, 30.0, 1.4, True, 30, 0.3, 1.0),
     pytest.param(3, 300, 20.0, 0.99, True, 60, 0.6, 2.5, marks=pytest.mark.long),
     pytest.param(6, 500, 15.0, 1.2, False, 60, 0.3, 1.0, marks=pytest.mark.long),
     pytest.param(4, 500, 20.0, 1.2, True, 60, 0.9, None, marks=pytest.mark.long)],
)  # fmt: skip
def test_ranks_of_the_truth_are_uniform(
    p: int, n: int, noise: float, radius: float, intercept: bool, studies: int, doubt: float, law: float | None
):
    """Simulation-based calibration: false alarm at 1e-4 a test; a plug-in posterior fails by tens of orders."""
    rng = np.random.default_rng([p, n])
    empty = released(np.eye(p), np.zeros(p), 1.0, n, noise, 1.3, radius, intercept=intercept, doubt=doubt)
    empty = replace(empty, shape=law)
    ranks = {"first": [], "last": [], "residual": [], "length": []}
    for study in range(studies):
        data, beta, residual, _ = simulate(rng, empty)
        draws = sample_posterior(data, draws=400, seed=study)
        found = np.column_stack([draws.intercept, draws.coefficients]) if intercept else draws.coefficients
        ranks["first"].append(np.mean(found[:, 0] < beta[0]))
        ranks["last"].append(np.mean(found[:, -1] < beta[-1]))
        ranks["residual"].append(np.mean(draws.residual_variance < residual))
        ranks["length"].append(np.mean(np.sum(found**2, axis=1) < np.sum(beta**2)))
    p_values = {name: kstest(found, "uniform").pvalue for name, found in ranks.items()}
    assert min(p_values.values()) > 1e-4, p_values
    inside = np.mean([0.05 < rank < 0.95 for rank in ranks["first"] + ranks["last"]])
    assert 0.8 < inside < 0.98


@pytest.mark.slow
def test_model_probabilities_are_calibrated():
    """Of models drawn from the prior, those given a probability p are the true ones in a share p of cases."""
    rng = np.random.default_rng(5)
    empty = released(np.eye(3), np.zeros(3), 1.0, 1000, 10.0, 1.3, 1.4)
    models = [[0], [0, 1, 2], [1]]
    given, true = [], []
    for study in range(40):
        data, _, _, model = simulate(rng, empty, models)
        given.append(sample_posterior(data, draws=300, seed=study, models=models).models)
        true.append(np.eye(3)[model])
    given, true = np.array(given), np.array(true)
    assert np.allclose(given.sum(axis=1), 1)
    gap = (true - given).mean(axis=0)
    error = np.sqrt((given * (1 - given)).mean(axis=0) / len(given))
    assert np.all(np.abs(gap) < 4 * error)
    assert (given * true).sum(axis=1).mean() > 0.5  # and they tell models apart


def test_without_noise_it_is_ordinary_bayesian_regression(rng: np.random.Generator):
    """Against the textbook: with almost no noise and a wide prior, least squares and s^2/n S^-1."""
    n, p = 5000, 4
    X = rng.uniform(-1, 1, size=(n, p)) * 0.5
    y = X @ np.array([1.0, -0.5, 0.25, 0.0]) + 0.5 * rng.standard_normal(n)
    S, q = X.T @ X, X.T @ y
    data = released(S, q, float(y @ y), n, 1e-3, 1.0, 1.0)
    draws = sample_posterior(data, Prior(np.full(p, 100.0)), draws=4000, seed=1)
    least = np.linalg.solve(S, q)
    s2 = (y @ y - q @ least) / (n - p)
    std = np.sqrt(np.diag(np.linalg.inv(S)) * s2)
    np.testing.assert_allclose(draws.coefficients.mean(axis=0), least, atol=0.15 * std.max())
    np.testing.assert_allclose(draws.coefficients.std(axis=0), std, rtol=0.1)
    assert np.mean(draws.residual_variance) * data.shortening(S[None])[0] == pytest.approx(s2, rel=0.05)


def test_a_strong_prior_wins_over_noise_and_its_mean_is_used(rng: np.random.Generator):
    data = released(np.eye(2) * 100, np.zeros(2), 100.0, 1000, 20.0, 1.0, 1.0)
    draws = sample_posterior(data, Prior(np.full(2, 0.01), np.array([3.0, -2.0])), seed=2)
    np.testing.assert_allclose(draws.coefficients.mean(axis=0), [3.0, -2.0], atol=0.01)
    np.testing.assert_allclose(draws.coefficients.std(axis=0), 0.01, rtol=0.15)


@pytest.mark.parametrize(("n", "p", "noise"), [(5, 2, 50.0), (20, 30, 50.0), (3, 1, 10.0)])
def test_hopeless_noise_gives_the_prior(n: int, p: int, noise: float, rng: np.random.Generator):
    """R2 uniform: a coefficient's variance averages half of var(y)/p per unit of the column's variance."""
    data = released(noise * symmetric(rng, p), noise * rng.standard_normal(p), noise, n, noise, 1.0, 0.3 * np.sqrt(p))
    draws = sample_posterior(data, seed=3)
    assert np.isfinite(draws.coefficients).all()
    assert (draws.residual_variance > 0).all()
    middle = np.abs(np.median(draws.coefficients, axis=0))
    width = np.ptp(np.quantile(draws.coefficients, [0.05, 0.95], axis=0), axis=0)
    assert (middle < width / 2).all()  # zero is well inside
    assert 0.1 / np.sqrt(p) < np.median(width) < 20 / np.sqrt(p)


def test_where_no_row_fits_the_ball_the_trace_is_known(rng: np.random.Generator):
    """Every row (1, x) is longer than the radius: the sum of their squared lengths is n R^2, whatever the noise."""
    n, radius = 300, 0.9
    X = np.column_stack([np.ones(n), rng.standard_normal((n, 2))])
    u = X * (radius / np.linalg.norm(X, axis=1, keepdims=True))
    y = u @ np.array([0.0, 0.8, -0.8]) + 0.1 * rng.standard_normal(n)
    assert np.trace(u.T @ u) == pytest.approx(n * radius**2)
    noisy = u.T @ u - 30 * np.eye(3)  # the noise took away most of the two columns
    data = released(noisy, u.T @ y, float(y @ y), n, 25.0, 3.0, radius, intercept=True, doubt=0.9)
    target = Target(data, Prior(), None)
    state = start(rng, target, 40)
    for _ in range(60):
        state, _ = sweep(rng, state, target)
        np.testing.assert_allclose(np.trace(state.S, axis1=1, axis2=2), n * radius**2)
    assert target.centre_moves  # those move S, too
    found = sample_posterior(data, draws=2000, seed=1).coefficients
    loose = sample_posterior(replace(data, ball=replace(data.ball, radius=1.01)), draws=2000, seed=1).coefficients
    assert np.all(found.std(axis=0) < loose.std(axis=0))


def test_the_same_release_gives_the_same_posterior():
    data = released(np.eye(2) * 100, np.ones(2), 100.0, 1000, 5.0, 1.0, 1.0)
    np.testing.assert_array_equal(sample_posterior(data).coefficients, sample_posterior(data).coefficients)


@pytest.mark.parametrize("bound", [0.7, 1.2, 2.5])
def test_clipping_a_normal_target_is_undone(bound: float, rng: np.random.Generator):
    """Against simulation: the attenuation of a slope, and the variance before clipping."""
    x = rng.standard_normal(400_000)
    y = 0.6 * x + 0.8 * rng.standard_normal(400_000)
    clipped = np.clip(y, -bound, bound)
    attenuation, growth = clipped_target(np.array([np.mean(clipped**2)]), bound)
    assert attenuation[0] == pytest.approx(np.mean(x * clipped) / np.mean(x * y), rel=0.02)
    assert growth[0] * np.mean(clipped**2) == pytest.approx(1.0, rel=0.03)
    assert clipped_target(np.array([1e-4]), bound)[0][0] == 1.0


@pytest.mark.parametrize("scale", [1e-300, 1e8, 1e12, 1e300])
def test_any_prior_that_can_be_given_gives_a_posterior(scale: float, rng: np.random.Generator):
    S = 100 * np.eye(3)
    data = released(S, S @ [0.3, 0.0, -0.3], 60.0, 300, 5.0, 1.0, 1.4)
    for mean in (None, np.full(3, 1e300)):
        draws = sample_posterior(data, Prior(np.full(3, scale), mean), draws=100)
        assert np.isfinite(draws.coefficients).all()
    if scale > 1:
        flat = sample_posterior(data, Prior(np.full(3, scale)), draws=1000)
        np.testing.assert_allclose(flat.coefficients.mean(axis=0), [0.3, 0.0, -0.3], atol=0.1)


def test_more_noise_is_added_to_the_noise_there_is(rng: np.random.Generator):
    data = released(np.zeros((3, 3)), np.zeros(3), 0.0, 300, 3.0, 1.0, 1.4)
    assert data.blurred(2.0, rng) is data
    many = [data.blurred(5.0, rng) for _ in range(2000)]
    assert many[0].noise_std == 5.0
    weight = data.ball.weight
    for found, expected in (
        ([one.sums.xx[0, 0] for one in many], 4.0), ([one.sums.xx[0, 1] for one in many], 4 / np.sqrt(2)),
        ([one.sums.xy[0] for one in many], 4 / np.sqrt(2) / weight), ([one.sums.yy for one in many], 4 / weight**2),
    ):  # fmt: skip
        assert np.std(found) == pytest.approx(expected, rel=0.08)  # five standard errors
    assert all((one.sums.xx == one.sums.xx.T).all() for one in many[:5])
