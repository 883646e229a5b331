"""Linear regression on noisy sums: exact without noise, sane with it, and never half-done."""

from __future__ import annotations

import numpy as np
import pytest

from fits import fit_plain, fit_projected
from hubbub.analyses.linear.projected import normal_posterior, private_deviations
from hubbub.engines import LocalEngine, TrustedAggregator
from hubbub.errors import BudgetExceeded, InvalidInput, RoundRefused
from hubbub.experiments.baselines import exact_gram, input_perturbation_gram
from hubbub.privacy import Budget, Ledger, gaussian_round, noise_multiplier, shared_multipliers
from hubbub.randomness import Randomness
from hubbub.statistics import Box, Gram, Means, SecondMoments

BOX = Box((1.0,) * 3, 1.0)
BUDGET = Budget(1.0, 1e-5)


def ridge_by_hand(rows: np.ndarray, prior: float, noise: float) -> np.ndarray:
    X, y = rows[:, :-1], rows[:, -1]
    return np.linalg.solve(prior * np.eye(X.shape[1]) + noise * X.T @ X, noise * X.T @ y)


@pytest.mark.parametrize("engine", [LocalEngine(computes=3), TrustedAggregator()], ids=["local", "trusted"])
def test_plain_without_noise_is_the_exact_posterior(engine, regression_rows: np.ndarray):
    fit = fit_plain(regression_rows, BOX, 0.0, engine)
    posterior = normal_posterior(fit.gram, prior_precision=2.0, noise_precision=4.0)
    X = regression_rows[:, :-1]
    np.testing.assert_allclose(posterior.mean, ridge_by_hand(regression_rows, 2.0, 4.0), atol=1e-9)
    np.testing.assert_allclose(posterior.covariance, np.linalg.inv(2 * np.eye(3) + 4 * X.T @ X), atol=1e-9)


def test_projected_with_little_noise_finds_the_coefficients(regression_rows: np.ndarray):
    fit = fit_projected(regression_rows, BOX, [1e-6, 1e-6], LocalEngine())
    assert [r.label for r in fit.rounds] == ["deviations", "regression"]
    assert fit.bound.y is not None
    assert fit.bound.y < BOX.y
    estimate = normal_posterior(fit.gram, prior_precision=1e-9).mean
    np.testing.assert_allclose(estimate, [0.5, -0.3, 0.1], atol=0.1)


def test_private_deviations_estimate_the_standard_deviations(rng: np.random.Generator):
    rows = rng.standard_normal((5000, 3)) * [0.1, 1.0, 2.0]
    release = LocalEngine(seed=1).private_sum(rows, gaussian_round(SecondMoments((10.0,) * 3), 1e-3))
    np.testing.assert_allclose(private_deviations(release, 0.5), rows.std(axis=0), rtol=0.05)


def test_negative_variance_falls_back():
    release = TrustedAggregator(seed=0).private_sum(np.zeros((10, 4)), gaussian_round(SecondMoments((7.5,) * 4), 5.0))
    deviations = private_deviations(release, 0.5)
    negative = release.value < 0
    assert negative.any()
    assert (deviations[negative] == 0.5).all()


def test_projected_never_widens_the_assumed_bounds(rng: np.random.Generator):
    rows = np.sign(rng.standard_normal((100, 4)))  # deviations as large as the bounds
    fit = fit_projected(rows, BOX, [1e-3, 1e-3], LocalEngine())
    assert (np.array(fit.bound.x) <= 1.0).all()
    assert fit.bound.y is not None
    assert fit.bound.y <= 1.0


def test_noise_of_a_fit_is_the_one_that_the_budget_asks_for(regression_rows: np.ndarray):
    multiplier = noise_multiplier(BUDGET)
    fit = fit_plain(regression_rows, BOX, multiplier, LocalEngine(dropouts=5, colluding=4))
    n = len(regression_rows)
    assert fit.noise_std == pytest.approx(multiplier * BOX.sensitivity(False) * np.sqrt(n / (n - 10)), rel=1e-6)


@pytest.mark.parametrize("repair", ["flip", "ridge"])
def test_indefinite_sums_still_give_a_proper_posterior(repair, rng: np.random.Generator):
    noise = rng.standard_normal((6, 6)) * 100
    gram = Gram(noise + noise.T, rng.standard_normal(6) * 100, None)
    assert np.linalg.eigvalsh(gram.xx).min() < 0
    posterior = normal_posterior(gram, noise_std=100.0, repair=repair)
    assert np.linalg.eigvalsh(posterior.covariance).min() > 0
    assert np.isfinite(posterior.mean).all()


def test_ridge_shrinks_a_hopeless_fit_toward_the_prior(rng: np.random.Generator):
    """Nothing but noise: the ridge keeps the coefficients small where flipping does not."""
    sizes = {"flip": [], "ridge": []}
    for _ in range(50):
        noise = np.triu(rng.standard_normal((8, 8)) * 1000)
        gram = Gram(noise + np.triu(noise, 1).T, rng.standard_normal(8) * 1000, None)
        for repair, found in sizes.items():
            found.append(np.linalg.norm(normal_posterior(gram, noise_std=1000.0, repair=repair).mean))
    assert np.median(sizes["ridge"]) < 0.75
    assert np.median(sizes["flip"]) > 2 * np.median(sizes["ridge"])


def test_unknown_repair_is_one_line():
    with pytest.raises(InvalidInput, match="repair must be 'flip' or 'ridge', got repair='pray'"):
        normal_posterior(Gram(np.eye(2), np.zeros(2), None), repair="pray")


def test_ledger_is_checked_for_all_rounds_before_the_first(regression_rows: np.ndarray):
    multipliers = shared_multipliers(BUDGET, [0.3, 0.7])
    ledger = Ledger(Budget(0.5, 1e-5))

    class Untouched(LocalEngine):
        def private_sum(self, *_: object) -> None:
            raise AssertionError("a round was run")

    with pytest.raises(BudgetExceeded):
        fit_projected(regression_rows, BOX, multipliers, Untouched(), ledger=ledger)  # type: ignore[arg-type]
    assert ledger.entries == ()


def test_crash_after_the_first_round_keeps_what_may_have_been_seen(regression_rows: np.ndarray):
    """The first round is released and stays charged; the refused second is given back; a crash gives nothing back."""

    class FailsLater:
        population, hold = LocalEngine().population, LocalEngine().hold

        def __init__(self, error: Exception) -> None:
            self.error, self.calls = error, 0

        def private_sum(self, *arguments: object):
            self.calls += 1
            if self.calls == 2:
                raise self.error
            return LocalEngine().private_sum(*arguments)

    for error, left in (
        (RoundRefused("too-few-clients", "too few"), ["deviations"]),
        (OSError(), ["deviations", "regression"]),
    ):
        ledger = Ledger(BUDGET)
        with pytest.raises(type(error)):
            fit_projected(
                regression_rows, BOX, shared_multipliers(BUDGET, [0.3, 0.7]), FailsLater(error), ledger=ledger
            )
        assert [entry.label for entry in ledger.entries] == left


def test_refused_round_costs_nothing(regression_rows: np.ndarray):
    ledger = Ledger(BUDGET)
    engine = LocalEngine(tolerate=1, absent=(0, 1))
    with pytest.raises(RoundRefused):
        fit_plain(regression_rows, BOX, noise_multiplier(BUDGET), engine, ledger=ledger)
    assert ledger.entries == ()
    fit_plain(regression_rows, BOX, noise_multiplier(BUDGET), LocalEngine(), ledger=ledger)
    assert [entry.label for entry in ledger.entries] == ["regression"]


def test_input_perturbation_adds_the_full_noise_to_every_sample(rng: np.random.Generator):
    rows = np.zeros((20_000, 3))
    bound = Box((1.0, 1.0), 2.0)
    gram = input_perturbation_gram(rows, bound, 1.5, Randomness.simulation(0))
    variance = (1.5 * Means((1.0, 1.0, 2.0)).sensitivity) ** 2
    np.testing.assert_allclose(np.diag(gram.xx) / len(rows), variance, rtol=0.05)


def test_exact_gram(regression_rows: np.ndarray):
    X, y = regression_rows[:, :-1], regression_rows[:, -1]
    gram = exact_gram(regression_rows)
    np.testing.assert_allclose(gram.xx, X.T @ X)
    np.testing.assert_allclose(gram.xy, X.T @ y)
    assert gram.yy == pytest.approx(y @ y)


def test_posterior_samples_and_intervals_agree(regression_rows: np.ndarray):
    posterior = normal_posterior(exact_gram(regression_rows))
    draws = posterior.sample(200_000, seed=0)
    np.testing.assert_allclose(draws.mean(axis=0), posterior.mean, atol=6 * posterior.std.max() / np.sqrt(2e5))
    np.testing.assert_allclose(np.cov(draws.T), posterior.covariance, rtol=0.02, atol=1e-4)
    np.testing.assert_allclose(np.quantile(draws, [0.05, 0.95], axis=0).T, posterior.interval(0.9), atol=3e-3)
    with pytest.raises(InvalidInput, match="level must be between 0 and 1, got level=90"):
        posterior.interval(90)
