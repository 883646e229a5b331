"""Work that many ask for at the same time and that is done once for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """A function that runs in a thread of its own, and once for all who ask while it runs.

    Whoever asks meanwhile gets what that run finds, though it began before the question.
    """

    def __init__(self, function: Callable[[], T], name: str) -> None:
        self._function, self._thread = function, ThreadPoolExecutor(1, name)
        self._running: asyncio.Future[T] | None = None

    async def now(self) -> T:
        """What the function returns, or what it raises."""
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().run_in_executor(self._thread, self._function)
        return await asyncio.shield(self._running)
