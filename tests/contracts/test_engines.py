"""What every engine must do, whichever it is; a new engine is one line in ENGINES.

A package with an engine of its own calls `check_engine` in its tests, with a function from a seed (or None) to an engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from conftest import FALSE_ALARM
from contracts.structure import satisfies
from contracts.test_statistics import STATISTICS, rows_for
from hubbub.engines import LocalEngine, TrustedAggregator
from hubbub.engines.spark.engine import SparkEngine
from hubbub.errors import InvalidInput, OutOfDomainWarning
from hubbub.privacy import DiscreteGaussianMechanism, DiscreteLaplaceMechanism, SkellamMechanism, gaussian_round
from hubbub.protocols import Engine, Mechanism, RoundSpec, Rows
from hubbub.securesum import Additive
from hubbub.statistics import Means
from hubbub.statistics.preparation import prepare, scale, shift
from spark_support import shared_session

ENGINES: dict[str, Callable[[int | None], Engine]] = {
    "local": lambda seed: LocalEngine(computes=3, tolerate=2, seed=seed),
    "local, 2 Computes": lambda seed: LocalEngine(computes=2, tolerate=2, seed=seed),
    "local, 10 Computes": lambda seed: LocalEngine(computes=10, tolerate=2, seed=seed),
    "local, sealed": lambda seed: LocalEngine(computes=3, tolerate=2, seed=seed, seal=True),
    "local, sealed hybrid": lambda seed: LocalEngine(computes=2, tolerate=2, seed=seed, seal="MLKEM768-X25519"),
    "local, parties of 3": lambda seed: LocalEngine(computes=3, dropouts=1, colluding=1, seed=seed, holds=3),
    "local, parties of 3, sealed": lambda seed: LocalEngine(computes=3, tolerate=1, seed=seed, holds=3, seal=True),
    "local, a scheme of its own": lambda seed: LocalEngine(tolerate=2, seed=seed, secure_sum=Additive(4, "seeds")),
    "trusted": lambda seed: TrustedAggregator(seed=seed),
    "spark": lambda seed: SparkEngine(computes=3, tolerate=2, seed=seed, session=shared_session(), partitions=3),
}


def over_the_network(urls: tuple[str, ...], seed: int | None, **options: object) -> Engine:
    from hubbub.engines.network import NetworkEngine

    return NetworkEngine(urls, seed=seed, **options)  # type: ignore[arg-type]


NETWORK: dict[str, Callable[[tuple[str, ...], int | None], Engine]] = {
    "network": lambda urls, seed: over_the_network(urls, seed, dropouts=1, colluding=1, holds=3),
    "network, a client for every row": lambda urls, seed: over_the_network(urls, seed, tolerate=2),
    "network, through a gateway": lambda urls, seed: over_the_network(urls, seed, tolerate=2, relayed=True),
}
"""On live Compute processes, which the fixture `live` starts."""
ON_NODES = [
    pytest.param(name, marks=pytest.mark.long if name == "network, a client for every row" else pytest.mark.slow)
    for name in NETWORK
]
LAWS: dict[str, Mechanism] = {
    "discrete-gaussian": DiscreteGaussianMechanism(2.0),
    "discrete-laplace": DiscreteLaplaceMechanism(0.5),
    "skellam": SkellamMechanism(2.0),
}
"""The laws of whole numbers; all other checks here have continuous noise."""
N = 30
Make = Callable[[int | None], Engine]
RNG = np.random.default_rng


def it_has_all_members(make: Make) -> None:
    satisfies(make(None), Engine)


def rows_are_held_as_they_are(make: Make) -> None:
    """Held once, they are held for good, and a sum over them is a sum over what they were made from."""
    engine, rows = make(None), rows_for(STATISTICS["means"], RNG(1))
    held = engine.hold(rows)
    assert isinstance(held, Rows)
    assert held.shape == rows.shape
    assert engine.hold(held) is held
    spec = gaussian_round(STATISTICS["means"], 0.0)
    np.testing.assert_array_equal(engine.private_sum(held, spec).value, engine.private_sum(rows, spec).value)
    assert engine.population(N).n == N
    assert engine.population(N) == make(None).population(N)


def without_noise_every_sum_is_exact_to_the_grid(make: Make) -> None:
    for statistic in STATISTICS.values():
        if statistic.probability == 1:
            exact_to_the_grid(make, statistic)


def exact_to_the_grid(make: Make, statistic) -> None:
    rows = rows_for(statistic, RNG(2))
    release = make(None).private_sum(rows, gaussian_round(statistic, 0.0))
    assert release.value.shape == (statistic.dimension,)
    bits = release.protection.fraction_bits
    tolerance = 1e-9 if bits is None else N * 2.0**-bits
    np.testing.assert_allclose(release.value, statistic.vectors(rows).sum(axis=0), rtol=1e-14, atol=tolerance)
    assert release.noise_std == 0.0


def rows_take_the_public_steps_of_a_round(make: Make) -> None:
    rows, statistic = rows_for(STATISTICS["means"], RNG(3)), STATISTICS["means"]
    steps = (shift([0.5, -0.5, 1.0]), scale([2.0, 3.0, 4.0]))
    found = make(None).private_sum(rows, gaussian_round(statistic, 0.0, steps=steps)).value
    np.testing.assert_allclose(found, statistic.vectors(prepare(rows, steps)[0]).sum(axis=0), rtol=1e-9)


def clients_that_are_picked_are_those_that_count_or_the_round_is_refused(make: Make) -> None:
    rows, chosen = rows_for(STATISTICS["means"], RNG(4)), np.array([3, 1, 4, 15, 9, 2, 6])
    spec = replace(gaussian_round(STATISTICS["means"], 0.0), chosen=chosen)
    try:
        release = make(None).private_sum(rows, spec)
    except InvalidInput as refused:
        assert "selection must be 'self'" in str(refused)
        return
    expected = STATISTICS["means"].vectors(rows[chosen]).sum(axis=0)
    np.testing.assert_allclose(release.value, expected, rtol=1e-9)
    assert release.n == chosen.size


def who_selects_itself_counts_by_its_own_coin(make: Make) -> None:
    """30 clients with the same vector: a number of them between 1 and 29 is in the sum (false alarm 2e-9)."""
    statistic = STATISTICS["clipped program, self-selected"]
    rows = np.tile(rows_for(statistic, RNG(5), 1), (N, 1))
    release = make(None).private_sum(rows, gaussian_round(statistic, 0.0))
    vector = statistic.vectors(rows[:1])[0]
    counted = release.value / vector
    np.testing.assert_allclose(counted, np.rint(counted[0]), rtol=1e-6)
    assert 0 < np.rint(counted[0]) < N
    assert release.event.probability == 0.5


def release_carries_what_its_guarantee_depends_on(make: Make) -> None:
    statistic = STATISTICS["means"]
    release = make(None).private_sum(rows_for(statistic, RNG(6)), gaussian_round(statistic, 2.5))
    p = release.protection
    assert release.event.noise_multiplier == 2.5
    assert (release.n, release.dropouts) == (N, 0)
    assert release.colluders_covered == p.population.colluders
    assert p.population == make(None).population(N)
    assert p.population.n == N
    assert p.sensitivity >= statistic.sensitivity
    assert p.sigma_std == pytest.approx(2.5 * p.sensitivity)
    assert release.noise_std == pytest.approx(
        p.sigma_std * np.sqrt(p.population.clients / p.population.shares) if p.sigma_client else p.sigma_std
    )
    assert release.noise.law == "normal"
    assert (p.statistic, p.mechanism, p.dimension) == ("means", "gaussian", 3)
    assert (p.trust is None) == p.setting.aggregator
    assert p.trust is None or p.trust.computes == p.computes > p.trust.conspiring
    assert p.secure_generator
    assert "os.urandom" in p.generator


def noise_has_the_stated_standard_deviation(make: Make) -> None:
    """Chi-squared over 1000 coordinates of several releases; false alarm FALSE_ALARM."""
    engine = make(99)
    rounds = 200 if isinstance(engine, LocalEngine | TrustedAggregator) else 10  # the others are slow
    statistic = Means((1.0,) * (1000 // rounds))
    rows = rows_for(statistic, RNG(7), n=12)
    exact = statistic.vectors(rows).sum(axis=0)
    releases = [engine.private_sum(rows, gaussian_round(statistic, 3.0)) for _ in range(rounds)]
    z = np.concatenate([(r.value - exact) / r.noise_std for r in releases])
    low, high = stats.chi2(z.size).interval(1 - FALSE_ALARM)
    assert low < np.sum(z**2) < high
    assert stats.kstest(z, "norm").pvalue > FALSE_ALARM


def every_law_of_noise_runs_here_as_stated(make: Make) -> None:
    """Whole-number noise: its deviation over 3000 coordinates, its law and name, the same for a seed, never twice."""
    statistic = Means((1.0,) * 1500)
    rows = rows_for(statistic, RNG(12), n=12)
    exact = statistic.vectors(rows).sum(axis=0)
    for name, law in LAWS.items():
        spec, engine = RoundSpec("sum", statistic, law), make(17)
        first, second, again = (each.private_sum(rows, spec) for each in (engine, engine, make(17)))
        assert (first.value == again.value).all(), name
        assert (first.value != second.value).mean() > 0.9, name
        assert first.noise == second.noise
        assert first.noise.law == ("laplace" if name == "discrete-laplace" else "normal")
        assert first.event == spec.event
        p = first.protection
        assert (p.mechanism, p.reservation, p.dimension) == (name, None, 1500)
        people = p.population
        assert first.noise.std >= p.sigma_std * np.sqrt(people.clients / people.shares if p.sigma_client else 1) * 0.999
        noise = np.concatenate([first.value, second.value]) - np.tile(exact, 2)
        heavy = 0.0 if first.noise.shape is None else 3 / first.noise.shape
        error = np.sqrt((2 + heavy) / noise.size)
        assert abs(np.mean(noise**2) / first.noise.std**2 - 1) < stats.norm.isf(FALSE_ALARM / 2) * error, name
        if first.noise.shape is None:
            assert stats.kstest(noise / first.noise.std, "norm").pvalue > FALSE_ALARM, name


def seed_reproduces_and_is_reported(make: Make) -> None:
    statistic = STATISTICS["count"]
    rows = rows_for(statistic, RNG(8))
    first, second = (make(5).private_sum(rows, gaussian_round(statistic, 1.0)) for _ in range(2))
    assert (first.value == second.value).all()
    assert not first.protection.secure_generator
    other = make(6).private_sum(rows, gaussian_round(statistic, 1.0))
    assert (first.value != other.value).any()


def one_engine_never_draws_the_same_noise_twice(make: Make) -> None:
    statistic, engine = STATISTICS["count"], make(5)
    rows = rows_for(statistic, RNG(9))
    first, second = (engine.private_sum(rows, gaussian_round(statistic, 1.0)).value for _ in range(2))
    assert first != second


def what_is_not_finite_counts_as_zero_and_whoever_runs_it_is_told(make: Make) -> None:
    for value in (np.nan, np.inf, -np.inf):
        rows = rows_for(STATISTICS["means"], RNG(10))
        zero = rows.copy()
        rows[4, 1], zero[4] = value, 0.0
        spec = gaussian_round(STATISTICS["means"], 0.0)
        with pytest.warns(OutOfDomainWarning, match="must be finite numbers to count, got 1 of"):
            found = make(None).private_sum(rows, spec)
        assert found.n == N
        np.testing.assert_array_equal(found.value, make(None).private_sum(zero, spec).value)


def wrong_shapes_are_refused(make: Make) -> None:
    with pytest.raises(InvalidInput, match="rows must be an array with 3 columns, got rows=2 columns"):
        make(None).private_sum(np.zeros((10, 2)), gaussian_round(STATISTICS["means"], 1.0))
    with pytest.raises(InvalidInput, match="rows must be a two-dimensional array"):
        make(None).private_sum(np.zeros(10), gaussian_round(STATISTICS["means"], 1.0))
    with pytest.raises(InvalidInput, match="rows must be a two-dimensional array"):
        make(None).hold(np.zeros(10))


def too_few_clients_are_refused(make: Make) -> None:
    with pytest.raises(InvalidInput, match="clients must be a whole number >= 2"):
        make(None).private_sum(np.zeros((1, 3)), gaussian_round(STATISTICS["means"], 1.0))


def data_is_left_alone(make: Make) -> None:
    for statistic in STATISTICS.values():
        rows = rows_for(statistic, RNG(11))
        before = rows.copy()
        make(None).private_sum(rows, gaussian_round(statistic, 1.0))
        assert (rows == before).all()


CHECKS: list[Callable[[Make], None]] = [
    it_has_all_members,
    rows_are_held_as_they_are,
    rows_take_the_public_steps_of_a_round,
    clients_that_are_picked_are_those_that_count_or_the_round_is_refused,
    who_selects_itself_counts_by_its_own_coin,
    release_carries_what_its_guarantee_depends_on,
    noise_has_the_stated_standard_deviation,
    every_law_of_noise_runs_here_as_stated,
    seed_reproduces_and_is_reported,
    one_engine_never_draws_the_same_noise_twice,
    what_is_not_finite_counts_as_zero_and_whoever_runs_it_is_told,
    wrong_shapes_are_refused,
    too_few_clients_are_refused,
    data_is_left_alone,
]


def check_engine(make: Make) -> None:
    """All of the contract, for one engine; for the tests of a package that brings one."""
    for check in (*CHECKS, without_noise_every_sum_is_exact_to_the_grid):
        check(make)


@pytest.fixture(params=[*ENGINES, *ON_NODES])
def make(request: pytest.FixtureRequest) -> Make:
    if request.param in ENGINES:
        return ENGINES[request.param]
    urls = request.getfixturevalue("live").urls
    return lambda seed: NETWORK[request.param](urls, seed)


@pytest.mark.parametrize("name", [name for name in STATISTICS if STATISTICS[name].probability == 1])
def test_without_noise_the_sum_is_exact_to_the_grid(make: Make, name: str):
    exact_to_the_grid(make, STATISTICS[name])


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(make: Make, check: Callable[[Make], None]):
    check(make)
