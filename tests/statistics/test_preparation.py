"""Public steps from a raw row to what the statistic sees."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.errors import InvalidInput
from hubbub.statistics.preparation import (
    check_steps,
    clip,
    constant,
    log,
    prepare,
    repeat,
    residual,
    scale,
    shift,
    shorten,
    turn,
)

ROWS = np.array([[3.0, 4.0, 10.0], [0.3, 0.4, -1.0]])


def test_steps_follow_one_another():
    steps = [shift([0.0, 0.0, 1.0]), shorten(1.0), clip([9.0, 9.0, 2.0]), scale([1.0, 1.0, 2.0]), constant()]
    rows, wrong = prepare(ROWS, steps)
    np.testing.assert_allclose(rows, [[1.0, 0.6, 0.8, 1.0], [1.0, 0.3, 0.4, -1.0]])
    assert wrong is None
    assert ROWS[0, 0] == 3.0


def test_a_logarithm_is_of_what_is_not_below_the_least():
    rows, _ = prepare(np.array([[3.0, 4.0], [-1.0, 0.0], [2.0, 0.01]]), [log([0.0, 0.1])])
    np.testing.assert_allclose(rows, [[3.0, np.log(4)], [-1.0, np.log(0.1)], [2.0, np.log(0.1)]])
    with pytest.raises(InvalidInput, match="step must be one of"):
        prepare(ROWS, [log([0.0, -1.0, 0.0])])


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


def test_a_residual_is_what_the_other_columns_leave_of_the_last():
    rows, _ = prepare(ROWS, [constant(), residual([1.0, 2.0, -1.0]), scale([1.0, 1.0, 1.0, 2.0]), repeat()])
    np.testing.assert_allclose(rows, [[1, 3.0, 4.0, 3.5, 3.5], [1, 0.3, 0.4, -1.1, -1.1]])
    assert ROWS.shape == (2, 3)


def test_a_turn_multiplies_all_columns_but_the_last():
    by = np.array([[2.0, 1.0], [0.0, -1.0]])
    rows, _ = prepare(ROWS, [turn(by), repeat()])
    np.testing.assert_allclose(rows[:, :2], ROWS[:, :2] @ by.T)
    np.testing.assert_array_equal(rows[:, 2:], ROWS[:, [2, 2]])
    found, _ = prepare(np.array([[1e300, -1e300, 1.0]]), [turn(1e300 * by)])
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    "by",
    [
        None, 1.0, "x", [], [[1.0]], [[1.0, 0.0]], np.eye(3).tolist(), [[1.0, 0.0], [0.0]], [1.0, 0.0],
        [[1.0, float("nan")], [0.0, 1.0]], [[float("inf"), 0.0], [0.0, 1.0]], [[[1.0], [0.0]], [[0.0], [1.0]]],
    ],
)  # fmt: skip
def test_a_turn_of_another_size_is_refused_whatever_the_rows(by):
    for rows in (ROWS, np.zeros((0, 3))):
        with pytest.raises(InvalidInput, match="step must be one of .*turn.* and fit 3 columns"):
            prepare(rows, [{"step": "turn", "by": by}])


def test_residuals_of_wild_rows_are_numbers():
    rows = np.array([[1e300, -1e300, 1e300], [1.0, np.nan, 2.0]])
    found, wrong = prepare(rows, [residual([1e300, 1e300]), repeat()])
    assert np.isfinite(found).all()
    assert wrong is not None
    assert wrong.tolist() == [False, True]


def test_steps_that_add_columns_are_counted():
    steps = [constant(), residual([1.0, 2.0]), repeat()]
    check_steps(steps, 4)  # of two columns
    for columns in (3, 5):
        with pytest.raises(InvalidInput):
            check_steps(steps, columns)


@pytest.mark.parametrize(
    "step",
    [
        {"step": "residual"}, {"step": "residual", "of": [1.0]}, {"step": "residual", "of": [1.0, 2.0, 3.0]},
        {"step": "residual", "of": 1.0}, {"step": "residual", "of": ["a", "b"]}, {"step": "residual", "of": None},
        {"step": "residual", "of": [float("nan"), 1.0]}, {"step": "residual", "of": [float("inf"), 1.0]},
        {"step": "residual", "of": [[1.0, 2.0]]}, {"step": "Repeat"}, "repeat",
    ],
)  # fmt: skip
def test_a_residual_step_of_other_coefficients_is_refused_whatever_the_rows(step):
    for rows in (ROWS, np.zeros((0, 3))):
        with pytest.raises(InvalidInput, match="step must be one of .*residual, turn, repeat"):
            prepare(rows, [step])
