"""The Newton step: its sensitivity cannot be exceeded, its rows are weighted without bias, its sums are what they say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import bernoulli, gamma, nbinom, poisson

from hubbub.errors import InvalidInput
from hubbub.statistics import NewtonStep, bounded_vectors, statistic_from
from hubbub.statistics.log_link import Counts, Dispersed, Logarithms, OverdispersedCounts, PositiveNumbers
from hubbub.statistics.responses import Logit, Probit, Response

RESPONSES: dict[str, tuple[Response, tuple[float, ...]]] = {
    "logit": (Logit(), (0.0, 1.0)),
    "probit": (Probit(), (0.0, 1.0)),
    "counts": (Counts(1.5, 0.1), (0.0, 1.0, 10.0, 1e9)),
    "overdispersed counts": (OverdispersedCounts(1.5, 0.1, 0.7), (0.0, 1.0, 10.0, 1e9)),
    "positive numbers": (PositiveNumbers(1.5, 0.1, 0.3), (1e-9, 1.0, 10.0, 1e9)),
    "logarithms": (Logarithms(1.5), (0.0, 1.0, 1e9)),
    "logarithms of positive numbers": (Logarithms(1.5, False), (1e-9, 1.0, 1e9)),
}
"""Each with extreme values of y."""
SLACK = 1 + 1e-9


def step(
    response: Response, state: tuple[float, ...], weight: float = 1.0, score: float = 1.0, information: float = 1.0,
    spread: float = 0.0, offset: bool = False,
) -> NewtonStep:  # fmt: skip
    return NewtonStep(response, state, score, information, weight, 0.3 / score**2, spread, offset)


def apart(statistic: NewtonStep, one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    difference = statistic.vectors(one[None]) - statistic.vectors(other[None])
    return float(np.linalg.norm(difference)), float(np.abs(difference).sum())


def furthest(statistic: NewtonStep, extremes: tuple[float, ...], rng: np.random.Generator) -> tuple[float, float]:
    """The largest L2 and L1 distance that 300 pairs of rows reach, each climbing from a random start of any size.

    Everything but y moves, which is an extreme of its own in each row; sometimes it is replaced.
    """
    shape = (2, 300, statistic.columns - 1)
    rows = rng.standard_normal(shape) * np.exp(rng.normal(0, 1.5, (2, 300, 1)))
    pairs = np.concatenate([rows, rng.choice(extremes, (2, 300, 1))], axis=-1)
    best, most = np.zeros(300), 0.0
    for turn in range(120):
        size = np.exp(rng.uniform(-6, 0.5, (1, 300, 1)))
        moved = pairs.copy()
        moved[..., :-1] += size * rng.standard_normal(shape) * np.abs(pairs[..., :-1]).max(axis=-1, keepdims=True)
        if turn % 10 == 0:
            moved[..., -1] = rng.choice(extremes, (2, 300))
        difference = statistic.vectors(moved[0]) - statistic.vectors(moved[1])
        distance = np.linalg.norm(difference, axis=1)
        most = max(most, float(np.abs(difference).sum(axis=1).max()))
        pairs[:, distance > best] = moved[:, distance > best]
        best = np.maximum(best, distance)
    return float(best.max()), most


@pytest.mark.parametrize("weight", [0.2, 0.7, 1.0, 3.0])
@pytest.mark.parametrize("name", RESPONSES)
def test_no_two_rows_are_further_apart(name: str, weight: float, rng: np.random.Generator):
    """Hill climbing from random rows of all sizes, over every pair of extreme y; with an offset it climbs, too."""
    response, extremes = RESPONSES[name]
    spread = 0.6 if isinstance(response, Dispersed) else 0.0
    for p, large, offset in ((2, 0.3, False), (3, 3.0, False), (2, 1.0, True)):
        statistic = step(response, tuple(large * rng.standard_normal(p)), weight, 1.3, 0.8, spread, offset)
        found, found_l1 = furthest(statistic, extremes, rng)
        assert 0.5 * statistic.sensitivity < found <= statistic.sensitivity * SLACK
        assert found_l1 <= statistic.sensitivity_l1 * SLACK


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
    y, chance = every_y(response)
    found = [chance(t) @ response.working(np.full(y.shape, e), y).residual for e, t in zip(eta, truth, strict=True)]
    return np.array(found)


def every_y(response: Response, dispersion: float | None = None) -> tuple[np.ndarray, Callable[[float], np.ndarray]]:
    """All counts, and the probability of each by the linear predictor."""
    y = np.arange(0.0, 3000.0)
    if isinstance(response, OverdispersedCounts):
        shape = 1 / (dispersion or response.dispersion)
        return y, lambda eta: nbinom.pmf(y, shape, shape / (shape + np.exp(eta)))
    return y, lambda eta: poisson.pmf(y, np.exp(eta))


def _normal(eta: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return np.asarray(ndtr(eta))


@pytest.mark.parametrize(
    "response",
    [Logit(), Probit(), Counts(1.5), Counts(1.5, 0.5), Counts(0.7, 0.1), OverdispersedCounts(1.5, 0.0, 0.5),
     OverdispersedCounts(1.5, 0.3, 1.5), OverdispersedCounts(0.7, 0.1, 0.01)],
    ids=repr,
)  # fmt: skip
def test_residuals_have_no_mean_at_the_truth_and_the_stated_slope(response: Response):
    """By summing over all y: the estimating equation is exactly unbiased, and its information is its derivative."""
    eta = np.linspace(-4, 3 if isinstance(response, Probit | OverdispersedCounts) else 6, 12)
    np.testing.assert_allclose(expected(response, eta, eta), 0, atol=1e-9)
    found, h = response.working(eta, np.zeros(eta.size)), 1e-5
    slope = (expected(response, eta, eta + h) - expected(response, eta, eta - h)) / (2 * h)
    np.testing.assert_allclose(found.information, slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("response", [OverdispersedCounts(1.5, 0.0, 0.5), OverdispersedCounts(1.5, 0.3, 1.2)], ids=repr)
def test_what_rows_say_of_the_dispersion_does_not_change_with_their_mean(response: OverdispersedCounts):
    """By summing over all counts: no mean at the truth, no slope by the linear predictor; and under another dispersion
    both residual and spread have the stated means."""
    y, chance = every_y(response)
    _, other = every_y(response, 1.7)
    for eta in np.linspace(-4, 3, 8):
        found, h = response.working(np.full(y.shape, eta), y), 1e-4
        assert found.spread is not None
        assert chance(eta) @ found.spread == pytest.approx(0, abs=1e-9)
        assert (chance(eta + h) - chance(eta - h)) @ found.spread / (2 * h) == pytest.approx(0, abs=1e-7)
        residual, spread = response.under(np.array([eta]), 1.7)
        assert other(eta) @ found.residual == pytest.approx(residual[0], abs=1e-9)
        assert other(eta) @ found.spread == pytest.approx(spread[0], abs=1e-9)


@pytest.mark.parametrize("dispersion", [0.05, 0.5, 3.0])
def test_positive_numbers_are_right_by_quadrature(dispersion: float):
    """Over many quantiles of the gamma law: no mean of residual and spread, the stated slope and other means."""
    chance, response = (np.arange(100_000) + 0.5) / 100_000, PositiveNumbers(1.5, 0.1, dispersion)
    x, other = (gamma.ppf(chance, 1 / value, scale=value) for value in (dispersion, 0.8))

    def means(factor: float, x: np.ndarray = x) -> tuple[float, float]:
        found = response.working(np.full(x.shape, 2.0), factor * np.exp(2.0) * x)
        assert found.spread is not None
        return float(found.residual.mean()), float(found.spread.mean())

    assert means(1.0) == pytest.approx((0.0, 0.0), abs=1e-4)
    residual, spread = (np.subtract(means(1.001), means(0.999)) / (2 * np.arctanh(0.001))).tolist()
    assert residual == pytest.approx(response.working(np.array([2.0]), np.ones(1)).information[0], rel=1e-3)
    assert spread == pytest.approx(0, abs=1e-3)
    expected = [part[0] for part in response.under(np.array([2.0]), 0.8)]
    assert means(1.0, other) == pytest.approx(tuple(expected), abs=1e-4)


def test_an_offset_is_a_column_whose_coefficient_is_one():
    """The same residual and information as with a column of a state that has the coefficient 1, and a score without it."""
    with_offset, as_column = step(Counts(), (0.5, -1.0), offset=True), step(Counts(), (0.5, -1.0, 1.0))
    row = np.array([[1.0, 0.3, -0.7, 4.0]])
    small, large = (each.unflatten(each.vectors(row)[0]) for each in (with_offset, as_column))
    factor = small.score[0] / large.score[0]
    np.testing.assert_allclose(small.score, factor * large.score[:2])
    np.testing.assert_allclose(small.information, factor * large.information[:2, :2])
    assert factor >= 1  # the longer row is shortened more
    assert with_offset.columns == as_column.columns == 4


@pytest.mark.parametrize("name", RESPONSES)
def test_residuals_are_bounded_whatever_y_is(name: str):
    response = RESPONSES[name][0]
    eta = np.linspace(-50, 50, 2001)
    for y in (0.0, 1.0) if isinstance(response, Logit | Probit) else (0.0, 1.0, 5.0, 1e6, 1e100):
        found = response.working(eta, np.full(eta.size, y))
        assert all(np.isfinite(part).all() for part in found if part is not None)
        assert (np.abs(found.residual) <= found.most * SLACK).all()
        assert found.spread is None or np.abs(found.spread).max() <= SLACK


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
     {"response": "gaussian"}, {"band": 0.0}, {"doubt": -1.0}, {"trace": "x"}, {"spread": -1.0}, {"spread": 0.1},
     {"offset": 1}, {"response": "overdispersed counts", "dispersion": 0.0},
     {"response": "positive numbers", "dispersion": 1e9}, {"response": "logarithms", "whole": 2}],
)  # fmt: skip
def test_bad_descriptions_are_refused(change: dict[str, object]):
    good = step(Counts(), (0.5, -1.0)).describe()
    assert statistic_from(good).describe() == good
    with pytest.raises(InvalidInput):
        statistic_from({**good, **change})
