"""Sums of clipped values: their likelihood against enumeration, and intervals that hold whatever the bound is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hubbub import Budget, Gaussian, GaussianMean, PoissonRate, TrustedAggregator
from hubbub.analyses.families.clipped import (
    clipped_counts,
    clipped_normals,
    log_likelihood,
    log_likelihood_of_both,
    rough_log_likelihood,
)
from hubbub.analyses.families.posteriors import GridPosterior
from hubbub.arrays import Floats
from hubbub.errors import UntrustworthyWarning
from hubbub.protocols import NoiseLaw


def relative(log: Floats) -> Floats:
    return np.exp(log - log.max())


def of_sum(masses: Floats, n: int) -> Floats:
    """Probabilities of a sum of n values that are whole steps apart."""
    found = np.ones(1)
    for _ in range(n):
        found = np.convolve(found, masses)
    return found


@pytest.mark.parametrize("shape", [None, 1.0, 2.5])
@pytest.mark.parametrize(
    ("n", "bound", "noise", "noisy"),
    [
        (7, 3, 2.0, 8.3),
        (7, 3, 0.4, 8.3),
        (40, 5, 0.0, 80.0),
        (5, 2, 0.0, 0.0),
        (40, 5, 9.0, 190.0),
        (300, 2, 1.4, 12.0),
    ],
)
def test_a_sum_of_clipped_counts_is_as_likely_as_enumeration_says(n, bound, noise, noisy, shape):
    """Relative to the highest; noise that is not normal is taken as 1 % more where its density has an edge."""
    law, rates = NoiseLaw("some", noise, shape), np.geomspace(0.01, 30, 40)
    sums = np.arange(n * bound + 1)
    density = relative(law.at_least(0.01).log_density(noisy - sums))
    exact = [
        of_sum(np.append(stats.poisson.pmf(np.arange(bound), r), stats.poisson.sf(bound - 1, r)), n) for r in rates
    ]
    expected = np.array(exact) @ density
    found = relative(log_likelihood(clipped_counts(rates, bound), n, noisy, law, whole=True))
    np.testing.assert_allclose(found, expected / expected.max(), atol=1e-6 if shape is None else 6e-3)


@pytest.mark.parametrize("shape", [None, 1.0, 2.5])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_sum_of_clipped_normals_is_as_likely_as_enumeration_says(n: int, shape: float | None):
    """Against normal values in 801 cells; the noise that is not normal has an edge, which is taken as a little blunt."""
    bound, std, noisy, law = 2.0, 1.3, 2.3, NoiseLaw("some", 3.0, shape)
    means, edges = np.linspace(-8, 8, 41), np.linspace(-2 - 1 / 400, 2 + 1 / 400, 802)
    edges[[0, -1]] = -np.inf, np.inf
    sums = np.linspace(-n * bound, n * bound, 800 * n + 1)
    density = np.exp(law.log_density(noisy - sums))
    expected = np.array([of_sum(np.diff(stats.norm.cdf(edges, m, std)), n) for m in means]) @ density
    found = relative(log_likelihood(clipped_normals(means, std, bound), n, noisy, law, whole=False))
    np.testing.assert_allclose(found, expected / expected.max(), atol=1e-4 if shape is None else 0.03)


@pytest.mark.parametrize("bound", [4, 600, 20_000])
def test_clipped_counts_have_the_moments_of_their_draws(bound: int):
    """200000 draws, five standard errors; also where neighbours share a cell."""
    rng = np.random.default_rng(1)
    rates = bound * np.array([0.01, 0.6, 0.98, 1.01, 50.0])
    law = clipped_counts(rates, bound)
    np.testing.assert_allclose(law.masses.sum(axis=1), 1, atol=1e-12)
    for mean, variance, rate in zip(law.mean, law.variance, rates, strict=True):
        draws = np.minimum(rng.poisson(rate, 200_000), bound)
        assert mean == pytest.approx(draws.mean(), abs=5 * draws.std() / 447 + 1e-9 * bound)
        assert variance == pytest.approx(draws.var(), rel=0.06, abs=1e-9)


def test_clipped_normals_have_the_moments_of_their_draws():
    """400000 draws, five standard errors; means and deviations from far inside to far beyond the bound."""
    rng = np.random.default_rng(1)
    means, stds = np.array([0.0, 0.5, 0.99, 1.2, -3.0, 5.0, 0.3]), np.array([0.2, 0.01, 0.05, 1.0, 2.0, 1.0, 40.0])
    law = clipped_normals(means, stds, 1.0)
    squares = law.of_squares()
    both = zip(
        means, stds, law.mean, law.variance, squares.mean, squares.variance, law.covariance(squares), strict=True
    )
    for mean, std, *found in both:
        draws = np.clip(rng.normal(mean, std, 400_000), -1, 1)
        other = draws**2
        expected = [draws.mean(), draws.var(), other.mean(), other.var(), np.mean((draws - draws.mean()) * other)]
        np.testing.assert_allclose(found, expected, atol=5 / 632)
        np.testing.assert_allclose(found[::2], expected[::2], atol=5 * max(draws.std(), other.std()) / 632 + 1e-9)


def test_far_away_and_without_noise_a_likelihood_stays_finite():
    for law in (NoiseLaw("normal", 0.0), NoiseLaw("normal", 3.0), NoiseLaw("laplace", 3.0, 1.0)):
        for noisy in (-1e4, 0.0, 5.0, 1e6):
            counts, normals = (
                clipped_counts(np.geomspace(1e-300, 1e12, 50), 5),
                clipped_normals(np.linspace(-1e6, 1e6, 51), 1, 2),
            )
            for each, whole in ((counts, True), (normals, False)):
                assert np.isfinite(log_likelihood(each, 10, noisy, law, whole)).all()
                assert np.isfinite(rough_log_likelihood(each, 10, noisy, law, whole)).all()


@pytest.mark.parametrize("shape", [1.0, 2.5])
def test_a_few_variances_stand_for_noise_that_is_not_normal(shape: float):
    """Of both sums, against the density of the noise integrated over exact sums: to 4 % of the highest."""
    law, n, noisy = NoiseLaw("laplace", 4.0, shape), 60, np.array([10.0, 45.0])
    means, stds = np.array([0.0, 0.2, 0.5, 1.0, 3.0]), np.array([2.0, 1.0, 1.0, 0.5, 2.0])
    of_one = clipped_normals(means, stds, 1.0)
    found = relative(log_likelihood_of_both(of_one, n, noisy, law))
    rng, squares, expected = np.random.default_rng(2), of_one.of_squares(), []
    for j in range(means.size):
        c = of_one.covariance(squares)[j]
        spread = n * np.array([[of_one.variance[j], c], [c, squares.variance[j]]])
        sums = rng.multivariate_normal(n * np.array([of_one.mean[j], squares.mean[j]]), spread, 100_000)
        expected.append(np.exp(law.log_density(noisy - sums).sum(axis=1)).mean())
    np.testing.assert_allclose(found, np.array(expected) / max(expected), atol=0.04)


# Rates, means and bounds: nothing clipped, some, half of it, nearly all; with how many clients and which epsilon.
HELD = [
    (PoissonRate(30.0), 3.0, 1000, 1.0),
    (PoissonRate(5.0), 3.0, 1000, 1.0),
    (PoissonRate(5.0), 3.0, 10_000, 1.0),
    (PoissonRate(3.0), 3.0, 10_000, 3.0),
    (PoissonRate(1.0), 3.0, 10_000, 1.0),
    (PoissonRate(20.0), 20.0, 10_000, 1.0),
    (GaussianMean(10.0, 1.0), 1.0, 1000, 1.0),
    (GaussianMean(2.0, 1.0), 1.0, 10_000, 1.0),
    (GaussianMean(1.0, 1.0), 2.0, 10_000, 1.0),
    (GaussianMean(1.0, 1.0), 3.3, 10_000, 3.0),
    (GaussianMean(0.05, 1.0), 0.2, 1000, 1.0),
]


def values_of(family, truth: float, n: int, rng: np.random.Generator) -> Floats:
    return rng.poisson(truth, n) if isinstance(family, PoissonRate) else rng.normal(truth, 1.0, n)


@pytest.mark.filterwarnings("ignore:about:hubbub.errors.UntrustworthyWarning")
@pytest.mark.parametrize(("family", "truth", "n", "epsilon"), HELD)
def test_intervals_hold_whatever_the_bound(family, truth: float, n: int, epsilon: float):
    """60 studies each: a rate of 90 % leaves 73..100 % with probability 1e-4; at rate 3, bound 5, n = 10^4 it was 0."""
    rng, hits = np.random.default_rng(11), 0
    for seed in range(60):
        engine = TrustedAggregator(seed)
        found = family.fit(values_of(family, truth, n, rng), budget=Budget(epsilon, 1e-6), engine=engine)
        low, high = np.ravel(found.posterior.interval(0.9))
        hits += low < truth < high
    assert hits >= 44


@pytest.mark.parametrize(("bound", "epsilon"), [(2.0, 1.0), (1.0, 3.0)])
def test_intervals_of_mean_and_variance_hold_where_many_values_are_clipped(bound: float, epsilon: float):
    """N(0.5, 1), 7 and 38 % clipped: 20 studies each; a rate of 90 % leaves 65..100 % with probability 4e-4."""
    rng, family, hits = np.random.default_rng(4), Gaussian(bound), np.zeros(2)
    for seed in range(20):
        values = rng.normal(0.5, 1.0, 10_000)
        found = family.fit(values, budget=Budget(epsilon, 1e-6), engine=TrustedAggregator(seed))
        low, high = found.posterior.interval(0.9).T
        hits += (low < [0.5, 1.0]) & (high > [0.5, 1.0])
    assert (hits >= 13).all()


@pytest.mark.parametrize("bound", [3.4, 3.9])
def test_where_hardly_anything_is_clipped_both_posteriors_of_a_gaussian_agree(bound: float):
    """The mixture of conjugate ones, and that of clipped values: one is used below, the other above a threshold."""
    values = np.random.default_rng(3).normal(0, 1, 20_000)
    family = Gaussian(bound)
    release = family.fit(values, budget=Budget(3.0, 1e-6), engine=TrustedAggregator(1)).release
    one, two = family._unclipped(release), family._of_clipped(release)
    np.testing.assert_allclose(one.mean, two.mean, atol=0.25 * one.std.min())
    np.testing.assert_allclose(one.interval(0.9), two.interval(0.9), atol=0.25 * one.std.min())


FAMILIES = [
    (PoissonRate(10.0), np.full(5000, 60)),
    (GaussianMean(1.0, 1.0), np.random.default_rng(1).normal(8, 1, 5000)),
    (Gaussian(1.0), np.random.default_rng(1).normal(8, 1, 5000)),
]


@pytest.mark.parametrize(("family", "values"), FAMILIES)
def test_a_bound_that_hides_everything_leaves_the_parameter_open_and_says_so(family, values):
    """In the right direction: beyond the bound, and far more than ten times as wide as that."""
    with pytest.warns(UntrustworthyWarning, match="of the values seem to lie beyond the bound"):
        found = family.fit(values, budget=Budget(1.0, 1e-6), engine=TrustedAggregator(1))
    assert found.clipped > 0.9
    assert found.as_dict()["clipped"] == found.clipped
    low, high = np.reshape(found.posterior.interval(0.9), (-1, 2))[0]
    bound = family.bound
    assert bound < low < values.mean() < high
    assert high > 10 * bound


def test_a_given_prior_decides_what_a_bound_hides():
    """A gamma prior, seen only to be well above the bound: what is left of it is known."""
    with pytest.warns(UntrustworthyWarning, match="seem to lie beyond"):
        found = PoissonRate(10.0, (30.0, 1.0)).fit(
            np.full(5000, 60), budget=Budget(1.0, 1e-6), engine=TrustedAggregator(1)
        )
    np.testing.assert_allclose(found.posterior.interval(0.9), stats.gamma(30).interval(0.9), rtol=0.03)


@pytest.mark.filterwarnings("ignore:about:hubbub.errors.UntrustworthyWarning")
def test_a_bound_of_two_and_a_half_counts_whole_events_only():
    family = PoissonRate(2.5)
    assert family.statistic == PoissonRate(2.0).statistic
    few, many = (
        family.fit(np.full(50, k), budget=Budget(1.0, 1e-6), engine=TrustedAggregator(3)).release.value[0]
        for k in (2, 9)
    )
    assert few == many


@pytest.mark.filterwarnings("ignore:about:hubbub.errors.UntrustworthyWarning")
def test_with_a_bound_of_one_a_client_with_many_events_counts_once():
    one, nine = (
        PoissonRate(1.0).fit(np.full(50, k), budget=Budget(1.0, 1e-6), engine=TrustedAggregator(3)).release.value[0]
        for k in (1, 9)
    )
    assert one == nine


def test_a_grid_posterior_says_what_its_draws_say():
    """Moments and quantiles of 200000 draws of a joint grid and of two independent ones: within 2 %."""
    rng = np.random.default_rng(2)
    points = np.sort(rng.gamma(3, size=(400, 2)), axis=0)
    weights = rng.random((400, 2))
    for posterior in (
        GridPosterior(points[:, 0], weights[:, 0] / weights[:, 0].sum()),
        GridPosterior(points, weights[:, 0] / weights[:, 0].sum()),
        GridPosterior(points, weights / weights.sum(axis=0)),
    ):
        draws = posterior.sample(200_000, seed=1)
        np.testing.assert_allclose(draws.mean(axis=0), posterior.mean, rtol=0.02)
        np.testing.assert_allclose(draws.std(axis=0), posterior.std, rtol=0.02)
        np.testing.assert_allclose(np.quantile(draws, [0.05, 0.95], axis=0).T, posterior.interval(0.9), rtol=0.02)
