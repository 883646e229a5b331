"""Results are printed to standard output, progress and notes to standard error; output files are checked first."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hubbub.errors import InvalidInput

console = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False)


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


def progress() -> Progress:
    """Make a bar with the time left, which is shown on standard error if that is a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=errors,
        transient=True,
        disable=not sys.stderr.isatty(),
    )


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
