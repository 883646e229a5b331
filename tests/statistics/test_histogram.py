"""The column histogram, the spread of bounded rows, and statistics stacked in one round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import InvalidInput
from hubbub.statistics import ColumnHistogram, Spread, Stacked


@given(value=st.floats(-1e6, 1e6), bound=st.floats(1e-3, 1e3))
def test_every_value_counts_once_in_its_wide_bin_and_once_in_its_place(value: float, bound: float):
    statistic = ColumnHistogram((bound,), wide=6, places=4, share=0.36)
    (vector,) = statistic.vectors(np.array([[value]]))
    np.testing.assert_allclose(sorted(vector[vector > 0]), [0.6, 0.8])
    ((wide,), _), ((places,), _) = statistic.tables(vector, 1.0)
    np.testing.assert_allclose([wide.sum(), places.sum()], 1.0)
    low = -1 + 2 / 6 * np.argmax(wide) + 2 / 24 * np.argmax(places)
    assert low - 1e-9 <= np.clip(value / bound, -1, 1) <= low + 2 / 24 + 1e-9


def test_samples_that_differ_everywhere_reach_the_sensitivity_and_none_exceeds_it():
    """Brute force over all pairs of places of one column; columns add up."""
    statistic = ColumnHistogram((1.0, 1.0, 1.0), wide=4, places=3, share=0.7)
    a, b = statistic.vectors(np.array([[1.0, 1.0, 1.0], [0.3, 0.01, -1.0]]))
    assert np.linalg.norm(a - b) == pytest.approx(statistic.sensitivity)
    assert np.abs(a - b).sum() == pytest.approx(statistic.sensitivity_l1)
    one = ColumnHistogram((1.0,), wide=4, places=3, share=0.7)
    vectors = one.vectors(np.linspace(-1.2, 1.2, 200)[:, None])
    away = vectors[:, None] - vectors[None]
    assert np.linalg.norm(away, axis=-1).max() == pytest.approx(one.sensitivity)
    assert np.abs(away).sum(axis=-1).max() == pytest.approx(one.sensitivity_l1)
    assert vectors.max() == one.magnitude


def test_tables_are_counts_with_the_noise_in_them(rng: np.random.Generator):
    statistic = ColumnHistogram((2.0, 5.0), wide=10, places=8, share=0.75)
    rows = rng.uniform(-2, 2, size=(300, 2))
    (wide, loud), (places, louder) = statistic.tables(statistic.vectors(rows).sum(axis=0), 3.0)
    edges = [np.linspace(-bound, bound, 11) for bound in (2.0, 5.0)]
    np.testing.assert_allclose(wide, [np.histogram(rows[:, j], edges[j])[0] for j in range(2)], atol=1e-9)
    np.testing.assert_allclose(places.sum(axis=1), 300)
    assert (loud, louder) == (pytest.approx(3 / np.sqrt(0.75)), pytest.approx(3 / np.sqrt(0.25)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wide": 1}, "wide must be a whole number >= 2, got wide=1"),
        ({"places": 1}, "places must be a whole number >= 2, got places=1"),
        ({"share": 1.0}, "share must be below 1, got share=1.0"),
        ({"share": 0.0}, "share must be positive"),
        ({"share": "a"}, "share must be"),
    ],
)
def test_impossible_bins_are_one_line(options, message: str):
    with pytest.raises(InvalidInput, match=message):
        ColumnHistogram((1.0,), **options)


@pytest.mark.parametrize("norm", [0.1, 1.0, 30.0])
def test_the_squared_length_is_free(norm: float, rng: np.random.Generator):
    """Brute force over pairs, many of them near the bound: none is further apart than opposite rows are."""
    statistic = Spread(norm, 3)
    rows = rng.standard_normal((2000, 3))
    rows *= norm * rng.beta(3, 0.5, size=(2000, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    rows[1000:] = -rows[:1000] * rng.beta(3, 0.5, size=(1000, 1))
    vectors = statistic.vectors(rows)
    distance = np.linalg.norm(vectors[:, None] - vectors[None], axis=-1)
    assert distance.max() <= statistic.sensitivity
    a, b = statistic.vectors(np.array([[norm, 0, 0], [-norm, 0, 0]]))
    assert np.linalg.norm(a - b) == pytest.approx(statistic.sensitivity)


def test_stacked_parts_come_back_in_their_own_units_with_their_own_noise(rng: np.random.Generator):
    parts = (Spread(2.0, 2), ColumnHistogram((1.0,), 3, 4))
    stacked = Stacked(parts, (0.8, 0.2))
    rows = rng.uniform(-1, 1, size=(50, 3))
    (spread, spread_noise), (counts, counts_noise) = stacked.unstack(stacked.vectors(rows).sum(axis=0), 3.0)
    np.testing.assert_allclose(spread, parts[0].vectors(rows[:, :2]).sum(axis=0))
    np.testing.assert_allclose(counts, parts[1].vectors(rows[:, 2:]).sum(axis=0))
    assert stacked.sensitivity == pytest.approx(1.0)
    assert spread_noise == pytest.approx(3.0 * 4.0 / np.sqrt(0.8))
    assert counts_noise == pytest.approx(3.0 * np.sqrt(2) / np.sqrt(0.2))
