"""What a Compute keeps in memory of what never changes: rounds as they were opened, clients as they enrolled."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Row

from hubbub.privacy import Event, epsilon_spent
from hubbub.roles import Compute, Study
from hubbub.securesum import PrivateKey, Session, join_session
from hubbub.service.node import store as db
from hubbub.service.node.store import Store
from hubbub.service.wire.canonical import digest, read_signed
from hubbub.service.wire.charges import event_from, event_text
from hubbub.service.wire.merkle import Tree
from hubbub.service.wire.records import RoundRecord, StudyRecord

_MOST_CLIENTS, _MOST_ROUNDS, _MOST_STUDIES, _MOST_COUNTS = 100_000, 256, 256, 100_000
_MOST_TREES = 4


@dataclass(frozen=True)
class EnrolledClient:
    """An enrolled client and its session with this Compute."""

    name: str
    samples: int
    session: Session


@lru_cache(maxsize=256)
def parsed_study(data: bytes, seed: str | None = None) -> StudyRecord:
    """A study from the store, which was checked when it came, with the seed that was drawn for it."""
    return replace(read_signed(data, StudyRecord)[0], seed=seed or "")


@lru_cache(maxsize=256)
def parsed_round(study: bytes, data: bytes, seed: str | None = None) -> tuple[RoundRecord, Study]:
    """A round from the store, and what the roles work on."""
    record = read_signed(data, RoundRecord)[0]
    return record, record.checked(parsed_study(study, seed))


def account(events: Sequence[Event], delta: float) -> float:
    """The epsilon that these cost together. Sampled steps take a second to compose, and are asked for often."""
    return _account(tuple(map(event_text, events)), delta) if events else 0.0


@lru_cache(maxsize=256)
def _account(events: tuple[str, ...], delta: float) -> float:
    """The same, remembered by what is written of the events: not every kind of event can be hashed."""
    return epsilon_spent([event_from(event) for event in events], delta)


def joined(opening: bytes, key: PrivateKey, study: bytes, client: str, position: int) -> Session:
    """The session of an enrolment, by its short name and ready for reports; or CannotOpen."""
    session = join_session(opening, key, study, client, position).short()
    session.prepare()
    return session


@dataclass(frozen=True)
class Registered:
    """A study, its digest, and this Compute's place in it."""

    record: StudyRecord
    digest: bytes
    position: int


@dataclass(frozen=True)
class Known:
    """Memory before the store. Losing it costs time, nothing else."""

    store: Store
    key: PrivateKey = field(repr=False)
    _studies: dict[str, Registered] = field(default_factory=dict, repr=False)
    _rounds: dict[tuple[str, int], Compute] = field(default_factory=dict, repr=False)
    _trees: dict[str, Tree] = field(default_factory=dict, repr=False)
    _counts: dict[int, int] = field(default_factory=dict, repr=False)
    _clients: dict[str, dict[str, EnrolledClient]] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def study(self, study: str) -> Registered:
        """A registered study, or the problem not-found."""
        if (found := self._studies.get(study)) is None:
            with self.store.read() as connection:
                row = db.find_study(connection, study)
            record = parsed_study(row.record, row.seed)
            found = Registered(record, digest(record), row.position)
            if not record.secure_sum.undrawn:
                self._keep(self._studies, {study: found}, _MOST_STUDIES)
        return found

    def round(self, study: str, number: int) -> Compute:
        """This Compute's part in a round, or the problem not-found."""
        if (found := self._rounds.get((study, number))) is None:
            with self.store.read() as connection:
                about, row = db.find_study(connection, study), db.find_round(connection, study, number)
            found = Compute(parsed_round(about.record, row.record, about.seed)[1], number, about.position, self.key)
            self._keep(self._rounds, {(study, number): found}, _MOST_ROUNDS)
        return found

    def tree(self, study: str) -> Tree:
        """The tree over the invited clients of a study whose list is fixed."""
        if (found := self._trees.get(study)) is None:
            with self.store.read() as connection:
                found = Tree.over(db.invited_samples(connection, study))
            self._keep(self._trees, {study: found}, _MOST_TREES)
        return found

    def reports(self, connection: Connection, row: Row[Any]) -> int:
        """Of how many clients a round holds reports, which changes while it is open only."""
        if (found := self._counts.get(row.id)) is None:
            found = db.count_reports(connection, row.study, row.number)
            if row.state != "open":
                self._keep(self._counts, {row.id: found}, _MOST_COUNTS)
        return found

    def remembered(self, study: str) -> Mapping[str, EnrolledClient]:
        """The enrolled clients that are in memory, for those in a hurry."""
        return self._clients.get(study, {})

    def enrolled(self, study: str, names: Collection[str]) -> dict[str, EnrolledClient]:
        """Those of the names that have enrolled."""
        remembered = self.remembered(study)
        found = {name: client for name in names if (client := remembered.get(name)) is not None}
        if missing := [name for name in set(names) if name not in found]:
            fresh = self._load(study, missing)
            self._remember(study, fresh)
            found |= fresh
        return found

    def remember(self, study: str, client: EnrolledClient) -> None:
        """One who has just enrolled."""
        self._remember(study, {client.name: client})

    def _load(self, study: str, names: list[str]) -> dict[str, EnrolledClient]:
        """From the store, with a key agreement each."""
        about = self.study(study)
        with self.store.read() as connection:
            rows = [row for row in db.clients_of(connection, study, names).values() if row.opening is not None]
        sessions = (joined(row.opening, self.key, about.digest, row.client, about.position) for row in rows)
        return {
            row.client: EnrolledClient(row.client, row.samples, each) for row, each in zip(rows, sessions, strict=True)
        }

    def _remember(self, study: str, fresh: dict[str, EnrolledClient]) -> None:
        """Add to the memory of the study; the oldest clients of the oldest study go where all together are too many."""
        with self._lock:
            self._clients.setdefault(study, {}).update(fresh)
            for _ in range(sum(map(len, self._clients.values())) - _MOST_CLIENTS):
                oldest = next(iter(self._clients))
                del self._clients[oldest][next(iter(self._clients[oldest]))]
                if not self._clients[oldest]:
                    del self._clients[oldest]

    def _keep(self, memory: dict[Any, Any], fresh: dict[Any, Any], most: int) -> None:
        """Add to the memory; the oldest entries go where it is full."""
        with self._lock:
            memory.update(fresh)
            while len(memory) > most:
                del memory[next(iter(memory))]
