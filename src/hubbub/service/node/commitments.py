"""The random bytes that a Compute brings to a draw: made when a study is registered, and shown for one list only.

They lie in files of their own, apart from the database. Each file says for which request the bytes were shown, and is
written before they are: a database that was set back to before that does not make the Compute show them for another
list of clients, whose names could then be chosen to suit them (docs/decisions/0024).
"""

from __future__ import annotations

import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select

from hubbub.service.node import faults, tables
from hubbub.service.node.private_files import replace_file, to_json
from hubbub.service.node.vault import settle
from hubbub.service.wire.canonical import digest, hexed, sign_record
from hubbub.service.wire.draw import SECRET_BYTES, CommitmentRecord, commit
from hubbub.service.wire.problems import Problem
from hubbub.service.wire.records import StudyRecord
from hubbub.service.wire.signing import SigningKey


@dataclass(frozen=True)
class Kept:
    """The bytes for one study, and the digest of the request for which they were shown, if they were."""

    secret: bytes
    request: bytes | None = None


class DrawBox:
    """A file for each study. Without a folder they are in memory, and end with the process."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self._kept: dict[str, Kept] = {}
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def secret(self, study: str) -> bytes:
        """The bytes for this study, on disk when this returns; those that it has already, where it has some."""
        with self._lock:
            found = self._read(study)
            if found is None:
                found = Kept(os.urandom(SECRET_BYTES))
                self._write(study, found)
        faults.point("after:secret-made")
        return found.secret

    def show(self, study: str, request: bytes) -> bytes:
        """The bytes, which from now on are shown for this request and for no other one."""
        with self._lock:
            found = self._read(study)
            if found is None:
                raise Problem("rolled-back", "this Compute has lost the bytes it committed to; make the study again")
            if found.request not in (None, request):
                raise Problem(
                    "rolled-back",
                    "this Compute has revealed its bytes for another list of clients, of which its database knows "
                    "nothing: an old copy was restored; make the study again",
                )
            self._write(study, Kept(found.secret, request))
        faults.point("after:secret-bound")
        return found.secret

    def _read(self, study: str) -> Kept | None:
        if self._folder is None:
            return self._kept.get(study)
        try:
            content = json.loads((self._folder / study).read_text())
        except FileNotFoundError:
            return None
        request = content["request"]
        return Kept(
            hexed("secret", content["secret"], SECRET_BYTES), None if request is None else bytes.fromhex(request)
        )

    def _write(self, study: str, kept: Kept) -> None:
        if self._folder is None:
            self._kept[study] = kept
            return
        request = None if kept.request is None else kept.request.hex()
        replace_file(self._folder / study, to_json({"secret": kept.secret.hex(), "request": request}))
        settle(self._folder)


def add_commitment(
    connection: Connection, box: DrawBox, key: SigningKey, study: StudyRecord, position: int, event: str
) -> None:
    """Commit to random bytes for a study that has something to draw."""
    mark = commit(digest(study), position, box.secret(study.id))
    record = CommitmentRecord(digest(study), position, mark, event)
    connection.execute(insert(tables.draws).values(study=study.id, commitment=sign_record(record, key)))


def find_draw(connection: Connection, study_id: str) -> Row[Any]:
    """What this Compute has of the draw of a study; the problem not-found where nothing is to be drawn."""
    row = connection.execute(select(tables.draws).where(tables.draws.c.study == study_id)).one_or_none()
    if row is None:
        raise Problem("not-found", "study must be one whose clients use some of the Computes, got none to draw here")
    return row


def list_fixed(connection: Connection, study_id: str) -> bool:
    """True where the draw of a study was asked for, so that nobody else can be invited."""
    query = select(tables.draws.c.request).where(tables.draws.c.study == study_id)
    return connection.execute(query).scalar_one_or_none() is not None


def not_drawn() -> Problem:
    """What to say to those who come before the draw."""
    return Problem("not-drawn", "study must have its draw first: all Computes have to reveal; ask again later", 1)


def unfinished_draws(connection: Connection, analyst: bytes) -> int:
    """In how many studies of this analyst this Compute has revealed its bytes, and released no round since."""
    both = tables.draws.join(tables.studies, tables.draws.c.study == tables.studies.c.id)
    query = select(func.count()).select_from(both).where(tables.studies.c.analyst == analyst)
    rounds = select(tables.rounds.c.id).where(tables.rounds.c.study == tables.draws.c.study)
    used = rounds.where(tables.rounds.c.state == "released").exists()
    return int(connection.execute(query.where(tables.draws.c.request.is_not(None), ~used)).scalar_one())
