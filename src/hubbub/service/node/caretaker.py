"""What a Compute does on its own: end rounds at their deadline, exchange rosters, compare, release or refuse.

It reads from the store what is to be done, so after a crash it goes on where it stopped. Each round is looked after by
itself: one that cannot be read, or whose Computes do not answer, holds up no other.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import httpx
from sqlalchemy import Row
from sqlalchemy.exc import SQLAlchemyError

from hubbub.service.node import agreement, quorum, status
from hubbub.service.node import store as db
from hubbub.service.node.compute import Node
from hubbub.service.node.health import Health, Place
from hubbub.service.node.known import parsed_round, parsed_study
from hubbub.service.node.log import log
from hubbub.service.node.metrics import Counts
from hubbub.service.node.peers import Differs, Peers, others
from hubbub.service.node.tables import State
from hubbub.service.wire.problems import Problem, one_line
from hubbub.service.wire.records import ComputeRecord

TICK = 1.0
_EXCHANGE_SECONDS = 30.0  # with all other Computes together
_FINAL = {"round-refused", "second-roster", "rolled-back"}
Other = tuple[int, ComputeRecord]
Step = Callable[[int, ComputeRecord], Awaitable[None]]


class Caretaker:
    """Takes every round to its end."""

    def __init__(self, node: Node, http: httpx.AsyncClient, counts: Counts | None = None) -> None:
        self._node, self._peers = node, Peers(node, http, counts or Counts())
        self.health = Health(node.store)
        self._poked = asyncio.Event()
        self._working: dict[Place, asyncio.Task[None]] = {}
        self._missed: set[Place] = set()

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

    async def look(self, patience: float = TICK) -> None:
        """One pass over the rounds that have not ended, and over the keys of those that have.

        It waits for them for so many seconds and leaves the others under way.
        """
        await self._forget()
        rows = await asyncio.to_thread(self._unfinished)
        self.health.keep({(row.study, row.number) for row in rows})
        for row in rows:
            place = (row.study, row.number)
            if place in self._working:
                self._missed.add(place)  # something may have come that its task has not seen
                continue
            task = asyncio.create_task(self._tend(row))
            self._working[place] = task
            task.add_done_callback(partial(self._tended, place))
        if self._working:  # a slow Compute holds up its own rounds only
            await asyncio.wait(self._working.values(), timeout=patience)
        self.health.passed()

    async def _forget(self) -> None:
        """Erase the keys of ended rounds that a crash has left; trouble with that keeps no round waiting."""
        try:
            await asyncio.to_thread(agreement.forget_ended, self._node)
        except Exception as error:
            log("key-not-erased", error=type(error).__name__, detail=str(error)[:300])

    def _tended(self, place: Place, _: asyncio.Task[None]) -> None:
        del self._working[place]
        if place in self._missed:
            self._missed.discard(place)
            self.poke()

    def _unfinished(self) -> Sequence[Row[Any]]:
        with self._node.store.read() as connection:
            return db.rounds_in(connection, ("open", "closed", "agreed"))

    async def _tend(self, row: Row[Any]) -> None:
        """Take one round a step further. Whatever goes wrong here is this Compute's own trouble, and is told."""
        place = (row.study, row.number)
        try:
            computes = await asyncio.to_thread(self._others, row)
            if row.state != "open":
                await self._settle(row, computes)
            elif row.deadline <= self._node.clock():
                await asyncio.to_thread(agreement.close_at_deadline, self._node, *place)
                self.poke()
            self.health.mended(place)
        except Exception as error:
            self.health.broke(place, error)
            log("caretaker-failed", study=row.study[:16], round=row.number, error=type(error).__name__,
                detail=str(error)[:300])  # fmt: skip
            passing = isinstance(error, SQLAlchemyError)  # of the database, not of this round
            if not passing and self._late(row):
                await self._refuse(row, "damaged", "what is stored of the round cannot be read; check the disk")
                self.health.mended(place)

    def _others(self, row: Row[Any]) -> list[Other]:
        """The study's other Computes; raises where study or round cannot be read."""
        study = status.study_row(self._node, row.study)
        parsed_round(study.record, row.record, study.seed)
        return others(parsed_study(study.record), study.position)

    async def _settle(self, row: Row[Any], computes: list[Other]) -> None:
        """Exchange rosters with every other Compute, agree, compare, release; refuse what takes too long."""
        here = self._node, row.study, row.number
        state: State = row.state
        found = await asyncio.to_thread(self._view, row)
        failed: list[tuple[Other, Exception]] = []
        if state == "closed":
            failed = await self._with_all(row, computes, lambda _, peer: self._peers.exchange(row, peer))
            if await asyncio.to_thread(agreement.too_few, *here):  # a Compute may have shown others a fuller roster
                await self._expose(row, computes, [place for place, _ in computes])
            answered = [other for other in computes if other not in [silent for silent, _ in failed]]
            state = await asyncio.to_thread(agreement.settle, *here, await self._turn(row, answered))
        if state == "agreed":
            failed = await self._with_all(row, computes, lambda place, peer: self._peers.compare(row, peer, place))
            state = await asyncio.to_thread(agreement.settle, *here)
        if state in ("closed", "agreed"):
            await self._judge(row, failed, found)
        else:
            log("round-settled", study=row.study[:16], round=row.number, state=state)

    def _view(self, row: Row[Any]) -> agreement.RoundView:
        with self._node.store.read() as connection:
            return agreement.view(connection, row.study, row.number)

    async def _turn(self, row: Row[Any], answered: list[Other]) -> int | None:
        """With how many rosters this Compute may agree now; None is all.

        Where the others can do without one, it first looks for what those that answer have signed, and follows them.
        """
        found = await asyncio.to_thread(self._view, row)
        if found.quorum == found.computes:
            return None
        for other in answered:
            await self._with_all(row, [other], lambda _, peer: self._peers.follow(row, peer))
        waited, limits = self._node.clock() - row.changed, self._node.limits
        own = quorum.turn(found, [place for place, _ in answered], waited, limits.missing_seconds)
        return found.computes + 1 if own is None else own

    async def _with_all(self, row: Row[Any], computes: list[Other], step: Step) -> list[tuple[Other, Exception]]:
        """Do this with every other Compute at the same time. Returns with whom it failed, and why."""

        async def one(other: Other) -> Exception | None:
            try:
                async with asyncio.timeout(_EXCHANGE_SECONDS):
                    await step(*other)
            except SQLAlchemyError:
                raise  # our own trouble, which passes
            except Exception as error:  # whatever the other Compute made of its answer
                code = error.code if isinstance(error, Problem) else type(error).__name__
                log("agreement-waits", study=row.study[:16], round=row.number, compute=other[0], code=code,
                    detail=one_line(error, 200))  # fmt: skip
                return error
            return None

        found = await asyncio.gather(*(one(other) for other in computes))
        return [(other, error) for other, error in zip(computes, found, strict=True) if error is not None]

    async def _judge(self, row: Row[Any], failed: list[tuple[Other, Exception]], found: agreement.RoundView) -> None:
        """What to do about Computes that refuse, differ or are silent; a second roster among theirs ends the round."""
        for other, error in failed:
            if isinstance(error, Differs):
                await self._expose(row, [other], error.places)
            elif _is_final(error):
                await self._expose(row, [other], list(range(found.computes)))
        row = await asyncio.to_thread(self._again, row)
        if row.state not in ("closed", "agreed"):
            return
        ended = [(compute, error) for (_, compute), error in failed if _is_final(error)]
        if len(ended) > found.computes - found.quorum:
            compute, error = ended[0]
            await self._refuse(row, _reason(error), f"{compute.name} refused the round: {one_line(error, 350)}")
        elif self._late(row) and (failed or found.quorum < found.computes):
            await self._refuse(row, "no-agreement", f"{_why(failed)}; start a new round")

    def _again(self, row: Row[Any]) -> Row[Any]:
        """The round as it stands now."""
        with self._node.store.read() as connection:
            return db.find_round(connection, row.study, row.number)

    async def _expose(self, row: Row[Any], computes: list[Other], places: list[int]) -> None:
        """Look at these Computes for second rosters of those in `places`."""
        await self._with_all(row, computes, lambda _, peer: self._peers.expose(row, peer, places))

    def _late(self, row: Row[Any]) -> bool:
        since = max(row.changed, row.deadline) if row.state == "open" else row.changed
        return bool(self._node.clock() - since > self._node.limits.agreement_seconds)

    async def _refuse(self, row: Row[Any], reason: str, detail: str) -> None:
        await asyncio.to_thread(agreement.refuse, self._node, row.study, row.number, reason, detail)

    async def check_history(self, study_id: str, number: int) -> None:
        """Ask the other Computes for rosters of this one for a round that it is to open, of which it knows none, and
        for the round before, of which it may know less than they do.

        Those that do not answer are asked when the round ends.
        """
        row = await asyncio.to_thread(status.study_row, self._node, study_id)
        peers = others(parsed_study(row.record), row.position)
        asked = range(max(0, number - 1), number + 1)
        calls = [self._peers.history(peer, study_id, each, row.position) for _, peer in peers for each in asked]
        signed = [data for answer in await asyncio.gather(*calls) for data in answer]
        await asyncio.to_thread(agreement.check_history, self._node, study_id, signed)

    async def settle_charges(self, study_id: str) -> None:
        """Give back what this Compute keeps of refused rounds, where a quorum proves that nobody will release them.

        The refusal of one that others show to have signed an agreement does not count.
        """
        found = await asyncio.to_thread(status.study_row, self._node, study_id)
        study, peers = parsed_study(found.record), others(parsed_study(found.record), found.position)
        for row in await asyncio.to_thread(quorum.kept_charges, self._node, study_id):
            said = await asyncio.gather(*(self._peers.refused(row, peer, place) for place, peer in peers))
            agreed = set().union(*await asyncio.gather(*(self._peers.agreed(row, peer) for _, peer in peers)))
            refused = {found.position, *(place for (place, _), yes in zip(peers, said, strict=True) if yes)} - agreed
            if len(refused) >= study.secure_sum.quorum:
                await asyncio.to_thread(quorum.give_back, self._node, study_id, row.number)


def _why(failed: list[tuple[Other, Exception]]) -> str:
    """Why the Computes have not agreed in time."""
    if not failed:
        return "too few Computes have signed the same roster in time"
    (_, compute), error = failed[0]
    return f"{error if isinstance(error, Differs) else 'a Compute did not answer in time'} ({compute.name})"


def _reason(error: Exception) -> str:
    """Where another Compute says that it holds a second roster of ours, this database may have been set back."""
    return "rolled-back" if isinstance(error, Problem) and error.code == "second-roster" else "other-refused"


def _is_final(error: Exception) -> bool:
    return isinstance(error, Problem) and error.code in _FINAL
