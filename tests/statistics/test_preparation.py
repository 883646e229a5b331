"""Public steps from a raw row to what the statistic sees."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.errors import InvalidInput
from hubbub.statistics.preparation import clip, constant, prepare, scale, shift, shorten

ROWS = np.array([[3.0, 4.0, 10.0], [0.3, 0.4, -1.0]])


def test_steps_follow_one_another():
    steps = [shift([0.0, 0.0, 1.0]), shorten(1.0), clip([9.0, 9.0, 2.0]), scale([1.0, 1.0, 2.0]), constant()]
    rows, wrong = prepare(ROWS, steps)
    np.testing.assert_allclose(rows, [[1.0, 0.6, 0.8, 1.0], [1.0, 0.3, 0.4, -1.0]])
    assert wrong is None
    assert ROWS[0, 0] == 3.0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_is_marked_and_leaves_the_others_alone(value: float):
    steps = [shift([0.0, 0.0, 1.0]), shorten(1.0), clip([9.0, 9.0, 2.0]), constant()]
    rows = np.vstack([ROWS, [[0.0, value, 1.0]]])
    found, wrong = prepare(rows, steps)
    assert wrong is not None
    assert wrong.tolist() == [False, False, True]
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[:2], prepare(ROWS, steps)[0])


@pytest.mark.parametrize(
    "steps",
    [
        [{"step": "exec", "by": [1.0]}], [{"step": "shift", "by": [1.0]}], [{"step": "shift"}], [{}],
        [{"step": "clip", "to": ["a", "b", "c"]}], [shift([0.0] * 3)] * 17, [{"step": "shift", "by": [float("nan")] * 3}],
    ],
)  # fmt: skip
def test_steps_that_do_not_fit_are_refused(steps):
    with pytest.raises(InvalidInput):
        prepare(ROWS, steps)


def test_dividing_by_zero_is_refused_whatever_the_rows():
    with pytest.raises(InvalidInput, match="step must be one of .* got step=.*'scale'"):
        prepare(ROWS, [scale([0.0, 1.0, 1.0])])
