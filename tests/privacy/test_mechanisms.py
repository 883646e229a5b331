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
from hubbub.grid import Grid
from hubbub.privacy import Budget, GaussianMechanism, GaussianNoise, Population, covered, noise_multiplier
from hubbub.privacy.calibration import epsilon_of
from hubbub.protocols import RoundNoise
from hubbub.randomness import Randomness
from hubbub.statistics import Means

GRID = Grid(20)


@given(k=st.integers(2, 10**6), d=st.integers(0, 100), c=st.integers(0, 100), sigma=st.floats(0.1, 100))
def test_least_noise_left_is_sigma_std(k: int, d: int, c: int, sigma: float):
    if k - d - c - 1 < 1:
        return
    noise = GaussianNoise(sigma, 2.0, Population(k, d, c), GRID)
    assert noise.sigma_std == 2.0 * sigma
    assert noise.law(k - d - c - 1).std == pytest.approx(noise.sigma_std)
    assert noise.law(k).std == pytest.approx(noise.sigma_std * math.sqrt(k / (k - d - c - 1)))
    assert noise.law(k).law == "normal"
    assert GaussianMechanism(sigma).event().noise_multiplier == sigma


@pytest.mark.parametrize(("k", "t", "theorem1"), [(20, 8, 2.052), (20, 10, math.inf), (200, 50, 1.252), (5, 1, 1.250)])
def test_an_adversary_who_chooses_the_dropouts_learns_no_more_than_promised(k: int, t: int, theorem1: float):
    """T clients go missing by the adversary's choice, T others collude, and it subtracts its own share."""
    budget = Budget(1.0, 1e-5)

    def epsilon(population: Population) -> float:
        noise = GaussianNoise(noise_multiplier(budget), 1.0, population, GRID)
        left = noise.law(max(k - t - t - 1, 0)).std  # absent, colluding, and the curious client's own share
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
    assert GaussianNoise(1.0, 1.0, few, GRID).sigma_client == GaussianNoise(1.0, 1.0, many, GRID).sigma_client


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
        GaussianNoise(*args, Population(10), GRID)


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


def noise_of(sigma_client: float) -> GaussianNoise:
    """Two clients, one of whom is counted on: its share is all the noise there is."""
    return GaussianNoise(sigma_client, 1.0, Population(2), Grid(30))


@pytest.mark.parametrize("way", ["noisy words", "shares", "by default"])
def test_share_has_the_stated_variance_and_is_added_to_the_vector(way: str):
    vectors, law = np.full((2000, 50), 3.0), noise_of(0.7)
    if way == "noisy words":
        words = law.noisy_words(vectors, Randomness.simulation(5))
    elif way == "shares":
        words = law.encoded(vectors) + law.shares(2000, 50, Randomness.simulation(5))
    else:
        words = RoundNoise.noisy_words(law, vectors, Randomness.simulation(5))
    assert (vectors == 3.0).all()
    noise = law.grid.decode(words) - 3.0
    chi2 = (noise**2).sum() / 0.7**2
    assert (
        stats.chi2(noise.size).interval(1 - FALSE_ALARM)[0] < chi2 < stats.chi2(noise.size).interval(1 - FALSE_ALARM)[1]
    )


def test_no_noise_leaves_the_vector_alone():
    vectors, law = np.ones((3, 2)), noise_of(0.0)
    assert (law.noisy_words(vectors, Randomness.simulation(5)) == law.grid.encode(np.ones((3, 2)))).all()
    assert (vectors == 1.0).all()
    assert not law.shares(3, 2, Randomness.simulation(5)).any()


@pytest.mark.parametrize("way", [GaussianNoise.noisy_words, RoundNoise.noisy_words])
def test_silent_clients_add_none_and_the_others_theirs(way):
    vectors, law, silent = np.ones((6, 40)), noise_of(0.7), np.array([True, False, False, True, True, False])
    noise = law.grid.decode(way(law, vectors, Randomness.simulation(5), silent)) - 1.0
    assert (noise[silent] == 0.0).all()
    assert (noise[~silent] != 0.0).all()


@pytest.mark.parametrize("unit", ["sample", "client"])
def test_noise_is_scaled_to_what_moves_on_the_grid(unit):
    """Delta + sqrt(d) steps for a sample, and as many times that as samples count together."""
    statistic, people = Means((1.0, 2.0, 3.0)), Population(10, 1, 1, 50, 5, unit=unit)
    noise = GaussianMechanism(2.0).settled(statistic, people)
    once = statistic.sensitivity + math.sqrt(3) * noise.grid.step
    assert noise.sensitivity == pytest.approx(once * (5 if unit == "client" else 1), rel=1e-15)
    assert noise.sigma_std == 2.0 * noise.sensitivity
    noise.check(statistic)
    with pytest.raises(InvalidInput, match="sensitivity must be at least .* the study would add too little noise"):
        GaussianNoise(2.0, 0.999 * noise.sensitivity, people, noise.grid).check(statistic)
