"""Public bounds as users give them: one number, one per column, or (low, high) pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import invalid
from hubbub.statistics.bounds import positive


def intervals(field: str, value: Any, columns: int, names: Sequence[str] = ()) -> Floats:
    """(columns, 2): a number c stands for (-c, c); one entry for all columns, or one for each, also by name."""
    fix = "give for example 7.5, or (0, 120), or one of these per column"
    if isinstance(value, Mapping) and names:
        if set(value) != set(names):
            raise invalid(field, f"given for {', '.join(names)}", ", ".join(map(str, value)), "name each once")
        value = [value[name] for name in names]
    try:
        given = [value] * columns if _single(value) else list(value)
        if len(given) != columns:
            bound = f"one entry or {columns} of them" if columns > 1 else "a number or a pair (low, high)"
            raise invalid(field, bound, f"{len(given)} entries", "give one per column of X")
        return np.array([_interval(field, entry) for entry in given])
    except (TypeError, ValueError) as error:
        if isinstance(error, ValueError) and type(error) is not ValueError:
            raise
        raise invalid(field, "a number or a pair (low, high), or one of these per column", repr(value), fix) from None


def _single(value: Any) -> bool:
    """One entry for all columns: a number, or a tuple of two numbers."""
    if isinstance(value, tuple):
        return len(value) == 2 and all(isinstance(end, Real) for end in value)
    return not isinstance(value, list) and np.ndim(value) == 0


def _interval(field: str, entry: Any) -> tuple[float, float]:
    if isinstance(entry, dict | str):
        raise TypeError
    if np.ndim(entry) == 0:
        bound = positive(field, entry)
        return -bound, bound
    low, high = (float(end) for end in entry)
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise invalid(field, "a pair (low, high) with low < high", (low, high), "give the public range of the column")
    positive(field, (high - low) / 2)
    return low, high
