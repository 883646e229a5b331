"""The scale histogram: each column counted once, sizes read off noisy counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import InvalidInput
from hubbub.statistics import ScaleHistogram


@given(value=st.floats(-1e6, 1e6), bound=st.floats(1e-3, 1e3))
def test_every_value_counts_once_in_its_bin(value: float, bound: float):
    statistic = ScaleHistogram((bound,), bins=6)
    (vector,) = statistic.vectors(np.array([[value]]))
    assert vector.sum() == 1.0
    bin_ = int(np.argmax(vector))
    size = min(abs(value), bound) / bound
    assert size <= 2.0**-bin_ * (1 + 1e-12)
    assert bin_ == 5 or size > 2.0 ** -(bin_ + 1) * (1 - 1e-12)


def test_two_samples_that_differ_everywhere_reach_the_sensitivity():
    statistic = ScaleHistogram((1.0, 1.0, 1.0), bins=4)
    a, b = statistic.vectors(np.array([[1.0, 1.0, 1.0], [0.3, 0.01, 0.0]]))
    assert np.linalg.norm(a - b) == pytest.approx(statistic.sensitivity)
    assert np.abs(a - b).sum() == pytest.approx(statistic.sensitivity_l1)


@pytest.mark.parametrize("scale", [3.0, 0.8, 0.1])
def test_sizes_are_about_one_deviation_of_a_normal_column(scale: float, rng: np.random.Generator):
    statistic = ScaleHistogram((7.5, 7.5))
    rows = rng.standard_normal((20_000, 2)) * scale
    np.testing.assert_allclose(statistic.sizes(statistic.vectors(rows).sum(axis=0)), scale, rtol=0.15)


def test_sizes_survive_noise_and_nonsense(rng: np.random.Generator):
    statistic = ScaleHistogram((7.5,) * 4)
    rows = rng.standard_normal((1000, 4))
    counts = statistic.vectors(rows).sum(axis=0)
    noisy = statistic.sizes(counts + 40 * rng.standard_normal(counts.size))
    assert ((noisy > 0.4) & (noisy < 2.5)).all()
    for hopeless in (np.zeros(32), np.full(32, -5.0), 1e6 * rng.standard_normal(32)):
        sizes = statistic.sizes(hopeless)
        assert (np.isfinite(sizes) & (sizes > 0) & (sizes <= 7.5)).all()


def test_one_bin_is_one_line():
    with pytest.raises(InvalidInput, match="bins must be a whole number >= 2, got bins=1"):
        ScaleHistogram((1.0,), bins=1)
