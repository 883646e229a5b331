"""Others that misbehave: Computes that answer nonsense or nothing, analysts that ask through who is missing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

from hubbub.errors import InvalidInput
from hubbub.securesum import pack
from hubbub.service.client.client import Client
from hubbub.service.client.outbox import Outbox
from hubbub.service.node import compute as node
from hubbub.service.node import store as db
from hubbub.service.node.caretaker import Caretaker
from hubbub.service.node.inbox import Inbox
from hubbub.service.node.uploads import Taken
from hubbub.service.wire.canonical import digest, sign_record
from hubbub.service.wire.problems import Problem, problem_from
from hubbub.service.wire.web import Web
from hubbub.statistics import Means
from hubbub.statistics.preparation import check_steps, prepare
from service.stage import M, N, Person, Stage, make_stage

NONSENSE = {
    "a page": httpx.Response(200, text="<html>"),
    "a wait that is no number": httpx.Response(503, headers={"retry-after": b"\xb2"}, json={"code": "x", "detail": ""}),
    "a wait of many digits": httpx.Response(503, headers={"retry-after": "9" * 5000}, json={"code": "x", "detail": ""}),
    "deep brackets": httpx.Response(400, content=b"[" * 100_000),
    "half a character": httpx.Response(200, content=b'{"record": {"event": "\\ud800"}, "signature": ""}'),
    "nothing": httpx.Response(200, content=b""),
}


def closed_stage(urls: list[str]) -> Stage:
    stage = make_stage(urls, agreement_seconds=100.0)
    stage.register()
    record = stage.round()
    stage.open(record)
    for person in stage.people:
        stage.send(record, person)
    stage.close(record)
    return stage


def looked(stage: Stage, answer, passes: int = 1) -> None:
    async def play() -> None:
        transport = httpx.MockTransport(answer)
        async with httpx.AsyncClient(transport=transport) as http:
            caretaker = Caretaker(stage.nodes[0], http)
            for _ in range(passes):
                await caretaker.look(patience=60)

    asyncio.run(play())


def state(stage: Stage) -> str:
    with stage.nodes[0].store.read() as connection:
        return db.find_round(connection, stage.id, 0).state


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_from_another_compute_ends_in_a_refusal_and_nothing_else(urls: list[str], name: str):
    stage = closed_stage(urls)
    reply = NONSENSE[name]
    looked(stage, lambda _: httpx.Response(reply.status_code, headers=reply.headers, content=reply.content))
    assert state(stage) == "closed"
    stage.clock.now += 101
    looked(stage, lambda _: httpx.Response(reply.status_code, headers=reply.headers, content=reply.content))
    assert state(stage) == "refused"


def test_a_silent_compute_holds_up_its_own_rounds_only(urls: list[str]):
    stage = closed_stage(urls)
    slow = replace(stage.study, nonce="zz")  # an open round of another study, whose time is over meanwhile
    node.register_study(stage.nodes[0], sign_record(slow, stage.analyst))
    record = replace(stage.round(), study=digest(slow))
    node.open_round(stage.nodes[0], slow.id, sign_record(record, stage.analyst))
    stage.clock.now += 3601

    async def never(_: httpx.Request) -> httpx.Response:
        await asyncio.sleep(60)
        raise AssertionError

    async def play() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(never)) as http:
            caretaker = Caretaker(stage.nodes[0], http)
            await asyncio.wait_for(caretaker.look(), 30)
            await asyncio.wait_for(caretaker.look(), 30)

    asyncio.run(play())
    with stage.nodes[0].store.read() as connection:
        assert db.find_round(connection, slow.id, 0).state == "closed"


def test_whatever_another_compute_says_is_a_problem():
    for body in (b"[" * 100_000, b"", b"\xff", b"[]", b'{"code": 1}'):
        for wait in ("\xb2", "9" * 5000, "-1", "", None):
            assert isinstance(problem_from(400, body, wait), Problem)
    assert problem_from(503, b"{}", "7").retry_after == 7


STEPS = [
    [{"step": "shift", "by": [50.0, 0.0]}, {"step": "scale", "by": [1e-307, 1.0]}],
    [{"step": "shift", "by": [50.0, 0.0]}, {"step": "shorten", "norm": 1e-300}],
    [{"step": "clip", "to": [1e-320, 1e300]}, {"step": "scale", "by": [1e-320, 1e-320]}],
]


@pytest.mark.parametrize("steps", STEPS)
def test_no_row_makes_a_client_stay_away(steps: list):
    """Who is missing is seen without noise: a step must not fail for some rows and go through for others."""
    rows = np.array([[x, y] for x in (-1e300, 40.0, 50.0, 90.0, 1e300) for y in (0.0, 1e300, -1e-300)])
    statistic = Means((1.0, 1.0))
    found = statistic.vectors(prepare(rows, steps)[0])
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= 1.0


@pytest.mark.parametrize("step", [
    {"step": "scale", "by": [0.0, 1.0]}, {"step": "scale", "by": [-1.0, 1.0]}, {"step": "shorten", "norm": 0.0},
    {"step": "shorten", "norm": float("nan")}, {"step": "clip", "to": [0.0, 1.0]}, {"step": "shift", "by": [1.0]},
    {"step": "shift"}, {"step": "unknown"}, {}, 7,
])  # fmt: skip
def test_steps_are_refused_before_any_row_is_seen(step: object):
    with pytest.raises(InvalidInput):
        check_steps([step], 2)  # type: ignore[list-item]


def test_a_client_gives_as_many_samples_as_it_began_with(urls: list[str], tmp_path: Path):
    stage = make_stage(urls, people=[Person("hospital", 4), Person("clinic", 2)])
    outbox, record = Outbox(tmp_path / "outbox.db"), stage.round()
    with httpx.Client() as http:
        before = Client(stage.study, "hospital", outbox, Web(http), 4, simulation=True)
        before.make(record, np.ones((4, 2)))
        later = Client(stage.study, "hospital", outbox, Web(http), 1, simulation=True)
        with pytest.raises(InvalidInput, match="samples must be 4, as hospital began the study, got samples=1"):
            later.make(stage.round(1), np.ones((1, 2)))
        with pytest.raises(InvalidInput, match="samples must be 4"):
            later.enrol(bytes(32))


def test_one_that_cannot_be_written_takes_no_other_with_it():
    def write(items):
        if "bad" in items:
            raise ValueError
        return [item.upper() for item in items]

    async def play() -> list:
        inbox = Inbox[str, str](write)
        running = asyncio.create_task(inbox.run())
        calls = [inbox.submit(item, 1) for item in ("a", "bad", "b")]
        found = await asyncio.gather(*calls, return_exceptions=True)
        running.cancel()
        return found

    first, second, third = asyncio.run(play())
    assert (first, third) == ("A", "B")
    assert isinstance(second, ValueError)


def _renamed(report: bytes, name: bytes, other: bytes) -> bytes:
    return report.replace(pack(name), pack(other), 1)


def test_names_that_no_client_can_have_harm_nobody(stage: Stage):
    record = stage.round()
    stage.open(record)
    person = stage.people[0]
    good = stage.reports(record, person)[0]
    name = person.name.encode()
    bad = [_renamed(good, name, other) for other in (b"", b"nobody", "caf\xe9".encode(), b"\xff\xfe", b"x" * 200)]
    *outcomes, last = stage.accept(0, [stage.upload(record, *bad), stage.upload(record, good)])
    codes = ["malformed", "unknown-client", "unknown-client", "malformed", "malformed"]
    assert [outcome.code for outcome in outcomes] == codes
    assert last == Taken(1, True)
    (outcome,) = node.enrol(stage.nodes[0], [node.Enrolment(stage.id, "\ud800", 1, b"", bytes(32), b"", bytes(64))])
    assert isinstance(outcome, Problem)


def test_a_refused_round_says_so_to_whoever_reports(stage: Stage):
    record = stage.round()
    stage.run_to_rosters(record, stage.people[:2])
    assert stage.settle() == ["refused"] * M
    for person in (stage.people[0], stage.people[N - 1]):
        assert stage.send(record, person)[0].code == "round-refused"
