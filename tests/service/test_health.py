"""One damaged round holds up no other, and a Compute that cannot do its work says so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from hubbub.service.node import agreement, health, tables
from hubbub.service.node import compute as node
from hubbub.service.node import store as db
from hubbub.service.node.app import create_app
from hubbub.service.node.caretaker import Caretaker
from hubbub.service.node.store import Store
from hubbub.service.wire.canonical import digest, sign_record
from service.stage import M, Stage, make_stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = make_stage([f"sqlite:///{tmp_path}/compute-{k}.db" for k in range(M)], agreement_seconds=100.0)
    made.register()
    yield made
    for each in made.nodes:
        each.store.close()


def caring(stage: Stage, passes: int = 1) -> tuple[int, str]:
    """Look after the rounds of the first Compute, whose others are silent; what /v1/ready says then."""

    def silent(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("nobody is there")

    async def play() -> tuple[int, str]:
        async with httpx.AsyncClient(transport=httpx.MockTransport(silent)) as http:
            caretaker = Caretaker(stage.nodes[0], http)
            for _ in range(passes):
                await caretaker.look(patience=60)
            try:
                await caretaker.health.check()
            except node.Problem as problem:
                return problem.kind.status, str(problem)
            return 200, ""

    return asyncio.run(play())


def second_study(stage: Stage) -> str:
    """Another study with an open round at the first Compute, which comes after the stage's own in the store."""
    for nonce in range(100):
        study = replace(stage.study, nonce=str(nonce))
        if study.id > stage.id:
            break
    node.register_study(stage.nodes[0], sign_record(study, stage.analyst))
    record = replace(stage.round(), study=digest(study))
    node.open_round(stage.nodes[0], study.id, sign_record(record, stage.analyst))
    return study.id


def damage(stage: Stage, table, **values) -> None:
    column = table.c.id if table is tables.studies else table.c.study
    with stage.nodes[0].store.write() as connection:
        connection.execute(update(table).where(column == stage.id).values(**values))


def state(stage: Stage, study: str) -> tuple[str, str | None]:
    with stage.nodes[0].store.read() as connection:
        row = db.find_round(connection, study, 0)
    return row.state, row.reason


@pytest.mark.parametrize("table", [tables.rounds, tables.studies], ids=["round", "study"])
@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_a_damaged_record_stops_its_own_round_only_and_is_told(stage: Stage, table, closed: bool):
    record = stage.round()
    stage.open(record)
    if closed:
        stage.close(record)
    other = second_study(stage)
    assert caring(stage) == (200, "")
    damage(stage, table, record=b"{")
    code, detail = caring(stage)
    assert (code, f"round 0 of study {stage.id[:16]} cannot be read" in detail) == (503, True)
    stage.clock.now += 3601
    assert caring(stage)[0] == (200 if closed else 503)  # a closed one has waited long enough, and is given up
    assert state(stage, other)[0] == "closed"  # its time is over, and the damaged one did not keep it from ending
    stage.clock.now += 101
    caring(stage)
    assert state(stage, stage.id) == ("refused", "damaged")
    with stage.nodes[0].store.read() as connection:
        left = db.ledger_events(connection, stage.id)
    assert len(left) == (table is tables.studies)  # who does not know the scheme cannot tell who may have released


def test_a_damaged_roster_is_told_too(stage: Stage):
    record = stage.round()
    stage.run_to_rosters(record)
    damage(stage, tables.rosters, record=b"{}")
    assert caring(stage)[0] == 503
    assert state(stage, stage.id)[0] == "closed"


def test_a_caretaker_that_does_not_come_round_is_told(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> None:
        raise ValueError("no rows today")

    monkeypatch.setattr(health, "_LATELY", -1.0)
    assert caring(stage)[0] == 503
    monkeypatch.setattr(health, "_LATELY", 15.0)
    assert caring(stage)[0] == 200
    monkeypatch.setattr(Caretaker, "_unfinished", broken)
    with pytest.raises(ValueError, match="no rows today"):
        caring(stage)


def test_a_database_that_cannot_be_written_is_told(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OperationalError("UPDATE", {}, Exception("database or disk is full"))

    monkeypatch.setattr(Store, "probe", full)
    code, detail = caring(stage)
    assert (code, "the database cannot be written (OperationalError)" in detail) == (503, True)


def test_a_disk_that_is_nearly_full_is_told(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(health, "_LEAST_FREE", 1 << 60)
    assert "make room" in caring(stage)[1]


def test_asked_often_it_writes_once_a_second(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    writes, probe = [], Store.probe
    monkeypatch.setattr(Store, "probe", lambda store, now: writes.append(now) or probe(store, now))

    async def play() -> list[int]:
        async with httpx.AsyncClient() as unused:
            app = create_app(stage.nodes[0], unused)
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as http:
                return [(await http.get("http://a/v1/ready")).status_code for _ in range(20)]

    assert asyncio.run(play()) == [200] * 20
    assert 1 <= len(writes) < 10


def test_a_round_is_refunded_only_where_nothing_was_released(stage: Stage):
    record = stage.round()
    stage.run_to_rosters(record)
    assert stage.settle() == ["released"] * M
    agreement.refuse(stage.nodes[0], stage.id, 0, "damaged", "too late")
    assert state(stage, stage.id)[0] == "released"
    with stage.nodes[0].store.read() as connection:
        assert len(db.ledger_events(connection, stage.id)) == 1
