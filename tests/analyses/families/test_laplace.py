"""Families under Laplace noise: exact sums weighed by its own density, and intervals that hold what they promise."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from hubbub import Bernoulli, Budget, Categorical, Gaussian, GaussianMean, LocalEngine, PoissonRate
from hubbub.analyses.families.plausible import (
    _tabled,
    plausible_count,
    plausible_counts,
    plausible_moments,
)
from hubbub.arrays import Floats
from hubbub.protocols import NoiseLaw

SHAPES = [1.0, 1.02, 2.5]


def pure(family, values, epsilon: float, seed: int):
    """A fit without a delta."""
    engine = LocalEngine(seed=seed, mechanism="discrete-laplace")
    return family.fit(values, budget=Budget(epsilon, 0.0), engine=engine)


def normalised(log: Floats) -> Floats:
    weights = np.exp(log - log.max())
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("shape", SHAPES)
def test_a_count_is_weighed_by_the_density_of_the_noise(shape: float):
    n, noisy, law = 40, 47.3, NoiseLaw("laplace", 6.0, shape)
    every = np.arange(n + 1.0)
    exact = normalised(stats.betabinom.logpmf(every, n, 0.5, 2.0) + law.log_density(noisy - every))
    counts, weights = plausible_count(lambda k: stats.betabinom.logpmf(np.round(k), n, 0.5, 2.0), noisy, law, n)
    np.testing.assert_allclose(np.interp(every, counts, weights, 0, 0), exact, atol=1e-5)
    as_normal = normalised(stats.betabinom.logpmf(every, n, 0.5, 2.0) + stats.norm.logpdf(noisy, every, 6.0))
    assert np.abs(np.cumsum(as_normal) - np.cumsum(exact)).max() > 0.02


@pytest.mark.parametrize("shape", SHAPES)
def test_counts_of_categories_are_those_of_enumeration(shape: float):
    """640 draws: 4 standard errors or more."""
    n, noisy, prior, law = 20, np.array([9.1, -2.0, 17.9]), 0.6, NoiseLaw("laplace", 4.0, shape)
    every = np.array([c for c in product(range(n + 1), repeat=3) if sum(c) == n])
    log = stats.dirichlet_multinomial.logpmf(every, np.full(3, prior), n) + law.log_density(noisy - every).sum(axis=1)
    exact = normalised(log)
    counts, weights = plausible_counts(n, noisy, law, prior)
    expected = exact @ every
    deviation = np.sqrt(exact @ (every - expected) ** 2)
    np.testing.assert_allclose(weights @ counts, expected, atol=0.2 * deviation.max())
    np.testing.assert_allclose(weights @ (counts == 0), exact @ (every == 0), atol=0.08)


@pytest.mark.parametrize("shape", SHAPES)
def test_moments_agree_with_simulated_samples(shape: float):
    """As for normal noise in test_plausible.py: draws of the prior, each weighed by the density of the noise it takes."""
    n, bound, prior_shape, scale, count = 12, 20.0, 4.0, 6.0, 2.0
    rng = np.random.default_rng(5)
    variance = scale / rng.gamma(prior_shape, size=400_000)
    mean = rng.normal(0, np.sqrt(variance / count + variance / n))
    square = variance * rng.chisquare(n - 1, size=variance.size)
    noisy, laws = np.array([9.0, 70.0]), [NoiseLaw("laplace", 10.0, shape), NoiseLaw("laplace", 30.0, shape)]
    log = laws[0].log_density(noisy[0] - n * mean) + laws[1].log_density(noisy[1] - square - n * mean**2)
    weight = normalised(log)

    def log_prior(m, log_square):
        total = scale + np.exp(log_square) / 2 + count * n / (count + n) * m**2 / 2
        return (n - 1) / 2 * log_square - (prior_shape + n / 2) * np.log(total)

    means, squares, weights = plausible_moments(log_prior, n, noisy, laws, bound)
    for found, expected in ((means, mean), (squares, square)):
        middle = weight @ expected
        spread = np.sqrt(weight @ (expected - middle) ** 2)
        assert weights @ found == pytest.approx(middle, abs=0.03 * spread)
        assert np.sqrt(weights @ (found - middle) ** 2) == pytest.approx(spread, rel=0.03)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seen", [0.3, 6.0, -5.0])
def test_a_gaussian_mean_has_the_posterior_that_quadrature_gives(shape: float, seen: float):
    """Of one column that the bound does not reach, against prior times likelihood, both over grids of their own."""
    n, bound, law = 100, 60.0, NoiseLaw("laplace", 120.0, shape)
    release = pure(GaussianMean(bound, 9.0), np.zeros(n), 1.0, 0).release
    release = replace(release, value=np.array([n * seen]), noise=law)
    found = GaussianMean(bound, 9.0, 0.5, 1.5**2).posterior(release)
    theta, error = np.linspace(-12, 12, 2401), np.linspace(-2, 2, 801)
    likelihood = np.exp(law.scaled(1 / n).log_density(seen - theta[:, None] - error)) @ stats.norm.pdf(error, 0, 0.3)
    exact = stats.norm(0.5, 1.5).pdf(theta) * likelihood
    exact /= exact.sum()
    middle = exact @ theta
    std = np.sqrt(exact @ (theta - middle) ** 2)
    assert found.mean[0] == pytest.approx(middle, abs=0.01 * std)
    assert found.std[0] == pytest.approx(std, rel=0.015)  # noise that is not normal is taken for 1 % more
    ends = found.interval(0.9)[0]
    np.testing.assert_allclose(np.interp(ends, theta, np.cumsum(exact)), [0.05, 0.95], atol=5e-3)
    draws = found.sample(100_000, seed=1)
    np.testing.assert_allclose(draws.mean(axis=0), found.mean, atol=0.02 * std)
    np.testing.assert_allclose(draws.std(axis=0), found.std, rtol=0.02)


@pytest.mark.long
def test_intervals_of_a_mean_hold_at_every_level_and_those_of_normal_noise_do_not():
    """800 pure fits where noise rules: ranges of 5 standard errors, which a right posterior leaves once in 10^6.

    Taken as normal, Laplace noise makes middle intervals too wide and far ones too narrow.
    """
    rng, family = np.random.default_rng(3), GaussianMean(1000.0, variance=1.0, prior_variance=1e4)
    truth, levels = rng.normal(0, 100, 800), (0.5, 0.9, 0.995)  # the bound clips none of them
    hits = {True: np.zeros(3), False: np.zeros(3)}
    for i, centre in enumerate(truth):
        release = pure(family, rng.normal(centre, 1.0, 20), 10.0, i).release
        fixed = replace(release, noise=replace(release.noise, shape=None))
        for counted, each in ((True, release), (False, fixed)):
            ends = np.array([family.posterior(each).interval(level)[0] for level in levels])
            hits[counted] += (ends[:, 0] < centre) & (centre < ends[:, 1])
    errors = 5 * np.sqrt(np.multiply(levels, np.subtract(1, levels)) / truth.size)
    assert (np.abs(hits[True] / truth.size - levels) < errors).all()
    assert hits[False][0] / truth.size > 0.5 + errors[0]
    assert hits[False][2] / truth.size < 0.995 - 0.6 * errors[2]  # three standard errors


def simulated(kind: str, rng: np.random.Generator):
    """A family, 60 clients' values and the truth behind them, all drawn from the family's own prior."""
    if kind == "bernoulli":
        truth = rng.beta(0.5, 2)
        return Bernoulli((0.5, 2.0)), rng.random(60) < truth, truth
    if kind == "poisson":
        truth = rng.gamma(0.3) / 0.1
        return PoissonRate(100.0, (0.3, 0.1)), rng.poisson(truth, 60), truth
    if kind == "categorical":
        truth = rng.dirichlet(np.full(5, 0.2))
        return Categorical(5, 0.2), rng.choice(5, p=truth, size=60), truth
    variance = 3 / rng.gamma(3)
    truth = np.array([rng.normal(10, np.sqrt(variance)), variance])
    return Gaussian(30.0, 10.0, 1.0, 3.0, 3.0), rng.normal(truth[0], np.sqrt(variance), 60), truth


@pytest.mark.parametrize("kind", ["bernoulli", "poisson", "categorical", "gaussian"])
def test_posteriors_count_laplace_noise(kind: str, rng: np.random.Generator):
    """Simulation-based calibration: chi-squared over 5 bins of ranks; a right posterior fails with probability 1e-5."""
    ranks = []
    for i in range(200 if kind == "bernoulli" else 60):
        family, values, truth = simulated(kind, rng)
        posterior = pure(family, values, 1.0, i).posterior
        ranks.append(np.atleast_1d((posterior.sample(99, seed=i) < truth).sum(axis=0)))
    for column in np.array(ranks).T:
        assert stats.chisquare(np.bincount(column // 20, minlength=5)).pvalue > 1e-5


@pytest.mark.parametrize("shape", [1.02, 2.5, 40.0])
def test_a_table_of_the_density_is_as_good_as_the_density(shape: float):
    """To 1e-4 of a logarithm, and beyond its end, 60 deviations out, to 5 % of the logarithm."""
    law = NoiseLaw("laplace", 7.0, shape)
    noise = np.concatenate([np.geomspace(1e-6, 400, 2000), -np.linspace(0.1, 400, 2000)])
    np.testing.assert_allclose(_tabled(law)(noise), law.log_density(noise), atol=1e-4)
    np.testing.assert_allclose(_tabled(law)(np.array([3e3])), law.log_density(np.array([3e3])), rtol=0.05)
