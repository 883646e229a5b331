"""What becomes of a row before the statistic sees it: public steps that any client can take on its own.

Whatever the steps do, the statistic bounds its input afterwards: they cannot change a sensitivity. And whatever the
row, they go through: a step that failed for some rows would tell, by who is missing, something about them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats, rows_not_finite
from hubbub.errors import InvalidInput
from hubbub.protocols import Steps

MOST_STEPS = 16
FAR = 1e100  # beyond any bound; its square is a number still


def shift(by: Floats) -> dict[str, object]:
    """x -> x - by."""
    return {"step": "shift", "by": np.asarray(by, dtype=float).tolist()}


def clip(to: Floats) -> dict[str, object]:
    """x -> x clipped to [-to, to], column by column."""
    return {"step": "clip", "to": np.asarray(to, dtype=float).tolist()}


def shorten(norm: float) -> dict[str, object]:
    """All columns but the last scaled down together, so that their length is at most the norm."""
    return {"step": "shorten", "norm": float(norm)}


def scale(by: Floats) -> dict[str, object]:
    """x -> x / by."""
    return {"step": "scale", "by": np.asarray(by, dtype=float).tolist()}


def log(least: Floats) -> dict[str, object]:
    """x -> the logarithm of x, or of `least` where that is more; columns whose `least` is 0 stay as they are."""
    return {"step": "log", "least": np.asarray(least, dtype=float).tolist()}


def constant() -> dict[str, object]:
    """A first column of ones."""
    return {"step": "constant"}


def residual(of: Floats) -> dict[str, object]:
    """The last column less what the others make of it, with these coefficients."""
    return {"step": "residual", "of": np.asarray(of, dtype=float).tolist()}


def turn(by: Floats) -> dict[str, object]:
    """x -> A x for all columns but the last, with this square matrix A."""
    return {"step": "turn", "by": np.asarray(by, dtype=float).tolist()}


def repeat() -> dict[str, object]:
    """The last column once more, at the end."""
    return {"step": "repeat"}


def prepare(rows: Floats, steps: Steps) -> tuple[Floats, NDArray[np.bool_] | None]:
    """The rows after all steps, and which of them were not finite (None where all were), whose numbers mean nothing.

    Refuses steps it does not know or that do not fit the columns, whatever the rows. What lies beyond any bound is
    brought nearer, so that squares stay numbers.
    """
    if len(steps) > MOST_STEPS:
        raise InvalidInput(f"steps must number at most {MOST_STEPS}, got {len(steps)}; combine some")
    wrong = rows_not_finite(rows)
    if wrong is not None or rows.max(initial=0.0) > FAR or rows.min(initial=0.0) < -FAR:
        rows = np.clip(np.nan_to_num(rows), -FAR, FAR)
    for step in steps:
        try:
            with np.errstate(all="ignore"):
                rows = _STEPS[step["step"]](rows, step)
        except (KeyError, TypeError, ValueError, AttributeError):
            known = ", ".join(_STEPS)
            raise InvalidInput(
                f"step must be one of {known} and fit {rows.shape[1]} columns, got step={str(step)[:120]}"
            ) from None
        rows = np.clip(np.nan_to_num(rows), -FAR, FAR)
    return rows, wrong


def check_steps(steps: Steps, columns: int) -> None:
    """Refuse steps that no row could take, or that do not end with so many columns."""
    added = [step for step in steps if isinstance(step, Mapping) and step.get("step") in ("constant", "repeat")]
    prepare(np.zeros((1, columns - len(added))), steps)


def _per_column(rows: Floats, values: Any) -> Floats:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.shape != (rows.shape[1],) or not np.isfinite(numbers).all():
        raise ValueError
    return numbers


def _positive(numbers: Any) -> Any:
    if not (np.isfinite(numbers).all() and np.all(np.asarray(numbers) > 0)):
        raise ValueError
    return numbers


def _shorten(rows: Floats, step: Mapping[str, Any]) -> Floats:
    norm = _positive(float(step["norm"]))
    length = np.linalg.norm(rows[:, :-1], axis=1, keepdims=True)
    return np.hstack([rows[:, :-1] * (norm / np.maximum(length, norm)), rows[:, -1:]])


def _clip(rows: Floats, step: Mapping[str, Any]) -> Floats:
    limit = _positive(_per_column(rows, step["to"]))
    return np.clip(rows, -limit, limit)


def _residual(rows: Floats, step: Mapping[str, Any]) -> Floats:
    explained = rows[:, :-1] @ _per_column(rows[:, :-1], step["of"])
    return np.hstack([rows[:, :-1], rows[:, -1:] - explained[:, None]])


def _log(rows: Floats, step: Mapping[str, Any]) -> Floats:
    least = _per_column(rows, step["least"])
    if np.any(least < 0):
        raise ValueError
    return np.where(least > 0, np.log(np.maximum(rows, np.where(least > 0, least, 1.0))), rows)


def _turn(rows: Floats, step: Mapping[str, Any]) -> Floats:
    matrix, columns = np.asarray(step["by"], dtype=np.float64), rows.shape[1] - 1
    if matrix.shape != (columns, columns) or not np.isfinite(matrix).all():
        raise ValueError
    return np.hstack([rows[:, :-1] @ matrix.T, rows[:, -1:]])


_STEPS: dict[str, Callable[[Floats, Mapping[str, Any]], Floats]] = {
    "shift": lambda rows, step: rows - _per_column(rows, step["by"]),
    "clip": _clip,
    "shorten": _shorten,
    "scale": lambda rows, step: rows / _positive(_per_column(rows, step["by"])),
    "log": _log,
    "residual": _residual,
    "turn": _turn,
    "repeat": lambda rows, _: np.hstack([rows, rows[:, -1:]]),
    "constant": lambda rows, _: np.hstack([np.ones((rows.shape[0], 1)), rows]),
}
