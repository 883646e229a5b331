"""Laplace noise in the regression: each variance has the law it should have, and the posterior is the right one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import logit

from hubbub import Budget, LocalEngine, PrivateLinearRegression
from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.noise_aware import sample_posterior
from hubbub.analyses.linear.released import Released, mixed_shape
from hubbub.analyses.linear.sampler.chains import Effort, walk
from hubbub.analyses.linear.sampler.inverse_gaussian import inverse_gaussian
from hubbub.analyses.linear.sampler.start import start
from hubbub.analyses.linear.sampler.state import FIXED, Sums, Variances
from hubbub.analyses.linear.sampler.target import Prior, Target
from hubbub.analyses.linear.sampler.variances import move_variances
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats
from hubbub.protocols import NoiseLaw
from hubbub.statistics import Ball, Gram


def one_column(shape: float | None, yy: float = 520.0, noise: float = 60.0) -> Released:
    """A regression through the origin with one feature: S, q and y'y are three numbers. The noise is loud in each."""
    columns = Columns(np.zeros(2), np.ones(2), np.full(2, 0.3))
    sums = Gram(np.array([[300.0]]), np.array([160.0]), yy)
    return Released(sums, 1000, noise, Ball(1.0, 1, y=1e6, weight=1.3), columns, False, shape)


def quantiles(values: Floats, weights: Floats, shares: list[float]) -> Floats:
    """Of weighted values."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    return np.asarray(values[order][np.searchsorted(reached, shares)])


@pytest.mark.parametrize("shape", [0.3, 0.5, 1.0, 1.02, 2.5, 30.0])
@pytest.mark.parametrize("noise", [0.05, 1.0, 5.0])
def test_a_variance_given_its_noise_is_generalised_inverse_gaussian(shape: float, noise: float):
    """Against a fine grid of its density: false alarm 1e-5 a test."""
    found = inverse_gaussian(np.random.default_rng(1), shape - 0.5, 2 * shape, np.full(4000, noise**2))
    log = np.linspace(-25, 6, 40_001)
    height = (shape - 0.5) * log - shape * np.exp(log) - noise**2 / 2 * np.exp(-log)
    below = np.cumsum(np.exp(height - height.max()))
    assert stats.kstest(np.interp(np.log(found), log, below / below[-1]), "uniform").pvalue > 1e-5


def test_the_reciprocal_of_such_a_variance_of_laplace_noise_is_inverse_gaussian():
    """numpy knows that law: 1 / v follows wald(sqrt(2) / |noise|, 2). False alarm 1e-5."""
    rng = np.random.default_rng(2)
    found = inverse_gaussian(rng, 0.5, 2.0, np.full(5000, 0.7**2))
    assert stats.ks_2samp(1 / found, rng.wald(np.sqrt(2) / 0.7, 2.0, 5000)).pvalue > 1e-5


def test_noise_of_exactly_nothing_leaves_a_gamma_law():
    """Of shape k - 1/2, as the density says where the noise is zero. False alarm 1e-5."""
    found = inverse_gaussian(np.random.default_rng(3), 0.5, 2.0, np.zeros(5000))
    assert stats.kstest(found, stats.gamma(0.5).cdf).pvalue > 1e-5


@pytest.mark.parametrize("shape", [1.0, 2.5])
@pytest.mark.parametrize("yy", [520.0, 900.0])
def test_the_move_leaves_the_law_of_the_variances_as_it_is(shape: float, yy: float):
    """Against the law itself, on a grid: gamma prior times the likelihood that all kernels share.

    Walkers stand still but for their variances. 3000 walkers: 0.04 in a cumulative probability is 4.4 errors.
    """
    law = Target(one_column(shape, yy), Prior(), None)
    rng, walkers = np.random.default_rng(4), 3000
    state = start(rng, law, walkers)
    sums, hyper = Sums.of(np.full((walkers, 1, 1), 270.0)), np.tile([np.log(450.0), 0.3, 0.0], (walkers, 1))
    state = replace(state, log_S=np.log(sums.S), sums=sums, hyper=hyper)
    for _ in range(40):
        state, info = move_variances(rng, state, law)
    assert info.moved > 0.3
    grid = np.exp(np.linspace(-10, 4.5, 160))
    of_q, of_yy = (each.ravel() for each in np.meshgrid(grid, grid, indexing="ij"))
    many = (of_q.size, 1, 1)
    trial = Variances(np.ones(many), of_q[:, None], of_yy)
    sums = Sums.of(np.full(many, 270.0))
    likelihood = law.log_likelihood(sums, np.tile(hyper[:1], (of_q.size, 1)), np.zeros(of_q.size, int), trial)
    log = (
        likelihood
        + stats.gamma.logpdf(of_q, shape, scale=1 / shape)
        + stats.gamma.logpdf(of_yy, shape, scale=1 / shape)
    )
    weights = np.exp(log - log.max()) * of_q * of_yy  # even in the logarithms
    of_S = np.exp(stats.gamma.logpdf(grid, shape, scale=1 / shape) - 0.5 * (30 / 60) ** 2 / grid) * np.sqrt(grid)
    shares = [0.1, 0.5, 0.9]
    for seen, value, weight in (
        (state.variances.q[:, 0], of_q, weights), (state.variances.yy, of_yy, weights),
        (state.variances.S[:, 0, 0], grid, of_S),
    ):  # fmt: skip
        below = [np.mean(seen < end) for end in quantiles(value, weight, shares)]
        np.testing.assert_allclose(below, shares, atol=0.06)  # 0.04 and the grid's 0.02
    expected = weights @ np.log(of_q) / weights.sum() * (weights @ np.log(of_yy)) / weights.sum()
    together = weights @ (np.log(of_q) * np.log(of_yy)) / weights.sum() - expected
    assert np.cov(np.log(state.variances.q[:, 0]), np.log(state.variances.yy))[0, 1] == pytest.approx(together, abs=0.1)


def from_the_prior(data: Released, draws: int) -> tuple[Floats, Floats, Floats]:
    """Another way to the same posterior: draws from the prior, each weighed by the density of the noise it takes."""
    target, rng = Target(data, Prior(), None), np.random.default_rng(5)
    level = np.log(target.most) + np.log(TUNING.least_level) * rng.uniform(size=draws)
    S = np.exp(level + target.doubt[0] * rng.standard_normal(draws))
    size = level + target.doubt[1] * rng.standard_normal(draws)
    shape = TUNING.explained_shape
    hyper = np.column_stack([size, logit(rng.beta(shape, shape, draws)), rng.logistic(size=draws)])
    sums = Sums(S[:, None, None], S[:, None], np.ones((draws, 1, 1)))
    s2, T = target.variances(sums, hyper, np.zeros(draws, dtype=np.intp))
    beta = np.sqrt(T[:, 0, 0]) * rng.standard_normal(draws)
    q = S * beta + np.sqrt(s2 * S) * rng.standard_normal(draws)
    yy = q**2 / S + s2 * rng.chisquare(target.n - 1, draws)
    log, weight = np.where(target.most >= S, 0.0, -np.inf), data.ball.weight
    law = NoiseLaw("laplace", data.noise_std, data.shape)
    log += law.log_density(data.sums.xx[0, 0] - S)
    log += law.scaled(1 / (np.sqrt(2) * weight)).log_density(data.sums.xy[0] - q)
    log += law.scaled(1 / weight**2).log_density(data.sums.yy - yy)
    return beta, s2, np.exp(log - log.max())


@pytest.mark.parametrize("shape", [1.0, 2.5])
def test_the_sampler_agrees_with_weighted_draws_from_the_prior(shape: float):
    """Two methods that share no code but the prior: the sampler's variances, and the closed density of the noise.

    20,000 correlated draws, worth 1500 at least: 0.055 in a cumulative probability is 4 errors.
    """
    data = one_column(shape, noise=150.0)
    beta, residual, weights = from_the_prior(data, 2_000_000)
    assert weights.sum() ** 2 / np.sum(weights**2) > 2000
    target, rng = Target(data, Prior(), None), np.random.default_rng(6)
    found = walk(rng, target, Effort.of(1), 500).draws
    mass = np.exp(found.log_weight - found.log_weight.max())
    shares = [0.05, 0.25, 0.5, 0.75, 0.95]
    for seen, value in ((found.beta[:, 0], beta), (found.residual_variance, residual)):
        below = [mass @ (seen < end) / mass.sum() for end in quantiles(value, weights, shares)]
        np.testing.assert_allclose(below, shares, atol=0.055)


def test_two_noises_together_have_the_kurtosis_of_their_mean():
    """That of a Laplace mixture of shape k is 3 + 3/k: of one noise alone it stays, of two alike k doubles."""
    assert mixed_shape(None, np.ones(2)) is None
    assert mixed_shape(1.5, np.array([2.0, 0.0])) == pytest.approx(1.5)
    assert mixed_shape(1.5, np.full(2, 2.0)) == pytest.approx(3.0)
    assert mixed_shape(1.5, np.full(3, 2.0)) == pytest.approx(4.5)
    rng = np.random.default_rng(10)
    mean = 0.3 * rng.laplace(0, 2.0, 2_000_000) + 0.7 * rng.laplace(0, 0.5, 2_000_000)
    assert 3 / stats.kurtosis(mean) == pytest.approx(
        mixed_shape(1.0, np.array([0.3 * 2.0, 0.7 * 0.5])), rel=0.05
    )  # four errors


def test_laplace_noise_is_told_from_normal_noise():
    """Where the noise in q decides, the middle half of a Laplace posterior is 0.73 as wide as that of a normal one.

    Half of the draws lie in it, and not 62 %; 99 % lie where the normal posterior says 97.4 % do.
    """
    quiet = replace(one_column(None, noise=10.0), ball=Ball(1.0, 1, y=1e6, weight=0.2))  # but for q and y'y
    half, most = {}, {}
    for shape in (1.0, 2.5, None):
        draws = sample_posterior(replace(quiet, shape=shape), Prior(np.array([10.0])), draws=8000, seed=7)
        ends = np.quantile(draws.coefficients[:, 0], [0.005, 0.25, 0.75, 0.995])
        half[shape], most[shape] = ends[2] - ends[1], ends[3] - ends[0]
    assert half[1.0] < 0.87 * half[None]
    assert half[1.0] < half[2.5] < half[None]
    assert most[1.0] > 1.1 * most[None]


def test_a_large_shape_is_normal_noise_to_the_bit():
    data = one_column(None)
    same = sample_posterior(replace(data, shape=1e6), draws=200, seed=1)
    np.testing.assert_array_equal(same.coefficients, sample_posterior(data, draws=200, seed=1).coefficients)
    assert start(np.random.default_rng(0), Target(data, Prior(), None), 10).variances is FIXED


@pytest.mark.slow
def test_intervals_of_pure_fits_hold_the_truth():
    """90 % intervals of 20 fits with 3 coefficients each, the noise from the mechanism itself.

    If coverage is 90 %, fewer than 43 of 60 hits happen once in 10^5.
    """
    hits, rng = 0, np.random.default_rng(9)
    for study in range(20):
        beta = rng.normal(0, 0.4, 3)
        X = rng.standard_normal((1500, 3)).clip(-4, 4)
        y = (X @ beta + 0.7 * rng.standard_normal(1500)).clip(-4, 4)
        engine = LocalEngine(dropouts=300, seed=study, mechanism="discrete-laplace")
        model = PrivateLinearRegression(Budget(2.0, 0.0), 4.0, 4.0, engine=engine).fit(X, y)
        assert model.release_.released.shape == pytest.approx(1500 / 1199)
        interval = model.posterior_.interval(0.9)
        hits += int(((interval[:, 0] < beta) & (beta < interval[:, 1])).sum())
    assert hits >= 43
