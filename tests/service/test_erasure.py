"""What is left of reports on the disks of all Computes and their databases, once a round has ended: nothing to open."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import psycopg
import pytest
from sqlalchemy import select

from hubbub.privacy import Budget, noise_multiplier
from hubbub.securesum import Context, decode_share, join_session
from hubbub.securesum.additive import expanded
from hubbub.securesum.wire.codec import share_sizes
from hubbub.service.node import agreement, answers, tables
from hubbub.service.node import compute as node
from hubbub.service.node import store as db
from hubbub.service.node.store import Store
from hubbub.service.node.vault import Vault
from hubbub.service.wire.canonical import digest, sign_record
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.records import RoundRecord
from service.stage import M, Person, Stage, make_stage


class Disks:
    """Three Computes, each with a folder of its own, and every byte that is on a disk of theirs."""

    def __init__(self, kind: str, folder: Path, request: pytest.FixtureRequest) -> None:
        self.postgres = request.getfixturevalue("postgres") if kind == "postgresql" else None
        self.folders = [folder / f"compute-{k}" for k in range(M)]
        for each in self.folders:
            each.mkdir()
        self.urls = [f"sqlite:///{each}/compute.db" for each in self.folders]
        if self.postgres is not None:
            self.urls = [self.postgres.database() for _ in range(M)]
        self.stage = make_stage(self.urls, folders=self.folders)
        self.stage.register()

    def bytes(self) -> list[bytes]:
        folders = list(self.folders)
        if self.postgres is not None:
            with psycopg.connect(
                host=str(self.postgres.folder), user="hubbub", dbname="postgres", autocommit=True
            ) as it:
                it.execute("CHECKPOINT")
            folders.append(self.postgres.folder / "data")
        return [path.read_bytes() for each in folders for path in each.rglob("*") if path.is_file()]

    def round_keys(self) -> list[bytes]:
        return [path.read_bytes() for each in self.folders for path in (each / "round-keys").iterdir()]

    def restart(self) -> None:
        """As after a kill: nothing is closed, nothing said goodbye to."""
        self.stage.nodes = [
            replace(each, store=Store(url), vault=Vault(folder / "round-keys"))
            for each, url, folder in zip(self.stage.nodes, self.urls, self.folders, strict=True)
        ]
        for each in self.stage.nodes:
            agreement.forget_ended(each, starting=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def disks(request: pytest.FixtureRequest, tmp_path: Path):
    made = Disks(request.param, tmp_path, request)
    yield made
    for each in made.stage.nodes:
        each.store.close()


def row_of(stage: Stage, k: int, table, person: Person):
    with stage.nodes[k].store.read() as connection:
        return connection.execute(select(table).where(table.c.client == person.name)).one()


def rebuilt(stage: Stage, record: RoundRecord, person: Person, found: list[bytes]) -> np.ndarray | None:
    """The noisy vector of one client, for somebody with all files, all long-term keys and all tables of all Computes.

    A report's mark is the end of what its client sealed: where it stands in a file, the report stands before it.
    """
    role = record.checked(stage.study)
    plan, shares = role.plan(record.number), []
    for k, each in enumerate(stage.nodes):
        opening, mark = row_of(stage, k, tables.clients, person).opening, row_of(stage, k, tables.reports, person).mark
        session = join_session(opening, each.keys.seal, digest(stage.study), person.name, k)
        context = Context(role.digest, record.number, person.name, k)
        lengths = [28 + size for size in share_sizes(role.secure_sum, plan.dimension).values()]
        share = opened(found, bytes.fromhex(mark), lengths, session, context)
        if share is None:
            return None
        shares.append(expanded(decode_share(share, role.secure_sum, plan.dimension)))
    return plan.noise.grid.decode(role.secure_sum.unshard(dict(enumerate(shares))))


def opened(found: list[bytes], mark: bytes, lengths: list[int], session, context: Context) -> bytes | None:
    for content in found:
        at = content.find(mark)
        while at >= 0:
            for length in lengths:
                try:
                    return session.open(content[at + len(mark) - length : at + len(mark)], context)
                except Exception:
                    continue
            at = content.find(mark, at + 1)
    return None


def sealed_in(stage: Stage, record: RoundRecord, bodies: list[bytes], person: Person) -> list[bytes]:
    """What the client sealed to each Compute: the end of its report, before the session's name."""
    marks = [bytes.fromhex(row_of(stage, k, tables.reports, person).mark) for k in range(M)]
    return [body[: body.index(mark)][-32:] + mark for body, mark in zip(bodies, marks, strict=True)]


def fill(disks: Disks, record: RoundRecord, people: list[Person]) -> tuple[list[bytes], list[bytes]]:
    """Send everybody's reports; what was sealed, and the keys of the round."""
    stage, sealed = disks.stage, list[bytes]()
    for person in people:
        bodies = stage.reports(record, person)
        for k in range(M):
            stage.accept(k, [stage.upload(record, bodies[k])])
        sealed += sealed_in(stage, record, bodies, person)
    return sealed, disks.round_keys()


def assert_gone(disks: Disks, record: RoundRecord, people: list[Person], secrets: list[bytes]) -> None:
    found = disks.bytes()
    assert disks.round_keys() == []
    for secret in secrets:
        assert not any(secret in content for content in found)
    for person in people:
        assert rebuilt(disks.stage, record, person, found) is None


def test_files_of_all_computes_give_no_clients_vector_after_a_release(disks: Disks):
    stage, record = disks.stage, disks.stage.round(multiplier=0.0)
    stage.open(record)
    sealed, keys = fill(disks, record, stage.people)
    assert len(keys) == len(set(keys)) == M
    found = disks.bytes()
    assert not any(secret in content for secret in sealed for content in found)
    assert all(rebuilt(stage, record, person, found) is None for person in stage.people)
    clear = [stage.nodes[k].vault.unlock((stage.id, 0), row_of(stage, k, tables.reports, stage.people[2]).locked)
             for k in range(M)]  # fmt: skip
    np.testing.assert_array_equal(
        rebuilt(stage, record, stage.people[2], clear), [4 / 16, -2.0]
    )  # with the keys it works
    disks.restart()
    stage.close(record)
    stage.exchange()
    assert stage.settle() == ["released"] * M
    np.testing.assert_array_equal(stage.total(record)[0], [63 / 16, -15.0])
    assert_gone(disks, record, stage.people, sealed + keys)
    if disks.postgres is None:
        assert [(folder / "compute.db-wal").stat().st_size for folder in disks.folders] == [0] * M
    disks.restart()
    assert_gone(disks, record, stage.people, sealed + keys)


def test_files_of_all_computes_give_no_clients_vector_after_a_refusal(disks: Disks):
    stage, record, some = disks.stage, disks.stage.round(multiplier=0.0), disks.stage.people[:3]
    stage.open(record)
    sealed, keys = fill(disks, record, some)
    stage.close(record)
    stage.exchange()
    assert stage.settle() == ["refused"] * M
    assert_gone(disks, record, some, sealed + keys)
    disks.restart()
    assert_gone(disks, record, some, sealed + keys)


def test_a_key_is_private_and_kept_until_its_round_ends(tmp_path: Path):
    stage = make_stage(
        [f"sqlite:///{tmp_path}/{k}.db" for k in range(M)], folders=[tmp_path / str(k) for k in range(M)]
    )
    stage.register()
    record, first = stage.round(), stage.nodes[0]
    stage.open(record)
    stage.open(record)
    (path,) = (tmp_path / "0" / "round-keys").iterdir()
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    agreement.forget_ended(first, starting=True)
    assert path.exists()


def test_what_a_crash_left_half_done_is_finished_at_the_next_start(tmp_path: Path):
    """A key whose round was never committed, one half-written, one overwritten but not deleted, one that was left."""
    stage = make_stage(
        [f"sqlite:///{tmp_path}/{k}.db" for k in range(M)], folders=[tmp_path / str(k) for k in range(M)]
    )
    stage.register()
    first, folder = stage.nodes[0], tmp_path / "0" / "round-keys"
    record = stage.round()
    node.open_round(first, stage.id, sign_record(record, stage.analyst))
    key = next(folder.iterdir()).read_bytes()
    agreement.refuse(first, stage.id, 0, "damaged", "a test")
    (folder / f"{stage.id}-0").write_bytes(key)
    (folder / f"{stage.id}-1").write_bytes(key)
    (folder / f"{'ab' * 32}-0").write_bytes(bytes(32))
    (folder / f"{stage.id}-2.new").write_bytes(key[:7])
    again = replace(first, vault=Vault(folder))
    assert again.vault.places() == {(stage.id, 0), (stage.id, 1)}
    agreement.forget_ended(again)
    assert again.vault.places() == {(stage.id, 1)}  # it may be of a round that is just being opened
    agreement.forget_ended(again, starting=True)
    assert list(folder.iterdir()) == []


def test_a_round_whose_key_is_gone_is_refused_not_stored_in_the_clear(tmp_path: Path):
    stage = make_stage(
        [f"sqlite:///{tmp_path}/{k}.db" for k in range(M)], folders=[tmp_path / str(k) for k in range(M)]
    )
    stage.register()
    record = stage.round()
    stage.open(record)
    stage.send(record, stage.people[0])
    stage.nodes[0].vault.erase((stage.id, 0))
    first, *others = stage.send(record, stage.people[1])
    assert first.code == "round-refused"
    assert [outcome.new for outcome in others] == [True] * (M - 1)
    with stage.nodes[0].store.read() as connection:
        assert [row.locked for row in connection.execute(select(tables.reports))] == [None]


@pytest.mark.parametrize("when", ["a report comes", "it starts"])
def test_an_old_database_of_a_released_round_gives_no_charge_back_and_signs_no_refusal(tmp_path: Path, when: str):
    """A backup without the key of its round, put back after the release: the sum is out, so a refusal would be a lie."""
    budget, urls = Budget(1.0, 1e-5), [f"sqlite:///{tmp_path}/{k}.db" for k in range(M)]
    stage = make_stage(urls, budget, folders=[tmp_path / str(k) for k in range(M)])
    stage.register()
    record = stage.round(multiplier=noise_multiplier(budget))
    stage.open(record)
    for person in stage.people[:-1]:
        stage.send(record, person)
    with sqlite3.connect(tmp_path / "0.db") as now, sqlite3.connect(tmp_path / "old.db") as old:
        now.backup(old)
    stage.send(record, stage.people[-1])
    stage.close(record)
    stage.exchange()
    assert stage.settle() == ["released"] * M
    restored = replace(
        stage.nodes[0], store=Store(f"sqlite:///{tmp_path}/old.db"), vault=Vault(tmp_path / "0" / "round-keys")
    )
    if when == "it starts":
        agreement.forget_ended(restored, starting=True)
    else:
        stage.nodes[0] = restored
        assert stage.send(record, stage.people[-1], [0])[0].code == "round-refused"
    with restored.store.read() as connection:
        assert db.find_round(connection, stage.id, 0).reason == "key-lost"
        assert len(db.ledger_events(connection, stage.id)) == 1
    with pytest.raises(Problem) as problem:
        answers.signed_refusal(restored, stage.id, 0)
    assert problem.value.code == "rolled-back"


def test_a_key_that_cannot_be_erased_now_is_erased_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stage = make_stage(
        [f"sqlite:///{tmp_path}/{k}.db" for k in range(M)], folders=[tmp_path / str(k) for k in range(M)]
    )
    stage.register()
    stage.open(stage.round())
    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("a broken disk")))
        agreement.refuse(stage.nodes[0], stage.id, 0, "damaged", "a test")
    assert stage.nodes[0].vault.places() == {(stage.id, 0)}
    agreement.forget_ended(stage.nodes[0])
    assert list((tmp_path / "0" / "round-keys").iterdir()) == []
