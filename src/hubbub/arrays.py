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
    wrong = rows_not_finite(rows)
    if wrong is not None:  # says where, and never what, because a message may go further than the data
        row = int(np.argmax(wrong))
        column = int(np.argmin(np.isfinite(rows[row])))
        raise InvalidInput(
            f"{field} must be finite, got another in {field}[{row}, {column}]; "
            "drop or impute such rows (NaN, inf) before they reach a client"
        )
    return rows


def number_rows(field: str, values: object, columns: int | None = None) -> Floats:
    """`values` as an (n, columns) array, of which nothing is looked at yet."""
    try:
        rows = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):  # whose text would quote a value
        raise InvalidInput(f"{field} must be numeric, got others; convert or drop what is not a number") from None
    if rows.ndim != 2:
        raise invalid(field, "a two-dimensional array (clients x columns)", f"{rows.ndim}-d array", "reshape it")
    if columns is not None and rows.shape[1] != columns:
        raise invalid(field, f"an array with {columns} columns", f"{rows.shape[1]} columns", "check the columns")
    return rows


def rows_not_finite(rows: Floats) -> NDArray[np.bool_] | None:
    """Which rows hold NaN or infinity, None where there are none; in pieces, so that no mask of the whole is made."""
    size = max(1, _CHECKED_WORDS // max(1, rows.shape[1]))
    found: NDArray[np.bool_] | None = None
    for start in range(0, rows.shape[0], size):
        part = rows[start : start + size]
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(part.sum()):  # one NaN or infinity would spoil the sum
                continue
        wrong = ~np.isfinite(part).all(axis=1)
        if wrong.any():
            found = np.zeros(rows.shape[0], dtype=bool) if found is None else found
            found[start : start + size] = wrong
    return found
