"""Reading requests' bodies: of the right type, not too large, in time, and not too many bytes of all together."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from hubbub.service.wire.problems import Problem

Headers = Iterable[tuple[bytes, bytes]]
_PIECE = 64  # bytes that a piece of a body takes in memory besides what is in it


def header(headers: Headers, name: bytes) -> str:
    """A header, or nothing. Starlette's own mapping takes as long as reading a report."""
    for key, value in headers:
        if key == name:
            return str(value, "latin-1")
    return ""


@dataclass(eq=False)
class _Body:
    """One body: whose it is, what it holds in memory, and since when it has been coming and been silent."""

    address: str
    since: float
    heard: float
    size: int = 0
    whole: bool = False
    cut: Problem | None = None


class Bodies:
    """All bodies that are arriving or being worked on, in `budget` bytes together.

    Where these are used up, the address with the most bytes of unfinished bodies gives way: of its bodies, the one that
    has been silent longest is cut off. Whoever takes too long is cut off by one look a second: a timer for each costs
    more than reading most of them.
    """

    def __init__(self, budget: int, seconds: float) -> None:
        self.budget, self.seconds = budget, seconds
        self._bodies: dict[asyncio.Task[object], _Body] = {}
        self._held = 0

    async def read(self, headers: Headers, receive: Receive, address: str, most: int, *types: str) -> bytes:
        """The whole body, or a Problem. Its bytes count until this task says `done`."""
        kind = header(headers, b"content-type").partition(";")[0].strip().lower()
        if kind not in types:
            raise Problem("unsupported-type", f"content-type must be {' or '.join(types)}, got {kind[:80]!r}")
        declared = header(headers, b"content-length")
        if declared.isdigit() and int(declared) > most:
            raise Problem("too-large", f"body must have at most {most} bytes, got {declared[:20]}; send less at once")
        task, now = asyncio.current_task(), asyncio.get_running_loop().time()
        assert task is not None
        body = self._bodies[task] = _Body(address, now, now)
        try:
            pieces = await self._pieces(body, receive, most)
        except asyncio.CancelledError:
            if body.cut is None:  # the server is stopping
                raise
            task.uncancel()
            raise body.cut from None
        body.whole = True
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _pieces(self, body: _Body, receive: Receive, most: int) -> list[bytes]:
        pieces, size, more = list[bytes](), 0, True
        try:
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                piece, more = message.get("body", b""), message.get("more_body", False)
                pieces.append(piece)
                size += len(piece)
                if size > most:
                    raise Problem("too-large", f"body must have at most {most} bytes; send less at once")
                self._charge(body, len(piece) + _PIECE)
        except BaseException:
            pieces.clear()  # the error holds on to this frame for a while
            raise
        return pieces

    def done(self) -> None:
        """This task needs its body no more."""
        task = asyncio.current_task()
        assert task is not None
        if (body := self._bodies.pop(task, None)) is not None:
            self._held -= body.size

    def _charge(self, body: _Body, size: int) -> None:
        while self._held + size > self.budget:
            task, slowest = self._slowest()
            full = f"bodies must have at most {self.budget} bytes together while they are read; send it again"
            if slowest in (None, body):
                raise Problem("too-fast", full)
            self._cut(task, slowest, Problem("too-fast", full))
        body.size += size
        body.heard = asyncio.get_running_loop().time()
        self._held += size

    def _slowest(self) -> tuple[asyncio.Task[object] | None, _Body | None]:
        """Of the address that has most in unfinished bodies, the one that has been silent longest."""
        arriving = [(task, body) for task, body in self._bodies.items() if not body.whole and body.cut is None]
        totals = Counter[str]()
        for _, body in arriving:
            totals[body.address] += body.size
        if not totals:
            return None, None
        address = max(totals, key=lambda each: totals[each])
        return min(((t, b) for t, b in arriving if b.address == address and b.size), key=lambda each: each[1].heard,
                   default=(None, None))  # fmt: skip

    def _cut(self, task: asyncio.Task[object] | None, body: _Body, problem: Problem) -> None:
        assert task is not None
        body.cut = problem
        self._held -= body.size
        body.size = 0
        task.cancel()

    async def run(self) -> None:
        """Cut off those that take too long, over and over."""
        while True:
            await asyncio.sleep(min(1.0, self.seconds / 2))
            latest = asyncio.get_running_loop().time() - self.seconds
            for task, body in list(self._bodies.items()):
                if body.since < latest and not body.whole and body.cut is None:
                    self._cut(
                        task, body, Problem("timeout", f"body must arrive within {self.seconds:g} s; send it again")
                    )
