"""A lock that goes to whoever has waited longest."""

from __future__ import annotations

import threading
from collections import deque


class Turns:
    """One at a time, in the order of arrival.

    SQLite lets one write at a time, and those who wait look now and then whether it is their turn: beside somebody who
    writes again and again they may look in vain for long. Here such a writer queues behind those who wait already.
    """

    def __init__(self) -> None:
        self._brief, self._taken = threading.Lock(), False
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        with self._brief:
            if not self._taken:
                self._taken = True
                return
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        mine.acquire()  # until the one before releases it, who leaves the turn taken

    def __exit__(self, *_: object) -> None:
        with self._brief:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False
