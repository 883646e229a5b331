"""A study whose Computes are real nodes in one process, of which a test says who can be reached."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

import httpx
from sqlalchemy import select

from hubbub.roles import combine_sums
from hubbub.service.node import agreement, matching, tables
from hubbub.service.node import store as db
from hubbub.service.node.app import create_app
from hubbub.service.node.caretaker import Caretaker
from hubbub.service.wire.canonical import digest, read_signed, sign_record
from hubbub.service.wire.endings import AgreementRecord, CloseRecord
from hubbub.service.wire.messages import decode_sum
from hubbub.service.wire.records import RoundRecord
from hubbub.service.wire.web import Patience, Web
from service.stage import M, N, Stage

EVERYBODY = frozenset(range(M))


@dataclass
class Town:
    """The study, and who can be reached."""

    stage: Stage
    up: frozenset[int] = EVERYBODY

    def begin(self, computes: dict[int, int] | None = None, number: int = 0) -> RoundRecord:
        """A round in which everybody has reported to all Computes, or the first so many people to each."""
        record = self.stage.round(number, multiplier=0.0)
        self.stage.open(record)
        for place, person in enumerate(self.stage.people):
            reached = [k for k in range(M) if place < (computes or {}).get(k, N)]
            self.stage.send(record, person, reached)
        return record

    def close(self, record: RoundRecord) -> None:
        """By the analyst, at those who are up."""
        data = sign_record(CloseRecord(digest(self.stage.study), digest(record)), self.stage.analyst)
        for k in self.up:
            agreement.close(self.stage.nodes[k], self.stage.id, record.number, data)

    def look(self, *order: int) -> None:
        """These Computes, where they are up, look after their rounds one after the other."""
        self.each(order, lambda caretaker: caretaker.look(patience=60))

    def settle_charges(self, *order: int) -> None:
        """These Computes see which charges can be given back, as they do before a new round."""
        self.each(order, lambda caretaker: caretaker.settle_charges(self.stage.id))

    def each(self, order: Iterable[int], work: Callable[[Caretaker], Awaitable[None]]) -> None:

        def away(request: httpx.Request) -> httpx.Response:
            raise httpx.ConnectError("nobody is there", request=request)

        async def play() -> None:
            async with httpx.AsyncClient(transport=httpx.MockTransport(away)) as http:
                mounts = {
                    f"all://compute-{k}.example": httpx.ASGITransport(create_app(self.stage.nodes[k], http))
                    for k in self.up
                }
                async with httpx.AsyncClient(transport=httpx.MockTransport(away), mounts=mounts) as real:
                    for k in order:
                        if k in self.up:
                            await work(Caretaker(self.stage.nodes[k], real))

        asyncio.run(play())

    def web(self) -> Web:
        """Analyst's and clients' way to those who are up; it waits for nobody."""
        apps = {f"compute-{k}.example": create_app(self.stage.nodes[k], httpx.AsyncClient()) for k in self.up}

        async def asked(request: httpx.Request) -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(apps[request.url.host])) as http:
                answer = await http.request(request.method, request.url, content=request.content)
                return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

        def answer(request: httpx.Request) -> httpx.Response:
            if request.url.host not in apps:
                raise httpx.ConnectError("nobody is there", request=request)
            return asyncio.run(asked(request))

        return Web(httpx.Client(transport=httpx.MockTransport(answer)), Patience(total=0.05))

    def wait(self, seconds: float) -> None:
        self.stage.clock.now += seconds

    def row(self, k: int, number: int = 0):
        with self.stage.nodes[k].store.read() as connection:
            return db.find_round(connection, self.stage.id, number)

    def states(self, number: int = 0) -> list[str]:
        return [self.row(k, number).state for k in range(M)]

    def charged(self, k: int) -> bool:
        with self.stage.nodes[k].store.read() as connection:
            return (
                connection.execute(select(tables.ledger).where(tables.ledger.c.study == self.stage.id)).first()
                is not None
            )

    def sums(self, number: int = 0) -> list:
        return [
            decode_sum(
                agreement.released_sum(self.stage.nodes[k], self.stage.id, number), self.stage.study.computes[k].verify_key
            )
            for k in range(M) if self.row(k, number).state == "released"
        ]  # fmt: skip

    def total(self, record: RoundRecord) -> tuple[list[float], int]:
        """From the sums that are released."""
        role = record.checked(self.stage.study)
        words, present = combine_sums(role, record.number, self.sums(record.number))
        return role.plan(record.number).noise.grid.decode(words).tolist(), present.clients

    def agreement(self, k: int) -> AgreementRecord:
        return read_signed(matching.own_agreement(self.stage.nodes[k], self.stage.id, 0), AgreementRecord)[0]
