"""Samples outside the domain: zero, which is within the stated sensitivity of every vector, and a word to their owner."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.test_statistics import STATISTICS, outside, rows_for
from hubbub.engines import LocalEngine, TrustedAggregator
from hubbub.errors import InvalidInput, OutOfDomainWarning
from hubbub.privacy import Population, gaussian_round
from hubbub.protocols import Statistic
from hubbub.randomness import Randomness
from hubbub.roles import settle_round, vectors_of
from hubbub.statistics import Ball, Box, Count, Means, OneHot, Regression, Stacked, bounded_vectors
from hubbub.statistics.preparation import constant

BOUNDS = [
    Box((1.0,)), Box((1.0, 2.0, 3.0)), Box((1.0, 1.0), 1.0), Box((1.0, 2.0), 9.0), Box((3.0, 0.1, 2.0), 0.5),
    Ball(1.0, 1), Ball(2.0, 3), Ball(1.0, 3, y=0.3), Ball(1.0, 2, y=4.0), Ball(0.5, 3, y=2.0, weight=2.0),
]  # fmt: skip
EVERY: dict[str, Statistic] = {
    **STATISTICS,
    "stack with categories": Stacked((OneHot(3), Count(2.0)), (0.4, 0.6)),
    **{
        f"{bound} {square} {formula}": Regression(bound, square, formula)
        for bound in BOUNDS for square in (False, True) for formula in ("tight", "paper")
        if bound.y is not None or not square
    },
}  # fmt: skip


def corners(statistic: Statistic, rng: np.random.Generator) -> np.ndarray:
    """Samples far out in every direction, where vectors are longest, and others."""
    signs = np.array(np.meshgrid(*[[-1.0, 0.0, 1.0]] * statistic.columns)).reshape(statistic.columns, -1).T
    inside = rng.standard_normal((500, statistic.columns)) * np.exp(2 * rng.standard_normal((500, 1)))
    return np.vstack([1e6 * signs, inside])


@pytest.mark.parametrize("name", EVERY)
def test_zero_is_within_the_sensitivity_of_every_vector(name: str, rng: np.random.Generator):
    statistic = EVERY[name]
    categories = np.array([[c, n] for c in range(3) for n in (0.0, 5.0)])
    rows = {"one-hot": categories[:, :1], "stack with categories": categories}.get(name)
    vectors = statistic.vectors(corners(statistic, rng) if rows is None else rows)
    assert np.linalg.norm(vectors, axis=1).max() <= statistic.sensitivity * (1 + 1e-12)
    assert np.abs(vectors).sum(axis=1).max() <= statistic.sensitivity_l1 * (1 + 1e-12)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", [name for name in STATISTICS if STATISTICS[name].probability == 1])
def test_a_sample_that_is_not_finite_gives_zero_and_changes_no_other(name: str, value: float, rng: np.random.Generator):
    statistic = STATISTICS[name]
    rows = rows_for(statistic, rng, 20)
    expected = statistic.vectors(rows)
    rows[7, -1], expected[7] = value, 0.0
    vectors, wrong = bounded_vectors(statistic, rows)
    np.testing.assert_array_equal(vectors, expected)
    assert wrong is not None
    assert np.flatnonzero(wrong).tolist() == [7]
    for engine in (LocalEngine(), TrustedAggregator()):
        with pytest.warns(
            OutOfDomainWarning, match="got 1 of 20 that are not, the first in row 7; each of them counts"
        ) as said:
            engine.private_sum(rows, gaussian_round(statistic, 1.0))
        assert len(said) == 1  # once for the round, after the sum


def test_unknown_categories_are_found_in_a_stack_too():
    rows = np.array([[0.0, 1.0], [3.0, 1.0], [2.0, np.nan], [1.5, 2.0]])
    wrong = outside(EVERY["stack with categories"], rows)
    assert wrong is not None
    assert wrong.tolist() == [False, True, True, True]
    assert outside(EVERY["stack with categories"], rows[:1]) is None


def test_large_but_finite_numbers_are_in_the_domain(recwarn: pytest.WarningsRecorder):
    rows = np.full((3, 1), 1e308)  # their sum is infinite
    assert outside(Count(2.0), rows) is None
    assert bounded_vectors(Count(2.0), rows)[0].tolist() == [[2.0]] * 3
    assert not recwarn


@pytest.mark.parametrize("value", [1e101, 1e155, 1e200, 1.7e308])
@pytest.mark.filterwarnings("error")
def test_numbers_beyond_any_bound_count_like_large_ones_and_nothing_is_said(value: float):
    """Squares of them would overflow: the row would vanish, and a warning made an error would keep its client away."""
    ball = Regression(Ball(1.0, 2, y=2.0, weight=0.5), target_square=True)
    rows = np.array([[value, -value, 1.0], [0.1, 0.2, 0.3]])
    far, wrong = bounded_vectors(ball, rows)
    assert wrong is None
    np.testing.assert_array_equal(far, bounded_vectors(ball, np.clip(rows, -1e100, 1e100))[0])
    assert np.linalg.norm(far[0]) > 0.9


class Reciprocal(Means):
    """1/x of numbers from 1 on: zero, in whose place a sample outside counts, is itself outside."""

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        assert (rows >= 1).all()
        return 1 / rows

    def inside(self, rows: np.ndarray) -> np.ndarray:
        return (rows >= 1).all(axis=1)


def test_a_statistic_never_sees_a_sample_outside_its_domain():
    vectors, wrong = bounded_vectors(Reciprocal((1.0,)), np.array([[2.0], [0.5], [4.0]]))
    assert vectors.tolist() == [[0.5], [0.0], [0.25]]
    assert wrong is not None
    assert wrong.tolist() == [False, True, False]
    assert bounded_vectors(Reciprocal((1.0,)), np.zeros((2, 1)))[0].tolist() == [[0.0], [0.0]]


def test_steps_that_leave_another_number_of_columns_are_one_line():
    with pytest.raises(InvalidInput, match="rows must be 2 columns after all steps, got rows=3"):
        bounded_vectors(Means((1.0, 1.0)), np.zeros((4, 2)), (constant(),))


def test_the_first_sample_outside_is_counted_among_all_not_among_the_chosen():
    """Samples that choose themselves: the message must name the row of the table."""
    statistic = STATISTICS[next(name for name in STATISTICS if STATISTICS[name].probability < 1)]
    rows = np.zeros((200, statistic.columns))
    rows[150] = np.nan
    spec = gaussian_round(statistic, 1.0)
    plan = settle_round(spec, Population(200))
    found = {vectors_of(plan, rows, Randomness.of(seed), hide=False)[1] for seed in range(40)}
    assert {each.first for each in found if each.number} == {150}
