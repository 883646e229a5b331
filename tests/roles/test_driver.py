"""The whole protocol of a round gives the exact sum over whoever came through."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from hubbub.errors import RoundRefused
from hubbub.randomness import Randomness
from hubbub.roles import driver, run_round
from roles.conftest import Stage, make_stage


def decoded(stage: Stage, words: np.ndarray) -> list[float]:
    return stage.study.rounds[0].fixed_point.decode(words).tolist()


def test_sum_counts_every_client_once(stage: Stage):
    words, present = run_round(stage.study, 0, stage.keys, stage.samples, Randomness.system())
    assert present == 6
    assert decoded(stage, words) == [63 / 16, -15.0]


def test_client_lost_halfway_is_in_no_sum(stage: Stage):
    words, present = run_round(stage.study, 0, stage.keys, stage.samples, Randomness.system(), lost_halfway={"c2"})
    assert present == 5
    assert decoded(stage, words) == [(63 - 4) / 16, -13.0]


def test_too_many_lost_clients_refuse_the_round(stage: Stage):
    with pytest.raises(RoundRefused, match="at least N - T = 5, got 4"):
        run_round(stage.study, 0, stage.keys, stage.samples, Randomness.system(), lost_halfway={"c2", "c4"})


def test_colluders_withhold_their_noise():
    stage = make_stage(noise_multiplier=1.0)
    everybody = set(stage.samples)
    words, _ = run_round(stage.study, 0, stage.keys, stage.samples, Randomness.system(), withholding=everybody)
    assert decoded(stage, words) == [63 / 16, -15.0]
    noisy, _ = run_round(stage.study, 0, stage.keys, stage.samples, Randomness.system())
    assert decoded(stage, noisy) != [63 / 16, -15.0]


def test_driver_reads_on_one_screen():
    assert len(inspect.getsource(driver.run_round).splitlines()) <= 30
