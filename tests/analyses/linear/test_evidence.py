"""Several looks at the same rows: without noise they say the same, and what is left out is put back exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.pilot import pilot
from hubbub.analyses.linear.released import Look, Released, SecondLook
from hubbub.analyses.linear.residuals import EDGES
from hubbub.statistics import Ball, Gram

N, D = 400, 4
AROUND = np.array([0.1, 0.5, -0.4, 0.2, 0.3])
WEIGHT, UNIT = 1.3, 0.7


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    X = np.column_stack([np.ones(N), rng.standard_normal((N, D))])
    return X, X @ rng.standard_normal(D + 1) + rng.standard_normal(N)


def direct(X: np.ndarray, r: np.ndarray) -> Gram:
    return Gram(X.T @ X, X.T @ r, float(r @ r))


def twice(noise: float = 0.0, last: float = 0.0) -> Released:
    """Nothing is clipped, so `left` is 1."""
    X, y = rows()
    columns = Columns(np.zeros(D + 1), np.ones(D + 1), np.full(D + 1, 0.3))
    second = SecondLook(direct(X, (y - X @ AROUND) / UNIT), last, AROUND, UNIT, np.zeros(len(EDGES) + 1), 1.0, left=1.0)
    return Released(direct(X, y), N, noise, Ball(9.0, D + 1, y=1e6, weight=WEIGHT), columns, True, None, second)


def check(look: Look, X: np.ndarray, y: np.ndarray) -> None:
    """It has the sums of residuals around its coefficients, and moved to others those around these."""
    for to in (look.around, np.zeros(X.shape[1]), np.arange(X.shape[1]) / 3):
        r = y - X @ to
        xy, square = look.moved(to, X.T @ X)
        np.testing.assert_allclose(xy, X.T @ r, rtol=1e-9, atol=1e-6)
        assert float(square) == pytest.approx(float(r @ r))


def test_every_look_has_the_sums_around_its_coefficients_and_can_be_moved():
    X, y = rows()
    first, last = twice().evidence.looks
    check(first, X, y)
    check(last, X, y)
    np.testing.assert_array_equal(last.around, AROUND)


@pytest.mark.parametrize(("noise", "last"), [(5.0, 2.0), (2.0, 5.0), (0.0, 0.0)])
def test_together_without_noise_in_them_looks_give_the_sums_around_the_last(noise: float, last: float):
    """Whatever noise they are taken to have: weights then add up to one."""
    X, y = rows()
    found = twice(noise, last).evidence
    xy, square = found.together()
    r = y - X @ AROUND
    np.testing.assert_allclose(found.xx, X.T @ X)
    np.testing.assert_allclose(xy, X.T @ r, rtol=1e-9, atol=1e-6)
    assert square == pytest.approx(float(r @ r))


def test_noise_of_all_looks_together():
    """By simulation: of XX' and of the sums around the last look, 4000 draws each; 6 % are more than five errors."""
    data, rng, drawn = twice(5.0, 3.0), np.random.default_rng(1), []
    assert data.second is not None
    p, around = D + 1, data.second.around

    def noisy(sums: Gram, noise: float) -> Gram:
        normal = rng.standard_normal((p, p))
        return Gram(
            sums.xx + noise * (normal + normal.T) / 2, sums.xy + noise / np.sqrt(2) / WEIGHT * rng.standard_normal(p),
            sums.yy + noise / WEIGHT**2 * rng.standard_normal(),
        )  # fmt: skip

    X, _ = rows()
    for _ in range(4000):
        second = replace(data.second, sums=noisy(data.second.sums, 3.0))
        seen = replace(data, sums=noisy(data.sums, 5.0), second=second).evidence
        exact = replace(seen, xx=X.T @ X).together()[0]  # the noise of XX' counts on its own
        drawn.append([seen.xx[0, 0], seen.xx[0, 1] * np.sqrt(2), exact[2], seen.looks[-1].square])
    found = data.evidence
    expected = [found.noise_std, found.noise_std, found.xy_noise, found.looks[-1].square_noise]
    np.testing.assert_allclose(np.std(drawn, axis=0), expected, rtol=0.06)
    np.testing.assert_array_equal(found.around, around)


@pytest.mark.parametrize("kept", [[0, 2], [0, 1, 3, 4], [0, 1, 2, 3, 4]])
def test_restricted_looks_are_the_sums_of_the_columns_that_are_left(kept: list[int]):
    X, y = rows()
    found = twice().restricted(kept)
    for look in found.evidence.looks:
        check(look, X[:, kept], y)
    again = twice().restricted([0, 1, 2, 4]).restricted([0, 2])  # as if columns had been left out at once
    once = twice().restricted([0, 2])
    assert again.second is not None
    assert once.second is not None
    np.testing.assert_allclose(again.second.sums.xy, once.second.sums.xy)
    assert again.second.sums.yy == pytest.approx(once.second.sums.yy)
    assert again.second.left_out == pytest.approx(once.second.left_out)


def test_what_is_put_back_brings_its_noise_along():
    """By simulation: u'y and squares of a restricted second look, 4000 draws; 6 % are more than five errors."""
    data, rng, kept, drawn = twice(3.0, 3.0), np.random.default_rng(2), [0, 2], []
    assert data.second is not None
    sums, p = data.second.sums, D + 1
    for _ in range(4000):
        normal = rng.standard_normal((p, p))
        noisy = Gram(
            sums.xx + 3.0 * (normal + normal.T) / 2, sums.xy + 3.0 / np.sqrt(2) / WEIGHT * rng.standard_normal(p),
            sums.yy + 3.0 / WEIGHT**2 * rng.standard_normal(),
        )  # fmt: skip
        look = replace(data, second=replace(data.second, sums=noisy)).restricted(kept).evidence.looks[-1]
        drawn.append([*look.xy, look.square])
    look = data.restricted(kept).evidence.looks[-1]
    np.testing.assert_allclose(np.std(drawn, axis=0), [look.xy_noise] * 2 + [look.square_noise], rtol=0.06)


def test_the_pilot_is_rounded_least_squares_where_there_is_no_noise():
    X, y = rows()
    look = pilot(replace(twice(), second=None))
    least = np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(look.around, least, atol=0.02)
    assert look.unit == pytest.approx(np.std(y - X @ least), rel=0.05)
    assert all(float(f"{value:.6g}") == value for value in (*look.around, look.unit))
