"""What every statistic must do: bounded vectors of the stated length, whatever the sample."""

from __future__ import annotations

import json

import numpy as np
import pytest

from contracts.test_engines import STATISTICS, rows_for
from hubbub.statistics import OneHot


@pytest.fixture(params=STATISTICS)
def statistic(request: pytest.FixtureRequest):
    return STATISTICS[request.param]


def wild_rows(statistic, rng: np.random.Generator) -> np.ndarray:
    rows = rows_for(statistic, rng, n=5000)
    return rows if isinstance(statistic, OneHot) else rows * np.exp(3 * rng.standard_normal(rows.shape))


def test_vectors_have_the_stated_length_and_magnitude(statistic, rng: np.random.Generator):
    vectors = statistic.vectors(wild_rows(statistic, rng))
    assert vectors.shape == (5000, statistic.dimension)
    assert np.abs(vectors).max() <= statistic.magnitude * (1 + 1e-12)


def test_no_two_samples_are_further_apart_than_the_sensitivity(statistic, rng: np.random.Generator):
    vectors = statistic.vectors(wild_rows(statistic, rng))
    difference = vectors - rng.permutation(vectors)
    assert np.linalg.norm(difference, axis=1).max() <= statistic.sensitivity * (1 + 1e-12)
    assert np.abs(difference).sum(axis=1).max() <= statistic.sensitivity_l1 * (1 + 1e-12)


def test_each_row_is_treated_on_its_own(statistic, rng: np.random.Generator):
    """A client computes its vector alone: the same as in a batch."""
    rows = wild_rows(statistic, rng)[:50]
    alone = np.vstack([statistic.vectors(row[None]) for row in rows])
    np.testing.assert_array_equal(alone, statistic.vectors(rows))


def test_description_is_canonical_json(statistic):
    assert json.loads(json.dumps(statistic.describe(), allow_nan=False))["statistic"]
