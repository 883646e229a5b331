"""The Newton step: its sensitivity cannot be exceeded, its rows are weighted without bias, its sums are what they say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import bernoulli, poisson

from hubbub.errors import InvalidInput
from hubbub.statistics import NewtonStep, bounded_vectors, statistic_from
from hubbub.statistics.responses import Counts, LogCounts, Logit, Probit, Response

RESPONSES: dict[str, tuple[Response, tuple[float, ...]]] = {
    "logit": (Logit(), (0.0, 1.0)),
    "probit": (Probit(), (0.0, 1.0)),
    "counts": (Counts(1.5, 0.1), (0.0, 1.0, 10.0, 1e9)),
    "log counts": (LogCounts(1.5, 0.3), (0.0, 1.0, 1e9)),
}
"""Each with extreme values of y."""
SLACK = 1 + 1e-9


def step(
    response: Response, state: tuple[float, ...], weight: float = 1.0, score: float = 1.0, information: float = 1.0
):
    return NewtonStep(response, state, score, information, weight, 0.3 / score**2)


def apart(statistic: NewtonStep, one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    difference = statistic.vectors(one[None]) - statistic.vectors(other[None])
    return float(np.linalg.norm(difference)), float(np.abs(difference).sum())


@pytest.mark.parametrize("weight", [0.2, 0.7, 1.0, 3.0])
@pytest.mark.parametrize("name", RESPONSES)
def test_no_two_rows_are_further_apart(name: str, weight: float, rng: np.random.Generator):
    """Random rows of all sizes, then hill climbing from those furthest apart, for every pair of extreme y."""
    response, extremes = RESPONSES[name]
    for p, large in ((2, 0.3), (3, 3.0)):
        statistic = step(response, tuple(large * rng.standard_normal(p)), weight, 1.3, 0.8)
        for ys in itertools.product(extremes, repeat=2):
            pairs = rng.standard_normal((2, 300, p)) * np.exp(rng.normal(0, 1.5, (2, 300, 1)))
            rows = [np.column_stack([u, np.full(300, y)]) for u, y in zip(pairs, ys, strict=True)]
            distance = np.linalg.norm(statistic.vectors(rows[0]) - statistic.vectors(rows[1]), axis=1)
            best = int(distance.argmax())

            def negative(z: np.ndarray, p=p, ys=ys, statistic=statistic) -> float:
                return -apart(statistic, np.append(z[:p], ys[0]), np.append(z[p:], ys[1]))[0]

            start = pairs[:, best].ravel()
            found = minimize(negative, start, method="Nelder-Mead", options={"maxiter": 400})
            assert max(distance.max(), -found.fun) <= statistic.sensitivity * SLACK
            ends = (np.append(found.x[:p], ys[0]), np.append(found.x[p:], ys[1]))
            assert apart(statistic, *ends)[1] <= statistic.sensitivity_l1 * SLACK


def test_the_sensitivity_is_reached_where_one_row_has_no_information():
    """Nearly the same u, of which one has a linear predictor of 0 and the other of 20: opposite scores of full length.

    A formula that takes both informations for equal (4 B, or 2 A + 2 B + B^2/(2 A)) is too small here.
    """
    statistic = step(Logit(), (0.0, 1e9), weight=np.sqrt(2.0))  # B = 2 A
    found, _ = apart(statistic, np.array([2.0, 0.0, 1.0]), np.array([2.0, 20e-9, 0.0]))
    assert found == pytest.approx(statistic.sensitivity, rel=1e-6)
    assert found**2 > 8 * 1.05


def test_the_sensitivity_is_reached_where_information_counts_most():
    """Orthogonal rows at the state zero, tilted toward one another by as much as the score asks for."""
    statistic = step(Logit(), (0.0, 0.0), weight=0.5)  # B = A/4, largest at a cosine of 1/8
    angle = np.arccos(1 / 8)
    found, _ = apart(statistic, np.array([2.0, 0.0, 1.0]), np.array([2 * np.cos(angle), 2 * np.sin(angle), 0.0]))
    assert found**2 == pytest.approx(2 + 0.5 + 1 / 32)
    assert statistic.sensitivity**2 == pytest.approx(2 + 0.5 + 1 / 32)


def test_a_loud_trace_is_counted():
    """One row without a score, the other with a full one: the last number then differs by all that it can."""
    statistic = NewtonStep(Logit(), (0.0,), 1.0, 1.0, 0.1, 2.0)
    found, _ = apart(statistic, np.array([2.0, 1.0]), np.array([0.0, 1.0]))
    assert found == pytest.approx(np.sqrt(1 + 0.01 + 4))
    quiet = NewtonStep(Logit(), (0.0,), 1.0, 1.0, 0.1, 1e-9)
    assert quiet.sensitivity < found <= statistic.sensitivity


def test_each_part_is_within_its_own_bound(rng: np.random.Generator):
    for name, (response, extremes) in RESPONSES.items():
        statistic = step(response, (0.3, -2.0, 1.0), 0.7, 1.3, 0.8)
        u = rng.standard_normal((2000, 3)) * np.exp(rng.normal(0, 2, (2000, 1)))
        for vector in statistic.vectors(np.column_stack([u, rng.choice(extremes, 2000)])):
            sums = statistic.unflatten(vector)
            assert np.linalg.norm(sums.score) <= 1.3 * SLACK, name
            assert np.linalg.norm(sums.information) <= 0.8 * SLACK, name
            assert 0 <= sums.variance <= 1.3**2 * SLACK, name


def expected(response: Response, eta: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The mean of the residual at eta, where the linear predictor truly is another: summed over all y."""
    if isinstance(response, Logit | Probit):
        chance = 1 / (1 + np.exp(-truth)) if isinstance(response, Logit) else _normal(truth)
        return sum(bernoulli.pmf(y, chance) * response.working(eta, np.full(eta.size, y)).residual for y in (0.0, 1.0))
    y = np.arange(0.0, 3000.0)
    found = [
        poisson.pmf(y, np.exp(t)) @ response.working(np.full(y.size, e), y).residual
        for e, t in zip(eta, truth, strict=True)
    ]
    return np.array(found)


def _normal(eta: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return np.asarray(ndtr(eta))


@pytest.mark.parametrize("response", [Logit(), Probit(), Counts(1.5), Counts(1.5, 0.5), Counts(0.7, 0.1)], ids=repr)
def test_residuals_have_no_mean_at_the_truth_and_the_stated_slope(response: Response):
    """By summing over all y: the estimating equation is exactly unbiased, and its information is its derivative."""
    eta = np.linspace(-4, 3 if isinstance(response, Probit) else 6, 23)
    np.testing.assert_allclose(expected(response, eta, eta), 0, atol=1e-9)
    found, h = response.working(eta, np.zeros(eta.size)), 1e-5
    slope = (expected(response, eta, eta + h) - expected(response, eta, eta - h)) / (2 * h)
    np.testing.assert_allclose(found.information, slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", RESPONSES)
def test_residuals_are_bounded_whatever_y_is(name: str):
    response = RESPONSES[name][0]
    eta = np.linspace(-50, 50, 2001)
    for y in (0.0, 1.0) if isinstance(response, Logit | Probit) else (0.0, 1.0, 5.0, 1e6, 1e100):
        found = response.working(eta, np.full(eta.size, y))
        assert all(np.isfinite(part).all() for part in found)
        assert (np.abs(found.residual) <= found.most * SLACK).all()


def test_shortening_long_rows_does_not_bias_the_score(rng: np.random.Generator):
    """At the true coefficients the summed score is within four standard errors of zero, and would not be had the rows
    been shortened with their y as it is. FALSE_ALARM: 3 numbers beyond 4 deviations, 2e-4."""
    n, truth = 200_000, np.array([0.5, 1.0, -2.0])
    u = np.column_stack([np.ones(n), 3 * rng.standard_normal((n, 2))])
    y = (rng.random(n) < 1 / (1 + np.exp(-u @ truth))).astype(float)
    statistic = step(Logit(), tuple(truth), 1.0, 0.7, 0.5)
    vectors = statistic.vectors(np.column_stack([u, y]))[:, :3]
    z = vectors.sum(axis=0) / np.sqrt((vectors**2).sum(axis=0))
    assert np.abs(z).max() < 4
    short = u * np.minimum(1, 2 / np.linalg.norm(u, axis=1))[:, None]
    biased = statistic.vectors(np.column_stack([short, y]))[:, :3]
    assert np.abs(biased.sum(axis=0) / np.sqrt((biased**2).sum(axis=0))).max() > 20


def test_one_row_is_what_the_formula_says():
    statistic = step(Logit(), (0.5, -1.0), 2.0, 100.0, 100.0)
    u, mean = np.array([1.0, 0.7]), 1 / (1 + np.exp(0.2))
    sums = statistic.unflatten(statistic.vectors(np.array([[*u, 1.0]]))[0])
    np.testing.assert_allclose(sums.score, (1 - mean) * u)
    np.testing.assert_allclose(sums.information, mean * (1 - mean) * np.outer(u, u))
    assert sums.variance == pytest.approx((1 - mean) ** 2 * (u @ u))


@pytest.mark.parametrize("response", [Logit(), Counts()], ids=repr)
def test_what_is_no_outcome_counts_as_zero(response: Response):
    statistic = step(response, (0.5, -1.0))
    vectors, wrong = bounded_vectors(statistic, np.array([[1.0, 0.3, 0.5], [1.0, 0.3, -1.0], [1.0, 0.3, 1.0]]))
    assert wrong is not None
    assert wrong.tolist() == [True, True, False]
    assert not vectors[:2].any()
    assert vectors[2].any()


@pytest.mark.parametrize(
    "change",
    [{"state": []}, {"state": [float("inf")]}, {"state": "0"}, {"score": 0.0}, {"information": -1.0}, {"weight": None},
     {"response": "gaussian"}, {"band": 0.0}, {"doubt": -1.0}, {"trace": "x"}],
)  # fmt: skip
def test_bad_descriptions_are_refused(change: dict[str, object]):
    good = step(Counts(), (0.5, -1.0)).describe()
    assert statistic_from(good).describe() == good
    with pytest.raises(InvalidInput):
        statistic_from({**good, **change})
