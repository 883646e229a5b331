"""Reading a request's body: of the right type, not too large, and in time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from hubbub.service.problems import Problem

Headers = Iterable[tuple[bytes, bytes]]


def header(headers: Headers, name: bytes) -> str:
    """A header, or nothing. Starlette's own mapping takes as long as reading a report."""
    for key, value in headers:
        if key == name:
            return str(value, "latin-1")
    return ""


class Bodies:
    """Bodies that are arriving. Whoever takes too long is cut off by one look a second: a timer for each costs more
    than reading most of them."""

    def __init__(self, most: int, seconds: float) -> None:
        self.most, self.seconds = most, seconds
        self._since: dict[asyncio.Task[object], float] = {}
        self._late: set[asyncio.Task[object]] = set()

    async def read(self, headers: Headers, receive: Receive, *types: str, most: int | None = None) -> bytes:
        """The whole body, or a Problem."""
        most = self.most if most is None else most
        kind = header(headers, b"content-type").partition(";")[0].strip().lower()
        if kind not in types:
            raise Problem("unsupported-type", f"content-type must be {' or '.join(types)}, got {kind[:80]!r}")
        declared = header(headers, b"content-length")
        if declared.isdigit() and int(declared) > most:
            raise Problem("too-large", f"body must have at most {most} bytes, got {declared[:20]}; send less at once")
        task, chunks, size, more = asyncio.current_task(), list[bytes](), 0, True
        assert task is not None
        self._since[task] = asyncio.get_running_loop().time()
        try:
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                chunks.append(message.get("body", b""))
                size, more = size + len(chunks[-1]), message.get("more_body", False)
                if size > most:
                    raise Problem("too-large", f"body must have at most {most} bytes; send less at once")
        except asyncio.CancelledError:
            if task not in self._late:
                raise
            task.uncancel()
            raise Problem("timeout", f"body must arrive within {self.seconds:g} s; send it again") from None
        finally:
            del self._since[task]
            self._late.discard(task)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def run(self) -> None:
        """Cut off those that take too long, over and over."""
        while True:
            await asyncio.sleep(min(1.0, self.seconds / 2))
            latest = asyncio.get_running_loop().time() - self.seconds
            for task in [task for task, since in self._since.items() if since < latest]:
                self._late.add(task)
                task.cancel()
