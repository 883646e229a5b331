"""What the K - D - C - 1 clients who are counted on add up to is what a trusted aggregator would add."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from conftest import FALSE_ALARM
from hubbub.errors import InvalidInput
from hubbub.privacy import Budget, DistributedGaussian, Population, add_share, covered, noise_multiplier
from hubbub.privacy.calibration import epsilon_of
from hubbub.randomness import Randomness


@given(k=st.integers(2, 10**6), d=st.integers(0, 100), c=st.integers(0, 100), sigma=st.floats(0.1, 100))
def test_least_noise_left_is_sigma_std(k: int, d: int, c: int, sigma: float):
    if k - d - c - 1 < 1:
        return
    mechanism = DistributedGaussian(sigma, 2.0, Population(k, d, c))
    assert mechanism.sigma_std == 2.0 * sigma
    assert mechanism.sigma_release(k - d - c - 1) == pytest.approx(mechanism.sigma_std)
    assert mechanism.sigma_release(k) == pytest.approx(mechanism.sigma_std * math.sqrt(k / (k - d - c - 1)))
    assert mechanism.event.noise_multiplier == sigma


@pytest.mark.parametrize(("k", "t", "theorem1"), [(20, 8, 2.052), (20, 10, math.inf), (200, 50, 1.252), (5, 1, 1.250)])
def test_an_adversary_who_chooses_the_dropouts_learns_no_more_than_promised(k: int, t: int, theorem1: float):
    """T clients go missing by the adversary's choice, T others collude, and it subtracts its own share."""
    budget = Budget(1.0, 1e-5)

    def epsilon(population: Population) -> float:
        mechanism = DistributedGaussian(noise_multiplier(budget), 1.0, population)
        left = mechanism.sigma_release(max(k - t - t - 1, 0))  # absent, colluding, and the curious client's own share
        return epsilon_of(left, budget.delta) if left else math.inf

    if 2 * t <= k - 2:
        assert epsilon(Population(k, t, t)) == pytest.approx(1.0, rel=1e-6)
    else:
        with pytest.raises(InvalidInput, match="K - D - C - 1 >= 1"):
            Population(k, t, t)
    assert epsilon(Population(k, t, t, theorem1=True)) == pytest.approx(theorem1, abs=1e-3)


@given(k=st.integers(3, 10**4), t=st.integers(0, 50), samples=st.integers(1, 1000))
def test_theorem_1_and_samples(k: int, t: int, samples: int):
    """Theorem 1 counts colluders or dropouts; how many samples a client holds does not change the noise."""
    if k - t - 1 < 1:
        return
    paper = Population(k, t, t, theorem1=True)
    assert paper.shares == k - t - 1
    assert [paper.covered(missing) for missing in (0, t)] == [t, 0]
    few, many = Population(k), Population(k, samples=k * samples, largest=samples)
    assert DistributedGaussian(1.0, 1.0, few).sigma_client == DistributedGaussian(1.0, 1.0, many).sigma_client


@pytest.mark.parametrize(("k", "d", "c"), [(2, 1, 0), (2, 0, 1), (5, 2, 2), (5, 5, 5), (10, 0, 9)])
def test_too_few_clients_is_one_line(k: int, d: int, c: int):
    with pytest.raises(
        InvalidInput,
        match=rf"dropouts \+ colluders must be at most K - 2 = {k - 2} .*={d} \+ {c}; .*K - D - C - 1 >= 1",
    ):
        Population(k, d, c)
    with pytest.raises(InvalidInput, match=r"T must be at most N - 2 = .*N - T - 1 >= 1"):
        Population(5, 4, 4, theorem1=True)


@pytest.mark.parametrize("n", [-5, 0, 1, 2.5])
def test_number_of_clients_is_a_whole_number_from_two(n: float):
    with pytest.raises(InvalidInput, match="clients must be a whole number >= 2, got clients="):
        Population(n)  # type: ignore[arg-type]


@pytest.mark.parametrize(("field", "args"), [
    ("noise_multiplier", (math.nan, 1.0)), ("noise_multiplier", (-1.0, 1.0)),
    ("sensitivity", (1.0, 0.0)), ("sensitivity", (1.0, math.inf)),
])  # fmt: skip
def test_bad_parameters_are_one_line(field: str, args: tuple[float, float]):
    with pytest.raises(InvalidInput, match=f"{field} must be .*, got {field}="):
        DistributedGaussian(*args, Population(10))


@pytest.mark.parametrize(("field", "args"), [
    ("dropouts", {"dropouts": -1}), ("colluders", {"colluders": 0.5}), ("samples", {"samples": 9}),
    ("largest", {"largest": 0}), ("unit", {"unit": "row"}), ("colluders", {"dropouts": 1, "theorem1": True}),
])  # fmt: skip
def test_bad_populations_are_one_line(field: str, args: dict[str, Any]):
    with pytest.raises(InvalidInput, match=f"{field} must be .*, got {field}="):
        Population(10, **args)


def test_tolerated_is_short_for_both():
    assert covered(3, None, None) == (3, 3)
    assert covered(3, 1, None) == (1, 3)
    assert covered(0, 1, 2) == (1, 2)


def test_share_has_the_stated_variance_and_is_added_to_the_vector():
    vectors = np.full((2000, 50), 3.0)
    noisy = add_share(vectors, 0.7, Randomness.simulation(5))
    assert (vectors == 3.0).all()
    noise = noisy - 3.0
    chi2 = (noise**2).sum() / 0.7**2
    assert (
        stats.chi2(noise.size).interval(1 - FALSE_ALARM)[0] < chi2 < stats.chi2(noise.size).interval(1 - FALSE_ALARM)[1]
    )


def test_no_noise_leaves_the_vector_alone():
    vectors = np.ones((3, 2))
    assert add_share(vectors, 0.0, Randomness.simulation(5)) is vectors
