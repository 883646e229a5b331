"""Langevin sampling and expected statistics: near the exact posterior without noise, and never better than it with."""

from __future__ import annotations

import numpy as np
import pytest

from analyses.iterative import models
from hubbub import (
    Budget,
    InvalidInput,
    Ledger,
    LocalEngine,
    PrivateGaussianMixture,
    PrivateSGLD,
    PrivateSVI,
    TrustedAggregator,
    VariationalLogisticRegression,
)
from hubbub.analyses.iterative.logistic import JaakkolaProgram
from hubbub.analyses.iterative.mixture import MixtureProgram
from hubbub.privacy import gaussian_round
from hubbub.statistics import Clipped

CENTRES = np.array([[1.0, 1.0], [-1.0, 0.5], [0.0, -1.0]])


def groups(n: int = 1500) -> np.ndarray:
    rng = np.random.default_rng(5)
    return CENTRES[rng.integers(3, size=n)] + 0.3 * rng.standard_normal((n, 2))


def test_langevin_draws_of_a_conjugate_model_have_its_mean_and_deviation():
    """400 rows: N(sum x/401, 1/401); autocorrelated draws, so within 0.6 deviations and 25 % of the width."""
    x = 0.7 + np.random.default_rng(1).standard_normal(400)
    for kwargs in ({"noise_multiplier": 0.0}, {"budget": Budget(30.0, 1e-5), "engine": LocalEngine(seed=0)}):
        fitted = PrivateSGLD(models.normal_mean, clip=4.0, steps=2000, seed=2, **kwargs).fit(x)
        draws = fitted.sample(1000)["m"]
        assert abs(draws.mean() - x.sum() / 401) < 0.6 * 401**-0.5
        assert draws.std() == pytest.approx(401**-0.5, rel=0.25)


def test_privacy_noise_limits_the_langevin_step():
    """So much noise that a step of the wanted size would be noisier than Langevin's own: it is made smaller."""
    x = np.random.default_rng(1).standard_normal(200)
    fitted = PrivateSGLD(models.normal_mean, clip=4.0, steps=200, seed=2, engine=LocalEngine(seed=0)).fit(x)
    noise = fitted.privacy_.last.noise_std
    assert fitted.step_size_ == pytest.approx(4 / noise**2)
    assert fitted.step_size_ < 0.5 / 200
    assert fitted.to_arviz(draws=100).posterior["m"].shape == (1, 100)


def test_expected_statistics_of_a_logistic_regression_without_noise_are_near_the_mode():
    X, y = models.logistic_data(1000)
    fitted = VariationalLogisticRegression(x_norm=10.0, noise_multiplier=0.0, steps=60).fit(X, y)
    w = fitted.posterior_.mean
    design = np.column_stack([X, np.ones(1000)])
    gradient = design.T @ (y - 1 / (1 + np.exp(-design @ w))) - w
    assert np.abs(np.linalg.solve((design.T * 0.15) @ design, gradient)).max() < 0.05
    assert np.mean(fitted.predict(X) == y) > 0.7
    assert fitted.summary().rows[-1]["name"] == "intercept"


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_private_logistic_regression_is_wider_than_without_noise_and_stays_finite(epsilon: float):
    X, y = models.logistic_data(1000)
    exact = VariationalLogisticRegression(noise_multiplier=0.0, engine=TrustedAggregator()).fit(X, y)
    private = VariationalLogisticRegression(Budget(epsilon, 1e-5), engine=LocalEngine(seed=1)).fit(X, y)
    assert np.isfinite(private.posterior_.covariance).all()
    z = np.abs(private.posterior_.mean - exact.posterior_.mean) / private.posterior_.std
    assert z.max() < 4
    assert (private.posterior_.std > exact.posterior_.std).all()


@pytest.mark.parametrize(
    "kwargs", [{"noise_multiplier": 0.0}, {"budget": Budget(3.0, 1e-5), "engine": LocalEngine(seed=2)}]
)
def test_mixture_finds_the_groups(kwargs):
    fitted = PrivateGaussianMixture(3, x_norm=2.5, seed=1, **kwargs).fit(groups())
    found = fitted.means_[np.argmin(np.linalg.norm(fitted.means_[None] - CENTRES[:, None], axis=2), axis=1)]
    assert np.abs(found - CENTRES).max() < 0.25
    assert fitted.weights_.sum() == pytest.approx(1.0)
    assert len(set(fitted.predict(CENTRES))) == 3


def test_no_vector_of_the_built_in_programs_is_longer_than_its_bound():
    """So their clip never cuts: heavy-tailed rows, random states."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((4000, 4)) * np.exp(2 * rng.standard_normal((4000, 1)))
    logistic, mixture = JaakkolaProgram(3, 2.0), MixtureProgram(3, 4, 2.0)
    second = np.outer(v := rng.standard_normal(4), v) + np.eye(4)
    rows_y = np.column_stack([rows[:, :3], rng.integers(0, 2, 4000)])
    assert np.linalg.norm(logistic.vectors(second.ravel(), rows_y), axis=1).max() <= logistic.bound * (1 + 1e-12)
    state = np.concatenate([rng.standard_normal(3 + 12), rng.exponential(size=12)])
    assert np.linalg.norm(mixture.vectors(state, rows), axis=1).max() <= np.sqrt(3) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("make", "data", "message"),
    [
        (
            lambda **k: VariationalLogisticRegression(**k),
            (np.zeros((5, 2)), [0, 1, 2, 0, 1]),
            "y must have two classes",
        ),
        (lambda **k: VariationalLogisticRegression(**k), (np.zeros((5, 2)), [0, 1]), "inconsistent numbers of samples"),
        (lambda **k: VariationalLogisticRegression(batch=6, **k), (np.zeros((5, 2)), [0, 1, 0, 0, 1]), "batch must be"),
        (lambda **k: PrivateGaussianMixture(**k), (np.full((5, 2), np.nan),), "X must be finite"),
        (lambda **k: PrivateSGLD(models.without_plate, **k), models.logistic_data(), "outside a subsampled plate"),
    ],
)
def test_bad_input_is_one_line_and_costs_nothing(make, data, message):
    ledger = Ledger(Budget(5.0, 1e-5))
    with pytest.raises(InvalidInput, match=message) as caught:
        make(ledger=ledger).fit(*data)
    assert "\n" not in str(caught.value)
    assert ledger.entries == ()


def test_coins_are_fair_and_hidden_in_the_sum():
    """Every client sends 1 with probability q: the sum is binomial; false alarm 1e-6 by Hoeffding."""
    program = JaakkolaProgram(1, 1.0)
    rows = np.tile([0.0, 1.0], (4000, 1))
    statistic = Clipped(program, np.eye(2).ravel(), program.bound, probability=0.25)
    release = LocalEngine(computes=3, seed=1).private_sum(rows, gaussian_round(statistic, 0.0))
    assert abs(release.value[-1] / 0.5 - 1000) < np.sqrt(4000 * np.log(2e6) / 2)
    assert release.n == 4000
    assert release.event.probability == 0.25


@pytest.mark.parametrize("estimator", ["svi", "sgld", "logistic", "mixture"])
def test_learning_in_steps_runs_under_laplace_noise(estimator: str):
    """Pure epsilon over several steps; the noise counts by its variance, as docs/iterative.md says."""
    engine = LocalEngine(seed=3, mechanism="discrete-laplace")
    settings = {"budget": Budget(50.0, 0.0), "steps": 5, "engine": engine}
    X, y = models.logistic_data(1000)
    if estimator == "svi":
        found = PrivateSVI(models.logistic, clip=1.0, **settings).fit(X, y).sample(50)["w"]
    elif estimator == "sgld":
        found = PrivateSGLD(models.normal_mean, clip=4.0, **settings).fit(X[:, 0]).sample(50)["m"]
    elif estimator == "logistic":
        found = VariationalLogisticRegression(**settings).fit(X, y).posterior_.std
    else:
        found = PrivateGaussianMixture(3, x_norm=3.0, **settings).fit(groups(300)).result_.table()[0]["mean"]
    assert np.isfinite(found).all()
