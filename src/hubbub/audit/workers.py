"""Checks side by side, in forked processes: as many as there are cores."""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from hubbub.audit.case import Case, Check, Setting
from hubbub.errors import HubbubError
from hubbub.experiments.runner import one_thread_each

_FORK = multiprocessing.get_context("fork")


def in_workers(
    checks: Sequence[Check], setting: Setting, tick: Callable[[Case], object] | None, workers: int | None = None
) -> tuple[Case, ...]:
    """What all checks find, in their order; `tick` is told of each as soon as it is done."""
    count = min(len(checks), workers or len(os.sched_getaffinity(0)))
    found: dict[int, Case] = {}
    with one_thread_each():  # which workers inherit: matrices are small, and threads would wait for one another
        for number, case in _one_by_one(checks, setting) if count == 1 else _side_by_side(checks, setting, count):
            found[number] = case
            if tick is not None:
                tick(case)
    return tuple(found[number] for number in range(len(checks)))


def _one_by_one(checks: Sequence[Check], setting: Setting) -> Any:
    for number, check in enumerate(checks):
        yield number, check.run(setting)


def _side_by_side(checks: Sequence[Check], setting: Setting, count: int) -> Any:
    """Each worker takes the next check that nobody has taken yet."""
    following, results = _FORK.Value("i", 0), _FORK.SimpleQueue()
    workers = [_FORK.Process(target=_work, args=(checks, setting, following, results)) for _ in range(count)]
    for worker in workers:
        worker.start()
    try:
        for _ in checks:
            number, case = results.get()
            if isinstance(case, Exception):
                raise case
            yield number, case
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def _work(checks: Sequence[Check], setting: Setting, following: Any, results: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides; a worker prints no traceback of its own
    while True:
        with following.get_lock():
            number = following.value
            following.value += 1
        if number >= len(checks):
            return
        try:
            results.put((number, checks[number].run(setting)))
        except HubbubError as error:
            results.put((number, error))
        except Exception:
            lines = traceback.format_exc()
            results.put((number, HubbubError(f"check must run to its end, got this in {checks[number].name}: {lines}")))
