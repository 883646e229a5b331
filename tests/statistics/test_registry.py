"""A description is enough to have the statistic again; nothing else gets in."""

from __future__ import annotations

import json

import numpy as np
import pytest

from contracts.test_statistics import STATISTICS, rows_for
from hubbub.errors import InvalidInput
from hubbub.statistics import Box, Means, Regression, statistic_from

WRONG = {
    "not a mapping": 3,
    "nothing": {},
    "unknown": {"statistic": "median", "bounds": [1.0]},
    "incomplete": {"statistic": "means"},
    "one field more": {"statistic": "means", "bounds": [1.0], "clip": False},
    "a negative bound": {"statistic": "means", "bounds": [-1.0]},
    "no bound": {"statistic": "means", "bounds": []},
    "a bound that is text": {"statistic": "means", "bounds": ["1.0"]},
    "a bound that is not finite": {"statistic": "count", "bound": float("inf")},
    "a whole number where a float belongs": {"statistic": "count", "bound": 1},
    "too long a vector": {"statistic": "one-hot", "categories": 10**9},
    "so wide a ball that its square is too long": {"statistic": "regression", "target_square": False, "formula": "tight",
                                                   "bound": "ball", "radius": 1.0, "y": 1.0, "weight": 1.0, "d": 10**6},
    "a formula of one's own": {**Regression(Box((1.0,), 1.0)).describe(), "formula": "mine"},
    "a negative share": {"statistic": "stacked", "parts": [{"statistic": "count", "bound": 1.0}], "shares": [-1.0]},
    "a share too few": {"statistic": "stacked", "parts": [{"statistic": "count", "bound": 1.0}] * 2, "shares": [1.0]},
    "a stack in a stack": {"statistic": "stacked", "parts": [{"statistic": "stacked", "parts": [], "shares": []}], "shares": [1.0]},
}  # fmt: skip


@pytest.mark.parametrize("name", STATISTICS)
def test_described_and_read_again_it_does_the_same(name: str, rng: np.random.Generator):
    statistic = STATISTICS[name]
    again = statistic_from(json.loads(json.dumps(statistic.describe())))
    assert again.describe() == statistic.describe()
    assert type(again) is type(statistic)
    assert again.sensitivity == statistic.sensitivity
    rows = rows_for(statistic, rng)
    np.testing.assert_array_equal(again.vectors(rows), statistic.vectors(rows))


@pytest.mark.parametrize("name", WRONG)
def test_anything_else_is_refused_in_one_line(name: str):
    with pytest.raises(InvalidInput) as refusal:
        statistic_from(WRONG[name])
    assert len(str(refusal.value)) < 500
    assert "\n" not in str(refusal.value)


def test_order_of_fields_does_not_matter():
    assert statistic_from({"bounds": [1.0, 2.0], "statistic": "means"}) == Means((1.0, 2.0))
