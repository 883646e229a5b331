"""Every sampler draws exactly its law, in doubles and in decimals, and no draw depends on another.

Chi-squared tests have fixed seeds and the false alarm rate FALSE_ALARM each (`laws.check_draws`).
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import islice

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from conftest import FALSE_ALARM
from hubbub.privacy.samplers import Cells, Clusters, DiscreteGaussianLaw, PoissonLaw
from hubbub.privacy.samplers import cells as cells_module
from hubbub.privacy.samplers import clusters as clusters_module
from hubbub.privacy.samplers.comparison import below, growing
from hubbub.privacy.samplers.counts import _exactly, _inverted, poisson, uniform
from hubbub.privacy.samplers.decimals import around, pi
from hubbub.randomness import Randomness
from laws import Law, check_draws, check_moments, discrete_gaussian, polya_difference, two_sided_geometric

ALWAYS = 1e9  # a margin with which no comparison is trusted to doubles
MEAN = 1 << 20  # the least of a Poisson law


def binned(draws: np.ndarray, cdf, sigma: float) -> None:
    """Chi-squared of the draws in 60 intervals of a tenth of a deviation and two tails."""
    edges = np.rint(np.linspace(-3, 3, 61) * sigma)
    inner = cdf(edges)  # of what is at most the edge
    expected = draws.size * np.diff(np.concatenate([[0.0], inner, [1.0]]))
    seen = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=62)
    assert stats.chi2(61).sf(((seen - expected) ** 2 / expected).sum()) > FALSE_ALARM


# the discrete Gaussian


@pytest.mark.parametrize("sigma", [8, 9, 13, 31, 32, 33, 64, 100, 511, 1000])
def test_discrete_gaussian_draws_have_its_probabilities(sigma: int):
    draws = Cells(DiscreteGaussianLaw(sigma)).draw(400_000, Randomness.simulation(sigma))
    check_draws(draws, discrete_gaussian(sigma), least=200)
    check_moments(draws, 0.0, discrete_gaussian(sigma).variance)


@pytest.mark.parametrize("sigma", [77_777, (1 << 28) + 12_345, 1 << 40, 1 << 54])
def test_wide_discrete_gaussians_are_normal_in_bins_and_uniform_in_their_last_bits(sigma: int):
    """With so many steps to a deviation the sum of probabilities up to x is a normal one up to x + 1/2."""
    draws = Cells(DiscreteGaussianLaw(sigma)).draw(300_000, Randomness.simulation(1))
    binned(draws, lambda x: stats.norm.cdf((x + 0.5) / sigma), sigma)
    check_moments(draws / sigma, 0.0, 1.0)
    for bits in (0, math.floor(math.log2(sigma)) - 10):  # the last ones, and some in the middle of the number
        check_draws(draws >> bits & 63, Law(0, np.full(64, 1 / 64)))
    high, last = draws > sigma // 2, draws & 1
    assert abs(np.corrcoef(high, last)[0, 1]) * math.sqrt(draws.size) < stats.norm.isf(FALSE_ALARM / 2)


@pytest.mark.parametrize("sigma", [8, 37, 100])
def test_cells_never_exceed_the_law_and_the_frame_is_never_below_it(sigma: int):
    """Over all numbers that can be drawn, each against the decimals."""
    law = DiscreteGaussianLaw(sigma)
    cells = Cells(law)
    size = 1 << cells._width
    assert cells._used <= 1 << cells._bits
    assert cells._starts[0] <= -law.reach
    assert cells._starts[-1] + size - 1 >= law.reach - 1
    assert cells._heights.sum() <= cells._slots.size
    for start, filled, height in zip(cells._starts.tolist(), cells._filled, cells._heights, strict=True):
        full = Fraction(float(filled))
        frame = full + int(height) * Fraction(cells._slot)
        for x in range(start, start + size):
            least, most = law.between(x, 30)
            assert full <= Fraction(least)
            assert Fraction(most) <= frame


def test_every_slot_and_cell_belongs_to_the_bucket_that_it_is_counted_in():
    cells = Cells(DiscreteGaussianLaw(50))
    buckets, counts = np.unique(cells._slots[cells._slots >= 0], return_counts=True)
    np.testing.assert_array_equal(cells._heights[buckets], counts)
    assert counts.sum() == cells._heights.sum()
    middle = cells._starts.size // 2
    buckets, counts = np.unique(cells._table[: cells._used], return_counts=True)
    share = 2.0 ** -(cells._bits + cells._width)
    np.testing.assert_array_equal(cells._filled[buckets + middle], counts * share)


def test_a_sigma_whose_bits_do_not_fit_one_word_is_refused():
    with pytest.raises(AssertionError):
        Cells(DiscreteGaussianLaw(1 << 55))


# Poisson


@pytest.mark.parametrize("mean", [MEAN, MEAN + 3, 3_141_592, 1 << 32, (1 << 40) + 1])
def test_poisson_draws_have_its_probabilities_in_bins(mean: int):
    draws = Cells(PoissonLaw(mean)).draw(300_000, Randomness.simulation(2))
    binned(draws, lambda x: stats.poisson.cdf(x + mean, mean), math.sqrt(mean))
    check_moments(draws / math.sqrt(mean), 0.0, 1.0)
    check_draws(draws & 63, Law(0, np.full(64, 1 / 64)))


def test_poisson_draws_of_the_least_mean_have_its_probabilities_one_by_one():
    x = np.arange(-6000, 6001)
    draws = Cells(PoissonLaw(MEAN)).draw(1_000_000, Randomness.simulation(3))
    check_draws(draws, Law(-6000, stats.poisson.pmf(x + MEAN, MEAN)), least=100)


# both laws, exactly


def by_recurrence(mean: int, reach: int) -> dict[int, mpmath.mpf]:
    """Poisson probabilities around the mean: each from its neighbour, and all of them over their sum."""
    with mpmath.workdps(60):
        found = {0: mpmath.mpf(1)}
        for x in range(1, reach + 1):
            found[x] = found[x - 1] * mean / (mean + x)
            found[-x] = found[1 - x] * (mean - x + 1) / mean
        total = mpmath.fsum(found.values())
        return {x: value / total for x, value in found.items()}


def test_poisson_density_is_right_to_2_to_the_minus_40_over_its_whole_reach():
    law = PoissonLaw(MEAN)
    exact = by_recurrence(MEAN, law.reach)
    x = np.arange(-law.reach, law.reach + 1)
    found = law.density(x.astype(np.float64))
    off = np.abs(found / np.array([float(exact[i]) for i in x.tolist()]) - 1)
    assert off.max() < 2.0**-40
    for i in range(-law.reach, law.reach + 1, 997):
        assert_encloses(law.between(i, 40), exact[i], 40)


@pytest.mark.parametrize("sigma", [8, 100, 1021])
def test_gaussian_density_is_right_to_2_to_the_minus_40_over_its_whole_reach(sigma: int):
    law = DiscreteGaussianLaw(sigma)
    with mpmath.workdps(50):
        values = [mpmath.exp(-mpmath.mpf(x * x) / (2 * sigma * sigma)) for x in range(law.reach + 1)]
        total = values[0] + 2 * mpmath.fsum(values[1:])
        exact = [value / total for value in values]
    x = np.arange(law.reach + 1.0)
    for sign in (1, -1):
        off = np.abs(law.density(sign * x) / np.array(list(map(float, exact))) - 1)
        assert off.max() < 2.0**-40
    for i in range(0, law.reach + 1, 1 + law.reach // 50):
        assert_encloses(law.between(-i, 40), exact[i], 40)


def assert_encloses(bounds: tuple[Decimal, Decimal], exact: mpmath.mpf, digits: int) -> None:
    least, most = (mpmath.mpf(str(bound)) for bound in bounds)
    with mpmath.workdps(digits + 20):
        least, most = (mpmath.mpf(str(bound)) for bound in bounds)
        assert least <= exact <= most
        assert (most - least) / exact < mpmath.mpf(10) ** (7 - digits)


@settings(max_examples=60, deadline=None)
@given(st.integers(8, 1 << 55), st.floats(-26, 26), st.sampled_from([40, 80, 160]))
def test_gaussian_bounds_enclose_the_law_and_agree_with_the_double(sigma: int, away: float, digits: int):
    law = DiscreteGaussianLaw(sigma)
    x = int(away * sigma)
    with mpmath.workdps(digits + 40):
        exact = mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) / (sigma * mpmath.sqrt(2 * mpmath.pi))
        assert_encloses(law.between(x, digits), exact, digits)
        assert abs(float(law.density(np.array([float(x)]))[0]) / float(exact) - 1) < 2.0**-40


@settings(max_examples=60, deadline=None)
@given(st.integers(MEAN, 1 << 110), st.floats(-26, 26), st.sampled_from([40, 80, 160]))
def test_poisson_bounds_enclose_the_law_and_agree_with_the_double(mean: int, away: float, digits: int):
    law = PoissonLaw(mean)
    x = int(away * law.sigma)
    with mpmath.workdps(digits + 80):
        k = mpmath.mpf(mean + x)
        exact = mpmath.exp(k * mpmath.log(mean) - mean - mpmath.loggamma(k + 1))
        assert_encloses(law.between(x, digits), exact, digits)
        assert abs(float(law.density(np.array([float(x)]))[0]) / float(exact) - 1) < 2.0**-40


def test_pi_is_pi():
    known = "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798"
    assert str(pi(100))[:102] == known[:102]
    for digits in (10, 40, 190, 1000):
        with mpmath.workdps(digits + 20):
            assert abs(mpmath.mpf(str(pi(digits))) - mpmath.pi) < mpmath.mpf(10) ** (2 - digits)


@given(st.integers(1, 10**15), st.integers(10, 80))
def test_around_is_a_small_interval_around_its_value(value: int, digits: int):
    with localcontext(prec=digits + 10):
        least, most = around(Decimal(value), digits)
    assert Fraction(least) < value < Fraction(most)


# the same in decimals


@pytest.mark.parametrize("law", [DiscreteGaussianLaw(8), DiscreteGaussianLaw(75), PoissonLaw(MEAN)])
def test_whatever_doubles_decide_decimals_decide_too(law):
    """On the same words, with cells and without any (2 cells are wider than any probability)."""
    for bits in (15, 1):
        plain, slow = Cells(law, cell_bits=bits), Cells(law, ALWAYS, bits)
        found = [each._tried(1500, Randomness.simulation(5)) for each in (plain, slow)]
        np.testing.assert_array_equal(*found)
        assert 0 < found[0].size < 1500


@pytest.mark.parametrize("sigma", [8, 75])
def test_draws_that_are_all_decided_in_decimals_have_the_same_law(sigma: int):
    draws = Cells(DiscreteGaussianLaw(sigma), ALWAYS, 1).draw(6000, Randomness.simulation(6))
    check_draws(draws, discrete_gaussian(sigma))


@pytest.mark.parametrize("scale", [1, 3, 8, 100])
def test_clusters_are_kept_in_decimals_as_in_doubles(scale: int):
    plain, slow = Clusters(scale, 3), Clusters(scale, 3, ALWAYS)
    octaves = uniform(plain._octaves, 1000, Randomness.simulation(7))
    for sizes, factors in (plain._head(octaves, Randomness.simulation(8)), plain._tail(1000, Randomness.simulation(8))):
        words = Randomness.simulation(9).words(sizes.size)
        kept = [each._accepted(sizes, factors, words, Randomness.simulation(1)) for each in (plain, slow)]
        np.testing.assert_array_equal(*kept)


@pytest.mark.parametrize("scale", [1, 7])
def test_shares_that_are_all_decided_in_decimals_have_the_same_law(scale: int):
    check_draws(Clusters(scale, 2, ALWAYS).draw(4000, Randomness.simulation(10)), polya_difference(scale, 0.5))


@pytest.mark.parametrize("mean", [Fraction(0), Fraction(1, 3), Fraction(5), Fraction(16)])
def test_poisson_counts_are_the_same_in_decimals(mean: Fraction):
    plain = _inverted(mean, 500, Randomness.simulation(11), 2.0**-36)
    np.testing.assert_array_equal(_inverted(mean, 500, Randomness.simulation(11), ALWAYS), plain)


@given(st.integers(0, (1 << 64) - 1), st.fractions(0, 20, max_denominator=50))
@settings(max_examples=60, deadline=None)
def test_poisson_counts_in_decimals_are_where_the_uniform_number_falls(bits: int, mean: Fraction):
    """By the cumulated probabilities of mpmath; the uniform number's further bits decide nothing here but a tie."""
    count = _exactly(mean, bits, Randomness.simulation(0))
    with mpmath.workdps(40):
        rate, total, term, k = mpmath.mpf(mean.numerator) / mean.denominator, mpmath.mpf(0), None, -1
        while total <= mpmath.mpf(bits) / 2**64 and k < 200:
            k += 1
            term = mpmath.exp(-rate) if term is None else term * rate / k
            total += term
        if abs(total - mpmath.mpf(bits) / 2**64) > 2.0**-63:
            assert count == k


def test_a_comparison_that_64_bits_leave_open_is_decided_by_more():
    """The uniform number begins with the very bits of the chance: what comes after decides, and half are below."""
    word = 0x9E3779B97F4A7C15
    chance = Fraction(2 * word + 1, 1 << 65)

    def between(_: int, __: int) -> tuple[Fraction, Fraction]:
        return chance, chance

    words = np.full(2000, word, dtype=np.uint64)
    found = below(words, np.full(2000, float(chance)), 0.0, between, Randomness.simulation(12))
    check_draws(found.astype(int), Law(0, np.array([0.5, 0.5])))


def test_a_comparison_with_wide_bounds_waits_for_narrow_ones():
    asked = []

    def between(_: int, digits: int) -> tuple[Fraction, Fraction]:
        asked.append(digits)
        return (Fraction(0), Fraction(1)) if digits < 160 else (Fraction(1, 3), Fraction(1, 3))

    assert below(np.zeros(1, dtype=np.uint64), np.array([1 / 3]), ALWAYS, between, Randomness.simulation(0)).all()
    assert asked == [40, 80, 160]


@given(st.integers(0, (1 << 64) - 1))
def test_a_growing_number_stays_inside_what_is_known_of_it(bits: int):
    low, high = Fraction(bits, 1 << 64), Fraction(bits + 1, 1 << 64)
    for lowest, highest, digits in islice(growing(bits, Randomness.simulation(1)), 4):
        assert low <= lowest < highest <= high
        assert highest - lowest <= Fraction(1, 10**digits)
        low, high = lowest, highest


# what others are made of


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 7, 64, 100])
def test_uniform_numbers_are_equally_likely(bound: int):
    draws = uniform(bound, 50_000, Randomness.simulation(bound))
    assert draws.min() >= 0
    assert draws.max() < bound
    if bound > 1:
        check_draws(draws, Law(0, np.full(bound, 1 / bound)))


@given(st.integers(1, 1 << 62), st.integers(0, 50))
def test_uniform_numbers_stay_below_their_bound(bound: int, count: int):
    draws = uniform(bound, count, Randomness.simulation(0))
    assert draws.shape == (count,)
    assert ((draws >= 0) & (draws < bound)).all()


@pytest.mark.parametrize(
    "mean", [Fraction(1, 7), Fraction(5, 3), Fraction(15), Fraction(16), Fraction(61, 2), Fraction(1000, 3)]
)
def test_poisson_counts_have_its_probabilities(mean: Fraction):
    """Means below 16, of 16, and sums of such."""
    randomness = Randomness.simulation(13)
    draws = np.array([poisson(mean, randomness) for _ in range(10_000)])
    check_draws(draws, Law(0, stats.poisson.pmf(np.arange(500), float(mean))))


def test_poisson_counts_of_mean_zero_are_zero():
    randomness = Randomness.simulation(14)
    assert {poisson(Fraction(0), randomness) for _ in range(200)} == {0}


# shares of discrete Laplace noise

SCALES = [1, 2, 3, 7, 8, 100]


@pytest.mark.parametrize("shares", [1, 3, 40])
@pytest.mark.parametrize("scale", SCALES)
def test_one_share_is_the_difference_of_two_negative_binomials(scale: int, shares: int):
    draws = Clusters(scale, shares).draw(200_000, Randomness.simulation(15))
    law = two_sided_geometric(scale) if shares == 1 else polya_difference(scale, 1 / shares)
    assert law.p.sum() == pytest.approx(1.0, abs=1e-9)
    check_draws(draws, law)
    check_moments(draws, 0.0, law.variance)


@pytest.mark.parametrize("shares", [3, 40])
@pytest.mark.parametrize("scale", SCALES)
def test_all_shares_add_up_to_the_two_sided_geometric_law(scale: int, shares: int):
    words = Clusters(scale, shares).draw(shares * 30_000, Randomness.simulation(16)).reshape(shares, -1)
    law = two_sided_geometric(scale)
    assert law.variance == pytest.approx(1 / (2 * math.sinh(0.5 / scale) ** 2))
    check_draws(words.sum(axis=0), law)
    check_moments(words.sum(axis=0), 0.0, law.variance)


def test_more_shares_than_are_counted_on_add_up_to_more_noise_of_its_kind():
    words = Clusters(7, 3).draw(5 * 50_000, Randomness.simulation(17)).reshape(5, -1)
    check_draws(words.sum(axis=0), polya_difference(7, 5 / 3))


def test_large_scales_are_laplace_in_bins_and_uniform_in_their_last_bits():
    scale = (1 << 45) + 9
    draws = Clusters(scale, 1).draw(100_000, Randomness.simulation(18))
    assert stats.kstest(draws / scale, "laplace").pvalue > FALSE_ALARM
    check_draws(draws & 63, Law(0, np.full(64, 1 / 64)))


# many draws at once

SAMPLERS = {
    "discrete Gaussian": (Cells(DiscreteGaussianLaw(20)), 20.0),
    "discrete Gaussian without cells": (Cells(DiscreteGaussianLaw(20), cell_bits=1), 20.0),
    "Poisson": (Cells(PoissonLaw(MEAN)), 1024.0),
    "shares": (Clusters(20, 4), 0.5 / (math.sqrt(2) * math.sinh(0.5 / 20))),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_do_not_depend_on_one_another(name: str):
    """Correlations of values and of squares at small lags and at the lengths of blocks; all lags at FALSE_ALARM."""
    sampler, sigma = SAMPLERS[name]
    draws = sampler.draw(300_000, Randomness.simulation(19)) / sigma
    lags = [*range(1, 21), 64, 1 << 13, 1 << 14, (1 << 14) + 1, 1 << 15, 1 << 17]
    bound = stats.norm.isf(FALSE_ALARM / 2 / len(lags))
    for values in (draws, (draws**2 - (draws**2).mean()) / (draws**2).std()):
        for lag in lags:
            together = values[lag:] * values[:-lag]
            assert abs(together.mean()) < bound * together.std() / math.sqrt(together.size), lag


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_word_gets_one_draw_on_top_of_what_it_holds(name: str, monkeypatch: pytest.MonkeyPatch):
    """Whatever the blocks are; sums wrap around in the ring."""
    sampler, _ = SAMPLERS[name]
    for block, together, proposed in ((1 << 14, 1 << 17, 1 << 14), (7, 30, 40)):
        monkeypatch.setattr(cells_module, "_BLOCK", block)
        monkeypatch.setattr(cells_module, "_TOGETHER", together)
        monkeypatch.setattr(clusters_module, "_PROPOSED", proposed)
        drawn = sampler.draw(1000, Randomness.simulation(20))
        words = np.full((10, 100), (1 << 64) - 3, dtype=np.uint64)
        sampler.add(words, Randomness.simulation(20))
        np.testing.assert_array_equal(words.reshape(-1), drawn.view(np.uint64) + np.uint64((1 << 64) - 3))
        assert (drawn != 0).mean() > 0.3
        assert sampler.draw(0, Randomness.simulation(1)).size == 0


@pytest.mark.parametrize("name", SAMPLERS)
def test_words_that_are_not_contiguous_are_refused(name: str):
    """Their flat form is a copy, and noise that is added to it would be lost."""
    words = np.zeros((10, 10), dtype=np.uint64)
    with pytest.raises(ValueError, match="contiguous"):
        SAMPLERS[name][0].add(words[:, ::2], Randomness.simulation(1))


def test_small_blocks_leave_the_law_as_it_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cells_module, "_BLOCK", 64)
    monkeypatch.setattr(cells_module, "_TOGETHER", 1000)
    monkeypatch.setattr(clusters_module, "_PROPOSED", 64)
    check_draws(Cells(DiscreteGaussianLaw(8)).draw(60_000, Randomness.simulation(21)), discrete_gaussian(8))
    check_draws(Clusters(8, 3).draw(20_000, Randomness.simulation(22)), polya_difference(8, 1 / 3))
