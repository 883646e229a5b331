"""A client's memory: its key, its sessions and every report it made, on disk before the first byte is sent.

A report carries fresh noise. Two different reports of one sample for one round would let their difference be seen, so
after a crash exactly the stored bytes are sent again.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hubbub.errors import InvalidInput, invalid
from hubbub.privacy import Event
from hubbub.securesum import Session, pack
from hubbub.securesum.wire.codec import unpack_all
from hubbub.service.wire.charges import event_from, event_text
from hubbub.service.wire.signing import SigningKey

_VERSION = 3
_SCHEMA = """
CREATE TABLE IF NOT EXISTS identities (study TEXT, client TEXT, samples INTEGER NOT NULL, key BLOB NOT NULL,
                                       sessions BLOB NOT NULL, enrolled INTEGER NOT NULL, PRIMARY KEY (study, client));
CREATE TABLE IF NOT EXISTS rounds (study TEXT, client TEXT, number INTEGER, digest BLOB NOT NULL,
                                   event TEXT NOT NULL, PRIMARY KEY (study, client, number));
CREATE TABLE IF NOT EXISTS parcels (study TEXT, client TEXT, number INTEGER, compute INTEGER,
                                    body BLOB NOT NULL, sent INTEGER NOT NULL,
                                    PRIMARY KEY (study, client, number, compute));
CREATE TABLE IF NOT EXISTS consents (study TEXT, client TEXT, analyst TEXT NOT NULL, computes TEXT NOT NULL,
                                     PRIMARY KEY (study, client));
CREATE TABLE IF NOT EXISTS demands (pooling INTEGER NOT NULL, contradicting INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS draws (study TEXT, client TEXT, draw BLOB NOT NULL, PRIMARY KEY (study, client));
"""


@dataclass(frozen=True)
class Parcel:
    """One body for one Compute."""

    compute: int
    body: bytes = field(repr=False)
    sent: bool = False


@dataclass(frozen=True)
class Identity:
    """What a client is known by: the key that it signs with, and a session with every Compute that serves it."""

    key: SigningKey
    sessions: tuple[Session, ...]


class Outbox:
    """A small SQLite file, readable by its owner only. Keys and reports are on disk when a method returns.

    That a report was confirmed may be forgotten in a crash: it is then sent again, which changes nothing.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._db = sqlite3.connect(self.path, timeout=30, isolation_level=None, check_same_thread=False)
            self._lock = threading.RLock()
            self._check_version()
            self._db.executescript(f"PRAGMA journal_mode=WAL; {_SCHEMA}; PRAGMA user_version={_VERSION}")
        except (OSError, sqlite3.Error) as error:
            raise InvalidInput(f"outbox must be a writable file, got outbox={path}: {error}; choose another") from None

    def _check_version(self) -> None:
        """Refuse a file that another version of hubbub made."""
        made = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if made and version != _VERSION:
            raise invalid("outbox", f"of version {_VERSION}", f"version {version} in {self.path}",
                          "end the study with the hubbub that made it, or name another file")  # fmt: skip

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def identity(self, study: str, client: str, samples: int, start: Callable[[], Sequence[Session]]) -> Identity:
        """The client's key and sessions in this study, made on first use; from then on it holds so many samples."""
        query = "SELECT key, sessions, samples FROM identities WHERE study = ? AND client = ?"
        if not (found := self._run(query, (study, client))):
            sessions = pack(*(part for session in start() for part in (session.opening, session.secret)))
            fresh = (study, client, samples, SigningKey.generate().data, sessions)
            self._run("INSERT OR IGNORE INTO identities VALUES (?, ?, ?, ?, ?, 0)", fresh, durable=True)
            found = self._run(query, (study, client))
        if found[0][2] != samples:
            raise invalid(
                "samples", f"{found[0][2]}, as {client} began the study", samples, "give all of them, and no others"
            )
        parts = unpack_all(found[0][1])
        return Identity(SigningKey(found[0][0]), tuple(map(Session, parts[::2], parts[1::2])))

    def check_parties(self, analyst: str, computes: Sequence[str]) -> None:
        """Refuse an analyst or Computes (fingerprints) other than those that were first agreed to in this outbox."""
        found = self._run("SELECT analyst, computes FROM consents ORDER BY rowid LIMIT 1", ())
        now = (analyst, _joined(computes))
        for what, got, before in zip(("analyst", "computes"), now, found[0] if found else now, strict=True):
            if got != before:
                raise InvalidInput(
                    f"{what} must be {before}, to whom you agreed before, got {got}; do not take part, or, if you know "
                    "them and mean another study, name another file with --outbox"
                )  # fmt: skip

    def agree(self, study: str, client: str, analyst: str, computes: Sequence[str]) -> None:
        """Remember that the data holder has agreed to take part in this study, with these parties (fingerprints)."""
        row = (study, client, analyst, _joined(computes))
        self._run("INSERT OR IGNORE INTO consents VALUES (?, ?, ?, ?)", row, durable=True)

    def agreed(self, study: str, client: str) -> bool:
        """True where the data holder has agreed to this very study."""
        return bool(self._run("SELECT 1 FROM consents WHERE study = ? AND client = ?", (study, client)))

    def keep_demand(self, pooling: int, contradicting: int) -> None:
        """Remember what the data holder demands of every study of this outbox (`check_withstands`), from now on."""
        if self.demand() != (pooling, contradicting):
            self._run("INSERT INTO demands VALUES (?, ?)", (pooling, contradicting), durable=True)

    def demand(self) -> tuple[int, int] | None:
        """What was demanded last, if anything was."""
        found = self._run("SELECT pooling, contradicting FROM demands ORDER BY rowid DESC LIMIT 1", ())
        return (int(found[0][0]), int(found[0][1])) if found else None

    def keep_draw(self, study: str, client: str, draw: bytes) -> None:
        """Remember the draw that decides who serves the client; refuses another one in its place."""
        self._run("INSERT OR IGNORE INTO draws VALUES (?, ?, ?)", (study, client, draw), durable=True)
        if self.draw(study, client) != draw:
            raise InvalidInput(
                f"draw must be the one that {client} has seen before, got another of the same study; do not take part"
            )

    def draw(self, study: str, client: str) -> bytes | None:
        """The draw that was checked and kept, if there is one."""
        rows = self._run("SELECT draw FROM draws WHERE study = ? AND client = ?", (study, client))
        return bytes(rows[0][0]) if rows else None

    def enrolled(self, study: str, client: str) -> bool:
        """True where every Compute has confirmed the enrolment."""
        query = "SELECT enrolled FROM identities WHERE study = ? AND client = ?"
        rows = self._run(query, (study, client))
        return bool(rows and rows[0][0])

    def mark_enrolled(self, study: str, client: str) -> None:
        """Remember that every Compute has confirmed."""
        self._run("UPDATE identities SET enrolled = 1 WHERE study = ? AND client = ?", (study, client))

    def spent(self, study: str, client: str) -> dict[int, Event]:
        """What every round costs that the client has taken part in."""
        query = "SELECT number, event FROM rounds WHERE study = ? AND client = ?"
        return {number: event_from(event) for number, event in self._run(query, (study, client))}

    def answered(self, study: str, client: str) -> dict[int, bytes]:
        """The digest of every round that the client has made reports for."""
        query = "SELECT number, digest FROM rounds WHERE study = ? AND client = ?"
        return dict(self._run(query, (study, client)))

    def parcels(self, study: str, client: str, number: int, digest: bytes) -> list[Parcel]:
        """What was made for this round already; refuses a round that has changed since."""
        query = "SELECT digest FROM rounds WHERE study = ? AND client = ? AND number = ?"
        found = self._run(query, (study, client, number))
        if not found:
            return []
        if found[0][0] != digest:
            raise InvalidInput(
                f"round {number} must be the one that {client} has answered, got another in its place; do not take part"
            )
        query = "SELECT compute, body, sent FROM parcels WHERE study = ? AND client = ? AND number = ? ORDER BY compute"
        rows = self._run(query, (study, client, number))
        return [Parcel(compute, body, bool(sent)) for compute, body, sent in rows]

    def put(self, study: str, client: str, number: int, digest: bytes, event: Event, parcels: Sequence[Parcel]) -> None:
        """Store all parcels of a round, or none: before any of them is sent."""
        rows = [(study, client, number, parcel.compute, parcel.body) for parcel in parcels]
        with self._lock:
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute("BEGIN IMMEDIATE")
            try:
                fresh = (study, client, number, digest, event_text(event))
                self._db.execute("INSERT INTO rounds VALUES (?, ?, ?, ?, ?)", fresh)
                self._db.executemany("INSERT INTO parcels VALUES (?, ?, ?, ?, ?, 0)", rows)
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise

    def mark_sent(self, study: str, client: str, number: int, parcel: Parcel) -> None:
        """Remember that the Compute has confirmed this parcel."""
        self._run(
            "UPDATE parcels SET sent = 1 WHERE study = ? AND client = ? AND number = ? AND compute = ?",
            (study, client, number, parcel.compute),
        )

    def _run(self, query: str, values: tuple[object, ...], *, durable: bool = False) -> list[Any]:
        with self._lock:
            self._db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            return self._db.execute(query, values).fetchall()


def _joined(fingerprints: Sequence[str]) -> str:
    return ", ".join(sorted(fingerprints))
