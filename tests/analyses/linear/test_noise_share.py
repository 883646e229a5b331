"""Which part of a variance is noise: held against the algebra of the normal case, and against rows that are known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from hubbub import Bernoulli, Budget, GaussianMean, LocalEngine, PrivateGLM, PrivateLinearRegression, TrustedAggregator
from hubbub.analyses.families.posteriors import DirichletPosterior, NormalVariancePosterior
from hubbub.analyses.glm.families import FAMILIES
from hubbub.analyses.glm.look import NOT_SEEN, Stepped
from hubbub.analyses.glm.posterior import sample_glm
from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.noise_aware import Prior
from hubbub.analyses.linear.released import Look
from hubbub.analyses.linear.sampler.chains import Effort, walk
from hubbub.analyses.linear.sampler.draw import Draw
from hubbub.analyses.linear.sampler.noise_share import noise_share
from hubbub.analyses.linear.sampler.target import Target
from hubbub.analyses.posterior import LinearPosterior
from hubbub.statistics import Ball, Gram


@pytest.mark.parametrize("noise", [1.0, 10.0, 40.0])
def test_where_all_is_normal_it_is_what_algebra_says(noise: float):
    """Known information S, prior T and ratio r; q = S beta + N(0, r S) + noise: the variance with it, and without."""
    rng, p, n, ratio, scale = np.random.default_rng(5), 3, 2000, 0.8, 0.4
    u = np.column_stack([np.ones(n), rng.standard_normal((n, 2)) @ [[1.0, 0.3], [0.0, 0.9]]])
    S = 0.25 * u.T @ u
    q = S @ [0.1, 0.3, -0.2]
    columns = Columns(np.array([2.0, -1.0, 0.0]), np.array([0.5, 3.0, 1.0]), np.full(p, 0.35))
    seen = (Look(np.zeros(p), q, noise, 0.0, NOT_SEEN),)
    stepped = Stepped(Gram(S, q, 0.0), n, 1e-3, Ball(3.0, p, y=1.0), columns, True, None, looks=seen, ratio=ratio)
    family, prior = FAMILIES["bernoulli"], Prior(scale / columns.scale[:-1])
    T = np.diag([family.intercept**2, scale**2, scale**2])
    exact = np.linalg.inv(np.linalg.inv(T) + S / ratio)
    noisy = np.linalg.inv(np.linalg.inv(T) + S @ np.linalg.inv(ratio * S + noise**2 * np.eye(p)) @ S)
    turn = np.array([[0, 2.0, 0], [0, 0, 1 / 3.0], [1.0, -4.0, 1 / 3.0]])  # slopes, and the intercept at x = 0
    expected = 1 - np.diag(turn @ exact @ turn.T) / np.diag(turn @ noisy @ turn.T)
    found = sample_glm(stepped, family, prior, draws=2000).noise_share
    np.testing.assert_allclose(found, expected, atol=0.03)


@pytest.mark.parametrize("glm", [False, True])
def test_what_is_left_is_the_variance_that_a_fit_without_privacy_has(glm: bool):
    """Least squares, or Fisher's information at the truth, of the same rows; averaged over two studies.

    Rows are shortened to a ball, which costs some of them, and noise makes the ball smaller: up to a half more.
    """
    shares, left, reference = {}, {}, []
    for epsilon in (1e5, 1.0):
        shares[epsilon], left[epsilon] = [], []
        for seed in range(2):
            rng = np.random.default_rng(seed)
            X, n = rng.standard_normal((3000, 2)), 3000
            A, eta = np.column_stack([X, np.ones(n)]), X @ [0.5, -0.3]
            p = 1 / (1 + np.exp(-eta))
            engine, budget = TrustedAggregator(seed=seed), Budget(epsilon, 1e-5)
            if glm:
                model = PrivateGLM("bernoulli", budget, 5.0, engine=engine).fit(X, rng.random(n) < p)
                weights, linear = p * (1 - p), model.posterior_.linear
            else:
                model = PrivateLinearRegression(budget, 5.0, 8.0, engine=engine).fit(X, eta + rng.standard_normal(n))
                weights, linear = np.ones(n), model.posterior_
            shares[epsilon].append(model.posterior_.noise_share)
            left[epsilon].append(linear.joint.std**2 * (1 - model.posterior_.noise_share))
            reference.append(np.diag(np.linalg.inv(A.T @ (weights[:, None] * A))))
    assert np.mean(shares[1e5]) < 0.03
    assert 0.1 < np.mean(shares[1.0]) < 0.5
    for epsilon, most in ((1e5, 1.25), (1.0, 1.5)):
        assert 0.9 < np.mean(left[epsilon]) / np.mean(reference) < most


def test_units_and_centres_of_the_data_count_once():
    """Two worlds, weighed 1 to 3: slopes 2 b1 and intercepts 100 + b0 - 3 b1, by hand."""
    given = SimpleNamespace(original=lambda beta: (2 * beta[:, 1:], 100 + beta[:, 0] - 3 * beta[:, 1]))
    mean = np.array([[1.0, 2.0], [5.0, 2.5]])
    covariance = np.array([[[1.0, 0.2], [0.2, 0.5]], [[2.0, 0.0], [0.0, 0.1]]])
    draws = Draw(mean, np.ones(2), covariance, np.zeros(2), mean, covariance)
    slope = 4 * (0.25 * 0.5 + 0.75 * 0.1), 0.25 * 0.75 * 1.0**2
    intercept = 0.25 * (1 - 1.2 + 4.5) + 0.75 * (2 + 0.9), 0.25 * 0.75 * (-5.0 + 2.5) ** 2
    expected = [added / (left + added) for left, added in (slope, intercept)]
    np.testing.assert_allclose(noise_share(draws, np.array([0.25, 0.75]), given), expected)


def test_the_two_parts_add_up_to_the_variance_of_the_draws():
    """Moments given the exact sums of each draw are computed apart from the draws of coefficients."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2000, 3))
    quick = PrivateLinearRegression(Budget(0.7, 1e-5), 5.0, 6.0, posterior="shrinkage", engine=TrustedAggregator(3))
    target = Target(quick.fit(X, X[:, 0] + rng.standard_normal(2000)).release_.released, Prior(), None)
    draws = walk(np.random.default_rng(0), target, Effort.of(target.p), 30).draws
    weights = np.exp(draws.log_weight - draws.log_weight.max())
    weights /= weights.sum()
    left, added, total = (
        np.einsum("k,kij->ij", weights, draws.covariance), np.cov(draws.mean.T, aweights=weights),
        np.cov(draws.beta.T, aweights=weights),
    )  # fmt: skip
    assert (np.diag(added) > 0.3 * np.diag(total)).all()
    np.testing.assert_allclose(np.diag(left + added), np.diag(total), rtol=0.1)
    np.testing.assert_allclose(left + added, total, atol=0.1 * total.max())


def test_a_share_of_successes_by_brute_force():
    """Every count there may be, weighed by a uniform prior and the noise; beta posteriors given each."""
    values, n = np.arange(2000) % 10 < 3, 2000
    fit = Bernoulli().fit(values, budget=Budget(0.2, 1e-5), engine=LocalEngine(seed=2))
    counts = np.arange(n + 1)
    weights = stats.norm.pdf(fit.release.value[0] - counts, scale=fit.release.noise_std)
    weights /= weights.sum()
    law = stats.beta(1 + counts, 1 + n - counts)
    left, middle = weights @ law.var(), weights @ law.mean()
    added = weights @ (law.mean() - middle) ** 2
    assert 0.2 < added / (left + added) < 0.95
    np.testing.assert_allclose(fit.posterior.noise_share, [added / (left + added)], rtol=1e-3)


def test_mixtures_of_one_component_have_no_noise_and_those_far_apart_hardly_anything_else():
    one = DirichletPosterior(np.ones(1), np.array([[3.0, 4.0, 5.0]]))
    np.testing.assert_allclose(one.noise_share, 0, atol=1e-12)
    far = NormalVariancePosterior(np.full(2, 0.5), np.array([-50.0, 50.0]), np.array([10.0, 10.0]), 20.0, 10.0)
    assert far.noise_share[0] > 0.999
    assert far.noise_share[1] == pytest.approx(0, abs=1e-12)
    assert NormalVariancePosterior(np.ones(1), np.zeros(1), np.ones(1), 2.0, 0.5).mean[1] == np.inf


def test_where_it_is_not_known_it_is_none():
    fit = GaussianMean(10.0, variance=1.0).fit(
        np.zeros(100), budget=Budget(1.0, 1e-5), engine=LocalEngine(seed=2, mechanism="discrete-laplace")
    )
    assert getattr(fit.posterior, "noise_share", None) is None
    assert LinearPosterior.of_draws(np.ones((5, 3))).noise_share is None
