"""Sample -> vector -> matrix: nothing lost, nothing twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.errors import InvalidInput
from hubbub.statistics import Ball, Box, Regression

BOUNDS = {
    "box": lambda d: Box((1.0,) * d, 1.0),
    "box without target": lambda d: Box((1.0,) * d),
    "ball": lambda d: Ball(10.0, d, y=10.0, weight=0.7),
    "ball without target": lambda d: Ball(10.0, d),
}


@pytest.mark.parametrize("kind", BOUNDS)
@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_sum_of_vectors_is_the_gram_matrix(kind: str, d: int, rng: np.random.Generator):
    bound = BOUNDS[kind](d)
    statistic = Regression(bound)
    rows = rng.uniform(-1, 1, size=(50, statistic.columns))
    gram = statistic.unflatten(statistic.vectors(rows).sum(axis=0))
    X = rows[:, :d]
    np.testing.assert_allclose(gram.xx, X.T @ X, atol=1e-12)
    expected = X.T @ rows[:, -1] if bound.y is not None else np.zeros(d)
    np.testing.assert_allclose(gram.xy, expected, atol=1e-12)
    assert gram.yy is None


@pytest.mark.parametrize("bound", [Box((1.0,) * 3, 1.0), Ball(10.0, 3, y=10.0, weight=0.5)])
def test_target_square_is_the_last_term(bound: Box | Ball, rng: np.random.Generator):
    rows = rng.uniform(-1, 1, size=(20, 4))
    statistic = Regression(bound, target_square=True)
    assert statistic.dimension == 6 + 3 + 1
    gram = statistic.unflatten(statistic.vectors(rows).sum(axis=0))
    assert gram.yy == pytest.approx(rows[:, -1] @ rows[:, -1])


@given(d=st.integers(1, 8), target=st.booleans())
def test_dimension_counts_the_unique_terms(d: int, target: bool):
    statistic = Regression(Box((1.0,) * d, 1.0 if target else None))
    assert statistic.dimension == d * (d + 1) // 2 + (d if target else 0)
    assert statistic.vectors(np.ones((1, statistic.columns))).shape == (1, statistic.dimension)


@settings(max_examples=200)
@given(
    data=st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4),
    radius=st.floats(0.01, 100),
    y=st.floats(0.01, 100),
)
def test_bounded_rows_obey_the_bound(data: list[float], radius: float, y: float):
    row = np.array([data])
    boxed = Box((radius,) * 3, y).apply(row)
    assert (np.abs(boxed[0, :3]) <= radius).all()
    assert abs(boxed[0, 3]) <= y
    balled = Ball(radius, 3, y=y).apply(row)
    assert np.linalg.norm(balled[0, :3]) <= radius * (1 + 1e-12)
    assert abs(balled[0, 3]) <= y


def test_ball_scales_x_and_y_by_the_same_factor():
    bounded = Ball(1.0, 2, y=100.0).apply(np.array([[3.0, 4.0, 10.0], [0.3, 0.4, 10.0]]))
    np.testing.assert_allclose(bounded, [[0.6, 0.8, 2.0], [0.3, 0.4, 10.0]])


def test_ball_weights_make_the_statistic_isometric(rng: np.random.Generator):
    """The distance of two vectors is the Frobenius distance of uu' and vv' with u = (x, w y)."""
    w = 0.6
    statistic = Regression(Ball(100.0, 4, y=100.0, weight=w), target_square=True)
    rows = rng.standard_normal((2, 5))
    a, b = statistic.vectors(rows)
    u, v = rows * [1, 1, 1, 1, w]
    assert np.linalg.norm(a - b) == pytest.approx(np.linalg.norm(np.outer(u, u) - np.outer(v, v)))


def test_magnitude_is_reached_and_never_exceeded(rng: np.random.Generator):
    for statistic in (Regression(Box((2.0, 0.5), 3.0)), Regression(Box((2.0, 0.5), 3.0), target_square=True)):
        corners = np.array([[2.0, 0.5, 3.0], [-2.0, 0.5, -3.0]])
        wild = rng.normal(scale=100, size=(1000, 3))
        largest = np.abs(statistic.vectors(np.vstack([corners, wild]))).max()
        assert largest == pytest.approx(statistic.magnitude)
    ball = Regression(Ball(2.0, 2, y=3.0, weight=0.8), target_square=True)
    extreme = np.vstack([[[2, 0, 3], [np.sqrt(2), np.sqrt(2), 3]], rng.normal(scale=9, size=(1000, 3))])
    assert np.abs(ball.vectors(extreme)).max() <= ball.magnitude * (1 + 1e-12)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), "wide", None])
def test_bad_bound_is_one_line(value: object):
    with pytest.raises(InvalidInput, match=r"x_bound must be .*, got x_bound="):
        Box((value,), 1.0)  # type: ignore[arg-type]


def test_wrong_vector_length_is_one_line():
    with pytest.raises(InvalidInput, match="vector must be of length 5"):
        Regression(Box((1.0, 1.0), 1.0)).unflatten(np.zeros(6))


def test_target_square_without_target_is_refused():
    with pytest.raises(InvalidInput, match="target_square must be False without a target"):
        Regression(Box((1.0,)), target_square=True)
