"""The posterior of a generalised linear model given its steps: calibrated to its own model, and exact without noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest, multivariate_normal

from hubbub.analyses.glm.families import FAMILIES
from hubbub.analyses.glm.look import NOT_SEEN, InterceptPrior, Step, Stepped, estimate, looks, still_to_go, unattenuated
from hubbub.analyses.glm.posterior import sample_glm
from hubbub.analyses.glm.target import KnownVariance
from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.released import Look
from hubbub.analyses.linear.sampler.chains import Effort, walk
from hubbub.analyses.linear.sampler.target import Prior
from hubbub.analyses.linear.shrinkage import shrunk_covariance
from hubbub.arrays import Floats
from hubbub.statistics import Ball, Gram
from linear_prior import drawn_parameters, symmetric


def stepped(
    S: Floats, seen: tuple[Look, ...], n: int, noise: float, ratio: float, shape: float | None = None
) -> Stepped:
    p = len(S)
    columns = Columns(np.zeros(p), np.ones(p), np.full(p, 0.35))
    return Stepped(
        Gram(S, seen[-1].xy, 0.0), n, noise, Ball(1.2, p, y=1.0), columns, True, shape, looks=seen, ratio=ratio
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "n", "noise", "studies", "law"),
    [(2, 300, 20.0, 60, None), (3, 1000, 30.0, 40, None), (3, 1000, 30.0, 40, 1.0),
     pytest.param(4, 300, 40.0, 300, None, marks=pytest.mark.long),
     pytest.param(6, 1000, 20.0, 200, None, marks=pytest.mark.long)],
)  # fmt: skip
def test_ranks_of_the_truth_are_uniform(p: int, n: int, noise: float, studies: int, law: float | None):
    """Simulation-based calibration with two looks around different states. FALSE_ALARM: 1e-4 for each of six ranks."""
    rng, ratio, found = np.random.default_rng([p, n]), 0.7, list[list[float]]()
    empty = stepped(np.eye(p), (Look(np.zeros(p), np.zeros(p), 1.0, 0.0, NOT_SEEN),), n, noise, ratio)
    intercept_prior = InterceptPrior(0.8, 3.0)
    prior = KnownVariance(replace(empty, intercept_prior=intercept_prior), Prior())
    for study in range(studies):
        S, beta, _, _ = drawn_parameters(rng, prior)
        beta[0] += intercept_prior.mean
        q = S @ beta + np.sqrt(ratio) * np.linalg.cholesky(S) @ rng.standard_normal(p)
        loud = np.ones((p + 2, p)) if law is None else np.sqrt(rng.gamma(law, 1 / law, (p + 2, p)))
        loud[:p] = np.triu(loud[:p]) + np.triu(loud[:p], 1).T
        seen = tuple(
            Look(at, q - S @ at + size * loud[p + k] * rng.standard_normal(p), size, 0.0, NOT_SEEN)
            for k, (at, size) in enumerate([(np.zeros(p), 40.0), (0.5 * rng.standard_normal(p), 25.0)])
        )
        noisy = stepped(S + noise * symmetric(rng, p) * loud[:p], seen, n, noise, ratio, law)
        target = KnownVariance(replace(noisy, intercept_prior=intercept_prior), Prior())
        effort = Effort.of(p)
        draws = walk(np.random.default_rng(study), target, effort, effort.sweeps(400)).draws
        weights = np.exp(draws.log_weight - draws.log_weight.max())
        weights /= weights.sum()
        pairs = [
            (draws.beta[:, 0], beta[0]), (draws.beta[:, -1], beta[-1]),
            ((draws.beta[:, 1:] ** 2).sum(axis=1), (beta[1:] ** 2).sum()), (draws.S[:, -1, -1], S[-1, -1]),
            (draws.S[:, 0, -1], S[0, -1]), (np.linalg.slogdet(draws.S)[1], np.linalg.slogdet(S)[1]),
        ]  # fmt: skip
        found.append([float(weights @ (drawn < value)) for drawn, value in pairs])
    p_values = [kstest(column, "uniform").pvalue for column in np.array(found).T]
    assert min(p_values) > 1e-4, p_values


def test_without_noise_it_is_the_normal_approximation(rng: np.random.Generator):
    """Known information, hardly any noise and a wide prior: mean S^-1 q and covariance ratio S^-1."""
    p, n, ratio = 4, 5000, 0.6
    u = rng.uniform(-1, 1, (n, p))
    S = 0.25 * u.T @ u
    beta = np.array([0.3, 1.0, -0.5, 0.2])
    q = S @ beta + 3 * rng.standard_normal(p)
    seen = (Look(np.zeros(p), q, 1e-3, 0.0, NOT_SEEN),)
    draws = sample_glm(stepped(S, seen, n, 1e-3, ratio), FAMILIES["poisson"], Prior(np.full(p - 1, 100.0)), draws=4000)
    std = np.sqrt(ratio * np.diag(np.linalg.inv(S)))
    found = np.column_stack([draws.draws[:, -1], draws.draws[:, :-1]])
    np.testing.assert_allclose(found.mean(axis=0), np.linalg.solve(S, q), atol=0.15 * std.max())
    np.testing.assert_allclose(found.std(axis=0), std, rtol=0.1)


def logistic_steps(rng: np.random.Generator, n: int, states: list[Floats]) -> tuple[list[Step], Floats, Floats]:
    """Steps without shortening or noise at these states; rows and outcomes."""
    u = np.column_stack([np.ones(n), rng.standard_normal((n, 2))])
    y = (rng.random(n) < 1 / (1 + np.exp(-u @ [0.2, 0.8, -0.5]))).astype(float)
    steps = []
    for b in states:
        mean = 1 / (1 + np.exp(-u @ b))
        S = (u * (mean * (1 - mean))[:, None]).T @ u
        steps.append(Step(b, u.T @ (y - mean), 1e-6, S, 1e-6, float(np.trace(S)), 1e-6, 1.0))
    return steps, u, y


def test_an_earlier_score_is_moved_to_the_last_state_up_to_the_third_order(rng: np.random.Generator):
    """The trapezium of the two informations: halving the way leaves about an eighth, a quarter without it."""
    last, way = np.array([0.2, 0.8, -0.5]), np.array([0.4, -0.3, 0.5])
    left = []
    for size in (1.0, 0.5, 0.25):
        steps, _, _ = logistic_steps(np.random.default_rng(3), 5000, [last + size * way, last])
        first, second = looks(steps)[0]
        moved = first.xy + steps[-1].information @ (first.around - second.around)
        left.append(np.linalg.norm(moved - second.xy))
    assert left[0] / left[1] > 6
    assert left[1] / left[2] > 6


def test_noise_of_the_information_is_counted_in_an_earlier_score():
    """Two looks with nothing but noise: the variance of the moved score is what is stated."""
    rng, p, found = np.random.default_rng(2), 4, []
    for _ in range(3000):
        steps = [
            Step(at, rng.standard_normal(p), 1.0, 100 * np.eye(p) + 3 * symmetric(rng, p), 3.0, 1.0, 1.0, 1.0)
            for at in (np.full(p, 0.6), np.zeros(p))
        ]
        found.append(looks(steps)[0][0].xy)
    way = 1.2
    expected = 1 + (way**2 / 8) * (9 + 9)
    assert np.var(found) == pytest.approx(expected, rel=0.25)
    assert looks(steps)[0][0].xy_noise ** 2 >= expected - 1e-9


def test_the_closed_form_finds_the_maximum_of_the_likelihood_without_noise(rng: np.random.Generator):
    b = np.zeros(3)
    for _ in range(6):
        steps, u, y = logistic_steps(np.random.default_rng(4), 20_000, [b])
        b = estimate(steps, 20_000, InterceptPrior())
    score = u.T @ (y - 1 / (1 + np.exp(-u @ b)))
    np.testing.assert_allclose(np.linalg.solve(steps[0].information, score), 0, atol=2e-3)


def test_the_closed_form_stays_near_the_start_where_there_is_noise_only(rng: np.random.Generator):
    p = 6
    noise = 1000.0
    step = Step(np.zeros(p), noise * rng.standard_normal(p), noise, noise * symmetric(rng, p), noise, 0.0, noise, 1.0)
    assert step.ratio == 1.0
    assert np.linalg.norm(estimate([step], 100, InterceptPrior())[1:]) < 1


def test_a_way_that_is_still_to_go_is_told_from_noise():
    S, noise = 400 * np.eye(3), 5.0
    found = np.array([0.0, 0.8, 0.0])
    assert still_to_go([Step(np.zeros(3), S @ found, 20.0, S, noise, 300.0, noise, 1.0)], found) == pytest.approx(
        0.72, abs=0.05
    )
    small = np.array([0.1, -0.1, 0.1])
    assert still_to_go([Step(np.zeros(3), S @ small, 20.0, S, noise, 300.0, noise, 1.0)], small) == 0


def test_the_last_score_has_a_deviation_for_what_is_still_to_go(rng: np.random.Generator):
    """Without noise: that by which a linear step errs is within four of its stated deviations, and of its order."""
    last = np.array([0.2, 0.5, -0.3])
    steps, u, y = logistic_steps(np.random.default_rng(3), 50_000, [np.zeros(3), last])
    truth = np.array([0.2, 0.8, -0.5])
    near, seen = looks(steps)[0][-1], looks(steps, truth)[0][-1]
    exact = u.T @ (y - 1 / (1 + np.exp(-u @ truth)))
    error = np.linalg.norm(steps[-1].score - steps[-1].information @ (truth - last) - exact) / np.sqrt(3)
    assert near.xy_noise < 1e-3
    assert seen.xy_noise / 4 < error < 4 * seen.xy_noise


def test_a_first_look_from_an_intercept_is_made_as_large_as_coefficients_are():
    """Normal x and many rows: a logistic regression's first Newton step, with and without that."""
    rng = np.random.default_rng(1)
    truth = np.array([0.0, 1.5, -1.0])
    u = np.column_stack([np.ones(200_000), rng.standard_normal((200_000, 2))])
    y = rng.random(200_000) < 1 / (1 + np.exp(-u @ truth))
    S = 0.25 * u.T @ u
    first = Step(np.zeros(3), u.T @ (y - 0.5), 1e-6, S, 1e-6, float(np.trace(S)), 1e-6, 1.0)
    found = np.linalg.solve(S, first.score)
    assert np.linalg.norm(found) < 0.8 * np.linalg.norm(truth)
    np.testing.assert_allclose(unattenuated(found, first, np.pi / 8), truth, atol=0.15)
    np.testing.assert_array_equal(unattenuated(found, first, 0.0), found)
    assert np.linalg.norm(unattenuated(50 * found, first, np.pi / 8)) <= 100 * np.linalg.norm(found) * 1.0001


@pytest.mark.parametrize("p", [1, 2, 5])
def test_the_closed_form_weighs_priors_by_their_evidence(p: int):
    """Held against conditional normal laws, one prior after the other: score + S b ~ N(S theta, ratio S + noise^2)."""
    rng, n, intercept_prior = np.random.default_rng(p), 3000, InterceptPrior(0.7, 2.0)
    A = rng.standard_normal((40, p))
    information, at = n * (A.T @ A / 40 + np.eye(p)), rng.standard_normal(p)
    step = Step(at, 30 * rng.standard_normal(p), 20.0, information, 5.0, 1.3 * np.trace(information), 5.0, 9.0)
    S, _ = shrunk_covariance(information, 5.0, n)
    q, evidence, means = step.score + S @ at, [], []
    for variance in np.logspace(-3, 2, 40):
        prior = np.diag([intercept_prior.std**2, *[variance] * (p - 1)])
        seen = S @ prior @ S + step.ratio * S + 20.0**2 * np.eye(p)
        middle = intercept_prior.mean * np.eye(p)[0]
        evidence.append(multivariate_normal(S @ middle, seen).logpdf(q))
        means.append(middle + prior @ S @ np.linalg.inv(seen) @ (q - S @ middle))
    weights = np.exp(np.array(evidence) - max(evidence))
    np.testing.assert_allclose(
        estimate([step], n, intercept_prior), weights @ np.array(means) / weights.sum(), rtol=2e-5
    )
