"""How a Compute asks the others of a study: at addresses that its operator named, for answers of a bounded size."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import httpx
from sqlalchemy import Row

from hubbub.errors import HubbubError, InvalidInput
from hubbub.service.node import agreement, matching, quorum
from hubbub.service.node.compute import Node, known_study, most_roster
from hubbub.service.node.metrics import Counts
from hubbub.service.wire.canonical import read_json
from hubbub.service.wire.endings import MOST_AGREEMENT
from hubbub.service.wire.messages import JSON_TYPE
from hubbub.service.wire.problems import Problem, problem_from
from hubbub.service.wire.records import ComputeRecord, StudyRecord
from hubbub.service.wire.refusals import agreed_in, check_refusal
from hubbub.service.wire.web import PLAIN, check_plain, too_long

_HISTORY_SECONDS = 3.0
T = TypeVar("T")


class Differs(HubbubError):
    """Another Compute would release over something else than this one: other rosters of the Computes in `places`; or,
    where there are none, rosters of other Computes, or other numbers of samples."""

    def __init__(self, places: list[int]) -> None:
        rosters = "a Compute agreed on other rosters and shows nobody's second one"
        super().__init__(
            rosters if places else "two Computes agreed on rosters of different Computes, or count different samples"
        )
        self.places = places


@dataclass(frozen=True)
class Peers:
    """The other Computes, over HTTP."""

    node: Node
    http: httpx.AsyncClient = field(repr=False)
    counts: Counts = field(default_factory=Counts, repr=False)

    async def exchange(self, row: Row[Any], peer: ComputeRecord) -> None:
        """Give this Compute's signed roster, get the other's; pass the analyst's close on to one that missed it."""
        own = await asyncio.to_thread(agreement.own_roster, self.node, row.study, row.number)
        most = await asyncio.to_thread(most_roster, self.node, row.study)
        try:
            theirs = await self._post(peer, f"{_round(row)}/rosters", own, most)
        except Problem as problem:
            if problem.code != "not-closed" or row.close is None:
                raise
            await self._post(peer, f"{_round(row)}/close", row.close)
            theirs = await self._post(peer, f"{_round(row)}/rosters", own, most)
        await self._received(partial(agreement.receive_roster, self.node, row.study, row.number, theirs))

    async def compare(self, row: Row[Any], peer: ComputeRecord, place: int) -> None:
        """Give this Compute's signed agreement, get all that the other holds; raises Differs where its own differs."""
        here = self.node, row.study, row.number
        own = await asyncio.to_thread(matching.own_agreement, *here)
        study, _ = await asyncio.to_thread(known_study, self.node, row.study)
        most = len(study.computes) * MOST_AGREEMENT
        reply = read_json(await self._post(peer, f"{_round(row)}/agreements", own, most))
        for data in _texts(reply, "agreements"):
            match = await self._received(partial(matching.receive_agreement, *here, data))
            if match == "differs" and matching.signer(data) == place:
                raise Differs(await asyncio.to_thread(matching.differing, *here, data))

    async def follow(self, row: Row[Any], peer: ComputeRecord) -> None:
        """Sign what the other has signed, where this Compute comes to the same with the other's help."""
        here = self.node, row.study, row.number
        study, _ = await asyncio.to_thread(known_study, self.node, row.study)
        try:
            body = await self._ask(peer, "GET", f"{_round(row)}/agreements", len(study.computes) * MOST_AGREEMENT)
        except Problem as problem:
            if problem.code == "agreement-under-way":
                return
            raise
        signed = _texts(read_json(body), "agreements")
        if lacking := await asyncio.to_thread(quorum.lacking, *here, signed):
            await self.expose(row, peer, lacking)
        await self._received(partial(quorum.follow, *here, signed))

    async def expose(self, row: Row[Any], peer: ComputeRecord, places: list[int]) -> None:
        """Look among the rosters that the other holds for a second one of some Compute, which ends the round."""
        for place in places:
            for data in await self._rosters(peer, row.study, row.number, place):
                found = self.node, row.study, row.number, data
                await self._received(partial(agreement.receive_roster, *found, differing=True))

    async def history(self, peer: ComputeRecord, study_id: str, number: int, place: int) -> list[bytes]:
        """What the other holds that this Compute, at this place, has signed for a round; nothing if it is silent."""
        try:
            async with asyncio.timeout(_HISTORY_SECONDS):
                return await self._rosters(peer, study_id, number, place)
        except (httpx.HTTPError, HubbubError, TimeoutError):
            return []

    async def refused(self, row: Row[Any], peer: ComputeRecord, place: int) -> bool:
        """True where the other gives its signed refusal of a round; False where it says otherwise or is silent."""
        study, _ = await asyncio.to_thread(known_study, self.node, row.study)
        try:
            async with asyncio.timeout(_HISTORY_SECONDS):
                data = await self._ask(peer, "GET", f"{_round(row)}/refusal", MOST_AGREEMENT)
            check_refusal(study, row.number, row.digest, place, data)
        except (httpx.HTTPError, HubbubError, TimeoutError):
            return False
        return True

    async def agreed(self, row: Row[Any], peer: ComputeRecord) -> set[int]:
        """Who has signed an agreement that the other holds for this round; nobody where it shows none."""
        study, _ = await asyncio.to_thread(known_study, self.node, row.study)
        try:
            async with asyncio.timeout(_HISTORY_SECONDS):
                most = len(study.computes) * MOST_AGREEMENT
                body = await self._ask(peer, "GET", f"{_round(row)}/agreements", most)
            return await asyncio.to_thread(agreed_in, study, row.number, row.digest, body)
        except (httpx.HTTPError, HubbubError, TimeoutError):
            return set()

    async def _received(self, take: Callable[[], T]) -> T:
        """Take what another Compute has answered; what is refused counts as if it had been sent here."""
        try:
            return await asyncio.to_thread(take)
        except Problem as problem:
            self.counts.add(f"rejected:{problem.code}")
            raise

    async def _rosters(self, peer: ComputeRecord, study_id: str, number: int, place: int) -> list[bytes]:
        path = f"/v1/studies/{study_id}/rosters?compute={place}&round={number}"
        most = 2 * await asyncio.to_thread(most_roster, self.node, study_id)  # quotes in a string are two characters
        return _texts(read_json(await self._ask(peer, "GET", path, most)), "rosters")

    async def _post(self, peer: ComputeRecord, path: str, body: bytes, most: int = 100_000) -> bytes:
        return await self._ask(peer, "POST", path, most, content=body, headers={"content-type": JSON_TYPE})

    async def _ask(self, peer: ComputeRecord, method: str, path: str, most: int, **options: Any) -> bytes:
        """The other's answer, or the problem that it states."""
        await asyncio.to_thread(self.node.trust.check_peer, peer)
        headers = {**options.pop("headers", {}), **PLAIN}
        async with self.http.stream(
            method, peer.url + path, headers=headers, follow_redirects=False, **options
        ) as reply:
            check_plain(reply)
            found = bytearray()
            async for chunk in reply.aiter_bytes():
                found += chunk
                if len(found) > most:
                    raise too_long(most)
        if reply.status_code >= 300:
            raise problem_from(reply.status_code, bytes(found), reply.headers.get("retry-after"))
        return bytes(found)


def others(study: StudyRecord, position: int) -> list[tuple[int, ComputeRecord]]:
    """All Computes of the study but this one, with their places."""
    return [(place, compute) for place, compute in enumerate(study.computes) if place != position]


def _round(row: Row[Any]) -> str:
    return f"/v1/studies/{row.study}/rounds/{row.number}"


def _texts(reply: object, name: str) -> list[bytes]:
    found = reply.get(name) if isinstance(reply, dict) else None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InvalidInput(f"answer must be a list of {name}, got something else; update hubbub")
    return [each.encode(errors="surrogatepass") for each in found]
