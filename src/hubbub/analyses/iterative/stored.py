"""What a fit has found, as a JSON file: numbers, the estimator's settings and the privacy report; never code."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import InvalidInput
from hubbub.privacy import Budget
from hubbub.protocols import Statement

VERSION = 1


@dataclass(frozen=True)
class StoredReport(Statement):
    """The privacy report of a fit that was read from a file: what it said then."""

    content: Mapping[str, Any]
    text: str

    @property
    def is_guarantee(self) -> bool:
        """True where the stated epsilon and delta really hold."""
        return bool(self.content["guarantee"])

    @property
    def budget(self) -> Budget:
        """What the run was allowed to spend."""
        return Budget(self.content["budget"]["epsilon"], self.content["budget"]["delta"])

    @property
    def samples(self) -> int:
        """All samples together."""
        return int(self.content["samples"])

    @property
    def steps(self) -> int:
        """How many were taken."""
        return int(self.content["steps"])

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return dict(self.content)

    def __str__(self) -> str:
        return self.text


def write(
    path: str | PathLike[str], kind: str, settings: Mapping[str, Any], found: Mapping[str, Any], report: Statement
) -> None:
    """Write the file; arrays become lists."""
    content = {
        "format": f"hubbub {kind} {VERSION}", "settings": settings, "found": found,
        "privacy": {"report": report.as_dict(), "text": str(report)},
    }  # fmt: skip
    text = json.dumps(content, indent=1, default=_plain, allow_nan=False)
    try:
        Path(path).write_text(text + "\n")
    except OSError as error:
        raise InvalidInput(f"model must be writable, got model={path}: {error.strerror}; check the path") from None


class StoredFit:
    """A file's content; whatever is missing or of another shape makes it damaged, in one line."""

    def __init__(self, path: str | PathLike[str], kind: str, writer: str) -> None:
        self._line = f"model must be a file written by {writer}.save, got model={path}; fit it again"
        try:
            content = json.loads(Path(path).read_text())
            if content["format"] != f"hubbub {kind} {VERSION}":
                raise ValueError
            self.settings, self.found = dict(content["settings"]), dict(content["found"])
            report = content["privacy"]
            self.report = StoredReport(dict(report["report"]), str(report["text"]))
            _ = self.report.is_guarantee, self.report.budget, self.report.samples, self.report.steps
        except OSError as error:
            raise InvalidInput(f"model must be readable, got model={path}: {error.strerror}; check the path") from None
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
            raise InvalidInput(self._line) from None

    def part(self, *names: str) -> StoredFit:
        """The same file, of which only an inner part is looked at."""
        found = copy.copy(self)
        for name in names:
            found.found = found.checked(lambda name=name: dict(found.found[name]))
        return found

    def array(self, name: str, *shape: int | None, least: float = -np.inf) -> Floats:
        """Finite numbers of this shape, none below `least`; None stands for any length."""
        return self.checked(lambda: _array(self.found[name], shape, least))  # type: ignore[no-any-return]

    def text(self, name: str) -> str:
        """A text."""
        return str(self.checked(lambda: self.found[name] + ""))

    def covariance(self, name: str, size: int) -> Floats:
        """A matrix that is symmetric and has no negative variance."""
        found = self.array(name, size, size)
        least = -1e-9 * max(float(np.trace(found)), 0.0)
        if not np.allclose(found, found.T) or not np.linalg.eigvalsh(found).min() >= least:
            raise InvalidInput(self._line)
        return found

    def checked(self, read: Any) -> Any:
        """What a function reads, or the one line."""
        try:
            return read()
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, np.linalg.LinAlgError):
            raise InvalidInput(self._line) from None


def _array(values: Any, shape: tuple[int | None, ...], least: float) -> Floats:
    found = np.array(values, dtype=np.float64)
    right = len(shape) == found.ndim and all(a is None or a == b for a, b in zip(shape, found.shape, strict=True))
    if not (right and np.isfinite(found).all() and (found >= least).all()):
        raise ValueError
    return found


def _plain(value: Any) -> Any:
    """Of what JSON does not know: arrays, numbers of NumPy and budgets."""
    if isinstance(value, Budget):
        return {"epsilon": value.epsilon, "delta": value.delta}
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"cannot be stored: {type(value).__name__}")
