"""The road that one sample takes through the code, as a profiler sees it: which functions, in which order.

A small table is fitted while every call in hubbub is watched. A function is on the road where the samples pass it:
where an argument or its result is an array with a row for each client, or words that were made from such rows. The
road begins where the file is read and ends with the release; what follows sees no sample.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import hubbub
from hubbub.arrays import Floats

CLIENTS = 211
"""A number of rows that nothing else in a fit has."""
_ROOT = Path(hubbub.__file__).parent
_END = "decode_release"


@dataclass(frozen=True)
class Stop:
    """One function on the road."""

    folder: str
    file: str
    name: str
    does: str
    """The first line of its docstring."""


@dataclass(frozen=True)
class Road:
    """The functions that one sample passes, in the order of their first calls, and how often it changes folders."""

    stops: tuple[Stop, ...]
    changes: int
    """Between folders, on calls and on returns, each function being followed the first time it is called."""


class _Watch:
    """A profiler that notes calls and returns of functions that hold samples."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str, str]] = []
        self.on_road: set[tuple[str, str]] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(str(_ROOT)):
            return
        name = code.co_qualname.replace("<locals>.", "")
        if "<" in name:  # lambdas, comprehensions and module bodies
            return
        file = str(Path(code.co_filename).relative_to(_ROOT))
        self.events.append((event, file, name, code.co_qualname))
        held = frame.f_locals.values() if event == "call" else (argument,)
        if any(_holds_samples(each) for each in held):
            self.on_road.add((file, name))


def _holds_samples(value: Any, depth: int = 2) -> bool:
    if isinstance(value, np.ndarray):
        rows = value.ndim > 0 and value.shape[0] == CLIENTS and value.dtype == np.float64  # not a mask of who is there
        return rows or (value.dtype == np.uint64 and value.size > 1)
    if depth and isinstance(value, list | tuple):
        return any(_holds_samples(each, depth - 1) for each in value[:8])
    if depth and isinstance(value, dict):
        return any(_holds_samples(each, depth - 1) for each in list(value.values())[:8])
    return False


def find_road(folder: Path) -> Road:
    """Fit a small table, written into this folder, and return the road of its samples."""
    file = folder / "samples.csv"
    _write(file, np.random.default_rng(0).normal(size=(CLIENTS, 3)))
    watch = _Watch()
    sys.setprofile(watch)
    try:
        _fit(file)
    finally:
        sys.setprofile(None)
    return _road(watch)


def _write(file: Path, x: Floats) -> None:
    lines = [",".join(f"{value:.6f}" for value in (*row, row.sum())) for row in x]
    file.write_text("\n".join(["a,b,c,y", *lines]) + "\n")


def _fit(file: Path) -> None:
    """Run `hubbub fit` with its result kept to itself; the posterior, which sees no sample, is the quick one."""
    from hubbub.cli.fit import FitOptions
    from hubbub.cli.fit import run as fit

    options = FitOptions(
        file, target="y", epsilon=5.0, delta=1e-5, x_bound="5", y_bound="20", posterior="shrinkage", json=True
    )
    with contextlib.redirect_stdout(io.StringIO()):
        fit(options)


def _road(watch: _Watch) -> Road:
    ends = [i for i, (event, _, name, _) in enumerate(watch.events) if name == _END and event == "return"]
    stops: dict[tuple[str, str], Stop] = {}
    stack: list[tuple[str, str] | None] = []
    here, changes = "", 0
    for event, file, name, _ in watch.events[: ends[-1] + 1]:
        key = (file, name)
        if key not in watch.on_road:
            continue
        if event == "call":
            stack.append(None if key in stops else key)
            if stack[-1] is not None:
                stops[key] = Stop(_folder(file), file, name, _purpose(file, name))
                changes, here = changes + (here not in ("", stops[key].folder)), stops[key].folder
        elif stack and stack.pop() is not None:
            caller = next((each for each in reversed(stack) if each is not None), None)
            if caller is not None:
                changes, here = changes + (here != _folder(caller[0])), _folder(caller[0])
    return Road(tuple(stops.values()), changes)


def _folder(file: str) -> str:
    return file.split("/")[0] if "/" in file else "ground floor"


def _purpose(file: str, name: str) -> str:
    """The first line of the function's docstring."""
    module = sys.modules["hubbub." + file.removesuffix(".py").replace("/", ".")]
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    lines = (inspect.getdoc(found) or "").splitlines() if found is not None else []
    return lines[0] if lines else ""
