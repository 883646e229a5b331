"""The histogram of distances from zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import InvalidInput
from hubbub.statistics import Distances
from hubbub.statistics.registry import statistic_from

EDGES = (0.5, 1.0, 4.0)


@given(value=st.floats(-1e300, 1e300))
def test_every_value_counts_once_and_its_sign_does_not_matter(value: float):
    statistic = Distances(EDGES)
    vector, mirrored = statistic.vectors(np.array([[value], [-value]]))
    np.testing.assert_array_equal(vector, mirrored)
    assert vector.sum() == vector.max() == 1.0
    ends = (0.0, *EDGES, np.inf)
    bin_ = int(np.argmax(vector))
    assert ends[bin_] <= abs(value) <= ends[bin_ + 1]


def test_two_samples_in_different_bins_reach_the_sensitivity():
    statistic = Distances(EDGES)
    a, b = statistic.vectors(np.array([[0.1], [-9.0]]))
    assert np.linalg.norm(a - b) == pytest.approx(statistic.sensitivity)
    assert np.abs(a - b).sum() == pytest.approx(statistic.sensitivity_l1)
    assert statistic.dimension == a.size == 4


@pytest.mark.parametrize(
    "edges",
    [(), (1.0, 1.0), (2.0, 1.0), (0.0, 1.0), (-1.0, 1.0), (1.0, float("nan")), (float("inf"),), ("a",), (None,)],
)
def test_edges_that_do_not_ascend_from_zero_are_refused(edges: tuple):
    with pytest.raises(InvalidInput):
        Distances(edges)
    with pytest.raises(InvalidInput):
        statistic_from({"statistic": "distances", "edges": list(edges)})


@pytest.mark.parametrize(
    "changes", [{"edges": None}, {"edges": 1.0}, {"edges": "12"}, {"more": 1}, {"edges": [1.0] * 3}, {"edges": {}}]
)
def test_a_damaged_description_is_refused(changes: dict):
    with pytest.raises(InvalidInput):
        statistic_from({**Distances(EDGES).describe(), **changes})
