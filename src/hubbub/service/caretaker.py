"""What a Compute does on its own: end rounds at their deadline, exchange rosters, release or refuse.

It reads from the store what is to be done, so after a crash it goes on where it stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import httpx
from sqlalchemy import Row
from sqlalchemy.exc import SQLAlchemyError

from hubbub.errors import HubbubError
from hubbub.service import agreement, status
from hubbub.service import store as db
from hubbub.service.canonical import read_json
from hubbub.service.known import parsed_study
from hubbub.service.log import log
from hubbub.service.messages import JSON_TYPE
from hubbub.service.node import Node
from hubbub.service.problems import Problem, problem_from
from hubbub.service.records import ComputeRecord, StudyRecord

TICK = 1.0
_EXCHANGE_SECONDS = 30.0  # with all other Computes together
_HISTORY_SECONDS = 3.0
_MOST_REPLY = 64_000_000  # bytes of a roster
_FINAL = {"round-refused", "second-roster", "rolled-back"}


class Caretaker:
    """Takes every round to its end."""

    def __init__(self, node: Node, http: httpx.AsyncClient) -> None:
        self._node, self._http = node, http
        self._poked = asyncio.Event()
        self._settling: dict[tuple[str, int], asyncio.Task[None]] = {}

    def poke(self) -> None:
        """Look at once."""
        self._poked.set()

    async def run(self) -> None:
        """Look after the rounds, over and over, whatever happens."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._poked.wait(), TICK)
            self._poked.clear()
            try:
                await self.look()
            except Exception as error:
                log("caretaker-failed", error=type(error).__name__, detail=str(error)[:300])

    async def look(self) -> None:
        """One pass over the rounds that have not ended: first those whose time is over, then all that are closed."""
        await asyncio.to_thread(agreement.forget_ended, self._node)
        rows, records = await asyncio.to_thread(self._unfinished)
        for row in rows:
            if row.state == "open" and row.deadline <= self._node.clock():
                await asyncio.to_thread(agreement.close_at_deadline, self._node, row.study, row.number)
                self.poke()
        for row in rows:
            place = (row.study, row.number)
            if row.state != "open" and place not in self._settling:
                study = records[row.study]
                task = asyncio.create_task(self._settle(row, parsed_study(study.record), study.position))
                self._settling[place] = task
                task.add_done_callback(partial(self._settled, place))
        if self._settling:  # a slow Compute holds up its own rounds only
            await asyncio.wait(self._settling.values(), timeout=TICK)

    def _settled(self, place: tuple[str, int], task: asyncio.Task[None]) -> None:
        del self._settling[place]
        if not task.cancelled() and (error := task.exception()) is not None:
            log("caretaker-failed", error=type(error).__name__, detail=str(error)[:300])

    def _unfinished(self) -> tuple[Sequence[Row[Any]], dict[str, Row[Any]]]:
        with self._node.store.read() as connection:
            rows = db.rounds_in(connection, ("open", "closed", "agreed"))
            return rows, {row.study: db.find_study(connection, row.study) for row in rows}

    async def _settle(self, row: Row[Any], study: StudyRecord, position: int) -> None:
        """Exchange rosters with every other Compute, then agree and release; refuse what takes too long."""
        try:
            if row.state == "closed":
                peers = [compute for place, compute in enumerate(study.computes) if place != position]
                own = await asyncio.to_thread(agreement.own_roster, self._node, row.study, row.number)
                async with asyncio.timeout(_EXCHANGE_SECONDS):
                    await asyncio.gather(*(self._exchange(row, peer, own) for peer in peers))
            state = await asyncio.to_thread(agreement.settle, self._node, row.study, row.number)
            log("round-settled", study=row.study[:16], round=row.number, state=state)
        except SQLAlchemyError:
            raise  # our own trouble, which passes
        except Exception as error:  # whatever another Compute made of its answer
            code = error.code if isinstance(error, Problem) else type(error).__name__
            log("agreement-waits", study=row.study[:16], round=row.number, code=code, detail=str(error)[:200])
            late = self._node.clock() - row.changed > self._node.limits.agreement_seconds
            if isinstance(error, Problem) and error.code in _FINAL:
                await self._refuse(row, "other-refused", f"another Compute refused the round: {error}")
            elif late:
                await self._refuse(row, "no-agreement", "a Compute did not answer in time; start a new round")

    async def _refuse(self, row: Row[Any], reason: str, detail: str) -> None:
        await asyncio.to_thread(agreement.refuse, self._node, row.study, row.number, reason, detail)

    async def _exchange(self, row: Row[Any], peer: ComputeRecord, own: bytes) -> None:
        """Give this Compute's signed roster, get the other's; pass the analyst's close on to one that missed it."""
        path = f"{peer.url}/v1/studies/{row.study}/rounds/{row.number}"
        try:
            theirs = await self._post(f"{path}/rosters", own)
        except Problem as problem:
            if problem.code != "not-closed" or row.close is None:
                raise
            await self._post(f"{path}/close", row.close)
            theirs = await self._post(f"{path}/rosters", own)
        await asyncio.to_thread(agreement.receive_roster, self._node, row.study, row.number, theirs)

    async def _post(self, url: str, body: bytes) -> bytes:
        return await self._ask("POST", url, content=body, headers={"content-type": JSON_TYPE})

    async def _ask(self, method: str, url: str, **options: Any) -> bytes:
        """Another Compute's answer, if it is not endless; or the problem that it states."""
        async with self._http.stream(method, url, **options) as reply:
            found = bytearray()
            async for chunk in reply.aiter_bytes():
                found += chunk
                if len(found) > _MOST_REPLY:
                    raise Problem("too-large", "another Compute answers with more than any roster holds")
        if reply.status_code >= 400:
            raise problem_from(reply.status_code, bytes(found), reply.headers.get("retry-after"))
        return bytes(found)

    async def check_history(self, study_id: str) -> None:
        """Ask the other Computes which rosters of this one they hold; those that do not answer are asked at the end."""
        row = await asyncio.to_thread(status.study_row, self._node, study_id)
        study = parsed_study(row.record)
        peers = [compute for place, compute in enumerate(study.computes) if place != row.position]
        answers = await asyncio.gather(*(self._rosters(peer, study_id, row.position) for peer in peers))
        signed = [data for answer in answers for data in answer]
        await asyncio.to_thread(agreement.check_history, self._node, study_id, signed)

    async def _rosters(self, peer: ComputeRecord, study_id: str, position: int) -> list[bytes]:
        try:
            async with asyncio.timeout(_HISTORY_SECONDS):
                url = f"{peer.url}/v1/studies/{study_id}/rosters?compute={position}"
                return [item.encode() for item in read_json(await self._ask("GET", url))["rosters"]]
        except (httpx.HTTPError, HubbubError, TimeoutError, ValueError, KeyError, TypeError, AttributeError):
            return []
