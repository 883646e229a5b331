"""What the peers' programs share: the rows, the clock and the one line of JSON they print.

Runs inside a peer's own environment: numpy and the standard library only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

SEED = 0
FRACTION_BITS = 24  # where a peer lets us choose: finer than any of the errors we check for
WARM_UP = (20, 4)  # N and d of a small sum, untimed, before the measured ones
TOLERANCE = 0.01  # how far off a sum may be: CrypTen cuts off at 16 binary digits, the others are far below


class Cell(NamedTuple):
    """What to measure: N clients with d numbers each, the best of so many repeats."""

    clients: int
    dimension: int
    parties: int
    repeats: int


def cell_from_arguments() -> Cell:
    """The command line is N, d, parties, repeats."""
    return Cell(*(int(argument) for argument in sys.argv[1:5]))


def make_rows(clients: int, dimension: int) -> np.ndarray:
    """The same rows for everybody, in [-1, 1)."""
    return np.random.default_rng(SEED).uniform(-1, 1, size=(clients, dimension))


def best_of(repeats: int, total: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> dict[str, float]:
    """Seconds from having the rows to having the sum, and how far off the sum is."""
    total(make_rows(*WARM_UP))
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        result = total(rows)
        seconds.append(time.perf_counter() - started)
    return {"seconds": min(seconds), "error": error_of(result, rows)}


def error_of(result: np.ndarray, rows: np.ndarray) -> float:
    """The largest distance to the plain sum."""
    return float(np.max(np.abs(np.asarray(result, dtype=float) - rows.sum(axis=0))))


def report(measured: dict[str, float]) -> None:
    """One line of JSON, the last one on standard output."""
    print(json.dumps({"tolerance": TOLERANCE} | measured), flush=True)
