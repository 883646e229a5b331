"""Requests that arrive at the same time share a transaction: one flush to disk for many."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from hubbub.service.wire.problems import Problem

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
Place = TypeVar("Place", bound=Hashable)
_MOST_ITEMS, _MOST_BYTES = 256, 32_000_000  # in one transaction
_MOST_WAITING, _MOST_WAITING_BYTES = 2000, 100_000_000


def by_place(
    items: Sequence[Item],
    place: Callable[[Item], Place],
    write: Callable[[Place, Sequence[Item]], Sequence[Outcome]],
) -> list[Outcome]:
    """What became of each item, where all that belong to one place are written together."""
    places: dict[Place, list[int]] = {}
    for i, item in enumerate(items):
        places.setdefault(place(item), []).append(i)
    outcomes: dict[int, Outcome] = {}
    for each, mine in places.items():
        outcomes |= zip(mine, write(each, [items[i] for i in mine]), strict=True)
    return [outcomes[i] for i in range(len(items))]


class Inbox(Generic[Item, Outcome]):
    """A queue before the store; `submit` returns when what was sent is on disk."""

    def __init__(self, write: Callable[[Sequence[Item]], Sequence[Outcome]]) -> None:
        self._write = write
        self._waiting: list[tuple[Item, int, asyncio.Future[Outcome]]] = []
        self._bytes = 0
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "inbox")

    def submit(self, item: Item, size: int) -> asyncio.Future[Outcome]:
        """Await it for what became of the item, once that is written."""
        if len(self._waiting) >= _MOST_WAITING or self._bytes > _MOST_WAITING_BYTES:
            raise Problem("too-fast", f"requests must wait while {len(self._waiting)} are being written; send it again")
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, size, future))
        self._bytes += size
        self._arrived.set()
        return future

    async def run(self) -> None:
        """Write whatever has arrived, over and over."""
        while True:
            await self._arrived.wait()
            group = self._take()
            if not await self._done(group) and len(group) > 1:
                for each in group:  # one that cannot be written must not take the others with it
                    await self._done([each])
            del group  # which may be large

    async def _done(self, group: Sequence[tuple[Item, int, asyncio.Future[Outcome]]]) -> bool:
        """Write the group and tell the senders; False where it could not be written."""
        try:
            work = asyncio.get_running_loop().run_in_executor(self._thread, self._write, [item for item, _, _ in group])
            outcomes = await work
        except Exception as error:
            if len(group) == 1 and not group[0][2].done():
                error.__traceback__ = None  # whose frames hold on to the item, and to the error
                group[0][2].set_exception(error)
            return False
        for (_, _, future), outcome in zip(group, outcomes, strict=True):
            if not future.done():
                future.set_result(outcome)
        return True

    def _take(self) -> list[tuple[Item, int, asyncio.Future[Outcome]]]:
        count, total = 0, 0
        for _, size, _ in self._waiting[:_MOST_ITEMS]:
            total += size
            if count and total > _MOST_BYTES:
                break
            count += 1
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        self._bytes -= sum(size for _, size, _ in group)
        if not self._waiting:
            self._arrived.clear()
        return group
