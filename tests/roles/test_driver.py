"""The whole protocol of a round gives the exact sum over whoever came through."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from hubbub.errors import RoundRefused
from hubbub.randomness import Randomness
from hubbub.roles import (
    Compute,
    accept,
    agree,
    combine_sums,
    compute,
    contribute,
    driver,
    release,
    roster_of,
    run_round,
    start_sessions,
)
from hubbub.securesum import Session, decode_report, encode_report
from roles.conftest import Stage, make_stage


def decoded(stage: Stage, words: np.ndarray) -> list[float]:
    return stage.study.rounds[0].noise.grid.decode(words).tolist()


def test_sum_counts_every_client_once(stage: Stage):
    words, present = run_round(stage.study, 0, stage.keys, stage.samples, Randomness.system())
    assert present == (6, 6)
    assert decoded(stage, words) == [63 / 16, -15.0]


def test_client_lost_halfway_is_in_no_sum(stage: Stage):
    words, present = run_round(stage.study, 0, stage.keys, stage.samples, Randomness.system(), lost_halfway={"c2"})
    assert present == (5, 5)
    assert decoded(stage, words) == [(63 - 4) / 16, -13.0]


def test_too_many_lost_clients_refuse_the_round(stage: Stage):
    with pytest.raises(RoundRefused, match="at least 5 .*got 4"):
        run_round(stage.study, 0, stage.keys, stage.samples, Randomness.system(), lost_halfway={"c2", "c4"})


def test_colluders_withhold_their_noise():
    stage = make_stage(noise_multiplier=1.0)
    everybody = set(stage.samples)
    words, _ = run_round(stage.study, 0, stage.keys, stage.samples, Randomness.system(), withholding=everybody)
    assert decoded(stage, words) == [63 / 16, -15.0]
    noisy, _ = run_round(stage.study, 0, stage.keys, stage.samples, Randomness.system())
    assert decoded(stage, noisy) != [63 / 16, -15.0]


def test_sessions_carry_over_from_round_to_round(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    """Two rounds in one session each: the same sums, and every opening is opened once."""
    joined = []
    honest = compute.join_session

    def counting(opening: bytes, *rest):
        joined.append(opening)
        return honest(opening, *rest)

    monkeypatch.setattr(compute, "join_session", counting)
    sessions = {client: start_sessions(stage.study, client) for client in stage.samples}
    known: list[dict[str, Session]] = [{}, {}, {}]
    for number in range(2):
        reports = [
            contribute(stage.study, number, client, sample, Randomness.system(), sessions=sessions[client])
            for client, sample in stage.samples.items()
        ]
        states = []
        for k, key in enumerate(stage.keys):
            inbox = [decode_report(encode_report(each[k])) for each in reports]
            state, rejected = accept(Compute(stage.study, number, k, key, sessions=known[k]), inbox)
            assert not rejected
            known[k] = dict(state.sessions)
            states.append(state)
        roster = agree(stage.study, [roster_of(state) for state in states])
        words, _ = combine_sums(stage.study, number, [release(state, roster)[1] for state in states])
        assert decoded(stage, words) == [63 / 16, -15.0]
    assert len(joined) == len(set(joined)) == 6 * 3


def test_a_session_of_another_client_is_no_use(stage: Stage):
    sessions = start_sessions(stage.study, "c1")
    report = contribute(stage.study, 0, "c0", stage.samples["c0"], Randomness.system(), sessions=sessions)[0]
    state, rejected = accept(stage.compute(), [report])
    assert [error.reason for error in rejected] == ["cannot-open"]
    assert not state.sessions


def test_driver_reads_on_one_screen():
    assert len(inspect.getsource(driver.run_round).splitlines()) <= 30
