"""The law of residuals, read off noisy counts of their distances from zero."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import gennorm, t

from hubbub.analyses.linear.residuals import EDGES, HALF_NORMAL, ResidualShape, residual_laws
from hubbub.statistics import Distances


def counted(rows: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
    counts = Distances(EDGES).vectors(rows[:, None]).sum(axis=0)
    return counts + noise * rng.standard_normal(counts.size)


@pytest.mark.parametrize("width", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("tail", [2.5, 3.0, 4.0, 8.0, 200.0])
@pytest.mark.parametrize(("n", "noise", "error"), [(1000, 15.0, 0.12), (20_000, 30.0, 0.04)])
def test_the_90_percent_point_of_t_laws_is_found(tail: float, width: float, n: int, noise: float, error: float):
    """The median error of 15 counts is within 12 % with loud noise, 4 % with little: single ones have 6 to 9 %, 0.5 to 3 %.

    A median of 15 errs by a third of that. With the 8 % that heavy tails are taken for shorter by, no false alarm in 1e3.
    """
    errors, gaps = [], []
    for seed in range(15):
        rng = np.random.default_rng([seed, n])
        rows = width * rng.standard_t(tail, n)
        found = ResidualShape(counted(rows, noise, rng), n, noise)
        errors.append(found.deviation * HALF_NORMAL / (width * t.ppf(0.95, tail)))
        gaps.append(found.within(2.0) - np.mean(np.abs(rows) < 2))
    assert np.median(errors) == pytest.approx(1.0, abs=error)
    assert abs(np.median(gaps)) < error / 3


def posterior(shape: ResidualShape, share: float) -> float:
    """Of the deviation, under a flat prior of its logarithm."""
    grid = np.exp(np.linspace(-3, 3, 3000))
    log = shape.log_likelihood(grid)
    below = np.cumsum(np.exp(log - log.max()))
    return float(np.interp(share, below / below[-1], grid))


def test_the_likelihood_of_a_deviation_is_as_wide_as_the_counts_are_uncertain():
    """90 % intervals by it hold the truth in about 90 % of counts: 60 of 60 to 46 of 60 with 1e-3 false alarm."""
    hits = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        found = ResidualShape(counted(0.9 * rng.standard_t(4, 800), 12.0, rng), 800, 12.0)
        low, high = posterior(found, 0.05), posterior(found, 0.95)
        hits += int(low <= 0.9 * t.ppf(0.95, 4) / HALF_NORMAL <= high)
    assert hits >= 46


def test_residuals_without_tails_are_known_for_what_they_are():
    """Within 6 % of the truth in the median of 15 counts: t laws alone are 22 % too wide."""
    errors = []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        rows = gennorm.rvs(8, size=5000, random_state=rng)
        found = ResidualShape(counted(rows, 20.0, rng), 5000, 20.0)
        errors.append(posterior(found, 0.5) * HALF_NORMAL / np.quantile(np.abs(rows), 0.9))
    assert np.median(errors) == pytest.approx(1.0, abs=0.06)


def test_shares_between_two_widths_are_those_of_the_law():
    """Linear between widths a twentieth apart: within 1e-3 of the law itself."""
    deviation = np.array([0.3137, 1.0, 2.71])
    at = residual_laws().at(deviation)[0]
    scale = deviation * HALF_NORMAL / t.ppf(0.95, 2.5)
    exact = np.diff(2 * t.cdf(np.asarray(EDGES) / scale[:, None], 2.5) - 1, axis=1, prepend=0.0, append=1.0)
    np.testing.assert_allclose(at, exact, atol=1e-3)
    np.testing.assert_allclose(at.sum(axis=1), 1.0)


def test_counts_of_noise_alone_leave_the_width_open():
    rng = np.random.default_rng(0)
    found = ResidualShape(1000 * rng.standard_normal(len(EDGES) + 1), 100, 1000.0)
    assert posterior(found, 0.05) < 0.7
    assert posterior(found, 0.95) > 1.6
    assert found.within(0.0) == 0
    assert 0 < found.within(0.1) < found.within(3.0) < found.within(100.0) <= 1
