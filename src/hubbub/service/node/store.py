"""The database of a Compute: SQLite or PostgreSQL, one transaction per transition, compare-and-set on the state."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from itertools import chain
from typing import Any, cast

from sqlalchemy import (
    Connection,
    Engine,
    Row,
    bindparam,
    create_engine,
    delete,
    event,
    func,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError

from hubbub.errors import invalid
from hubbub.privacy import Event
from hubbub.service.node import faults, tables
from hubbub.service.node.private_files import make_database_file
from hubbub.service.node.tables import State
from hubbub.service.node.turns import Turns
from hubbub.service.wire.charges import event_from
from hubbub.service.wire.problems import Problem

_BUSY_SECONDS = 30
_TRUNCATE_MILLISECONDS = 100
_AT_ONCE = 500  # values in one IN (...)
_CLIENTS = select(tables.clients).where(
    tables.clients.c.study == bindparam("study"), tables.clients.c.client.in_(bindparam("names", expanding=True))
)
_BIND = (
    update(tables.clients)
    .where(tables.clients.c.study == bindparam("of_study"), tables.clients.c.client == bindparam("of_client"))
    .where(tables.clients.c.key.is_(None))
)
_ROUND = select(tables.rounds).where(
    tables.rounds.c.study == bindparam("study"), tables.rounds.c.number == bindparam("number")
)
_ROUND_LOCKED = _ROUND.with_for_update(read=True)
_HELD = select(tables.reports.c.client, tables.reports.c.mark).where(
    tables.reports.c.round == bindparam("round"), tables.reports.c.client.in_(bindparam("names", expanding=True))
)
_INSERT_REPORTS = "INSERT INTO reports (round, client, samples, mark, locked, other) VALUES"
ReportRow = tuple[str, int, str, bytes | bytearray, str]
"""Client, samples, mark, the sealed share (locked, where it is stored), the client's event or "". SQLite's driver takes
a bytearray as it is; for bytes or None it first looks for an adapter, which takes nearly as long as writing them."""


class Store:
    """Connections to one database."""

    def __init__(self, url: str) -> None:
        self.url, self.engine = url, _engine(url)
        self._sqlite = self.engine.dialect.name == "sqlite"
        self._turns = Turns() if self._sqlite else nullcontext()
        self._truncated = True
        tables.metadata.create_all(self.engine)
        _check_tables(self.engine)

    @contextmanager
    def write(self, done: str | None = None) -> Iterator[Connection]:
        """One transaction: all of it or nothing. `done` names the commit, for tests that crash after it."""
        with self._turns, self.engine.connect().execution_options(immediate=True) as connection, connection.begin():
            yield connection
        if done is not None:
            faults.point(f"after:{done}")

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent view."""
        with self.engine.connect() as connection, connection.begin():
            yield connection

    def probe(self, now: float) -> None:
        """Write a little, for real; raises where that cannot be done."""
        with self.write() as connection:
            if connection.execute(update(tables.health).values(time=now)).rowcount == 0:
                once(connection, insert(tables.health).values(id=0, time=now))

    def truncate(self, *, again: bool = False) -> None:
        """Write SQLite's log into the database and cut it to nothing; with `again` only where that has failed before.

        It fails while somebody reads, and nobody is made to wait for it long. What the log holds of reports is locked.
        """
        if not self._sqlite or (again and self._truncated):
            return
        with self._turns, closing(self.engine.raw_connection()) as connection:
            cursor = connection.cursor()
            cursor.execute(f"PRAGMA busy_timeout={_TRUNCATE_MILLISECONDS}")
            busy, *_ = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            cursor.execute(f"PRAGMA busy_timeout={1000 * _BUSY_SECONDS}")
            self._truncated = not busy

    def close(self) -> None:
        """Give the connections back."""
        self.engine.dispose()


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite":
            make_database_file(url)
            engine = create_engine(
                parsed, hide_parameters=True, connect_args={"timeout": _BUSY_SECONDS, "check_same_thread": False}
            )
            event.listen(engine, "connect", _prepare_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
            return engine
        return create_engine(parsed, hide_parameters=True, pool_pre_ping=True, pool_size=10)
    except (ArgumentError, NoSuchModuleError, ImportError):
        raise invalid("database", "a URL such as sqlite:///compute.db", url.split("@")[-1], "check it") from None


def _check_tables(engine: Engine) -> None:
    """Refuse a database that another version of hubbub made."""
    found = inspect(engine)
    for table in tables.metadata.sorted_tables:
        missing = {column.name for column in table.columns} - {each["name"] for each in found.get_columns(table.name)}
        if missing:
            raise invalid("database", "made by this version of hubbub", f"no {min(missing)} in {table.name}",
                          "end its studies with the version that made it, and start with a new database")  # fmt: skip


def _prepare_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions are begun below, not by the driver
    for pragma in ("page_size=16384", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def new_event() -> str:
    """A name for something that happened, which another party's log can refer to."""
    return uuid.uuid4().hex


def write_audit(
    connection: Connection,
    time: float,
    kind: str,
    study: str,
    number: int | None = None,
    *,
    event: str,
    other: str | None = None,
    **detail: object,
) -> None:
    """One line of the audit log; `other` is the event of the party at the other end."""
    write_audits(connection, [audit_row(time, kind, study, number, event=event, other=other, **detail)])


def audit_row(
    time: float, kind: str, study: str, number: int | None, *, event: str, other: str | None, **detail: object
) -> dict[str, object]:
    """A line of the audit log, before it is written."""
    return {"event": event, "time": time, "kind": kind, "study": study, "number": number, "other": other,
            "detail": json.dumps(detail)[:1000]}  # fmt: skip


def write_audits(connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
    """Many lines of the audit log."""
    if rows:
        connection.execute(insert(tables.audit), list(rows))


def audited(connection: Connection, row: Mapping[str, object]) -> bool:
    """True where the audit log has a line of this kind and detail for the round."""
    same = [tables.audit.c[name] == row[name] for name in ("study", "number", "kind", "detail")]
    return connection.execute(select(tables.audit.c.position).where(*same).limit(1)).first() is not None


def find_study(connection: Connection, study: str, *, lock: bool = False) -> Row[Any]:
    """The registered study with its drawn seed, or the problem not-found.

    With `lock` nobody else has it so until the transaction ends.
    """
    both = tables.studies.outerjoin(tables.draws, tables.draws.c.study == tables.studies.c.id)
    query = select(tables.studies, tables.draws.c.seed).select_from(both).where(tables.studies.c.id == study)
    locked = query.with_for_update(key_share=True, of=tables.studies)
    row = connection.execute(locked if lock else query).one_or_none()
    if row is None:
        raise Problem("not-found", f"study must be registered here, got study={study[:64]}; register it first")
    return row


def find_round(connection: Connection, study: str, number: int, *, lock: bool = False) -> Row[Any]:
    """The round, or the problem not-found. With `lock` its state stays as it is until the transaction ends."""
    row = connection.execute(_ROUND_LOCKED if lock else _ROUND, {"study": study, "number": number}).one_or_none()
    if row is None:
        raise Problem("not-found", f"round must be open here, got round={number}; wait until the analyst opens it")
    return row


def rounds_of(connection: Connection, study: str) -> Sequence[Row[Any]]:
    """All rounds of a study, in order."""
    query = select(tables.rounds).where(tables.rounds.c.study == study).order_by(tables.rounds.c.number)
    return connection.execute(query).all()


def rounds_in(connection: Connection, states: Iterable[State]) -> Sequence[Row[Any]]:
    """Rounds of all studies in these states."""
    query = select(tables.rounds).where(tables.rounds.c.state.in_(list(states)))
    return connection.execute(query.order_by(tables.rounds.c.study, tables.rounds.c.number)).all()


def unended(connection: Connection) -> set[tuple[str, int]]:
    """Where rounds are still under way: study and number of each."""
    query = select(tables.rounds.c.study, tables.rounds.c.number)
    rows = connection.execute(query.where(tables.rounds.c.state.not_in(["released", "refused"])))
    return {(row.study, row.number) for row in rows}


def state_of(connection: Connection, study: str, number: int) -> State | None:
    """The state of a round, or None where there is no such round."""
    query = select(tables.rounds.c.state).where(_round(tables.rounds, study, number))
    return cast("State | None", connection.execute(query).scalar_one_or_none())


def move(
    connection: Connection, study: str, number: int, before: State, after: State, time: float, **values: object
) -> bool:
    """Compare and set: True where the round was in `before` and is now in `after`."""
    query = update(tables.rounds).where(_round(tables.rounds, study, number), tables.rounds.c.state == before)
    return connection.execute(query.values(state=after, changed=time, **values)).rowcount == 1


def clients_of(connection: Connection, study: str, names: Sequence[str]) -> dict[str, Row[Any]]:
    """Those of the names who are invited."""
    found: dict[str, Row[Any]] = {}
    for start in range(0, len(names), _AT_ONCE):
        rows = connection.execute(_CLIENTS, {"study": study, "names": names[start : start + _AT_ONCE]})
        found.update((row.client, row) for row in rows)
    return found


def bind_clients(connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
    """Write down how clients have enrolled."""
    if rows and connection.execute(_BIND, list(rows)).rowcount != len(rows):
        raise Problem("not-ready", "a client of this group is being enrolled at the same time; send it again")


def held_marks(connection: Connection, round_id: int, names: Sequence[str]) -> dict[str, str]:
    """What has been accepted already of these clients."""
    found = dict[str, str]()
    for start in range(0, len(names), _AT_ONCE):
        rows = connection.execute(_HELD, {"round": round_id, "names": names[start : start + _AT_ONCE]})
        found.update((row.client, row.mark) for row in rows)
    return found


def add_reports(connection: Connection, round_id: int, rows: Sequence[ReportRow]) -> None:
    """Hold these reports, some hundreds at most. IntegrityError where one of the client is held for the round.

    Many rows in one statement, in the driver's own words: the interpreter's lock is taken once, not for every row.
    """
    mark = "?" if connection.dialect.paramstyle == "qmark" else "%s"
    one = f"({round_id:d}, {', '.join([mark] * 5)})"
    values = tuple(chain.from_iterable(rows))
    connection.exec_driver_sql(f"{_INSERT_REPORTS} {', '.join([one] * len(rows))}", values)


def roster_now(connection: Connection, study: str, number: int) -> tuple[str, ...]:
    """The clients whose report is held, sorted."""
    query = select(tables.reports.c.client).where(_held(study, number))
    return tuple(sorted(connection.execute(query).scalars()))


def count_reports(connection: Connection, study: str, number: int) -> int:
    """How many clients' reports are held (or were, before they were scrubbed)."""
    return int(connection.execute(select(func.count(tables.reports.c.client)).where(_held(study, number))).scalar_one())


def samples_of(connection: Connection, study: str, number: int) -> dict[str, int]:
    """How many samples each client holds whose report is held."""
    columns = select(tables.reports.c.client, tables.reports.c.samples)
    rows = connection.execute(columns.where(_held(study, number)))
    return {row.client: row.samples for row in rows}


def invited_samples(connection: Connection, study: str) -> dict[str, int]:
    """How many samples each client holds who is invited."""
    query = select(tables.clients.c.client, tables.clients.c.samples).where(tables.clients.c.study == study)
    return {row.client: row.samples for row in connection.execute(query)}


def stream_reports(connection: Connection, study: str, number: int, size: int) -> Iterator[Sequence[Row[Any]]]:
    """All held reports, `size` at a time: never all in memory."""
    last = ""
    while True:
        query = select(tables.reports).where(_held(study, number), tables.reports.c.client > last)
        rows = connection.execute(query.order_by(tables.reports.c.client).limit(size)).all()
        if not rows:
            return
        yield rows
        last = rows[-1].client


def scrub(connection: Connection, study: str, number: int) -> None:
    """Delete the reports' bytes; who reported, and the marks, stay."""
    connection.execute(update(tables.reports).where(_held(study, number)).values(locked=None))


def stored_rosters(
    connection: Connection, study: str, number: int | None = None, compute: int | None = None
) -> Sequence[Row[Any]]:
    """Signed rosters, of one round or of one Compute where asked: the own ones and those of other Computes."""
    query = select(tables.rosters).where(tables.rosters.c.study == study)
    if number is not None:
        query = query.where(tables.rosters.c.number == number)
    if compute is not None:
        query = query.where(tables.rosters.c.compute == compute)
    return connection.execute(query.order_by(tables.rosters.c.number, tables.rosters.c.compute)).all()


def count_rosters(connection: Connection, study: str) -> dict[int, int]:
    """How many signed rosters each round has."""
    query = select(tables.rosters.c.number, func.count()).where(tables.rosters.c.study == study)
    return {row[0]: row[1] for row in connection.execute(query.group_by(tables.rosters.c.number))}


def add_roster(connection: Connection, study: str, number: int, compute: int, record: bytes) -> None:
    """Keep a signed roster."""
    connection.execute(insert(tables.rosters).values(study=study, number=number, compute=compute, record=record))


def stored_agreements(connection: Connection, study: str, number: int) -> dict[int, bytes]:
    """Signed agreements by the place of their Compute: the own one, and others' that say the same."""
    query = select(tables.agreements).where(_round(tables.agreements, study, number))
    rows = connection.execute(query.order_by(tables.agreements.c.compute))
    return {row.compute: bytes(row.record) for row in rows}


def add_agreement(connection: Connection, study: str, number: int, compute: int, record: bytes) -> bool:
    """Keep a signed agreement; False where one of this Compute is held."""
    values = {"study": study, "number": number, "compute": compute, "record": record}
    return once(connection, insert(tables.agreements).values(**values))


def stored_sum(connection: Connection, study: str, number: int) -> bytes | None:
    """The bytes that were released, if they were."""
    query = select(tables.sums.c.body).where(_round(tables.sums, study, number))
    return connection.execute(query).scalar_one_or_none()


def refusal_event(connection: Connection, study: str, number: int) -> str | None:
    """Under which event the audit log has the refusal of the round, if it was refused."""
    refused = _round(tables.audit, study, number) & (tables.audit.c.kind == "round-refused")
    return connection.execute(select(tables.audit.c.event).where(refused)).scalar_one_or_none()


def ledger_events(connection: Connection, study: str) -> list[Event]:
    """What the study has been charged, oldest first."""
    query = select(tables.ledger).where(tables.ledger.c.study == study).order_by(tables.ledger.c.number)
    return [event_from(row.event) for row in connection.execute(query)]


def charged_rounds(connection: Connection, study: str) -> set[int]:
    """The rounds that the study is charged for."""
    return set(connection.execute(select(tables.ledger.c.number).where(tables.ledger.c.study == study)).scalars())


def refund(connection: Connection, study: str, number: int) -> None:
    """Take back the charge of a round that was not released."""
    connection.execute(delete(tables.ledger).where(_round(tables.ledger, study, number)))


def add_counts(connection: Connection, counts: Mapping[str, int]) -> None:
    """Raise the counters, always in the same order, so that two transactions never wait for each other."""
    for name, value in sorted((name, value) for name, value in counts.items() if value):
        raised = update(tables.counters).where(tables.counters.c.name == name)
        raised = raised.values(value=tables.counters.c.value + value)
        first = insert(tables.counters).values(name=name, value=value)
        if connection.execute(raised).rowcount == 0 and not once(connection, first):
            connection.execute(raised)  # another transaction was first to need this counter


def counts(connection: Connection) -> dict[str, int]:
    """All counters."""
    return {row.name: row.value for row in connection.execute(select(tables.counters))}


def once(connection: Connection, statement: Any) -> bool:
    """Run an insert; False where its place is taken already."""
    try:
        with connection.begin_nested():
            connection.execute(statement)
    except IntegrityError:
        return False
    return True


def _round(table: Any, study: str, number: int) -> Any:
    return (table.c.study == study) & (table.c.number == number)


def _held(study: str, number: int) -> Any:
    """The reports of a round."""
    place = select(tables.rounds.c.id).where(_round(tables.rounds, study, number))
    return tables.reports.c.round == place.scalar_subquery()
