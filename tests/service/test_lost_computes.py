"""Real processes of which one is lost for good, files and all: two of three give the exact sum all the same."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

from hubbub.cli.study.rounds import left_out, releases
from hubbub.engines.network import NetworkEngine
from hubbub.errors import CannotCombine, ReportRejected, RoundRefused
from hubbub.privacy import Budget, gaussian_round
from hubbub.roles import ComputeSum
from hubbub.securesum import Replicated, Shamir, pack
from hubbub.securesum.wire.codec import unpack
from hubbub.service.analyst import analyst as analysts
from hubbub.service.client import client as clients
from hubbub.service.devnet import LocalCompute, LocalComputes
from hubbub.service.node.compute import Limits
from hubbub.service.node.config import init_compute
from hubbub.service.wire.messages import SUM, decode_sum, encode_sum
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.records import RoundRecord, StudyRecord
from hubbub.service.wire.signing import SIGNATURE_BYTES, SigningKey
from hubbub.service.wire.web import Web
from hubbub.statistics import Means
from service.live import LiveStudy, N
from service.test_faults import dies_at

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


POINTS = [
    *(f"after:{each}" for each in ("closed", "roster-received", "agreed", "agreement-received", "released")),
    "before-reply:sum",
]
REPLIES = [f"before-reply:{each}" for each in ("close", "roster", "agreement")]


def run_with_a_death(study: LiveStudy, lost: int, died: threading.Event) -> RoundRecord:
    """A round up to its end, in which this Compute kills itself on its way, or when it is asked for its sum."""
    study.prepare()
    record = study.plan()
    study.analyst.open_round(record)
    study.send(record)
    study.analyst.close(record)
    deadline = time.monotonic() + 30
    while not died.wait(0.02):
        assert time.monotonic() < deadline, "it has not died"
        with contextlib.suppress(httpx.HTTPError):
            httpx.get(study.url(lost, "/rounds/0/sum"))
    return record


@pytest.mark.slow
@pytest.mark.parametrize("lost", range(3))
@pytest.mark.parametrize("point", POINTS)
def test_any_one_of_three_dies_for_good_at_any_step_and_the_sum_is_exact(
    trio: LocalComputes, tmp_path: Path, lost: int, point: str
):
    study = LiveStudy(trio, tmp_path, secure_sum=Replicated(3, 2))
    with dies_at(trio.computes[lost], point, back=False) as died:
        record = run_with_a_death(study, lost, died)
        shutil.rmtree(trio.computes[lost].folder)
        release = study.analyst.release(record)
    np.testing.assert_array_equal(release.value, study.exact())
    assert release.clients == N


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalComputes]:
    with LocalComputes(tmp_path_factory.mktemp("lasting"), 3, limits=LIMITS) as computes:
        yield computes


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS + REPLIES)
def test_one_that_dies_at_any_step_and_comes_back_has_the_same_sum(lasting: LocalComputes, tmp_path: Path, point: str):
    lost = (POINTS + REPLIES).index(point) % 3
    study = LiveStudy(lasting, tmp_path, secure_sum=Shamir(3, 2))
    with dies_at(lasting.computes[lost], point) as died:
        record = run_with_a_death(study, lost, died)
        np.testing.assert_array_equal(study.analyst.release(record).value, study.exact())
    wait_for(study, lost, "released")
    for other in set(range(3)) - {lost}:
        np.testing.assert_array_equal(study.analyst.release(record, without=[other]).value, study.exact())


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
    study = LiveStudy(trio, tmp_path, budget=Budget(1.0, 1e-5), secure_sum=Replicated(3, 2), patience=5.0)
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


@pytest.mark.slow
def test_one_that_is_set_up_anew_after_its_disk_was_lost_stops_nobody(trio: LocalComputes, tmp_path: Path):
    """It answers again, at the same address, and knows nothing of the study: no worse than one that is silent."""
    study = LiveStudy(trio, tmp_path, secure_sum=Replicated(3, 2), patience=4.0)
    study.analyst.register()
    study.analyst.invite(study.tokens)
    *early, late = study.clients
    for name in early:
        study.clients[name].enrol(study.tokens[name][0])
    record, lost = study.plan(), trio.computes[2]
    study.analyst.open_round(record)
    lose(lost)
    study.clients[late].enrol(study.tokens[late][0])  # as many as a round can do without may be away
    assert not study.outbox.enrolled(study.study.id, late)
    settings = {"database": "sqlite:///compute.db", "limits": replace(LIMITS, anyone=True)}
    init_compute(lost.folder, "compute-3", f"127.0.0.1:{lost.port}", **settings)
    lost.start()
    study.clients[late].enrol(study.tokens[late][0])
    study.send(record)
    assert [parcel.compute for parcel in study.clients[late].unsent(record)] == [2]
    study.analyst.close(record)
    for _ in range(2):
        np.testing.assert_array_equal(study.analyst.release(record).value, study.exact())
        assert [each.state for each in study.analyst.rounds()] == ["released"]
        assert [each.state for each in study.analyst.catch_up()] == ["released"]
        assert [each.record for each in clients.rounds_at(study.study, study.web)] == [record]
    assert study.analyst.open_round(study.plan(1)) == [2]
    with pytest.raises(Problem, match="not-found|register"):
        LiveStudy(trio, tmp_path, secure_sum=Replicated(3, 2)).analyst.rounds()  # nobody at all knows that one


@pytest.mark.parametrize("code", ["closed", "round-refused"])
def test_a_client_goes_on_where_one_compute_says_that_the_round_is_over(
    trio: LocalComputes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
):
    over, sent = {0}, list[int]()
    real = clients._post

    def post(study: StudyRecord, web: Web, record: RoundRecord, compute: int, reports: list[bytes]) -> bytes:
        if compute in over:
            raise ReportRejected(code, "the round is over here")
        return real(study, web, record, compute, reports)

    monkeypatch.setattr(clients, "_post", post)
    study = LiveStudy(trio, tmp_path, secure_sum=Replicated(3, 2))
    study.prepare()
    record = study.plan()
    study.analyst.open_round(record)
    client = study.clients["c0"]
    client.make(record, study.rows("c0"))
    assert client.send(record, sent.append) == 1
    assert (sent, [parcel.compute for parcel in client.unsent(record)]) == ([1, 2], [0])
    over.add(1)
    with pytest.raises(ReportRejected, match="the round is over here"):
        study.clients["c1"].contribute(record, study.rows("c1"))
    over.clear()
    others = [name for name in study.clients if name != "c0"]
    study.send(record, others)
    study.analyst.close(record)
    release = study.analyst.release(record)  # all three are there, so who is not on all their rosters is missing
    np.testing.assert_array_equal(release.value, study.exact(others))
    over.add(0)
    additive = LiveStudy(trio, tmp_path)
    additive.prepare()
    record = additive.plan()
    additive.analyst.open_round(record)
    with pytest.raises(ReportRejected, match="the round is over here"):
        additive.clients["c0"].contribute(record, additive.rows("c0"), sent.append)
    assert sent == [1, 2], "all are needed, so nothing more is sent"


def lie_of(honest: ComputeSum, how: str, key: SigningKey) -> bytes:
    """What a Compute that lies in this way would sign as its sum."""
    changes = {
        "a number": {"words": honest.words + np.uint64(1)}, "another's": {"compute": 1}, "another round": {"round": 7},
        "too short": {"words": honest.words[:-1]}, "half a word": {"words": np.zeros(0, dtype=np.uint64)},
    }.get(how, {})  # fmt: skip
    data = encode_sum(replace(honest, **changes), key)
    if how == "half a word":
        body = pack(*unpack(data[:-SIGNATURE_BYTES], 8)[:-1], b"half")
        return body + key.sign(SUM, body)
    return data[:-1] + bytes([data[-1] ^ 1]) if how == "forged" else data


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
        key = SigningKey.generate()
        for how in ("a number", "another's", "another round", "too short", "half a word", "forged"):

            def wrong(body: bytes, theirs: bytes, how: str = how) -> ComputeSum:
                found = decode_sum(body, theirs)
                return decode_sum(lie_of(found, how, key), key.public()) if found.compute == 2 else found

            monkeypatch.setattr(analysts, "decode_sum", wrong)
            name = study.study.computes[2].name
            with pytest.raises(CannotCombine, match=f"{name}.*Compute 3") as caught:
                releases(study.analyst)
            assert caught.value.computes == (2,), how
            (release,) = releases(study.analyst, left_out(study.study, [name]))
            np.testing.assert_array_equal(release.value, study.exact())
