"""Requests that take long hold up nobody: large invitations, the account on the status page, bodies of the wrong size."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from sqlalchemy import func, select

from hubbub.privacy import Budget, Population, epsilon_spent
from hubbub.securesum import PrivateKey, start_session
from hubbub.service.devnet import LocalComputes
from hubbub.service.node import compute as node
from hubbub.service.node import known, tables
from hubbub.service.node import store as db
from hubbub.service.node.app import create_app
from hubbub.service.node.shared import Shared
from hubbub.service.node.turns import Turns
from hubbub.service.wire.canonical import canonical, digest, sign_record
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.records import ClientRecord, ComputeRecord, InvitationRecord, StudyRecord
from service.live import LiveStudy
from service.stage import N, Person, Stage, make_stage
from service.test_node import code_of

JSON = {"content-type": "application/json"}


def uninvited(urls: list[str], **options) -> Stage:
    stage = make_stage(urls, **options)
    node.register_study(stage.nodes[0], sign_record(stage.study, stage.analyst))
    return stage


def invited(stage: Stage) -> int:
    with stage.nodes[0].store.read() as connection:
        return connection.execute(select(func.count()).select_from(tables.clients)).scalar_one()


def test_an_invitation_is_written_in_pieces_and_completed_after_a_crash(
    urls: list[str], monkeypatch: pytest.MonkeyPatch
):
    stage, calls, write = uninvited(urls), list[int](), db.write_audit
    monkeypatch.setattr(node, "_INVITED_AT_ONCE", 2)

    def crash(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        write(*arguments, **options)

    monkeypatch.setattr(db, "write_audit", crash)
    data = stage.invitation(0, stage.people)
    with pytest.raises(KeyboardInterrupt):
        node.invite(stage.nodes[0], stage.id, data)
    assert invited(stage) == 2
    assert node.invite(stage.nodes[0], stage.id, data).new
    assert invited(stage) == N
    assert not node.invite(stage.nodes[0], stage.id, data).new
    assert invited(stage) == N


def test_an_invitation_that_must_be_refused_leaves_nothing_behind(urls: list[str], monkeypatch: pytest.MonkeyPatch):
    """Though what is wrong with it would be found in its last piece only."""
    stage = uninvited(urls)
    monkeypatch.setattr(node, "_INVITED_AT_ONCE", 2)
    first, crowd = stage.people[0], [*stage.people, Person("one too many")]
    assert code_of(node.invite, stage.nodes[0], stage.id, stage.invitation(0, crowd)) == "too-many"
    other = [*stage.people, Person(first.name)]
    assert code_of(node.invite, stage.nodes[0], stage.id, stage.invitation(0, other)) == "other-record"
    assert invited(stage) == 0
    node.invite(stage.nodes[0], stage.id, stage.invitation(0, [first, first]))
    assert invited(stage) == 1


def test_two_invitations_at_once_never_invite_more_than_the_study_allows(
    urls: list[str], monkeypatch: pytest.MonkeyPatch
):
    stage = uninvited(urls)
    monkeypatch.setattr(node, "_INVITED_AT_ONCE", 1)
    groups = [[Person(f"{group}{i}") for i in range(4)] for group in "ab"]  # 8 together, N = 6
    outcomes = list[str]()

    def run(people: list[Person]) -> None:
        try:
            node.invite(stage.nodes[0], stage.id, stage.invitation(0, people))
        except Problem as problem:
            outcomes.append(problem.code)

    threads = [threading.Thread(target=run, args=(people,)) for people in groups]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert set(outcomes) == {"too-many"}
    assert invited(stage) <= N


def test_who_waits_to_write_comes_next_however_often_another_writes(tmp_path: Path):
    store, order, waiting = db.Store(f"sqlite:///{tmp_path}/one.db"), list[str](), threading.Event()

    def short() -> None:
        waiting.set()
        with store.write() as connection:
            db.add_counts(connection, {"short": 1})
            order.append("short")

    thread = threading.Thread(target=short)
    for i in range(50):
        with store.write() as connection:
            db.add_counts(connection, {"long": 1})
            order.append("long")
            if i == 0:
                thread.start()
                waiting.wait()
                while not store._turns._waiting:
                    time.sleep(0.001)
    thread.join()
    store.close()
    assert order.index("short") == 1


def test_turns_are_one_at_a_time():
    turns, inside, most = Turns(), [0], [0]

    def run() -> None:
        for _ in range(200):
            with turns:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=run) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert most == [1]


def test_the_account_is_made_once_for_all_who_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stage = uninvited([f"sqlite:///{tmp_path}/{k}.db" for k in range(3)], budget=Budget(1.0, 1e-5))
    node.open_round(stage.nodes[0], stage.id, sign_record(stage.round(multiplier=7.25), stage.analyst))
    composed = list[int]()

    def slow(events, delta: float) -> float:
        composed.append(len(events))
        time.sleep(0.3)
        return epsilon_spent(events, delta)

    monkeypatch.setattr(known, "epsilon_spent", slow)

    async def play() -> tuple[list[httpx.Response], float]:
        async with httpx.AsyncClient() as peers:
            app = create_app(stage.nodes[0], peers)
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://node") as http:
                asked = asyncio.gather(*(http.get("/v1/status") for _ in range(40)))
                await asyncio.sleep(0.05)
                started = time.monotonic()
                assert (await http.get("/v1/ready")).status_code == 200
                ready = time.monotonic() - started
                return [*await asked, await http.get("/v1/status")], ready

    replies, ready = asyncio.run(play())
    spent = [reply.json()["studies"][0]["budget"]["spent"] for reply in replies]
    assert composed == [1]
    assert set(spent) == {epsilon_spent([stage.round(multiplier=7.25).event(stage.study)], 1e-5)}
    assert ready < 1.0


def test_what_many_ask_for_at_once_is_done_once_and_again_for_who_asks_later():
    runs = list[int]()

    def work() -> int:
        time.sleep(0.05)
        runs.append(1)
        if len(runs) == 2:
            raise ValueError
        return len(runs)

    async def play() -> list:
        shared = Shared(work, "test")
        first = await asyncio.gather(*(shared.now() for _ in range(20)))
        second = await asyncio.gather(*(shared.now() for _ in range(3)), return_exceptions=True)
        return [*first, *second, await shared.now()]

    *found, last = asyncio.run(play())
    assert found[:20] == [1] * 20
    assert [type(each) for each in found[20:]] == [ValueError] * 3
    assert last == 3


@pytest.mark.slow
def test_bodies_have_a_size_of_their_own_at_each_address(live: LocalComputes, tmp_path: Path):
    study = LiveStudy(live, tmp_path)
    study.prepare()
    for path, most in [("/enrolments", 8_192), ("/rounds/0/close", 4_096), ("/rounds/0/rosters", 10_000),
                       ("/clients", 4_000_000), ("/rounds", 8_000_000)]:  # fmt: skip
        reply = httpx.post(study.url(0, path), content=b" " * (most + 1), headers=JSON, timeout=20)
        assert (reply.status_code, reply.json()["code"]) == (413, "too-large"), path
    opening = start_session(PrivateKey.generate("MLKEM768-X25519").public(), digest(study.study), "c0", 0).opening
    largest = {"client": "\u20ac" * 33, "samples": 10_000_000, "token": "f" * 64, "key": "f" * 64,
               "opening": opening.hex(), "signature": "f" * 128}  # fmt: skip
    reply = httpx.post(study.url(0, "/enrolments"), content=canonical(largest), headers=JSON)
    assert reply.json()["code"] != "too-large"


def large_invitation(study: LiveStudy, clients: int) -> tuple[StudyRecord, bytes]:
    """A study with very many clients at the first Compute, and one invitation for all of them."""
    first = study.study.computes[0]
    paper = ComputeRecord("paper", "http://127.0.0.1:9", PrivateKey.generate().public(), os.urandom(32))
    large = replace(study.study, title="large", population=Population(clients), computes=(first, paper), scheme={})
    people = tuple(ClientRecord(f"client-{i}", os.urandom(32)) for i in range(clients))
    return large, sign_record(InvitationRecord(digest(large), 0, people), study.key)


@pytest.mark.slow
def test_a_large_invitation_lets_others_read_and_write_meanwhile(live: LocalComputes, tmp_path: Path):
    study = LiveStudy(live, tmp_path, samples={f"c{i}": 1 for i in range(60)})
    study.analyst.register()
    study.analyst.invite(study.tokens)
    large, invitation = large_invitation(study, 30_000)
    first, found = study.study.computes[0].url, list[httpx.Response]()
    httpx.post(f"{first}/v1/studies", content=sign_record(large, study.key), headers=JSON).raise_for_status()
    url = f"{first}/v1/studies/{large.id}/clients"
    sending = threading.Thread(
        target=lambda: found.append(httpx.post(url, content=invitation, headers=JSON, timeout=60))
    )
    sending.start()
    reads, writes = list[float](), list[float]()
    for name, client in study.clients.items():
        started = time.monotonic()
        assert httpx.get(f"{first}/v1/ready", timeout=20).status_code == 200
        reads.append(time.monotonic() - started)
        started = time.monotonic()
        client.enrol(study.tokens[name][0])
        writes.append(time.monotonic() - started)
        if not sending.is_alive():
            break
        time.sleep(0.05)
    sending.join()
    assert found[0].status_code == 201
    assert len(writes) > 3
    assert max(reads) < 1.0
    assert max(writes) < 1.0
