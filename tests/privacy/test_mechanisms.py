"""Theorem 1: what N - T - 1 clients add up to is what a trusted aggregator would add."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from conftest import FALSE_ALARM
from hubbub.errors import InvalidInput
from hubbub.privacy import DistributedGaussian, add_share
from hubbub.randomness import Randomness


@given(n=st.integers(2, 10**6), t=st.integers(0, 100), sigma=st.floats(0.1, 100))
def test_least_noise_left_is_sigma_std(n: int, t: int, sigma: float):
    if n - t - 1 < 1:
        return
    mechanism = DistributedGaussian(sigma, 2.0, n, t)
    assert mechanism.sigma_std == 2.0 * sigma
    assert mechanism.sigma_release(n - t - 1) == pytest.approx(mechanism.sigma_std)
    assert mechanism.sigma_release(n) == pytest.approx(mechanism.sigma_std * math.sqrt(n / (n - t - 1)))
    assert mechanism.event.noise_multiplier == sigma


@pytest.mark.parametrize(("n", "t"), [(2, 1), (5, 4), (5, 5)])
def test_too_few_clients_is_one_line(n: int, t: int):
    with pytest.raises(InvalidInput, match=r"tolerated must be at most N - 2 = .*, got tolerated=.*N - T - 1 >= 1"):
        DistributedGaussian(1.0, 1.0, n, t)


@pytest.mark.parametrize("n", [-5, 0, 1, 2.5])
def test_number_of_clients_is_a_whole_number_from_two(n: float):
    with pytest.raises(InvalidInput, match="clients must be a whole number >= 2, got clients="):
        DistributedGaussian(1.0, 1.0, n, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(("field", "args"), [
    ("noise_multiplier", (math.nan, 1.0, 10)), ("noise_multiplier", (-1.0, 1.0, 10)),
    ("sensitivity", (1.0, 0.0, 10)), ("sensitivity", (1.0, math.inf, 10)), ("tolerated", (1.0, 1.0, 10, -1)),
])  # fmt: skip
def test_bad_parameters_are_one_line(field: str, args: tuple[float, ...]):
    with pytest.raises(InvalidInput, match=f"{field} must be .*, got {field}="):
        DistributedGaussian(*args)  # type: ignore[arg-type]


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
