"""The array types of the road: real vectors, and words of the ring Z/2^64."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import InvalidInput, invalid

Floats: TypeAlias = NDArray[np.float64]
Words: TypeAlias = NDArray[np.uint64]

_CHECKED_WORDS = 1 << 16


def finite_rows(field: str, values: object, columns: int | None = None) -> Floats:
    """`values` as a finite (n, columns) array, or one line that says which entry is not."""
    rows = number_rows(field, values, columns)
    check_finite(field, rows)
    return rows


def number_rows(field: str, values: object, columns: int | None = None) -> Floats:
    """`values` as an (n, columns) array, of which nothing is looked at yet."""
    try:
        rows = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{field} must be numeric: {error}; convert or drop what is not a number") from None
    if rows.ndim != 2:
        raise invalid(field, "a two-dimensional array (clients x columns)", f"{rows.ndim}-d array", "reshape it")
    if columns is not None and rows.shape[1] != columns:
        raise invalid(field, f"an array with {columns} columns", f"{rows.shape[1]} columns", "check the columns")
    return rows


def check_finite(field: str, rows: Floats) -> None:
    """Refuse NaN and infinity, in pieces, so that no mask of the whole is made."""
    size = max(1, _CHECKED_WORDS // max(1, rows.shape[1]))
    for start in range(0, rows.shape[0], size):
        part = rows[start : start + size]
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(part.sum()):  # one NaN or infinity would spoil the sum
                continue
        bad = np.argwhere(~np.isfinite(part))
        if bad.size:
            row, column = bad[0]
            raise InvalidInput(
                f"{field} must be finite, got {field}[{start + row}, {column}]={part[row, column]}; "
                "drop or impute such rows (NaN, inf) before they reach a client"
            )
