"""Whether a Compute can do its work: its database can be written, and its rounds are looked after."""

from __future__ import annotations

import asyncio
import math
import shutil
import time
from collections.abc import Collection

from sqlalchemy.exc import SQLAlchemyError

from hubbub.service.node.log import log
from hubbub.service.node.private_files import database_file
from hubbub.service.node.shared import Shared
from hubbub.service.node.store import Store
from hubbub.service.wire.problems import Problem

Place = tuple[str, int]
"""A study and the number of a round."""
_LATELY = 15.0  # seconds; a pass over the rounds takes about one
_PROBE_LASTS, _PROBE_TAKES = 1.0, 5.0  # seconds
_LEAST_FREE = 50_000_000  # bytes on the disk: SQLite may write a little into a log that is there even on a full one


class Health:
    """What keeps the Compute from working, if anything. Asked often, it writes once a second at most."""

    def __init__(self, store: Store) -> None:
        self._store, self._finished = store, time.monotonic()
        self._broken: dict[Place, str] = {}
        self._probe = Shared(self._write, "ready")  # a thread of its own: the others may all be busy
        self._found, self._probed = "", -math.inf

    def passed(self) -> None:
        """A look at all rounds has come to its end."""
        self._finished = time.monotonic()

    def broke(self, place: Place, error: Exception) -> None:
        """A round cannot be taken further, by this Compute's own fault."""
        self._broken[place] = type(error).__name__

    def mended(self, place: Place) -> None:
        """The round can be taken further."""
        self._broken.pop(place, None)

    def keep(self, places: Collection[Place]) -> None:
        """Forget about rounds that have ended."""
        self._broken = {place: why for place, why in self._broken.items() if place in places}

    async def check(self) -> None:
        """Raise the problem not-ready, with the reason, where the Compute cannot do its work."""
        if reason := self._stuck() or await self._written():
            raise Problem("not-ready", reason)

    def _stuck(self) -> str:
        if (since := time.monotonic() - self._finished) > _LATELY:
            return f"rounds have not been looked after for {since:.0f} s; the log says why"
        if self._broken:
            (study, number), why = next(iter(self._broken.items()))
            return f"round {number} of study {study[:16]} cannot be read ({why}); {len(self._broken)} such round(s)"
        return ""

    async def _written(self) -> str:
        if time.monotonic() - self._probed > _PROBE_LASTS:
            try:
                self._found = await asyncio.wait_for(self._probe.now(), _PROBE_TAKES)
            except TimeoutError:
                return f"the database cannot be written within {_PROBE_TAKES:g} s"
            self._probed = time.monotonic()
        return self._found

    def _write(self) -> str:
        """Why nothing can be written, or nothing."""
        try:
            file = database_file(self._store.url)
            if file is not None and (free := shutil.disk_usage(file.parent).free) < _LEAST_FREE:
                return f"the disk must have {_LEAST_FREE} bytes free, got {free}; make room"
            self._store.probe(time.time())
        except (SQLAlchemyError, OSError) as error:
            log("probe-failed", error=type(error).__name__, detail=str(error)[:300])
            return f"the database cannot be written ({type(error).__name__}); the log says why"
        return ""
