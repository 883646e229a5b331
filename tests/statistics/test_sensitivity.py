"""Try to break every sensitivity: corners by brute force, zeros and interior points, then hill climbing.

The tight formulas of docs/privacy.md must never be exceeded, and with equal bounds they must be reached.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from hubbub.protocols import Statistic
from hubbub.statistics import Ball, Box, Count, MeanAndSquare, Means, OneHot, Regression, SecondMoments

SLACK = 1 + 1e-9


def limits(bound: Box) -> np.ndarray:
    return np.array(bound.x if bound.y is None else (*bound.x, bound.y))


def distances(statistic: Statistic, u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    difference = statistic.vectors(u) - statistic.vectors(v)
    return np.linalg.norm(difference, axis=1), np.abs(difference).sum(axis=1)


def grid_pairs(c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs (u, v) with u >= 0 and v on {-c, 0, c} (interior u values too, while that is affordable).

    Swapping and flipping coordinates leaves every distance as it is, so u may be taken as nonnegative.
    """
    D = c.size
    steps = [0.0, 1.0] if D > 4 else [0.0, 0.5, 1.0]
    u = np.array(list(itertools.product(steps, repeat=D)))
    v = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=D)))
    first, second = np.repeat(u, len(v), axis=0), np.tile(v, (len(u), 1))
    return first * c, second * c


def climb(statistic: Statistic, c: np.ndarray, rng: np.random.Generator, tries: int) -> float:
    """Maximise the L2 distance over the box from random starts."""
    D = c.size

    def negative(z: np.ndarray) -> float:
        difference = statistic.vectors((z[:D] * c)[None]) - statistic.vectors((z[D:] * c)[None])
        return -float(np.sum(difference**2))

    best = 0.0
    for _ in range(tries):
        start = np.clip(rng.choice([-1.0, 0.0, 1.0, 0.5], size=2 * D) + 0.1 * rng.standard_normal(2 * D), -1, 1)
        best = max(best, -minimize(negative, start, bounds=[(-1, 1)] * (2 * D), method="L-BFGS-B").fun)
    return float(np.sqrt(best))


def boxes(kind: str, d: int, equal: bool, seed: int) -> Regression:
    rng = np.random.default_rng([seed, d])
    x = np.full(d, 1.3) if equal else np.exp(1.2 * rng.standard_normal(d))
    y = 1.3 if equal else float(np.exp(1.5 * rng.standard_normal()))
    bound = Box(tuple(x), None if kind == "no target" else y)
    return Regression(bound, target_square=kind == "target and its square")


@pytest.mark.parametrize("equal", [True, False], ids=["equal", "unequal"])
@pytest.mark.parametrize("kind", ["no target", "target", "target and its square"])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6])
def test_box(d: int, kind: str, equal: bool, rng: np.random.Generator):
    for seed in range(1 if equal else 4):
        statistic = boxes(kind, d, equal, seed)
        assert isinstance(statistic.bound, Box)
        c = limits(statistic.bound)
        found, found_l1 = (float(a.max()) for a in distances(statistic, *grid_pairs(c)))
        if d <= 4:
            found = max(found, climb(statistic, c, rng, tries=8))
        assert found <= statistic.sensitivity * SLACK
        assert found_l1 <= statistic.sensitivity_l1 * SLACK
        assert found >= (1 - 1e-9 if equal else 0.85) * statistic.sensitivity
        assert found_l1 >= 0.9 * statistic.sensitivity_l1


@pytest.mark.parametrize("d", range(1, 12))
def test_equal_bounds_are_a_maximum_cut(d: int):
    c = 1.7
    expected = c**4 if d == 1 else 4 * (d**2 // 4) * c**4
    assert Box((c,) * d).sensitivity(False) ** 2 == pytest.approx(expected)


def test_one_dominant_bound_is_about_its_fourth_power():
    bound = Box((10.0, 0.1, 0.1))
    assert bound.sensitivity(False) ** 2 == pytest.approx(10.0**4, rel=1e-3)
    statistic = Regression(bound)
    apart = distances(statistic, np.array([[10.0, 0.1, 0.1]]), np.zeros((1, 3)))[0][0]
    assert apart >= 0.999 * bound.sensitivity(False)


@pytest.mark.parametrize("d", [1, 3, 10])
def test_papers_formula(d: int):
    c, c_y = 1.5, 2.5
    bound = Box((c,) * d, c_y)
    assert bound.sensitivity(False, "paper") ** 2 == pytest.approx(d * (2 * d - 1) * c**4 + 4 * d * c**2 * c_y**2)


@pytest.mark.parametrize("seed", range(20))
def test_tight_never_exceeds_the_papers_bound(seed: int):
    for kind in ("no target", "target", "target and its square"):
        statistic = boxes(kind, 1 + seed % 6, False, seed)
        square = kind == "target and its square"
        assert statistic.bound.sensitivity(square) <= statistic.bound.sensitivity(square, "paper") * SLACK
        assert statistic.bound.sensitivity_l1(square) <= statistic.bound.sensitivity_l1(square, "paper") * SLACK


@pytest.mark.parametrize(("target", "square"), [(None, False), (0.5, False), (3.0, False), (0.5, True), (3.0, True)])
@pytest.mark.parametrize("d", [1, 2, 4])
def test_ball(d: int, target: float | None, square: bool, rng: np.random.Generator):
    statistic = Regression(Ball(1.4, d, y=target, weight=0.8), target_square=square)
    D = statistic.columns

    def negative(z: np.ndarray) -> float:
        difference = statistic.vectors(z[:D][None]) - statistic.vectors(z[D:][None])
        return -float(np.sum(difference**2))

    best = 0.0
    for _ in range(12):
        start = rng.standard_normal(2 * D) * rng.choice([1.0, 3.0])
        best = max(best, -minimize(negative, start, method="Nelder-Mead", options={"maxiter": 1500}).fun)
    u, v = rng.standard_normal((2, 20_000, D)) * 3
    l2, l1 = distances(statistic, u, v)
    assert max(np.sqrt(best), l2.max()) <= statistic.sensitivity * SLACK
    orthogonal = d > 1 and (target is None or 0.8 * target <= 1.4)  # then the bound is reached
    assert np.sqrt(best) >= (0.95 if orthogonal else 0.6) * statistic.sensitivity
    assert l1.max() <= statistic.sensitivity_l1 * SLACK


@pytest.mark.parametrize(
    "statistic",
    [SecondMoments((1.0, 2.0, 0.3)), Means((1.0, 2.0, 0.3)), MeanAndSquare(2.5), Count(3.0)],
    ids=lambda s: type(s).__name__,
)
def test_moments_and_counts(statistic: Statistic, rng: np.random.Generator):
    reach = np.array(getattr(statistic, "bounds", None) or [statistic.bound])  # type: ignore[attr-defined]
    values = np.linspace(-1, 1, 9 if reach.size > 1 else 401)
    points = np.array(list(itertools.product(values, repeat=reach.size))) * reach
    pairs = rng.integers(0, len(points), size=(2, 100_000))
    if reach.size == 1:
        pairs = np.array(list(itertools.product(range(len(points)), repeat=2))).T
    extremes = np.vstack([reach, -reach, 0 * reach])
    u = np.vstack([points[pairs[0]], np.repeat(extremes, 3, axis=0)])
    v = np.vstack([points[pairs[1]], np.tile(extremes, (3, 1))])
    l2, l1 = distances(statistic, u, v)
    assert l2.max() == pytest.approx(statistic.sensitivity)
    assert l1.max() == pytest.approx(statistic.sensitivity_l1, rel=1e-3)


def test_one_hot():
    statistic = OneHot(4)
    l2, l1 = distances(statistic, np.array([[0.0], [1.0]]), np.array([[3.0], [1.0]]))
    assert l2.tolist() == pytest.approx([statistic.sensitivity, 0.0])
    assert l1.tolist() == pytest.approx([statistic.sensitivity_l1, 0.0])
