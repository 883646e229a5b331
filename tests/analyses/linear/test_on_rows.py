"""Draws as they predict for rows: moved from a world of their own to the common one."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.noise_aware import sample_posterior
from hubbub.analyses.linear.released import Released
from hubbub.analyses.linear.sampler.on_rows import on_rows
from hubbub.analyses.posterior import LinearPosterior
from hubbub.arrays import Floats
from hubbub.statistics import Ball, Gram
from linear_prior import symmetric


@pytest.fixture
def hidden_axis() -> Released:
    """Twelve columns of which one is next to constant, under noise of two thirds of the others' squares."""
    rng, n, p = np.random.default_rng(1), 300, 12
    X = rng.standard_normal((n, p)) * np.append(np.ones(p - 1), 0.1)
    y = X[:, :5] @ np.array([0.5, -0.5, 0.3, 0.0, 0.2]) + rng.standard_normal(n)
    noise = 200.0
    sums = Gram(X.T @ X + noise * symmetric(rng, p), X.T @ y + noise * rng.standard_normal(p), float(y @ y))
    columns = Columns(np.zeros(p + 1), np.ones(p + 1), np.full(p + 1, 0.3))
    return Released(sums, n, noise, Ball(3.0, p, y=10.0, weight=1.0), columns, False)


def some_sums(rng: np.random.Generator, k: int, p: int) -> Floats:
    return np.stack([each @ each.T for each in rng.standard_normal((k, p, p + 3))])


def test_what_a_draw_adds_to_predictions_is_what_it_adds_in_its_own_world(rng: np.random.Generator):
    """The mean square over rows: (b - c)' S (b - c) with each draw's own S before, with the mean S after."""
    S, beta, centre = some_sums(rng, 50, 4), rng.standard_normal((50, 4)), rng.standard_normal(4)
    mean_S = S.mean(axis=0)
    moved = on_rows(beta, S, mean_S, centre) - centre
    own = np.einsum("ki,kij,kj->k", beta - centre, S, beta - centre)
    np.testing.assert_allclose(np.einsum("ki,ij,kj->k", moved, mean_S, moved), own, rtol=1e-9)


def test_a_draw_whose_sums_are_the_mean_stays_and_diagonal_sums_move_each_axis_alone(rng: np.random.Generator):
    S, beta, centre = some_sums(rng, 1, 3), rng.standard_normal((1, 3)), np.zeros(3)
    np.testing.assert_allclose(on_rows(beta, S, S[0], centre), beta, rtol=1e-9)
    flat = np.diag([4.0, 1e-4, 9.0])[None]
    np.testing.assert_allclose(on_rows(beta, flat, np.eye(3), centre), beta * [2.0, 0.01, 3.0], rtol=1e-9)


def test_of_all_maps_between_two_worlds_it_is_the_one_that_moves_rows_least(rng: np.random.Generator):
    """Optimal transport: rows x of the mean S go to rows of the draw's S, at the least mean squared distance."""
    S, mean_S = some_sums(rng, 1, 3), some_sums(rng, 1, 3)[0]
    move = on_rows(np.eye(3), np.repeat(S, 3, axis=0), mean_S, np.zeros(3)).T
    np.testing.assert_allclose(move, move.T, rtol=1e-9, atol=1e-12)  # a positive symmetric map is the gradient of
    assert np.linalg.eigvalsh(move).min() > 0  # a convex function, and such a map is the optimal one (Brenier)
    np.testing.assert_allclose(move @ mean_S @ move, S[0], rtol=1e-9, atol=1e-9)


def test_intervals_of_predictions_do_not_grow_with_draws_that_say_nothing_of_an_axis(hidden_axis: Released):
    """Where noise hides an axis, plain draws predict wildly along it, and moved ones as widely as y varies."""
    found = sample_posterior(hidden_axis, draws=1000)
    draws = np.column_stack([found.coefficients, found.intercept, found.residual_variance])
    rows = np.random.default_rng(0).standard_normal((200, hidden_axis.features))
    plain, moved = (
        LinearPosterior.of_draws(draws, centre=found.centre, on_rows=each) for each in (None, found.on_rows)
    )
    wide, narrow = (np.median(np.ptp(each.predictive_interval(rows), axis=1)) for each in (plain, moved))
    assert narrow < 0.85 * wide
    np.testing.assert_array_equal(plain.interval(), moved.interval())  # those of coefficients are as they were
    assert np.median(moved.predict(rows)[1]) < 0.8 * np.median(plain.predict(rows)[1])


def test_chains_predict_for_rows_as_draws_do(hidden_axis: Released):
    """Both are of one posterior: the spread of predictions is alike, and that of plain chains is wider."""
    found = sample_posterior(hidden_axis, draws=1000)
    assert found.chains is not None
    assert found.chains_on_rows is not None
    assert found.chains_on_rows.shape == (*found.chains.shape[:-1], hidden_axis.features + 1)
    rows = np.random.default_rng(0).standard_normal((200, hidden_axis.features))
    chained, drawn, plain = (
        np.median((each.reshape(-1, each.shape[-1])[:, :-1] @ rows.T).std(axis=0))
        for each in (found.chains_on_rows, found.on_rows, found.chains[..., :-1])
    )
    assert chained == pytest.approx(drawn, rel=0.15)
    assert chained < 0.8 * plain
