"""The study: everything that could change the noise is in its hash."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest

from hubbub.errors import InvalidInput
from hubbub.grid import Grid
from hubbub.privacy import EarlyPopulation, GaussianMechanism, GaussianNoise, Population
from hubbub.randomness import Randomness
from hubbub.roles import RoundPlan, Study, contribute
from hubbub.securesum import Additive, PrivateKey, PublicKey
from hubbub.statistics import Box, Clipped, Means, Regression
from seams import planned

KEYS = tuple(PublicKey("X25519", bytes([k]) * 32) for k in range(3))
PEOPLE = Population(100, 2, 1)
PLAN = planned(Means((1.0, 2.0)), 2.0, PEOPLE)
STUDY = Study(PEOPLE, KEYS, (PLAN,))


def with_noise(sensitivity: float | None = None, bits: int | None = None) -> RoundPlan:
    """The plan with noise that somebody misstates: of another sensitivity, or on another grid."""
    bits = PLAN.noise.grid.fraction_bits if bits is None else bits
    noise = GaussianNoise(2.0, sensitivity or PLAN.noise.sensitivity, PEOPLE, Grid(bits))
    return dataclasses.replace(PLAN, noise=noise)


def study_of(population: Population) -> Study:
    return Study(population, KEYS, (planned(Means((1.0, 2.0)), 2.0, population),))


def test_same_study_same_bytes_in_another_process():
    code = (
        "from hubbub.privacy import Population, gaussian_round\nfrom hubbub.roles import Study, settle_round\n"
        "from hubbub.securesum import PublicKey\n"
        "from hubbub.statistics import Means\n"
        "keys = tuple(PublicKey('X25519', bytes([k]) * 32) for k in range(3))\n"
        "who = Population(100, 2, 1)\n"
        "print(Study(who, keys, (settle_round(gaussian_round(Means((1.0, 2.0)), 2.0), who),)).digest.hex())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == STUDY.digest.hex()
    assert json.loads(STUDY.canonical())["population"]["clients"] == 100


@pytest.mark.parametrize(
    "changed",
    [
        study_of(Population(101, 2, 1)),
        study_of(Population(100, 1, 1)),
        study_of(Population(100, 2, 0)),
        study_of(Population(100, 1, 2)),
        study_of(Population(100, 2, 1, samples=101, largest=2)),
        study_of(Population(100, 2, 1, largest=2)),
        study_of(Population(100, 2, 1, unit="client")),
        study_of(Population(100, 3, 3, theorem1=True)),
        Study(PEOPLE, KEYS[:2], (PLAN,)),
        Study(PEOPLE, KEYS[::-1], (PLAN,)),
        Study(PEOPLE, KEYS, (PLAN,), scheme=Additive(3)),
        Study(PEOPLE, KEYS, (dataclasses.replace(PLAN, steps=({"step": "clip", "to": [1.0, 2.0]},)),)),
        Study(PEOPLE, KEYS, (PLAN, PLAN)),
        Study(PEOPLE, KEYS, (planned(Means((1.0, 2.0)), 1.9, PEOPLE),)),
        Study(PEOPLE, KEYS, (planned(Means((1.0, 2.1)), 2.0, PEOPLE),)),
        Study(PEOPLE, KEYS, (planned(Means((1.0, 2.0)), 2.0, PEOPLE, fraction_bits=10),)),
        Study(PEOPLE, KEYS, (with_noise(5.0),)),
        Study(PEOPLE, KEYS, (with_noise(bits=PLAN.noise.grid.fraction_bits + 1),)),
    ],
)
def test_any_change_changes_the_hash(changed: Study):
    assert changed.digest != STUDY.digest


def test_statistics_with_other_bounds_or_formulas_describe_themselves_differently():
    bound = Box((1.0, 2.0), 3.0)
    described = {
        json.dumps(s.describe(), sort_keys=True)
        for s in (
            Regression(bound), Regression(bound, target_square=True), Regression(bound, formula="paper"),
            Regression(Box((1.0, 2.5), 3.0)), Regression(Box((1.0, 2.0), 3.5)), Regression(Box((1.0, 2.0))),
        )
    }  # fmt: skip
    assert len(described) == 6


def test_plan_adds_the_rounding_to_the_sensitivity():
    statistic = Means((1.0,) * 4)
    plan = planned(statistic, 1.5, Population(50), fraction_bits=6)
    assert plan.noise.sensitivity == pytest.approx(statistic.sensitivity + 2 * 2.0**-6)
    assert plan.noise.sigma_std == pytest.approx(1.5 * plan.noise.sensitivity)


def test_largest_possible_sum_fits_the_ring():
    plan = planned(Means((1e6,)), 30.0, Population(10**6))
    largest = 10**6 * (1e6 + 9.4 * plan.noise.sigma_client)
    assert largest * 2.0**plan.noise.grid.fraction_bits < 2.0**63


def test_ring_that_is_too_small_is_one_line():
    with pytest.raises(InvalidInput, match=r"fraction_bits must be so large .*the ring is too small"):
        planned(Means((1.0,)), 1e-12, Population(10**12))


def test_wanted_grid_that_overflows_is_refused():
    with pytest.raises(InvalidInput, match="fraction_bits must be at most"):
        planned(Means((1.0,)), 1.0, Population(10**6), fraction_bits=50)


def test_study_needs_two_computes():
    with pytest.raises(InvalidInput, match=r"computes must be a whole number in 2..1000"):
        Study(PEOPLE, KEYS[:1], (PLAN,))


def test_a_study_is_not_taken_at_its_word():
    """Too little noise for the statistic, one key twice, or rounds planned for other clients: refused."""
    weak = with_noise(1e-3)
    with pytest.raises(InvalidInput, match="sensitivity must be at least .*do not take part"):
        Study(PEOPLE, KEYS, (weak,))
    coarse = with_noise(bits=0)
    with pytest.raises(InvalidInput, match="fraction_bits must be so large"):
        Study(PEOPLE, KEYS, (coarse,))
    overflowing = with_noise(bits=60)
    with pytest.raises(InvalidInput, match="fraction_bits must be so small that the sum fits the ring"):
        Study(PEOPLE, KEYS, (overflowing,))
    with pytest.raises(InvalidInput, match="keys must be distinct"):
        Study(PEOPLE, (KEYS[0], KEYS[1], KEYS[0]), (PLAN,))
    for other in (Population(100, 3, 1), Population(101, 2, 1), Population(100, 2, 1, largest=2)):
        with pytest.raises(InvalidInput, match="rounds must be planned for K = "):
            Study(other, KEYS, (PLAN,))


@pytest.mark.parametrize("clients", [2, 100, 10**6])
@pytest.mark.parametrize("bound", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("multiplier", [0.5, 4.0, 1000.0])
def test_the_grid_is_not_finer_than_the_noise_asks_for(clients: int, bound: float, multiplier: float):
    """A step is between 2^-31 and 2^-28 of a client's noise, unless the ring asks for a coarser one."""
    plan = planned(Means((bound,)), multiplier, Population(clients))
    steps = plan.noise.sigma_client / plan.noise.grid.step
    assert 8 <= steps < 2.0**31
    total = clients * (bound + 10 * plan.noise.sigma_client) * 2.0**plan.noise.grid.fraction_bits
    assert steps > 2.0**28 or total > 2.0**60


def test_a_finer_grid_than_the_noise_asks_for_is_refused():
    with pytest.raises(
        InvalidInput, match=r"fraction_bits must be at most \d+: on a finer grid, below 2\^-30 .* use \d+"
    ):
        planned(Means((1.0,)), 1.0, Population(10), fraction_bits=40)
    with pytest.raises(InvalidInput, match="fraction_bits must be at most"):
        GaussianMechanism(2.0).settled(PLAN.statistic, PEOPLE, PLAN.noise.grid.fraction_bits + 2)


def test_a_whole_client_moves_as_many_vectors_as_it_holds():
    one, many = (
        planned(Means((1.0,)), 2.0, Population(9, samples=40, largest=7, unit=u)) for u in ("sample", "client")
    )
    assert many.noise.sensitivity == pytest.approx(7 * one.noise.sensitivity)
    assert many.noise.sigma_client == pytest.approx(7 * one.noise.sigma_client)


def test_coins_of_samples_do_not_amplify_for_a_whole_client():
    """A client with k samples counts with a binomial number of them: no pair of one coin and one shift covers that."""
    program = Ones()
    statistic = Clipped(program, np.zeros(1), 1.0, 0.05)
    for unit, largest in (("sample", 50), ("client", 1)):
        planned(statistic, 4.0, Population(10, samples=10 * largest, largest=largest, unit=unit))
    with pytest.raises(InvalidInput, match="unit must be 'sample' where samples select themselves"):
        planned(statistic, 4.0, Population(10, samples=500, largest=50, unit="client"))


def test_nobody_contributes_to_a_study_that_counts_samples():
    early = EarlyPopulation(50, 3, 3, 50, 10, theorem1=True, held=10)
    study = Study(early, KEYS, (planned(Means((1.0,)), 2.0, early),))
    with pytest.raises(InvalidInput, match="study must count clients, got one made by hubbub 0.1"):
        contribute(study, 0, "a", np.zeros(1), Randomness.system())


class Ones:
    name, fingerprint, columns, dimension, at_once = "ones", "ones", 1, 1, 64

    def vectors(self, state, rows):
        return np.ones((rows.shape[0], 1))


def test_study_shows_no_private_key():
    key = PrivateKey.generate()
    study = Study(PEOPLE, (key.public(), *KEYS[1:]), (PLAN,))
    assert key.data not in study.canonical()
    assert key.data.hex().encode() not in study.canonical()
