"""Printing: results to standard output, progress and notes to standard error."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hubbub.errors import InvalidInput

console = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False)


def print_json(value: dict[str, object]) -> None:
    """One JSON object on standard output; numbers that JSON has no word for become null."""
    print(json.dumps(_plain(value), indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value


def progress() -> Progress:
    """A bar with the time left, on standard error and only where somebody watches."""
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
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise InvalidInput(f"{option} must be a file in a writable folder, got {option}={path}; choose another place")


PICTURES = (".png", ".svg", ".pdf")
