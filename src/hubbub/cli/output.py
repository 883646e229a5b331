"""Results are printed to standard output, progress and notes to standard error; output files are checked first."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TaskID, TextColumn, TimeRemainingColumn

from hubbub.errors import InvalidInput

console = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False)
_EVERY = 30.0  # seconds between lines where there is no terminal: an hour's log has 120
_REMEMBERED = 600.0  # seconds of work that the time left goes by, since some pieces take much longer than others


def print_json(value: dict[str, object]) -> None:
    """Print one JSON object to standard output; numbers that JSON has no word for become null."""
    print(json.dumps(_plain(value), indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # an array or a number of numpy, which is not imported for this
        return _plain(value.tolist())
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def say(json: bool, content: dict[str, object], line: str) -> None:
    """Print the content as one JSON object, or the line in its place."""
    if json:
        print_json(content)
    else:
        console.print(line, markup=False)


class Watched(Progress):
    """A bar with the time left on standard error if that is a terminal; otherwise now and then a plain line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        super().__init__(
            *columns, console=errors, transient=True, disable=not sys.stderr.isatty(), get_time=clock,
            speed_estimate_period=_REMEMBERED,
        )  # fmt: skip
        self._said = clock()

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        """So much more of a task is done."""
        super().advance(task_id, advance)
        self._say(self._tasks[task_id])

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """So much of a task is done in all, or it is found to be larger."""
        super().update(task_id, **changes)
        self._say(self._tasks[task_id])

    def _say(self, task: Task) -> None:
        if self.disable and not task.finished and self.get_time() - self._said >= _EVERY:
            self._said = self.get_time()
            errors.print(_line(task), markup=False)


def _line(task: Task) -> str:
    """Such as `checks: 40 of 160, about 3 min left`."""
    done = f"{task.description}: {task.completed:.0f}" + ("" if task.total is None else f" of {task.total:.0f}")
    left = task.time_remaining
    if left is None:
        return done
    return f"{done}, about {f'{left:.0f} s' if left < 100 else f'{left / 60:.0f} min'} left"


def progress() -> Progress:
    """Make what shows how far work is, with the time left."""
    return Watched()


def check_writable(option: str, path: Path | None, *, endings: tuple[str, ...] = ()) -> None:
    """Refuse an output that could not be written, before any budget is spent."""
    if path is None:
        return
    if endings and path.suffix.lower() not in endings:
        raise InvalidInput(f"{option} must end in {', '.join(endings)}, got {option}={path}; rename it")
    try:
        new = not path.exists()
        if not new and not path.is_file():
            raise OSError(0, "not an ordinary file")
        open(path, "ab").close()
        if new:
            path.unlink()
    except OSError as error:
        raise InvalidInput(
            f"{option} must be a file in a writable folder, got {option}={path}: {error.strerror}; choose another place"
        ) from None


def check_distinct(**paths: Path | None) -> None:
    """Refuse one file named twice: writing one would destroy the other."""
    seen: dict[Path, str] = {}
    for option, path in paths.items():
        if path is not None and (other := seen.setdefault(path.resolve(), option)) != option:
            raise InvalidInput(f"{option} must be another file than {other}, got {path} for both; rename one")


PICTURES = (".png", ".svg", ".pdf")
