"""Noise that cannot be made as asked for is refused in one line that says what helps, and nothing is charged."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from hubbub.analyses.driver import run
from hubbub.analyses.families.discrete import Bernoulli
from hubbub.analyses.iterative.logistic import LogisticRegression
from hubbub.engines import LocalEngine, TrustedAggregator
from hubbub.errors import InvalidInput
from hubbub.privacy import MECHANISMS, Budget, Ledger, Population, mechanism_named
from hubbub.privacy.mechanisms import DiscreteGaussianMechanism, DiscreteLaplaceMechanism, SkellamMechanism
from hubbub.protocols import RoundSpec
from hubbub.statistics import Means

ROWS = np.random.default_rng(0).integers(0, 2, (60, 1)).astype(float)
LABELLED = np.column_stack([np.random.default_rng(1).uniform(-1, 1, (60, 2)), ROWS])
NORMAL = ["gaussian", "discrete-gaussian", "skellam"]
Refused = Callable[[str, Callable[[Ledger], Any]], None]


@pytest.fixture
def refused() -> Iterator[Refused]:
    """One line that matches, and a ledger that is as it was."""

    def check(message: str, action: Callable[[Ledger], Any]) -> None:
        ledger = Ledger(Budget(100.0, 1e-3))
        with pytest.raises(InvalidInput, match=message) as caught:
            action(ledger)
        assert "\n" not in str(caught.value)
        assert "; " in str(caught.value), "a remedy"
        assert ledger.entries == ()

    return check


@pytest.mark.parametrize("law", NORMAL)
def test_a_delta_of_zero_is_for_pure_laws(refused: Refused, law: str):
    refused(
        f"delta must be positive for the mechanism {law}, .*, got delta=0; .*use the mechanism discrete-laplace",
        lambda ledger: run(Bernoulli(), ROWS, LocalEngine(), Budget(1.0, 0.0), ledger, mechanism=law),
    )


@pytest.mark.parametrize(("law", "delta"), [("gaussian", 9e-16), ("discrete-gaussian", 1e-101), ("skellam", 1e-21)])
def test_a_delta_below_what_the_law_keeps_names_the_least(refused: Refused, law: str, delta: float):
    for small in (delta, 5e-324):
        refused(
            f"budget must be at least delta=.* of the mechanism {law}, got budget=.*; choose a larger one",
            lambda ledger, small=small: run(
                Bernoulli(), ROWS, LocalEngine(), Budget(1.0, small), ledger, mechanism=law
            ),
        )


def test_a_delta_of_any_size_does_for_a_pure_law():
    for delta in (0.0, 5e-324, 1e-300):
        rounds = mechanism_named("discrete-laplace").within(Budget(1.0, delta), [1.0] * 4)
        assert math.fsum(each.event().epsilon for each in rounds) <= 1.0


@pytest.mark.parametrize("bound", [math.inf, math.nan])
def test_a_statistic_without_a_bound_in_l1_is_not_for_laplace_noise(refused: Refused, bound: float):
    class Unbounded(Means):
        @property
        def sensitivity_l1(self) -> float:
            return bound

    for engine in (LocalEngine(), TrustedAggregator()):
        spec = RoundSpec("sum", Unbounded((1.0,)), DiscreteLaplaceMechanism(1.0))
        refused(
            "sensitivity_l1 must be finite .*use the mechanism discrete-gaussian",
            lambda _, e=engine, s=spec: e.private_sum(ROWS, s),
        )
        fine = RoundSpec("sum", Unbounded((1.0,)), DiscreteGaussianMechanism(1.0))
        assert engine.private_sum(ROWS, fine).noise_std > 0


@pytest.mark.parametrize(
    "law", ["pink", "", "Gaussian", 5, {"mechanism": "skellam"}, DiscreteLaplaceMechanism, b"skellam"]
)
def test_an_unknown_law_is_named_with_those_that_are_known(refused: Refused, law: Any):
    known = ", ".join(MECHANISMS.names())
    for action in (
        lambda ledger: run(Bernoulli(), ROWS, LocalEngine(), Budget(1.0, 1e-5), ledger, mechanism=law),
        lambda ledger: run(Bernoulli(), ROWS, LocalEngine(mechanism=law), Budget(1.0, 1e-5), ledger),
        lambda ledger: run(Bernoulli(), ROWS, TrustedAggregator(mechanism=law), Budget(1.0, 1e-5), ledger),
    ):
        refused(f"mechanism must be .*{known}.*got mechanism=", action)


@pytest.mark.parametrize("law", MECHANISMS.names())
@pytest.mark.parametrize("bits", [-300, -2, 58, 300, 2.5, "many", True, math.nan])
def test_a_grid_that_is_too_coarse_too_fine_or_none_is_refused(refused: Refused, law: str, bits: Any):
    engine = LocalEngine(fraction_bits=bits)
    refused(
        "fraction_bits must be .*, got fraction_bits=",
        lambda ledger: run(Bernoulli(), ROWS, engine, Budget(1.0, 1e-5), ledger, mechanism=law),
    )


@pytest.mark.parametrize("law", [DiscreteGaussianMechanism, SkellamMechanism])
def test_noise_wider_than_one_word_can_choose_is_refused(refused: Refused, law: Any):
    """Above 2^54 steps the bits that choose a cell and a point in it would be the same bits of a word."""
    finest = None
    for bits in range(30, 60):
        try:
            finest = law(2500.0).settled(Means((1.0,)), Population(2), bits)
        except InvalidInput:
            break
    assert finest is not None
    assert 2.0**53 < math.sqrt(finest.variance) <= 2.0**54
    refused(
        "fraction_bits must be so small that the sum fits the ring",
        lambda _: law(2500.0).settled(Means((1.0,)), Population(2), finest.grid.fraction_bits + 1),
    )


@pytest.mark.parametrize("law", ["discrete-gaussian", "discrete-laplace", "skellam"])
def test_too_many_clients_for_so_little_noise_are_refused(refused: Refused, law: str):
    """10^12 of them with hardly any noise: no grid holds their sum and leaves a share eight steps."""
    delta = 0.0 if law == "discrete-laplace" else 1e-5
    (noise,) = mechanism_named(law).within(Budget(2000.0 if law == "skellam" else 1e6, delta), [1.0])
    refused(
        "fraction_bits must be so large that the noise spans at least .*the ring is too small: fewer clients",
        lambda _: noise.settled(Means((1e3,)), Population(10**13)),
    )


@pytest.mark.parametrize("law", MECHANISMS.names())
def test_the_smallest_epsilon_and_the_most_clients_fit_the_ring(law: str):
    """The grid grows coarser with the noise: sums of 10^12 clients at epsilon 1e-5 stay far below 2^63 steps."""
    delta = 0.0 if law == "discrete-laplace" else 1e-10
    (noise,) = mechanism_named(law).within(Budget(1e-5, delta), [1.0])
    people, statistic = Population(10**12, 10**6, 10**6), Means((1e9,) * 50)
    settled = noise.settled(statistic, people)
    total = people.n * statistic.magnitude + 30 * settled.law(people.clients).std
    assert total / settled.grid.step < 2.0**63
    assert settled.sigma_client / settled.grid.step > 8


def test_noise_beyond_all_numbers_is_refused(refused: Refused):
    class Vast(Means):
        sensitivity = sensitivity_l1 = 1e300

    for law in (DiscreteGaussianMechanism(1e10), DiscreteLaplaceMechanism(1e-10), SkellamMechanism(1e10)):
        refused(
            "epsilon must be so large that the noise is a number",
            lambda _, law=law: law.settled(Vast((1.0,)), Population(5)),
        )


# an amount of noise that is given


def steps(multiplier: float) -> LogisticRegression:
    return LogisticRegression(("a", "b"), "y", steps=3, noise_multiplier=multiplier)


def test_a_multiplier_is_not_for_laplace_noise(refused: Refused):
    refused(
        "noise_multiplier must be left out for the mechanism discrete-laplace, got noise_multiplier=2.0; give a budget",
        lambda ledger: run(
            steps(2.0), LABELLED, LocalEngine(), Budget(4.0, 1e-5), ledger, mechanism="discrete-laplace"
        ),
    )


@pytest.mark.parametrize("law", NORMAL)
def test_a_multiplier_does_not_excuse_a_delta_that_the_law_does_not_keep(refused: Refused, law: str):
    for budget, message in (
        (Budget(4.0, 0.0), "delta must be positive"),
        (Budget(4.0, 1e-200), "budget must be at least"),
    ):
        refused(
            message,
            lambda ledger, budget=budget: run(steps(20.0), LABELLED, LocalEngine(), budget, ledger, mechanism=law),
        )
    refused(
        "budget must pay for at least one step",
        lambda ledger: run(steps(0.01), LABELLED, LocalEngine(), Budget(0.5, 1e-5), ledger, mechanism=law),
    )
