"""Runs the cells of an experiment: in parallel, resumable, and the same for a seed however many jobs.

A cell is a pure function of its arguments (its seed among them). Its rows are written to a file as soon
as they are there; a cell whose file exists is not computed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias

from hubbub.errors import UntrustworthyWarning, WeakPrivacyWarning

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One resumable piece of work: `function(*arguments)` gives rows."""

    key: str
    function: Callable[..., list[Row]]
    arguments: tuple[Any, ...]


def run_cells(
    cells: Sequence[Cell], folder: Path, jobs: int, tick: Callable[[int], object] = lambda _: None
) -> list[list[Row]]:
    """The rows of every cell, in the cells' order; `tick(n)` is called for every n cells that are done."""
    folder.mkdir(parents=True, exist_ok=True)
    done = {cell.key: rows for cell in cells if (rows := _stored(folder, cell)) is not None}
    tick(len(done))
    missing = [cell for cell in cells if cell.key not in done]
    if jobs == 1 or len(missing) <= 1:
        with one_thread_each():
            for cell in missing:
                done[cell.key] = _store(folder, cell, _rows_of(cell))
                tick(1)
    else:
        _run_parallel(missing, folder, jobs, done, tick)
    return [done[cell.key] for cell in cells]


def _run_parallel(
    cells: Sequence[Cell], folder: Path, jobs: int, done: dict[str, list[Row]], tick: Callable[[int], object]
) -> None:
    pool = ProcessPoolExecutor(min(jobs, len(cells)), mp_context=get_context("spawn"), initializer=_start_worker)
    running: dict[Future[list[Row]], Cell] = {pool.submit(_rows_of, c): c for c in cells}
    try:
        while running:
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                cell = running.pop(future)
                done[cell.key] = _store(folder, cell, future.result())
                tick(1)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for future, cell in running.items():  # what was still being computed when another cell failed
            if not future.cancelled() and future.exception() is None:
                _store(folder, cell, future.result())


def _rows_of(cell: Cell) -> list[Row]:
    """What the cell computes. What fits warn of is what an experiment measures, so it is not said for each of them."""
    with warnings.catch_warnings():
        for category in (WeakPrivacyWarning, UntrustworthyWarning):
            warnings.simplefilter("ignore", category)
        return cell.function(*cell.arguments)


def _start_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides; a worker prints no traceback of its own
    one_thread_each()


def one_thread_each() -> Any:
    """Linear algebra in one thread: jobs share the cores already, and sums come out the same in each of them."""
    import scipy.linalg  # noqa: F401  # only what is loaded can be limited
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)


def _path(folder: Path, cell: Cell) -> Path:
    return folder / f"{hashlib.sha256(f'{_fingerprint()} {cell.key}'.encode()).hexdigest()[:20]}.json"


@cache
def _fingerprint() -> str:
    """Of the program itself: what other code has computed is not taken for today's."""
    root = Path(__file__).parents[1]
    sources = sorted(path for path in root.rglob("*.py") if path.parent.name not in ("cli", "plots"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


def _stored(folder: Path, cell: Cell) -> list[Row] | None:
    try:
        content = json.loads(_path(folder, cell).read_text())
        rows: list[Row] = content["rows"]
        return rows if content["key"] == cell.key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # not there, or cut off while it was written: computed again


def _store(folder: Path, cell: Cell, rows: list[Row]) -> list[Row]:
    path = _path(folder, cell)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps({"key": cell.key, "rows": rows}))
    os.replace(draft, path)
    return rows


def seed_of(*parts: object) -> int:
    """A seed for a simulation that depends on every part, and on nothing else."""
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")
