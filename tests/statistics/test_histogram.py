"""The column histogram, the spread of bounded rows, and statistics stacked in one round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import InvalidInput
from hubbub.statistics import ColumnHistogram, Spread, Stacked


@given(value=st.floats(-1e6, 1e6), bound=st.floats(1e-3, 1e3))
def test_every_value_counts_once_in_its_bin(value: float, bound: float):
    statistic = ColumnHistogram((bound,), octaves=6)
    (vector,) = statistic.vectors(np.array([[value]]))
    assert vector.sum() == 1.0
    bin_ = int(np.argmax(vector))
    edges = np.concatenate([[-np.inf], statistic.edges, [np.inf]])
    assert edges[bin_] <= value / bound <= edges[bin_ + 1]


def test_two_samples_that_differ_everywhere_reach_the_sensitivity():
    statistic = ColumnHistogram((1.0, 1.0, 1.0), octaves=4)
    a, b = statistic.vectors(np.array([[1.0, 1.0, 1.0], [0.3, 0.01, -1.0]]))
    assert np.linalg.norm(a - b) == pytest.approx(statistic.sensitivity)
    assert np.abs(a - b).sum() == pytest.approx(statistic.sensitivity_l1)


def test_one_octave_is_one_line():
    with pytest.raises(InvalidInput, match="octaves must be a whole number >= 2, got octaves=1"):
        ColumnHistogram((1.0,), octaves=1)


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
    parts = (Spread(2.0, 2), ColumnHistogram((1.0,), octaves=3))
    stacked = Stacked(parts, (0.8, 0.2))
    rows = rng.uniform(-1, 1, size=(50, 3))
    (spread, spread_noise), (counts, counts_noise) = stacked.unstack(stacked.vectors(rows).sum(axis=0), 3.0)
    np.testing.assert_allclose(spread, parts[0].vectors(rows[:, :2]).sum(axis=0))
    np.testing.assert_allclose(counts, parts[1].vectors(rows[:, 2:]).sum(axis=0))
    assert stacked.sensitivity == pytest.approx(1.0)
    assert spread_noise == pytest.approx(3.0 * 4.0 / np.sqrt(0.8))
    assert counts_noise == pytest.approx(3.0 * np.sqrt(2) / np.sqrt(0.2))
