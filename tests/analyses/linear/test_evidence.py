"""Several looks at the same rows: without noise they say the same, and what is left out is put back exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.noise_aware import Prior
from hubbub.analyses.linear.pilot import pilot
from hubbub.analyses.linear.released import LaterLook, Look, Released
from hubbub.analyses.linear.residuals import EDGES
from hubbub.analyses.linear.sampler.target import Target
from hubbub.statistics import Ball, Gram

N, D = 400, 4
BETWEEN, AROUND = np.array([0.3, 0.2, 0.1, -0.6, 0.0]), np.array([0.1, 0.5, -0.4, 0.2, 0.3])
WEIGHT, UNITS = 1.3, (1.1, 0.7)


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    X = np.column_stack([np.ones(N), rng.standard_normal((N, D))])
    return X, X @ rng.standard_normal(D + 1) + rng.standard_normal(N)


def direct(X: np.ndarray, r: np.ndarray) -> Gram:
    return Gram(X.T @ X, X.T @ r, float(r @ r))


def looked(noise: float = 0.0, *later: float) -> Released:
    """With so much noise in each look. Nothing is clipped, so `left` is 1."""
    X, y = rows()
    columns = Columns(np.zeros(D + 1), np.ones(D + 1), np.full(D + 1, 0.3))
    looks = tuple(
        LaterLook(direct(X, (y - X @ b) / unit), each, b, unit, np.zeros(len(EDGES) + 1), 1.0, left=1.0)
        for each, b, unit in zip(later or (0.0, 0.0), (BETWEEN, AROUND), UNITS, strict=True)
    )
    return Released(direct(X, y), N, noise, Ball(9.0, D + 1, y=1e6, weight=WEIGHT), columns, True, None, looks)


def check(look: Look, X: np.ndarray, y: np.ndarray) -> None:
    """It has the sums of residuals around its coefficients, and moved to others those around these."""
    for to in (look.around, np.zeros(X.shape[1]), np.arange(X.shape[1]) / 3):
        r = y - X @ to
        xy, square = look.moved(to, X.T @ X)
        np.testing.assert_allclose(xy, X.T @ r, rtol=1e-9, atol=1e-6)
        assert float(square) == pytest.approx(float(r @ r))


def test_every_look_has_the_sums_around_its_coefficients_and_can_be_moved():
    X, y = rows()
    looks = looked().evidence.looks
    for look in looks:
        check(look, X, y)
    np.testing.assert_array_equal([look.around for look in looks], [np.zeros(D + 1), BETWEEN, AROUND])


@pytest.mark.parametrize("noises", [(5.0, 2.0, 3.0), (2.0, 5.0, 1.0), (0.0, 0.0, 0.0)])
def test_together_without_noise_in_them_looks_give_the_sums_around_the_last(noises: tuple[float, ...]):
    """Whatever noise they are taken to have: weights then add up to one."""
    X, y = rows()
    found = looked(*noises).evidence
    xy, square = found.together()
    r = y - X @ AROUND
    np.testing.assert_allclose(found.xx, X.T @ X)
    np.testing.assert_allclose(xy, X.T @ r, rtol=1e-9, atol=1e-6)
    assert square == pytest.approx(float(r @ r))


def test_noise_of_all_looks_together():
    """By simulation: of XX' and of the sums around the last look, 4000 draws each; 6 % are more than five errors."""
    noises = (5.0, 4.0, 3.0)
    data, rng, p, drawn = looked(*noises), np.random.default_rng(1), D + 1, []

    def noisy(sums: Gram, noise: float) -> Gram:
        normal = rng.standard_normal((p, p))
        return Gram(
            sums.xx + noise * (normal + normal.T) / 2, sums.xy + noise / np.sqrt(2) / WEIGHT * rng.standard_normal(p),
            sums.yy + noise / WEIGHT**2 * rng.standard_normal(),
        )  # fmt: skip

    X, _ = rows()
    for _ in range(4000):
        first, *rest = (noisy(each.sums, noise) for each, noise in zip((data, *data.later), noises, strict=True))
        later = tuple(replace(each, sums=sums) for each, sums in zip(data.later, rest, strict=True))
        seen = replace(data, sums=first, later=later).evidence
        exact = replace(seen, xx=X.T @ X).together()[0]  # the noise of XX' counts on its own
        drawn.append([seen.xx[0, 0], seen.xx[0, 1] * np.sqrt(2), exact[2], seen.looks[-1].square])
    found = data.evidence
    expected = [found.noise_std, found.noise_std, found.xy_noise, found.looks[-1].square_noise]
    np.testing.assert_allclose(np.std(drawn, axis=0), expected, rtol=0.06)
    np.testing.assert_array_equal(found.around, AROUND)


def test_counts_of_every_look_are_held_against_the_squares_around_its_own_coefficients():
    X, y = rows()
    data, rng = looked(), np.random.default_rng(3)
    later = tuple(
        replace(each, counts=rng.dirichlet(np.ones(len(EDGES) + 1)) * N, counts_noise=9.0) for each in data.later
    )
    data = replace(data, later=later)
    rest, S = y - X @ AROUND, X.T @ X
    found = Target(data, Prior(), None).log_counts(S[None], (X.T @ rest)[None], np.array([rest @ rest]))
    widths = [np.sqrt(np.mean((y - X @ each.around) ** 2)) / each.unit for each in later]
    direct = [law.log_likelihood(np.array([width]))[0] for law, width in zip(data.residuals, widths, strict=True)]
    assert found[0] == pytest.approx(sum(direct))


@pytest.mark.parametrize("kept", [[0, 2], [0, 1, 3, 4], [0, 1, 2, 3, 4]])
def test_restricted_looks_are_the_sums_of_the_columns_that_are_left(kept: list[int]):
    X, y = rows()
    found = looked().restricted(kept)
    for look in found.evidence.looks:
        check(look, X[:, kept], y)
    again = looked().restricted([0, 1, 2, 4]).restricted([0, 2])  # as if columns had been left out at once
    for one, other in zip(again.later, looked().restricted([0, 2]).later, strict=True):
        np.testing.assert_allclose(one.sums.xy, other.sums.xy)
        assert one.sums.yy == pytest.approx(other.sums.yy)
        assert one.left_out == pytest.approx(other.left_out)


def test_what_is_put_back_brings_its_noise_along():
    """By simulation: u'y and squares of a restricted later look, 4000 draws; 6 % are more than five errors."""
    data, rng, kept, drawn = looked(3.0, 4.0, 3.0), np.random.default_rng(2), [0, 2], []
    sums, p = data.later[-1].sums, D + 1
    for _ in range(4000):
        normal = rng.standard_normal((p, p))
        noisy = Gram(
            sums.xx + 3.0 * (normal + normal.T) / 2, sums.xy + 3.0 / np.sqrt(2) / WEIGHT * rng.standard_normal(p),
            sums.yy + 3.0 / WEIGHT**2 * rng.standard_normal(),
        )  # fmt: skip
        later = (data.later[0], replace(data.later[1], sums=noisy))
        look = replace(data, later=later).restricted(kept).evidence.looks[-1]
        drawn.append([*look.xy, look.square])
    look = data.restricted(kept).evidence.looks[-1]
    np.testing.assert_allclose(np.std(drawn, axis=0), [look.xy_noise] * 2 + [look.square_noise], rtol=0.06)


def test_the_pilot_is_rounded_least_squares_where_there_is_no_noise():
    X, y = rows()
    look = pilot(replace(looked(), later=()))
    least = np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(look.around, least, atol=0.02)
    assert look.unit == pytest.approx(np.std(y - X @ least), rel=0.05)
    assert all(float(f"{value:.6g}") == value for value in (*look.around, look.unit))
