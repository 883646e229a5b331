"""A worker process of the local engine: slices of clients in, the Computes' sums out."""

from __future__ import annotations

import mmap
import pickle
import resource
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import HubbubError, InvalidInput
from hubbub.protocols import SecureSum
from hubbub.randomness import Randomness
from hubbub.roles import RoundPlan, share_out

SLOTS, SLOT_WORDS = 2, 1 << 21
"""Shared memory of a worker: it computes on one slot of 16 MB while the next is being filled."""
MOST_SUMS = SLOTS * SLOT_WORDS
"""Words of M sums that fit there."""
MEMORY_BYTES = 8 * MOST_SUMS


def slots_in(memory: mmap.mmap) -> Floats:
    """The shared memory as (SLOTS, SLOT_WORDS) numbers."""
    return np.frombuffer(memory, dtype=np.float64).reshape(SLOTS, SLOT_WORDS)


class Worker:
    """Answers one message at a time. Its noise and masks come from a stream of its own."""

    def __init__(self, slots: Floats) -> None:
        self._slots = slots
        self._system = Randomness.system()

    def begin(self, plan: RoundPlan, scheme: SecureSum) -> None:
        """A new round: nothing has been added."""
        self._plan = plan
        self._tally = scheme.tally(plan.dimension, self._system)

    def add(self, slot: int, shape: tuple[int, int], key: bytes | None) -> tuple[int, int, int]:
        """Share out the rows in a slot; a simulation brings its stream's key along.

        The answer is the slot, its clients, and how many of them count as zero because their sample is no number.
        """
        stream = self._system if key is None else Randomness(key, "simulation")
        rows = self._slots[slot, : shape[0] * shape[1]].reshape(shape)
        self._tally.randomness = stream
        outside = share_out(self._plan, rows, self._tally, stream)
        return slot, shape[0], outside.number

    def end(self) -> bool:
        """What each Compute has added up, laid down where the rows were."""
        sums = self._tally.sums
        self._slots.reshape(-1)[: sums.size].view(np.uint64)[:] = sums.reshape(-1)
        return True

    def peak(self) -> int:
        """Bytes of memory."""
        return peak_bytes()


def serve(pipe_descriptor: int, memory_descriptor: int) -> None:
    """Answer messages until the pipe closes. What goes wrong is the answer, and the parent raises it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    pipe = Connection(pipe_descriptor)
    worker = Worker(slots_in(mmap.mmap(memory_descriptor, MEMORY_BYTES)))
    try:
        while True:
            pipe.send(_answer(worker, pipe.recv_bytes()))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the parent has gone


def _answer(worker: Worker, message: bytes) -> Any:
    try:
        name, *arguments = pickle.loads(message)
        return getattr(worker, name)(*arguments)
    except InvalidInput as error:
        return error
    except Exception as error:
        return HubbubError(f"a worker process failed: {type(error).__name__}: {error}")


def peak_bytes() -> int:
    """This process's largest resident memory since the last call (since its start where that cannot be reset)."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        peak = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return peak
