"""Uploads that arrive at the same time share a transaction: one flush to disk for many reports."""

from __future__ import annotations

import asyncio

from hubbub.service.node import Node
from hubbub.service.problems import Problem
from hubbub.service.uploads import Outcome, Upload, accept_uploads

_MOST_UPLOADS, _MOST_BYTES = 256, 32_000_000  # in one transaction
_MOST_WAITING = 2000


class Inbox:
    """A queue before the store; `submit` returns when the reports are on disk."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._waiting: list[tuple[Upload, asyncio.Future[Outcome]]] = []
        self._arrived = asyncio.Event()

    async def submit(self, upload: Upload) -> Outcome:
        """What became of the upload, once it is written."""
        if len(self._waiting) >= _MOST_WAITING:
            raise Problem("too-fast", f"uploads must wait while {_MOST_WAITING} are being written; send it again")
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((upload, future))
        self._arrived.set()
        return await future

    async def run(self) -> None:
        """Write whatever has arrived, over and over."""
        while True:
            await self._arrived.wait()
            group = self._take()
            try:
                outcomes = await asyncio.to_thread(accept_uploads, self._node, [upload for upload, _ in group])
            except Exception as error:
                for _, future in group:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), outcome in zip(group, outcomes, strict=True):
                if not future.done():
                    future.set_result(outcome)

    def _take(self) -> list[tuple[Upload, asyncio.Future[Outcome]]]:
        count, size = 0, 0
        for upload, _ in self._waiting[:_MOST_UPLOADS]:
            size += len(upload.body)
            if count and size > _MOST_BYTES:
                break
            count += 1
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        if not self._waiting:
            self._arrived.clear()
        return group
