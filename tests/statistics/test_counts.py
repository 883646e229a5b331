"""Counts and categories: counts out of range are clipped, an unknown category is in none of them."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.errors import InvalidInput
from hubbub.statistics import Count, OneHot


def test_count_is_clipped_to_its_range():
    assert Count(2.0).vectors(np.array([[-1.0], [1.5], [9.0]])).ravel().tolist() == [0.0, 1.5, 2.0]


def test_one_hot_counts_each_category():
    assert OneHot(3).vectors(np.array([[0.0], [2.0], [2.0]])).sum(axis=0).tolist() == [1.0, 0.0, 2.0]


@pytest.mark.parametrize("value", [-1.0, 3.0, 0.5, np.nan, np.inf, -1e300])
def test_unknown_category_counts_for_none(value: float):
    assert OneHot(3).vectors(np.array([[value], [1.0]])).tolist() == [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_too_few_categories_is_one_line():
    with pytest.raises(InvalidInput, match=r"categories must be a whole number >= 2, got categories=1"):
        OneHot(1)
