"""The dispersion of counts: found from the steps, in intervals that hold it, and what it does to the intercept."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub import Budget, TrustedAggregator, run
from hubbub.analyses.glm.analysis import GLM, newton_step
from hubbub.analyses.glm.dispersion import corrected, dispersion
from hubbub.analyses.glm.look import InterceptPrior, Step, estimate
from hubbub.arrays import Floats
from hubbub.statistics import NewtonStep
from hubbub.statistics.log_link import OverdispersedCounts

TRUTH = np.array([0.8, 0.4, -0.3])


def rows_of(n: int, seed: int, true: float, intercept: float = 0.8) -> Floats:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    mean = np.exp(intercept + X @ TRUTH[1:])
    return np.column_stack([X, rng.poisson(mean * (rng.gamma(1 / true, true, n) if true else 1.0))])


def exact(statistic: NewtonStep, rows: Floats) -> Step:
    """A step without noise."""
    sums = statistic.unflatten(statistic.vectors(np.column_stack([np.ones(len(rows)), rows])).sum(axis=0))
    noise = 1e-4
    return Step(
        np.array(statistic.state), sums.score, noise, sums.information, noise, sums.variance, noise, 1.0,
        statistic.response, sums.spread, noise,
    )  # fmt: skip


@pytest.mark.parametrize(("true", "taken"), [(0.5, 2.0), (0.5, 0.1), (2.0, 0.5)])
def test_without_noise_it_is_found_and_the_intercept_is_put_right(true: float, taken: float):
    """A step at the true coefficients with a wrong dispersion: uncorrected the intercept would be off by 0.05 or more.
    FALSE_ALARM: 3 numbers beyond 4 standard errors, 2e-4."""
    n = 200_000
    rows = rows_of(n, 1, true)
    step = exact(newton_step(OverdispersedCounts(1.5, 0.05, taken), tuple(TRUTH), 0.8), rows)
    found = dispersion([step], TRUTH, n, (0.0, 0.0))
    assert found.value == pytest.approx(true, rel=0.06)
    low, high = found.interval(0.999)
    assert low < true < high
    wrong, right = (
        estimate(each, n, InterceptPrior(0.0, 10.0)) for each in ([step], corrected([step], found, (0.0, 0.0)))
    )
    assert abs(wrong[0] - TRUTH[0]) > 0.05
    np.testing.assert_allclose(right, TRUTH, atol=0.025)


def fitted(rows: Floats, epsilon: float, seed: int):
    model = GLM(("a", "b"), "y", (0.0, 30.0), ((-4.0, 4.0),) * 2, "negative-binomial")
    return run(model, rows, TrustedAggregator(seed=seed), Budget(epsilon, 1e-5))


@pytest.mark.slow
def test_intervals_hold_dispersion_intercept_and_coefficients():
    """30 studies of intervals of 90 %: 21 or more of 30 for each of four numbers, and 98 or more of all 120. FALSE_ALARM:
    5e-3."""
    hits, truth = np.zeros(4), np.array([*TRUTH, 1.0])
    for seed in range(30):
        result = fitted(rows_of(3000, seed, 1.0), 1.0, seed)
        interval = np.array([*result.posterior.intervals(0.9)[[2, 0, 1]], result.stepped.dispersion.interval(0.9)])
        hits += (interval[:, 0] < truth) & (interval[:, 1] > truth)
    assert hits.min() >= 21, hits
    assert hits.sum() >= 98, hits


def test_counts_of_a_poisson_law_have_next_to_no_dispersion():
    found = fitted(rows_of(20_000, 1, 0.0), 3.0, 1)
    assert found.stepped.dispersion.interval(0.9)[1] < 0.15
    np.testing.assert_allclose(found.posterior.mean, TRUTH[1:], atol=0.04)
    assert found.as_dict()["dispersion"]["high"] < 0.15
