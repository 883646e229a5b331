"""Models and releases as JSON files: a damaged one is refused in one clear line."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hubbub.errors import InvalidInput, invalid

Content = dict[str, Any]
Found = TypeVar("Found")


def write_json(path: str | Path, form: str, content: Content) -> None:
    """Write the file, with its format as the first entry."""
    Path(path).write_text(json.dumps({"format": form, **content}, indent=1) + "\n")


def read_json(field: str, path: str | Path, readers: Mapping[str, Callable[[Content], Found]]) -> Found:
    """What the reader of the file's format makes of it. Whatever a reader stumbles on means that it is damaged.

    `field` is "model" or "release", which is also the option of `hubbub fit` that writes such a file.
    """
    option = {"model": "out"}.get(field, field)
    try:
        content: Content = json.loads(Path(path).read_text())
        form = content["format"]
        if form in readers:
            return readers[form](content)
    except OSError as error:
        raise InvalidInput(f"{field} must be readable, got {field}={path}: {error.strerror}; check the path") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, np.linalg.LinAlgError):
        form = None
    if isinstance(form, str) and form.startswith("hubbub "):
        raise invalid(field, " or ".join(f"a {known!r}" for known in readers), form[:80], f"{path} is another file")
    raise InvalidInput(f"{field} must be a file written by `hubbub fit --{option}`, got {field}={path}; fit it again")


def numbers(value: object, *shape: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Finite numbers of this shape (-1 stands for any length), or a ValueError."""
    found = np.array(value, dtype=np.float64)
    if len(found.shape) != len(shape) or any(
        want not in (-1, got) for want, got in zip(shape, found.shape, strict=True)
    ):
        raise ValueError
    if not np.isfinite(found).all():
        raise ValueError
    return found


def names_of(value: object) -> list[str]:
    """Distinct names, at least one, or a ValueError."""
    if not isinstance(value, list) or not value or len(set(map(str, value))) != len(value):
        raise ValueError
    return [str(name) for name in value]
