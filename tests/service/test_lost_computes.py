"""Real processes of which one is lost for good, files and all: two of three give the exact sum all the same."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from hubbub.engines.network import NetworkEngine
from hubbub.errors import CannotCombine, RoundRefused
from hubbub.privacy import Budget, gaussian_round
from hubbub.securesum import Replicated, Shamir
from hubbub.service.analyst import analyst as analysts
from hubbub.service.devnet import LocalCompute, LocalComputes
from hubbub.service.node.compute import Limits
from hubbub.service.wire.messages import decode_sum
from hubbub.service.wire.problems import Problem
from hubbub.statistics import Means
from service.live import LiveStudy, N

LIMITS = Limits(simulation=True, missing_seconds=1.5, agreement_seconds=60.0)


@pytest.fixture
def trio(tmp_path: Path) -> Iterator[LocalComputes]:
    with LocalComputes(tmp_path / "nodes", 3, limits=LIMITS) as computes:
        yield computes


def lose(compute: LocalCompute) -> None:
    """kill -9, and its disk is gone."""
    compute.kill()
    shutil.rmtree(compute.folder)


def wait_for(study: LiveStudy, k: int, state: str) -> None:
    deadline = time.monotonic() + 30
    while httpx.get(study.url(k, "/rounds")).json()["rounds"][0]["state"] != state:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("lost", range(3))
@pytest.mark.parametrize("when", ["before close", "after close", "after agreement"])
def test_any_one_of_three_is_killed_for_good_and_the_sum_is_exact(
    trio: LocalComputes, tmp_path: Path, lost: int, when: str
):
    study = LiveStudy(trio, tmp_path, secure_sum=Replicated(3, 2))
    study.prepare()
    record = study.plan()
    study.analyst.open_round(record)
    study.send(record)
    if when == "before close":
        lose(trio.computes[lost])
    study.analyst.close(record)
    if when == "after agreement":
        wait_for(study, lost, "released")
    if when != "before close":
        lose(trio.computes[lost])
    release = study.analyst.release(record)
    np.testing.assert_array_equal(release.value, study.exact())
    assert release.clients == N


@pytest.mark.slow
def test_later_rounds_do_without_it_and_one_that_was_away_catches_up(trio: LocalComputes, tmp_path: Path):
    study = LiveStudy(trio, tmp_path, secure_sum=Shamir(3, 2), patience=10.0)
    study.prepare()
    trio.computes[1].kill()
    first = study.plan()
    assert study.analyst.open_round(first) == [1]
    for name, client in study.clients.items():
        client.make(first, study.rows(name))
        client.send(first, without=[1])
    study.analyst.close(first)
    np.testing.assert_array_equal(study.analyst.release(first).value, study.exact())
    trio.computes[1].start()
    assert [each.record.number for each in study.analyst.catch_up()] == [0]
    wait_for(study, 1, "refused")  # it has missed the reports
    second = study.plan(1)
    assert study.analyst.open_round(second) == []
    study.send(second)
    study.analyst.close(second)
    np.testing.assert_array_equal(study.analyst.release(second).value, study.exact())


@pytest.mark.slow
def test_an_analysis_of_several_rounds_goes_on(trio: LocalComputes):
    """The engine loses a Compute in its first round, and does the second without it."""
    lost = list[int]()

    def uploaded(number: int) -> None:
        if number == 0:
            lose(trio.computes[0])
            lost.append(number)

    engine = NetworkEngine(trio.urls, secure_sum=Replicated(3, 2), seed=1, uploaded=uploaded)
    rows = np.arange(12.0).reshape(6, 2)
    for number in range(2):
        spec = gaussian_round(Means((64.0, 64.0)), 0.0, f"round {number}")
        np.testing.assert_array_equal(engine.private_sum(rows, spec).value, rows.sum(axis=0))
    assert lost == [0]


@pytest.mark.slow
def test_a_round_that_a_quorum_refused_is_paid_back_although_one_is_lost(trio: LocalComputes, tmp_path: Path):
    """The budget covers one round: the second opens only where the first one's charge is given back everywhere."""
    study = LiveStudy(trio, tmp_path, budget=Budget(1.0, 1e-5), secure_sum=Replicated(3, 2))
    study.prepare()
    first = study.plan(0, 4.0)
    study.analyst.open_round(first)
    study.send(first, ["c0", "c1"])
    study.analyst.close(first)
    with pytest.raises(RoundRefused, match="signed its refusal, nothing is released"):
        study.analyst.release(first)
    lose(trio.computes[2])
    second = study.plan(1, 4.0)
    assert study.analyst.open_round(second) == [2]
    for name, client in study.clients.items():
        client.make(second, study.rows(name))
        client.send(second, without=[2])
    study.analyst.close(second)
    assert study.analyst.release(second).clients == N
    with pytest.raises(Problem, match="budget must cover the round"):
        study.analyst.open_round(study.plan(2, 4.0))


def test_a_sum_that_does_not_fit_is_named_and_the_others_give_the_total(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with LocalComputes(tmp_path / "nodes", 4, limits=LIMITS) as computes:
        study = LiveStudy(computes, tmp_path, secure_sum=Replicated(4, 2))
        study.prepare()
        record = study.plan()
        study.analyst.open_round(record)
        study.send(record)
        study.analyst.close(record)
        for k in range(4):
            wait_for(study, k, "released")

        def wrong(body: bytes, key: bytes):
            found = decode_sum(body, key)
            if found.compute == 2:
                found.words[0] += np.uint64(1)
            return found

        monkeypatch.setattr(analysts, "decode_sum", wrong)
        with pytest.raises(CannotCombine, match="wrong ones of Compute 2") as caught:
            study.analyst.release(record)
        assert caught.value.computes == (2,)
        release = study.analyst.release(record, without=caught.value.computes)
        np.testing.assert_array_equal(release.value, study.exact())
