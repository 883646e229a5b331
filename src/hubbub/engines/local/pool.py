"""The local engine's worker processes, from the parent's side.

Rows pass through shared memory; nothing is pickled but the plan of a round. Workers are fresh interpreters (no fork,
so no lock of another thread is inherited), started when first needed, kept for later rounds, gone with this process.
"""

from __future__ import annotations

import atexit
import mmap
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from multiprocessing import connection
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats, Words
from hubbub.engines.local.worker import MEMORY_BYTES, SLOTS, peak_bytes, slots_in
from hubbub.errors import HubbubError
from hubbub.protocols import SecureSum
from hubbub.roles import Outside, RoundPlan

Slice = slice | NDArray[np.intp]
"""Which rows: those of some clients, one after the other."""
Tick = Callable[[int], object]
"""Called with the number of clients that have just been added."""

_MAIN = "import sys; from hubbub.engines.local.worker import serve; serve(*map(int, sys.argv[1:]))"
_MEMORY_SETTINGS = {  # of glibc: keep what was freed, since the next block asks for the same again
    "MALLOC_MMAP_THRESHOLD_": str(1 << 28),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 28),
}
_T = TypeVar("_T")


class NotForWorkers(Exception):
    """A plan that another process cannot read, say of a statistic defined in a script."""


class _Link:
    """One worker process: its pipe, its memory and the slots that are free."""

    def __init__(self) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        with theirs, _nameless_file() as file:
            file.truncate(MEMORY_BYTES)
            self._memory = mmap.mmap(file.fileno(), MEMORY_BYTES)
            descriptors = (theirs.fileno(), file.fileno())
            command = [sys.executable, "-c", _MAIN, *map(str, descriptors)]
            settings = {**os.environ, **_MEMORY_SETTINGS}
            self.process = subprocess.Popen(command, pass_fds=descriptors, stdin=subprocess.DEVNULL, env=settings)
        self.slots = slots_in(self._memory)
        self.free = list(range(SLOTS))
        self.outside = 0

    def send(self, *message: object) -> None:
        self.pipe.send(message)

    def receive(self) -> Any:
        """The worker's answer; raises what went wrong there."""
        answer = self.pipe.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def give(self, rows: Floats, key: bytes | None) -> None:
        """Copy a slice of rows into a free slot and let the worker take it from there."""
        slot = self.free.pop()
        self.slots[slot, : rows.size].reshape(rows.shape)[...] = rows
        self.send("add", slot, rows.shape, key)

    def take_back(self, tick: Tick) -> None:
        """Wait for a slice to be done."""
        slot, clients, outside = self.receive()
        self.free.append(slot)
        self.outside += outside
        tick(clients)

    def close(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.wait()


class Workers:
    """A few worker processes that add up one round at a time."""

    def __init__(self, count: int) -> None:
        self._links = [_Link() for _ in range(count)]

    @property
    def count(self) -> int:
        """How many processes."""
        return len(self._links)

    def sums(
        self,
        plan: RoundPlan,
        rows: Floats,
        slices: Iterable[tuple[Slice, bytes | None]],
        scheme: SecureSum,
        tick: Tick,
    ) -> tuple[Words, Outside]:
        """(M, d): what each Compute adds up over all slices, each with the key of its stream in a simulation.

        And how many samples were outside the statistic's domain.
        """
        for link in self._links:
            link.outside = 0
        self._begin(plan, scheme)
        for chosen, key in slices:
            self._free_link(tick).give(rows[chosen], key)
        for link in self._links:
            while len(link.free) < SLOTS:
                link.take_back(tick)
            link.send("end")
        total = np.stack([scheme.empty(plan.dimension) for _ in range(scheme.computes)])
        for link in self._links:
            link.receive()
            scheme.merge(total, link.slots.reshape(-1)[: total.size].view(np.uint64).reshape(total.shape))
        return total, Outside(sum(link.outside for link in self._links))

    def peak_bytes(self) -> int:
        """The most memory each has held since this was last asked, together."""
        for link in self._links:
            link.send("peak")
        return sum(link.receive() for link in self._links)

    def close(self) -> None:
        """End the processes."""
        for link in self._links:
            link.close()

    def _begin(self, plan: RoundPlan, scheme: SecureSum) -> None:
        try:
            message = pickle.dumps(("begin", plan, scheme))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise NotForWorkers(str(error)) from None
        for link in self._links:
            link.pipe.send_bytes(message)
        failed = [answer for answer in [link.pipe.recv() for link in self._links] if answer is not None]
        if failed:
            raise NotForWorkers(str(failed[0]))

    def _free_link(self, tick: Tick) -> _Link:
        """The idlest worker; waits until one has a free slot."""
        while True:
            idlest = max(self._links, key=lambda link: len(link.free))
            if idlest.free:
                return idlest
            ready = connection.wait([link.pipe for link in self._links])
            for link in self._links:
                if link.pipe in ready:
                    link.take_back(tick)


class Pool:
    """This process's one set of workers; threads take turns."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._workers: Workers | None = None

    def warm(self, count: int) -> bool:
        """True where that many workers are running already."""
        self._forget_after_fork()
        return self._workers is not None and self._workers.count == count

    def use(self, count: int, action: Callable[[Workers], _T]) -> _T:
        """Run an action with the workers; if it fails, they are ended and the next round gets fresh ones."""
        self._forget_after_fork()
        with self._lock:
            if self._workers is None or self._workers.count != count:
                self._close()
                self._workers = Workers(count)
            try:
                return action(self._workers)
            except NotForWorkers:
                raise
            except (EOFError, BrokenPipeError, ConnectionResetError):
                self._close()
                raise HubbubError(
                    "worker processes must live until the round ends, got one that was killed (out of memory?); "
                    "nothing was released: run it again, or with workers=1"
                ) from None
            except BaseException:
                self._close()
                raise

    def peak_bytes(self) -> int:
        """The most memory this process and its workers have held since this was last asked."""
        with self._lock:
            return peak_bytes() + (0 if self._workers is None else self._workers.peak_bytes())

    def close(self) -> None:
        """End the workers, if there are any."""
        self._forget_after_fork()
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._workers is not None:
            self._workers.close()
            self._workers = None

    def _forget_after_fork(self) -> None:
        """The workers of a forked child's parent are not its own."""
        if self._pid != os.getpid():
            self._pid, self._lock, self._workers = os.getpid(), threading.Lock(), None


POOL = Pool()
atexit.register(POOL.close)


def cores() -> int:
    """How many cores this process may use; one where it is a worker of something else already."""
    if multiprocessing.parent_process() is not None or not hasattr(os, "sched_getaffinity"):
        return 1
    return len(os.sched_getaffinity(0))


def _nameless_file() -> IO[bytes]:
    """Memory with a descriptor but no name: nothing is left behind, whatever happens."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("hubbub rows"), "r+b")
    return tempfile.TemporaryFile()
