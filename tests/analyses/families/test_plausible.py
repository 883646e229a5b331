"""Exact sums behind noisy ones: against enumeration, against simulation, and where they are very many."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from hubbub.analyses.families.plausible import plausible_count, plausible_counts, plausible_moments
from hubbub.analyses.families.posteriors import DirichletPosterior, NormalVariancePosterior, ScalarPosterior
from hubbub.protocols import NoiseLaw


@pytest.mark.parametrize(("prior", "noise"), [(0.6, 1.8), (0.02, 6.0), (20.0, 3.0), (1.0, 100.0)])
def test_counts_of_categories_are_those_of_enumeration(prior: float, noise: float):
    n, noisy = 20, np.array([9.1, -2.0, 12.9])
    every = np.array([c for c in product(range(n + 1), repeat=3) if sum(c) == n])
    log = stats.dirichlet_multinomial.logpmf(every, np.full(3, prior), n) + stats.norm.logpdf(noisy, every, noise).sum(
        axis=1
    )
    exact = np.exp(log - log.max())
    exact /= exact.sum()
    counts, weights = plausible_counts(n, noisy, NoiseLaw("normal", noise), prior)
    assert (counts.sum(axis=1) == n).all()
    assert counts.min() >= 0
    expected = exact @ every
    deviation = np.sqrt(exact @ (every - expected) ** 2)
    # 640 draws: 4 standard errors or more
    np.testing.assert_allclose(weights @ counts, expected, atol=0.2 * deviation.max())
    np.testing.assert_allclose(np.sqrt(weights @ (counts - weights @ counts) ** 2), deviation, rtol=0.2, atol=0.1)
    np.testing.assert_allclose(weights @ (counts == 0), exact @ (every == 0), atol=0.08)


def test_without_noise_there_is_one_possibility():
    counts, weights = plausible_counts(12, np.array([3.0, 0.0, 9.0]) + 1e-9, NoiseLaw("normal", 1e-8), 1.0)
    np.testing.assert_array_equal(counts, [[3, 0, 9]])
    assert weights == [1.0]
    counts, weights = plausible_count(np.zeros_like, 5.0 + 1e-9, NoiseLaw("normal", 1e-8), 12)
    np.testing.assert_array_equal(counts, [5.0])


def test_one_category_holds_everybody():
    counts, _ = plausible_counts(9, np.array([4.0]), NoiseLaw("normal", 3.0), 1.0)
    np.testing.assert_array_equal(counts, [[9.0]])


@pytest.mark.parametrize(("noisy", "noise"), [(3.2, 1.5), (-4.0, 2.0), (19.0, 4.0), (8.0, 1e4)])
def test_a_count_is_weighed_by_prior_and_noise(noisy: float, noise: float):
    n, a, b, law = 15, 0.5, 2.0, NoiseLaw("normal", noise)
    every = np.arange(n + 1.0)
    exact = stats.betabinom.pmf(every, n, a, b) * np.exp(-0.5 * ((noisy - every) / noise) ** 2)
    counts, weights = plausible_count(lambda k: stats.betabinom.logpmf(np.round(k), n, a, b), noisy, law, n)
    np.testing.assert_allclose(np.interp(every, counts, weights, 0, 0), exact / exact.sum(), atol=1e-12)


def test_a_prior_far_from_the_noisy_count_is_heard():
    """Very many clients: the window goes to where prior and noise agree, and the groups keep mean and deviation."""
    middle, deviation, noisy, noise, most = 4e8, 3e3, 4.3e8, 5e6, 1e9
    counts, weights = plausible_count(
        lambda k: -0.5 * ((k - middle) / deviation) ** 2, noisy, NoiseLaw("normal", noise), most
    )
    precision = deviation**-2 + noise**-2
    mean = (middle / deviation**2 + noisy / noise**2) / precision
    assert weights @ counts == pytest.approx(mean, abs=0.02 * deviation)
    assert np.sqrt(weights @ (counts - mean) ** 2) == pytest.approx(precision**-0.5, rel=1e-2)
    assert counts.size <= 1000


def test_a_small_prior_keeps_its_weight_at_the_end_where_numbers_are_very_many():
    """Beta(0.1, 0.1): of ten million clients perhaps none; every number near 0 counts on its own."""
    n, noise = 10**7, 1e6

    def log_prior(k):
        return gammaln(0.1 + k) - gammaln(1 + k) + gammaln(0.1 + n - k) - gammaln(1 + n - k)

    every = np.arange(n + 1.0)
    exact = np.exp(log_prior(every) - 0.5 * (every / noise) ** 2 - log_prior(0.0))
    exact /= exact.sum()
    counts, weights = plausible_count(log_prior, 0.0, NoiseLaw("normal", noise), n)
    assert weights @ counts == pytest.approx(exact @ every, rel=1e-4)
    assert weights[counts < 0.5].sum() == pytest.approx(exact[0], rel=1e-4)
    for share in (0.3, 0.5, 0.9):
        seen = counts[np.searchsorted(np.cumsum(weights), share)]
        assert seen == pytest.approx(np.searchsorted(np.cumsum(exact), share), rel=0.05, abs=1)


@pytest.mark.parametrize("noise", [30.0, 0.3])
def test_moments_agree_with_simulated_samples(noise: float):
    """Mean and variance of (mean, sum of squares) from the grid, and from samples of the prior weighed by the noise."""
    n, bound, shape, scale, count = 12, 20.0, 4.0, 6.0, 2.0
    rng = np.random.default_rng(5)
    variance = scale / rng.gamma(shape, size=400_000)
    mean = rng.normal(0, np.sqrt(variance / count + variance / n))
    square = variance * rng.chisquare(n - 1, size=variance.size)
    noisy, deviation = np.array([9.0, 30.0]), noise * np.array([1.0, 3.0])
    log = stats.norm.logpdf(noisy[0], n * mean, deviation[0])
    log += stats.norm.logpdf(noisy[1], square + n * mean**2, deviation[1])
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    assert 1 / np.sum(weight**2) > 200

    def log_prior(m, log_square):
        total = scale + np.exp(log_square) / 2 + count * n / (count + n) * m**2 / 2
        return (n - 1) / 2 * log_square - (shape + n / 2) * np.log(total)

    means, squares, weights = plausible_moments(
        log_prior, n, noisy, [NoiseLaw("normal", each) for each in deviation], bound
    )
    for found, expected in ((means, mean), (squares, square)):
        middle, spread = weight @ expected, np.sqrt(weight @ (expected - weight @ expected) ** 2)
        assert weights @ found == pytest.approx(middle, abs=0.25 * spread)
        assert np.sqrt(weights @ (found - weights @ found) ** 2) == pytest.approx(spread, rel=0.2)


@pytest.mark.parametrize(
    "posterior",
    [
        ScalarPosterior(np.array([0.3, 0.7]), "beta", (np.array([2.0, 9.0]), np.array([7.0, 3.0]))),
        ScalarPosterior(np.array([0.3, 0.7]), "gamma", (np.array([2.0, 9.0]), np.array([7.0, 3.0]))),
        DirichletPosterior(np.array([0.3, 0.7]), np.array([[1.0, 2.0, 3.0], [8.0, 2.0, 1.0]])),
        NormalVariancePosterior(np.array([0.3, 0.7]), np.array([-1.0, 2.0]), np.array([5.0, 9.0]), 4.0, 9.0),
    ],
)
def test_a_mixture_is_what_its_draws_say(posterior):
    """Moments and quantiles of 400000 draws: 1 % is at least 4 standard errors."""
    draws = posterior.sample(400_000, seed=2)
    np.testing.assert_allclose(draws.mean(axis=0), posterior.mean, rtol=0.01)
    np.testing.assert_allclose(draws.std(axis=0), posterior.std, rtol=0.01)
    np.testing.assert_allclose(
        np.quantile(draws, [0.05, 0.95], axis=0).T, posterior.interval(0.9), rtol=0.02, atol=1e-3
    )
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        posterior.interval(1.5)
