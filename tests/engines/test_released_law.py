"""The noise in what an engine releases has exactly the law of the shares that are in it, whoever is missing or silent.

Vectors are whole numbers of steps on a coarse grid, so that the released sum less their sum is the noise, and its law
is the convolution of the shares' laws. Chi-squared over 40000 coordinates; FALSE_ALARM each, with fixed seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from hubbub.engines import LocalEngine, TrustedAggregator, trusted
from hubbub.engines.local.pool import POOL
from hubbub.engines.spark.task import ShareOut, added
from hubbub.population import Population
from hubbub.privacy import DiscreteGaussianMechanism, DiscreteLaplaceMechanism, GaussianMechanism, SkellamMechanism
from hubbub.protocols import Mechanism, Release, RoundNoise, RoundSpec
from hubbub.roles import settle_round
from hubbub.securesum import Additive
from hubbub.statistics import Means
from laws import Law, check_draws, check_moments, discrete_gaussian, mixed, polya_difference, together

COORDINATES = 40_000
STATISTIC = Means((1.0,) * COORDINATES)
ROWS = np.random.default_rng(20261118).integers(-1, 2, size=(12, COORDINATES)).astype(float)
COARSE: dict[str, Mechanism] = {
    "discrete-gaussian": DiscreteGaussianMechanism(0.045),
    "discrete-laplace": DiscreteLaplaceMechanism(9000.0),
    "gaussian": GaussianMechanism(0.045),
}
"""With amounts that span some ten steps of a grid of whole numbers; they protect nobody."""


def law_of(noise: RoundNoise, shares: int) -> Law:
    """Of the sum of so many shares, in steps, by laws that hubbub has no part in."""
    if noise.law(1).law == "laplace":
        return polya_difference(noise.scale, shares / noise.population.shares)  # type: ignore[attr-defined]
    if hasattr(noise, "amount"):
        return together([discrete_gaussian(noise.amount, 10.0)] * shares)
    sigma = noise.sigma_client / noise.grid.step
    x = np.arange(-math.ceil(10 * sigma), math.ceil(10 * sigma) + 1.0)
    return together([Law(int(x[0]), ndtr((x + 0.5) / sigma) - ndtr((x - 0.5) / sigma))] * shares)


def check_noise(value: np.ndarray, exact: np.ndarray, noise: RoundNoise, shares: int) -> None:
    """Whole steps, of the law of so many shares and of no other number of them."""
    steps = (value - exact) / noise.grid.step
    draws = np.rint(steps).astype(np.int64)
    np.testing.assert_array_equal(draws, steps)
    law = law_of(noise, shares)
    check_draws(draws, law)
    check_moments(draws, 0.0, law.variance)
    error = (draws**2).std() / math.sqrt(draws.size) / law.variance
    assert 1 / (shares + 1) > 4 * error, "one share more or less would be seen"


@dataclass(frozen=True)
class Case:
    """An engine, and whose shares and rows are in its sums."""

    make: Callable[[], LocalEngine]
    shares: int
    rows: tuple[int, ...] = tuple(range(12))


def engine(**options: object) -> LocalEngine:
    return LocalEngine(fraction_bits=0, seed=3, **options)  # type: ignore[arg-type]


WITHOUT_TWO = (0, 2, 3, 5, 6, 7, 8, 9, 10, 11)
CASES = {
    "plain": Case(lambda: engine(tolerate=2), 12),
    "sealed": Case(lambda: engine(tolerate=2, seal=True), 12),
    "absent": Case(lambda: engine(tolerate=2, absent=(1, 4)), 10, WITHOUT_TWO),
    "lost halfway, sealed": Case(lambda: engine(tolerate=2, lost_halfway=(1, 4), seal=True), 10, WITHOUT_TWO),
    "colluders": Case(lambda: engine(tolerate=2, colluders=(0, 7)), 10),
    "colluders, sealed": Case(lambda: engine(tolerate=2, colluders=(0, 7), seal=True), 10),
    "absent and colluders": Case(lambda: engine(tolerate=2, absent=(1, 4), colluders=(0, 7)), 8, WITHOUT_TWO),
    "parties": Case(lambda: engine(dropouts=1, colluding=0, holds=3), 4),
    "parties, absent and colluding": Case(
        lambda: engine(dropouts=1, colluding=1, holds=3, absent=(2,), colluders=(0,)), 2, (0, 1, 2, 3, 4, 5, 9, 10, 11)
    ),
    "parties, sealed": Case(lambda: engine(dropouts=1, colluding=0, holds=3, colluders=(3,), seal=True), 3),
    "the paper's count": Case(lambda: engine(tolerate=4, theorem1=True), 12),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", COARSE)
def test_released_noise_is_the_sum_of_exactly_the_shares_that_are_in_it(name: str, case: str):
    made, spec = CASES[case].make(), RoundSpec("sum", STATISTIC, COARSE[name])
    noise = made.settle(spec, ROWS.shape[0]).noise
    release = made.private_sum(ROWS, spec)
    check_noise(release.value, ROWS[list(CASES[case].rows)].sum(axis=0), noise, CASES[case].shares)
    assert release.noise == noise.law(CASES[case].shares)
    stated = (release.noise.std / noise.grid.step) ** 2
    assert stated == pytest.approx(law_of(noise, CASES[case].shares).variance, rel=2e-3)


@pytest.mark.parametrize("name", COARSE)
def test_noise_of_worker_processes_has_the_law_too(name: str, monkeypatch: pytest.MonkeyPatch):
    wide = Means((1.0,) * 80_000)
    rows = np.tile(ROWS, (1, 2))
    made, spec = engine(tolerate=2, workers=2), RoundSpec("sum", wide, COARSE[name])
    made.warm_up()
    monkeypatch.setattr(LocalEngine, "_sums_here", None)  # so that the workers make all of it
    noise = made.settle(spec, 12).noise
    check_noise(made.private_sum(rows, spec).value, rows.sum(axis=0), noise, 12)
    POOL.close()


@pytest.mark.parametrize("name", COARSE)
def test_noise_of_spark_tasks_has_the_law_too(name: str):
    """Four tasks of three clients each, whose records are added up; no session is needed."""
    plan = settle_round(RoundSpec("sum", STATISTIC, COARSE[name]), Population(12, 2, 2), 0)
    scheme = Additive(3)
    task = ShareOut(plan, scheme, b"a simulation")
    total = added(
        [task.record(part, [ROWS[part : part + 2], ROWS[part + 2 : part + 3]]) for part in (0, 3, 6, 9)], scheme
    )
    assert total is not None
    sums = total.words.reshape(3, -1)
    value = plan.noise.grid.decode(scheme.unshard(dict(enumerate(sums))))
    check_noise(value, ROWS.sum(axis=0), plan.noise, 12)


@pytest.mark.parametrize("name", COARSE)
def test_a_trusted_aggregator_adds_one_share_that_is_all_of_the_noise(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(trusted, "settle_round", partial(settle_round, fraction_bits=0))
    made, spec = TrustedAggregator(seed=3), RoundSpec("sum", STATISTIC, COARSE[name])
    noise = settle_round(spec, made.population(12), 0).noise
    release = made.private_sum(ROWS, spec)
    check_noise(release.value, ROWS.sum(axis=0), noise, 1)
    assert release.noise == noise.law(1)


@pytest.mark.parametrize("holds", [1, 3])
def test_skellam_noise_is_skellam_in_bins(holds: int):
    """Its grids are too fine for single numbers; at such rates the law is normal to 6 digits, and whole."""
    made = LocalEngine(seed=4, holds=holds, dropouts=1, colluding=0, colluders=(1,))
    spec = RoundSpec("sum", STATISTIC, SkellamMechanism(1.0))
    noise = made.settle(spec, 12).noise
    steps = (made.private_sum(ROWS, spec).value - ROWS.sum(axis=0)) / noise.grid.step
    np.testing.assert_array_equal(np.rint(steps), steps)
    shares = 12 // holds - 1
    z = steps / math.sqrt(shares * 2 * noise.amount)  # type: ignore[attr-defined]
    check_moments(z, 0.0, 1.0)
    assert stats.kstest(z, "norm").pvalue > 1e-6


# coins


class Tossed(Means):
    """Every sample counts by a coin of its own."""

    @property
    def probability(self) -> float:
        return 0.25


@pytest.mark.parametrize("name", COARSE)
@pytest.mark.parametrize("options", [{}, {"seal": True}, {"absent": (2,), "colluders": (0,)}], ids=str)
def test_who_selects_itself_adds_its_share_whether_its_coin_counts_it_or_not(name: str, options: dict[str, object]):
    """Six clients with the number 8, in steps: a binomial number of eights, and always six shares of noise."""
    statistic, rows = Tossed((1.0,)), np.ones((6, 1))
    mechanism = (
        replace(COARSE[name], epsilon=2.0)
        if name == "discrete-laplace"
        else replace(COARSE[name], noise_multiplier=1.0)
    )  # type: ignore[type-var]
    made = LocalEngine(fraction_bits=3, seed=5, dropouts=1, colluding=1, **options)  # type: ignore[arg-type]
    spec = RoundSpec("sum", statistic, mechanism)
    noise = made.settle(spec, 6).noise
    gone = len(made.absent)
    coins = [(float(stats.binom.pmf(count, 6 - gone, 0.25)), 8 * count) for count in range(7 - gone)]
    shares = law_of(noise, 6 - gone - len(made.colluders))
    rounds = 200 if made.seal else 2000
    draws = np.array([made.private_sum(rows, spec).value[0] * 8 for _ in range(rounds)])
    law = mixed(*((chance, shares.shifted(eights)) for chance, eights in coins))
    check_draws(np.rint(draws).astype(np.int64), law)
    check_moments(draws, law.mean, law.variance)


def test_a_release_says_who_was_in_it():
    release: Release = engine(tolerate=2, absent=(1,), colluders=(0, 7)).private_sum(
        ROWS, RoundSpec("sum", STATISTIC, COARSE["discrete-gaussian"])
    )
    assert (release.clients, release.dropouts, release.protection.colluders) == (11, 1, 2)
    assert release.protection.mechanism == "discrete-gaussian"
