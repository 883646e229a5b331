"""A budget is a pair of sensible numbers, or one clear line."""

from __future__ import annotations

import math

import pytest

from hubbub.errors import InvalidInput
from hubbub.privacy import Budget


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, "much", None])
def test_bad_epsilon_names_field_bound_value_and_remedy(epsilon: object):
    with pytest.raises(InvalidInput, match=r"epsilon must be .*, got epsilon=.*; .+") as caught:
        Budget(epsilon, 1e-5)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("delta", [1, -1e-9, 2, math.nan, "small"])
def test_bad_delta_names_field_bound_value_and_remedy(delta: object):
    with pytest.raises(InvalidInput, match=r"delta must be .*, got delta=.*; .+"):
        Budget(1.0, delta)  # type: ignore[arg-type]


def test_good_budget_reads_well():
    assert str(Budget(1, 1e-5)) == "(epsilon=1, delta=1e-05)"


def test_a_budget_without_delta_is_pure():
    assert Budget(1.0, 0).pure
    assert not Budget(1.0, 1e-300).pure
