"""The study: everything that could change the noise is in its hash."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import pytest

from hubbub.errors import InvalidInput
from hubbub.privacy import DistributedGaussian
from hubbub.roles import Study, plan_round
from hubbub.securesum import FixedPoint, PrivateKey, PublicKey
from hubbub.statistics import Box, Means, Regression

KEYS = tuple(PublicKey("X25519", bytes([k]) * 32) for k in range(3))
PLAN = plan_round(Means((1.0, 2.0)), 2.0, 100, 3)
STUDY = Study(100, 3, KEYS, (PLAN,))


def test_same_study_same_bytes_in_another_process():
    code = (
        "from hubbub.roles import Study, plan_round\nfrom hubbub.securesum import PublicKey\n"
        "from hubbub.statistics import Means\n"
        "keys = tuple(PublicKey('X25519', bytes([k]) * 32) for k in range(3))\n"
        "print(Study(100, 3, keys, (plan_round(Means((1.0, 2.0)), 2.0, 100, 3),)).digest.hex())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == STUDY.digest.hex()
    assert json.loads(STUDY.canonical())["clients"] == 100


@pytest.mark.parametrize(
    "changed",
    [
        Study(101, 3, KEYS, (plan_round(Means((1.0, 2.0)), 2.0, 101, 3),)),
        Study(100, 2, KEYS, (plan_round(Means((1.0, 2.0)), 2.0, 100, 2),)),
        Study(100, 3, KEYS[:2], (PLAN,)),
        Study(100, 3, KEYS[::-1], (PLAN,)),
        Study(100, 3, KEYS, (PLAN, PLAN)),
        Study(100, 3, KEYS, (plan_round(Means((1.0, 2.0)), 1.9, 100, 3),)),
        Study(100, 3, KEYS, (plan_round(Means((1.0, 2.1)), 2.0, 100, 3),)),
        Study(100, 3, KEYS, (plan_round(Means((1.0, 2.0)), 2.0, 100, 3, fraction_bits=10),)),
        Study(100, 3, KEYS, (dataclasses.replace(PLAN, mechanism=DistributedGaussian(2.0, 5.0, 100, 3)),)),
        Study(100, 3, KEYS, (dataclasses.replace(PLAN, fixed_point=FixedPoint(PLAN.fixed_point.fraction_bits + 1)),)),
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
    plan = plan_round(statistic, 1.5, 50, 0, fraction_bits=6)
    assert plan.mechanism.sensitivity == pytest.approx(statistic.sensitivity + 2 * 2.0**-6)
    assert plan.mechanism.sigma_std == pytest.approx(1.5 * plan.mechanism.sensitivity)


def test_largest_possible_sum_fits_the_ring():
    plan = plan_round(Means((1e6,)), 30.0, 10**6, 0)
    largest = 10**6 * (1e6 + 9.4 * plan.mechanism.sigma_client)
    assert largest * 2.0**plan.fixed_point.fraction_bits < 2.0**63


def test_ring_that_is_too_small_is_one_line():
    with pytest.raises(InvalidInput, match=r"fraction_bits must be so large .*the ring is too small"):
        plan_round(Means((1.0,)), 1e-12, 10**12, 0)


def test_wanted_grid_that_overflows_is_refused():
    with pytest.raises(InvalidInput, match="fraction_bits must be at most"):
        plan_round(Means((1.0,)), 1.0, 10**6, 0, fraction_bits=50)


def test_study_needs_two_computes_and_enough_clients():
    with pytest.raises(InvalidInput, match=r"computes must be a whole number in 2..1000"):
        Study(100, 3, KEYS[:1], (PLAN,))
    with pytest.raises(InvalidInput, match="tolerated must be at most"):
        Study(4, 3, KEYS, (PLAN,))


def test_a_study_is_not_taken_at_its_word():
    """Too little noise for the statistic, one key twice, or rounds planned for another N and T: refused."""
    weak = dataclasses.replace(PLAN, mechanism=DistributedGaussian(2.0, 1e-3, 100, 3))
    with pytest.raises(InvalidInput, match="sensitivity must be at least .*do not take part"):
        Study(100, 3, KEYS, (weak,))
    coarse = dataclasses.replace(PLAN, fixed_point=FixedPoint(0))
    with pytest.raises(InvalidInput, match="fraction_bits must be so large"):
        Study(100, 3, KEYS, (coarse,))
    overflowing = dataclasses.replace(PLAN, fixed_point=FixedPoint(60))
    with pytest.raises(InvalidInput, match="fraction_bits must be so small that the sum fits the ring"):
        Study(100, 3, KEYS, (overflowing,))
    with pytest.raises(InvalidInput, match="keys must be distinct"):
        Study(100, 3, (KEYS[0], KEYS[1], KEYS[0]), (PLAN,))
    for n, t in ((100, 4), (101, 3)):
        with pytest.raises(InvalidInput, match=r"rounds must be planned for N="):
            Study(n, t, KEYS, (PLAN,))


def test_study_shows_no_private_key():
    key = PrivateKey.generate()
    study = Study(100, 3, (key.public(), *KEYS[1:]), (PLAN,))
    assert key.data not in study.canonical()
    assert key.data.hex().encode() not in study.canonical()
