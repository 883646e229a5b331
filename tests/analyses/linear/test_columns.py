"""Centres and scales read off noisy histograms."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.analyses.linear.columns import Columns, cautious_target, doubt_of_centres, read_columns
from hubbub.analyses.linear.tuning import TUNING
from hubbub.statistics import ColumnHistogram

QUIET = TUNING.wide_bins, TUNING.places[0], TUNING.wide_share[0]
HISTOGRAM = ColumnHistogram((7.5,) * 40, *QUIET)


def read(column, n: int, noise: float, rng: np.random.Generator, *, centre: bool = True) -> Columns:
    counts = HISTOGRAM.vectors(column(rng, (n, 40))).sum(axis=0)
    return read_columns(HISTOGRAM, counts + noise * rng.standard_normal(counts.size), n, noise, centre=centre)


@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 3.0), (0.0, 0.8), (0.0, 0.1), (3.0, 0.5), (-2.0, 1.0)])
def test_normal_columns_are_found(mean: float, deviation: float, rng: np.random.Generator):
    found = read(lambda r, size: mean + deviation * r.standard_normal(size), 20_000, 20.0, rng)
    assert np.abs(found.centre - mean).max() < 0.8 * deviation
    near = (found.scale > 0.6 * deviation) & (found.scale < 1.6 * deviation)
    assert near.mean() > 0.9
    assert ((found.scale > 0.5 * deviation) & (found.scale < 2 * deviation)).all()


def test_without_centre_the_distance_from_zero_counts(rng: np.random.Generator):
    found = read(lambda r, size: 3 + 0.5 * r.standard_normal(size), 20_000, 20.0, rng, centre=False)
    np.testing.assert_array_equal(found.centre, 0.0)
    assert ((found.scale > 2.2) & (found.scale < 3.8)).all()


def test_two_values_are_as_wide_as_they_lie_apart(rng: np.random.Generator):
    """A column of 0 and 1 must not get the width of one of its peaks."""
    found = read(lambda r, size: r.integers(2, size=size) * 2.0 - 1, 3000, 50.0, rng)
    assert (found.scale > 0.6).all()


@pytest.mark.parametrize("share", [0.5, 0.1, 0.03, 0.9])
@pytest.mark.parametrize(("n", "noise"), [(1000, 20.0), (3000, 50.0)])
def test_columns_of_zeros_and_ones_have_the_deviation_of_their_share(share: float, n: int, noise: float):
    """Between a third less and a third more of sqrt(p (1 - p)); forty columns, and shares in steps of half a logit."""
    rng, histogram = np.random.default_rng(1), ColumnHistogram((0.5,) * 40, *QUIET)
    counts = histogram.vectors((rng.random((n, 40)) < share) - 0.5).sum(axis=0)
    counts += noise * rng.standard_normal(counts.size)
    found = read_columns(histogram, counts, n, noise, centre=True, zero_one=[True] * 40)
    truth = np.sqrt(share * (1 - share))
    assert ((found.scale > 0.65 * truth) & (found.scale < 1.35 * truth)).all()
    assert np.median(found.scale) == pytest.approx(truth, rel=0.12)
    assert np.abs(found.centre - (share - 0.5)).max() < 0.06


@pytest.mark.parametrize(
    ("column", "mean", "deviation"),
    [(lambda r, size: r.gamma(4, 6, size) - 50, -26.0, 12.0), (lambda r, size: r.exponential(5, size), 5.0, 5.0),
     (lambda r, size: 30 - r.exponential(10, size), 20.0, 10.0)],
    ids=["ages", "waiting times", "to the left"],
)  # fmt: skip
def test_skewed_columns_off_the_middle_get_about_their_deviation(column, mean: float, deviation: float):
    """With little noise to a quarter or so, in steps of what tails are tried."""
    rng, histogram = np.random.default_rng(1), ColumnHistogram((50.0,) * 40, *QUIET)
    counts = histogram.vectors(column(rng, (20_000, 40))).sum(axis=0) + 10.0 * rng.standard_normal(histogram.dimension)
    found = read_columns(histogram, counts, 20_000, 10.0, centre=True)
    np.testing.assert_allclose(found.scale, deviation, rtol=0.28)
    np.testing.assert_allclose(found.centre, mean, atol=0.25 * deviation)


def test_hopeless_counts_give_a_moderate_scale_and_say_so(rng: np.random.Generator):
    found = read(lambda r, size: r.standard_normal(size), 100, 500.0, rng)
    assert ((found.scale > 0.2) & (found.scale < 7.5)).all()
    assert found.doubt.mean() > 0.6
    sure = read(lambda r, size: r.standard_normal(size), 20_000, 20.0, rng)
    assert sure.doubt.mean() < 0.3
    for nonsense in (
        *(k * np.ones(HISTOGRAM.dimension) for k in (0.0, -5.0)),
        1e6 * rng.standard_normal(HISTOGRAM.dimension),
    ):
        found = read_columns(HISTOGRAM, nonsense, 10, 3.0, centre=True)
        assert np.isfinite(found.centre).all()
        assert (np.isfinite(found.scale) & (found.scale > 0) & (found.scale <= 7.5)).all()


def test_a_target_in_doubt_gets_room():
    columns = Columns(np.zeros(2), np.ones(2), np.array([0.9, 0.9]))
    np.testing.assert_allclose(cautious_target(columns).scale, [1.0, np.exp(0.6)])
    sure = Columns(np.zeros(2), np.ones(2), np.array([0.9, 0.1]))
    np.testing.assert_array_equal(cautious_target(sure).scale, 1.0)


@pytest.mark.parametrize(("mean", "deviation"), [(40.0, 0.5), (-49.0, 0.3), (0.0, 0.5), (0.0, 0.15)])
def test_bounds_a_hundred_times_too_wide_or_far_from_the_column_cost_little(mean: float, deviation: float):
    """Columns 80 to 300 deviations narrower than their bounds, at their middle and far from it."""
    rng, histogram = np.random.default_rng(1), ColumnHistogram((50.0,) * 40, *QUIET)
    counts = histogram.vectors(mean + deviation * rng.standard_normal((5000, 40))).sum(axis=0)
    found = read_columns(histogram, counts + 50.0 * rng.standard_normal(counts.size), 5000, 50.0, centre=True)
    assert np.quantile(np.abs(found.centre - mean), 0.9) < 1.2 * deviation
    assert np.median(found.scale) < 2.5 * deviation
    assert found.scale.min() > 0.7 * deviation


def test_a_column_that_mostly_has_one_value_is_as_wide_as_the_rest_of_it():
    """Nineteen in twenty are 0, the others 1 or 2: the scale of that one value would shorten all other rows to nothing."""
    rng, histogram = np.random.default_rng(1), ColumnHistogram((1.5,) * 40, *QUIET)
    values = rng.choice([0.0, 1.0, 2.0], p=[0.95, 0.045, 0.005], size=(2000, 40)) - 1
    counts = histogram.vectors(values).sum(axis=0)
    found = read_columns(histogram, counts + 40.0 * rng.standard_normal(counts.size), 2000, 40.0, centre=True)
    assert found.scale.min() > 0.15 * values.std()
    assert found.scale.max() < 3 * values.std()


def test_what_was_read_is_remembered_for_the_same_release_alone(rng: np.random.Generator):
    """Whatever differs is read again; and what is remembered cannot be changed by whoever got it."""
    counted, wider = (ColumnHistogram((bound,) * 2, *QUIET) for bound in (1.0, 2.0))
    sums = counted.vectors(0.3 + 0.2 * rng.standard_normal((2000, 2))).sum(axis=0)
    asked = {
        "as it is": ((counted, sums, 2000, 20.0), {"centre": True}),
        "other bounds": ((wider, sums, 2000, 20.0), {"centre": True}),
        "other sums": ((counted, sums[::-1], 2000, 20.0), {"centre": True}),
        "other clients": ((counted, sums, 2100, 20.0), {"centre": True}),
        "other noise": ((counted, sums, 2000, 200.0), {"centre": True}),
        "no centre": ((counted, sums, 2000, 20.0), {"centre": False}),
        "zeros and ones": ((counted, sums, 2000, 200.0), {"centre": True, "zero_one": [True, False]}),
    }
    found = {name: read_columns(*given, **options) for name, (given, options) in asked.items()}
    assert len({each.scale.tobytes() for each in found.values()}) == len(asked)
    for name, (given, options) in reversed(asked.items()):
        for _ in range(2):
            np.testing.assert_array_equal(read_columns(*given, **options).scale, found[name].scale)
    with pytest.raises(ValueError, match="read-only"):
        found["as it is"].centre[0] = 1.0


def test_the_doubt_of_a_centre_is_how_far_it_is_off():
    """A 0/1 column read from noisy counts, again and again: within a third of the stated deviation."""
    rng, off, stated = np.random.default_rng(3), [], []
    counted, noise, n = ColumnHistogram((0.5,), 10, 32, 0.8), 60.0, 1000
    for _ in range(400):
        share = rng.uniform(0.1, 0.9)
        values = np.where(rng.random(n) < share, 0.5, -0.5)[:, None]
        sums = counted.vectors(values).sum(axis=0) + noise * rng.standard_normal(counted.dimension)
        found = read_columns(counted, sums, n, noise, centre=True, zero_one=[True])
        off.append(found.centre[0] - values.mean())
        stated.append(doubt_of_centres(counted, sums, n, noise, [True])[0])
    assert np.sqrt(np.mean(np.square(off))) == pytest.approx(np.sqrt(np.mean(np.square(stated))), rel=0.35)
    assert 0 < min(stated) < max(stated) < 0.5
