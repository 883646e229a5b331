"""The limit of a secure sum on this machine: what its unavoidable primitives take, done as well as our libraries can.

For N clients, d numbers and M Computes these are the cipher's stream for N d (M-1) masks (once more where Computes
expand seeds), N d normal draws, N d encodings, and N d (2 (M-1) + 1) additions in the ring: each mask is subtracted
from its client's vector and added to its Compute's sum. Each is timed on arrays that stay in the cache, by as many
processes at once as the engine uses.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from types import TracebackType

import numpy as np

from hubbub.grid import Grid
from hubbub.randomness import Randomness

_BLOCK = 1 << 15  # 256 KB an array
_SAMPLE = 1 << 23  # words timed in each process; more are scaled up


class Primitives:
    """Processes that time the primitives side by side; a context manager."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn")) if workers > 1 else None

    def __enter__(self) -> Primitives:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def seconds(self, words: int, computes: int, *, seeds: bool) -> float:
        """For this many words on all cores; the slowest process counts."""
        streams = (computes - 1) * (2 if seeds else 1)
        if self._pool is None:
            return primitive_seconds(words, computes, streams)
        part = -(-words // self._workers)
        tasks = [self._pool.submit(primitive_seconds, part, computes, streams) for _ in range(self._workers)]
        return max(task.result() for task in tasks)


def primitive_seconds(words: int, computes: int, streams: int) -> float:
    """Of one process; scaled from a sample where there are many words."""
    block = min(words, _BLOCK)
    blocks = -(-min(words, _SAMPLE) // block)
    randomness, fixed_point = Randomness.system(), Grid(20)
    mask, total, numbers = np.ones(block, np.uint64), np.zeros(block, np.uint64), np.empty(block)
    primitives: list[tuple[int, Callable[[], object]]] = [
        (streams, lambda: randomness.fill_words(mask)),
        (1, lambda: randomness.fill_normals(numbers)),
        (1, lambda: fixed_point.encode(numbers)),
        (2 * (computes - 1) + 1, lambda: np.add(total, mask, out=total)),
    ]
    started = time.perf_counter()
    for _ in range(blocks):
        for times, action in primitives:
            for _ in range(times):
                action()
    return (time.perf_counter() - started) * words / (block * blocks)
