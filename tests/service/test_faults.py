"""Real processes die at every step; the round still ends with the right sum, once, or with a refusal."""

from __future__ import annotations

import contextlib
import resource
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
from sqlalchemy import NullPool, create_engine, select, text

from hubbub.errors import PerhapsReleased, RoundRefused
from hubbub.service.devnet import LocalCompute, LocalComputes
from hubbub.service.node import agreement, tables
from hubbub.service.node.compute import Limits
from hubbub.service.node.faults import VARIABLE
from hubbub.service.node.uploads import Taken
from hubbub.service.wire.canonical import digest, sign_record
from hubbub.service.wire.endings import CloseRecord
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.web import Web
from service.live import LiveStudy, N
from service.postgres import PrivatePostgres
from service.stage import M, make_stage

pytestmark = pytest.mark.slow

POINTS = [
    *(f"after:{commit}" for commit in ("registered", "invited", "enrolled", "opened", "accepted", "closed", "agreed", "released")),
    *(f"before-reply:{name}" for name in ("register", "enrol", "open", "report", "close", "roster", "agreement", "sum")),
    "after:roster-received", "after:agreement-received", "after:key-made", "after:key-zeroed",
]  # fmt: skip


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalComputes]:
    limits = Limits(simulation=True, agreement_seconds=60.0)
    with LocalComputes(tmp_path_factory.mktemp("mortal"), 3, limits=limits) as computes:
        yield computes


@contextlib.contextmanager
def dies_at(compute: LocalCompute, point: str, *, back: bool = True) -> Iterator[threading.Event]:
    """The Compute kills itself (SIGKILL) at this point and, where `back`, is started again by somebody who watches."""
    compute.stop()
    compute.start({VARIABLE: point})
    died, process = threading.Event(), compute.process
    assert process is not None

    def watch() -> None:
        if process.wait() == -9:
            died.set()
            if back:
                compute.start()

    watcher = threading.Thread(target=watch)
    watcher.start()
    yield died
    if not died.is_set():
        compute.stop()
    watcher.join(30)


def rows_of(compute: LocalCompute, table, study: str) -> list:
    engine = create_engine(f"sqlite:///{compute.folder / 'compute.db'}", poolclass=NullPool)  # the file may be replaced
    with engine.connect() as connection:
        studied, rows = table, select(table)
        if table is tables.reports:
            studied, rows = tables.rounds, rows.join(tables.rounds, table.c.round == tables.rounds.c.id)
        return list(connection.execute(rows.where(studied.c.study == study)).all())


def keys_left(compute: LocalCompute, study: LiveStudy) -> list[Path]:
    """Files of round keys of this study, once the caretaker has had time to erase them."""
    deadline, folder = time.monotonic() + 10, compute.folder / "round-keys"
    while (left := list(folder.glob(f"{study.study.id}*"))) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_every_step_the_round_still_gives_the_exact_sum_once(
    mortal: LocalComputes, tmp_path: Path, point: str
):
    study = LiveStudy(mortal, tmp_path, patience=40.0)
    with dies_at(mortal.computes[0], point) as died:
        study.prepare()
        record = study.plan()
        study.analyst.open_round(record)
        study.send(record)
        study.analyst.close(record)
        release = study.analyst.release(record)
        assert died.wait(10), f"{point} was never reached"
        np.testing.assert_array_equal(release.value, study.exact())
        assert release.n == N
        again = study.analyst.release(record)
        np.testing.assert_array_equal(again.value, release.value)
    for compute in mortal.computes:
        (row,) = rows_of(compute, tables.rounds, study.study.id)
        assert (row.state, row.roster_size) == ("released", N)
        assert len(rows_of(compute, tables.sums, study.study.id)) == 1
        assert [report.locked for report in rows_of(compute, tables.reports, study.study.id)] == [None] * N
        assert len(rows_of(compute, tables.ledger, study.study.id)) == 1
        assert keys_left(compute, study) == []


def test_killed_after_a_refusal_it_stays_refused_and_refunded(mortal: LocalComputes, tmp_path: Path):
    study = LiveStudy(mortal, tmp_path, patience=40.0)
    study.prepare()
    record = study.plan()
    study.analyst.open_round(record)
    study.send(record, ["c0", "c1"])
    with dies_at(mortal.computes[0], "after:refused") as died:
        study.analyst.close(record)
        with pytest.raises(RoundRefused):
            study.analyst.release(record)
        assert died.wait(10)
    for compute in mortal.computes:
        deadline = time.monotonic() + 30
        while rows_of(compute, tables.rounds, study.study.id)[0].state != "refused" and time.monotonic() < deadline:
            time.sleep(0.1)
        (row,) = rows_of(compute, tables.rounds, study.study.id)
        assert row.state == "refused"
        assert rows_of(compute, tables.ledger, study.study.id) == []
        assert {report.locked for report in rows_of(compute, tables.reports, study.study.id)} <= {None}
        assert keys_left(compute, study) == []


def test_a_compute_that_is_down_at_closing_time_is_told_by_the_others(mortal: LocalComputes, tmp_path: Path):
    study = LiveStudy(mortal, tmp_path)
    study.prepare()
    record = study.plan()
    study.analyst.open_round(record)
    study.send(record)
    mortal.computes[2].kill()
    data = sign_record(CloseRecord(digest(study.study), digest(record)), study.key)
    reply = httpx.post(study.url(0, "/rounds/0/close"), content=data, headers={"content-type": "application/json"})
    assert reply.status_code == 201
    waiting = httpx.get(study.url(0, "/rounds/0/sum"))
    assert waiting.json()["code"] == "agreement-under-way"
    mortal.computes[2].start()
    np.testing.assert_array_equal(study.analyst.release(record).value, study.exact())


def test_a_compute_that_never_comes_back_ends_in_a_refusal(tmp_path: Path):
    limits = Limits(simulation=True, agreement_seconds=2.0)
    with LocalComputes(tmp_path / "nodes", 3, limits=limits) as computes:
        study = LiveStudy(computes, tmp_path)
        study.prepare()
        record = study.plan()
        study.analyst.open_round(record)
        study.send(record)
        computes.computes[2].kill()
        short = replace(study.analyst, web=Web.open(None, replace(study.web.patience, total=1.0)))
        short.close(record)
        deadline = time.monotonic() + 30
        while httpx.get(study.url(0, "/rounds/0/sum")).json()["code"] != "round-refused":
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with pytest.raises(PerhapsReleased, match="did not answer in time.*compute-3 has not signed a refusal"):
            short.release(record)
        computes.computes[2].start()
        study.analyst.close(record)
        with pytest.raises(RoundRefused, match="every Compute has signed its refusal"):
            study.analyst.release(record)


def copy_database(compute: LocalCompute, target: Path) -> None:
    live, backup = sqlite3.connect(compute.folder / "compute.db"), sqlite3.connect(target)
    with contextlib.closing(live), contextlib.closing(backup):
        live.backup(backup)


def restore_database(compute: LocalCompute, source: Path) -> None:
    compute.kill()
    for name in ("compute.db-wal", "compute.db-shm"):
        (compute.folder / name).unlink(missing_ok=True)
    shutil.copyfile(source, compute.folder / "compute.db")  # the mode stays the Compute's
    compute.start()


@pytest.mark.parametrize("when", ["before the round", "half-way", "half-way, with the round's key"])
def test_a_restored_database_is_found_out_by_the_others_records(mortal: LocalComputes, tmp_path: Path, when: str):
    """An operator puts an old copy back after the release: no second roster is ever summed."""
    victim, copy = mortal.computes[0], tmp_path / "old.db"
    study = LiveStudy(mortal, tmp_path)
    study.prepare()
    record = study.plan()
    if when == "before the round":
        copy_database(victim, copy)
    study.analyst.open_round(record)
    study.send(record, ["c0", "c1", "c2", "c3", "c4"])
    if when != "before the round":
        copy_database(victim, copy)
        shutil.copytree(victim.folder / "round-keys", tmp_path / "keys")
    study.send(record, ["c5"])
    study.analyst.close(record)
    study.analyst.release(record)
    if when.endswith("key"):
        shutil.copytree(tmp_path / "keys", victim.folder / "round-keys", dirs_exist_ok=True)
    restore_database(victim, copy)
    data = {"content-type": "application/json"}
    if when == "before the round":
        with pytest.raises(Problem) as problem:
            study.analyst.open_round(record)
        assert problem.value.code == "rolled-back"
        assert rows_of(victim, tables.rounds, study.study.id) == []
    else:
        close = sign_record(CloseRecord(digest(study.study), digest(record)), study.key)
        reply = httpx.post(study.url(0, "/rounds/0/close"), content=close, headers=data, timeout=20)
        assert reply.status_code == (201 if when.endswith("key") else 200)  # without its key it is refused at the start
        with pytest.raises(PerhapsReleased, match="compute-1 has not signed a refusal.*old copy"):
            study.analyst.release(record)
        assert (study.counter(1, "second-roster") >= 1) == when.endswith("key")
    assert rows_of(victim, tables.sums, study.study.id) == []
    kinds = {row.kind for row in rows_of(victim, tables.audit, study.study.id)}
    assert kinds & {"rolled-back", "round-refused"}


def test_a_full_disk_loses_nothing_that_was_confirmed(mortal: LocalComputes, tmp_path: Path):
    study, victim = LiveStudy(mortal, tmp_path), mortal.computes[1]
    study.prepare()
    record = study.plan()
    study.analyst.open_round(record)
    study.send(record, ["c0", "c1"])
    assert victim.process is not None
    resource.prlimit(victim.process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    full = httpx.post(
        study.url(1, "/rounds/0/close"),
        content=sign_record(CloseRecord(digest(study.study), digest(record)), study.key),
        headers={"content-type": "application/json"},
        timeout=20,
    )
    assert (full.status_code, full.json()["code"]) == (503, "not-ready")
    unready = httpx.get(f"{victim.url}/v1/ready", timeout=20)
    assert (unready.status_code, "cannot be written" in unready.json()["detail"]) == (503, True)
    resource.prlimit(victim.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    study.send(record)
    study.analyst.close(record)
    np.testing.assert_array_equal(study.analyst.release(record).value, study.exact())
    deadline = time.monotonic() + 20
    while httpx.get(f"{victim.url}/v1/ready", timeout=20).status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_database_restart_is_survived(postgres: PrivatePostgres):
    stage = make_stage([postgres.database() for _ in range(M)])
    stage.register()
    record = stage.round(multiplier=0.0)
    stage.open(record)
    for person in stage.people[:3]:
        stage.send(record, person)
    postgres.stop("immediate")
    postgres.start()
    for person in stage.people[3:]:
        assert stage.send(record, person) == [Taken(1, True)] * M
    stage.close(record)
    stage.exchange()
    postgres.stop("immediate")
    postgres.start()
    assert stage.settle() == ["released"] * M
    np.testing.assert_array_equal(stage.total(record)[0], [63 / 16, -15.0])
    assert agreement.released_sum(stage.nodes[0], stage.id, 0)
    with stage.nodes[0].store.read() as connection:
        assert connection.execute(text("select 1")).scalar_one() == 1
