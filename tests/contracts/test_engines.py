"""What every engine must do, whichever it is; a new engine is one line in ENGINES."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from conftest import FALSE_ALARM
from hubbub import Engine
from hubbub.analyses.iterative.logistic import JaakkolaProgram
from hubbub.engines import LocalEngine, TrustedAggregator
from hubbub.engines.network import NetworkEngine
from hubbub.engines.spark.engine import SparkEngine
from hubbub.errors import InvalidInput, OutOfDomainWarning
from hubbub.privacy import gaussian_round
from hubbub.statistics import (
    Ball,
    Box,
    Clipped,
    ColumnHistogram,
    Count,
    MeanAndSquare,
    Means,
    OneHot,
    Regression,
    SecondMoments,
    Spread,
    Stacked,
    install,
)
from spark_support import shared_session

ENGINES: dict[str, Callable[[int | None], Engine]] = {
    "local": lambda seed: LocalEngine(computes=3, tolerate=2, seed=seed),
    "local, 2 Computes": lambda seed: LocalEngine(computes=2, tolerate=2, seed=seed),
    "local, 10 Computes": lambda seed: LocalEngine(computes=10, tolerate=2, seed=seed),
    "local, sealed": lambda seed: LocalEngine(computes=3, tolerate=2, seed=seed, seal=True),
    "local, sealed hybrid": lambda seed: LocalEngine(computes=2, tolerate=2, seed=seed, seal="MLKEM768-X25519"),
    "local, parties of 3": lambda seed: LocalEngine(computes=3, dropouts=1, colluding=1, seed=seed, holds=3),
    "local, parties of 3, sealed": lambda seed: LocalEngine(computes=3, tolerate=1, seed=seed, holds=3, seal=True),
    "trusted": lambda seed: TrustedAggregator(seed=seed),
    "spark": lambda seed: SparkEngine(computes=3, tolerate=2, seed=seed, session=shared_session(), partitions=3),
}
NETWORK: dict[str, Callable[[tuple[str, ...], int | None], Engine]] = {
    "network": lambda urls, seed: NetworkEngine(urls, dropouts=1, colluding=1, seed=seed, holds=3),
    "network, a client for every row": lambda urls, seed: NetworkEngine(urls, tolerate=2, seed=seed),
    "network, through a gateway": lambda urls, seed: NetworkEngine(urls, tolerate=2, seed=seed, relayed=True),
}
"""On live Compute processes, which the fixture `live` starts."""
ON_NODES = [
    pytest.param(name, marks=pytest.mark.long if name == "network, a client for every row" else pytest.mark.slow)
    for name in NETWORK
]
PROGRAM = JaakkolaProgram(2, radius=2.0)
install(PROGRAM)
STATISTICS: dict[str, Statistic] = {
    "regression in a box": Regression(Box((1.0, 0.5), 2.0)),
    "regression in a ball": Regression(Ball(1.0, 2, y=2.0, weight=0.5), target_square=True),
    "second moments": SecondMoments((1.0, 2.0, 3.0)),
    "means": Means((1.0, 2.0, 3.0)),
    "mean and square": MeanAndSquare(2.0),
    "count": Count(2.0),
    "one-hot": OneHot(3),
    "column histogram": ColumnHistogram((1.0, 2.0), octaves=3),
    "spread": Spread(1.5, 2),
    "clipped program": Clipped(PROGRAM, np.eye(3).ravel(), 0.5),
    "stacked": Stacked((Spread(1.5, 2), ColumnHistogram((2.0,), octaves=3)), (0.7, 0.3)),
}
N = 30


def rows_for(statistic: Statistic, rng: np.random.Generator, n: int = N) -> np.ndarray:
    if isinstance(statistic, OneHot):
        return rng.integers(0, statistic.categories, size=(n, 1)).astype(float)
    return 3 * rng.standard_normal((n, statistic.columns))


@pytest.fixture(params=[*ENGINES, *ON_NODES])
def make(request: pytest.FixtureRequest) -> Callable[[int | None], Engine]:
    if request.param in ENGINES:
        return ENGINES[request.param]
    urls = request.getfixturevalue("live").urls
    return lambda seed: NETWORK[request.param](urls, seed)


@pytest.mark.parametrize("name", STATISTICS)
def test_without_noise_the_sum_is_exact_to_the_grid(make, name: str, rng: np.random.Generator):
    statistic = STATISTICS[name]
    rows = rows_for(statistic, rng)
    release = make(None).private_sum(rows, gaussian_round(statistic, 0.0))
    assert release.value.shape == (statistic.dimension,)
    bits = release.protection.fraction_bits
    tolerance = 1e-9 if bits is None else N * 2.0**-bits
    np.testing.assert_allclose(release.value, statistic.vectors(rows).sum(axis=0), rtol=1e-14, atol=tolerance)
    assert release.noise_std == 0.0


def test_release_carries_what_its_guarantee_depends_on(make, rng: np.random.Generator):
    statistic = STATISTICS["means"]
    release = make(None).private_sum(rows_for(statistic, rng), gaussian_round(statistic, 2.5))
    p = release.protection
    assert release.event.noise_multiplier == 2.5
    assert (release.n, release.dropouts) == (N, 0)
    assert release.colluders_covered == p.population.colluders
    assert p.population.n == N
    assert p.sensitivity >= statistic.sensitivity
    assert p.sigma_std == pytest.approx(2.5 * p.sensitivity)
    assert release.noise_std == pytest.approx(
        p.sigma_std * np.sqrt(p.population.clients / p.population.shares) if p.sigma_client else p.sigma_std
    )
    assert p.secure_generator
    assert "os.urandom" in p.generator


def test_noise_has_the_stated_standard_deviation(make, rng: np.random.Generator):
    """Chi-squared over 1000 coordinates of several releases; false alarm FALSE_ALARM."""
    engine = make(99)
    rounds = 10 if isinstance(engine, NetworkEngine | SparkEngine) else 200
    statistic = Means((1.0,) * (1000 // rounds))
    rows = rows_for(statistic, rng, n=12)
    exact = statistic.vectors(rows).sum(axis=0)
    releases = [engine.private_sum(rows, gaussian_round(statistic, 3.0)) for _ in range(rounds)]
    z = np.concatenate([(r.value - exact) / r.noise_std for r in releases])
    low, high = stats.chi2(z.size).interval(1 - FALSE_ALARM)
    assert low < np.sum(z**2) < high
    assert stats.kstest(z, "norm").pvalue > FALSE_ALARM


def test_seed_reproduces_and_is_reported(make, rng: np.random.Generator):
    statistic = STATISTICS["count"]
    rows = rows_for(statistic, rng)
    first, second = (make(5).private_sum(rows, gaussian_round(statistic, 1.0)) for _ in range(2))
    assert (first.value == second.value).all()
    assert not first.protection.secure_generator
    other = make(6).private_sum(rows, gaussian_round(statistic, 1.0))
    assert (first.value != other.value).any()


def test_one_engine_never_draws_the_same_noise_twice(make, rng: np.random.Generator):
    statistic, engine = STATISTICS["count"], make(5)
    rows = rows_for(statistic, rng)
    assert (
        engine.private_sum(rows, gaussian_round(statistic, 1.0)).value
        != engine.private_sum(rows, gaussian_round(statistic, 1.0)).value
    )


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_counts_as_zero_and_whoever_runs_it_is_told(make, value: float, rng: np.random.Generator):
    rows = rows_for(STATISTICS["means"], rng)
    zero = rows.copy()
    rows[4, 1], zero[4] = value, 0.0
    with pytest.warns(OutOfDomainWarning, match="must be finite numbers to count, got 1 of"):
        found = make(None).private_sum(rows, gaussian_round(STATISTICS["means"], 0.0))
    assert found.n == N
    np.testing.assert_array_equal(
        found.value, make(None).private_sum(zero, gaussian_round(STATISTICS["means"], 0.0)).value
    )


def test_wrong_shapes_are_refused(make):
    with pytest.raises(InvalidInput, match="rows must be an array with 3 columns, got rows=2 columns"):
        make(None).private_sum(np.zeros((10, 2)), gaussian_round(STATISTICS["means"], 1.0))
    with pytest.raises(InvalidInput, match="rows must be a two-dimensional array"):
        make(None).private_sum(np.zeros(10), gaussian_round(STATISTICS["means"], 1.0))


def test_too_few_clients_are_refused(make):
    with pytest.raises(InvalidInput, match="clients must be a whole number >= 2"):
        make(None).private_sum(np.zeros((1, 3)), gaussian_round(STATISTICS["means"], 1.0))


def test_data_is_left_alone(make, rng: np.random.Generator):
    for statistic in STATISTICS.values():
        rows = rows_for(statistic, rng)
        before = rows.copy()
        make(None).private_sum(rows, gaussian_round(statistic, 1.0))
        assert (rows == before).all()
