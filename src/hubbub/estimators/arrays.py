"""Arrays as scikit-learn checks them, without a value of anybody's in a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from hubbub.arrays import Floats, finite_rows
from hubbub.errors import InvalidInput, warn_of_rows
from hubbub.statistics.bounds import positive


def checked(estimator: Any, X: Any, *y: Any, reset: bool = True, **how: Any) -> Any:
    """X, or X and y, as scikit-learn's own check gives them; what it refuses is said without the values it quotes."""
    try:
        return validate_data(estimator, X, *y, reset=reset, dtype=np.float64, ensure_all_finite=False, **how)
    except ValueError as error:  # a TypeError names types alone
        said, *more = str(error).splitlines()
        if said.startswith("The feature names"):  # names are no values
            raise
        if said.startswith("could not convert"):
            said = "X and y must be numeric, got others; convert or drop what is not a number"
        if more and said.startswith("Expected"):
            said = f"{said.rstrip(':')}. Reshape your data, one row for each client"
        raise InvalidInput(said) from None


def new_rows(estimator: Any, X: Any) -> Floats:
    """Rows to predict for: finite, and of the columns that were fitted."""
    return finite_rows("X", checked(estimator, X, reset=False))


def one_per_row(field: str, values: Any, rows: int) -> Floats:
    """A finite number for each row."""
    try:
        found = np.asarray(values)
        if found.dtype.kind == "c":
            raise ValueError
        found = found.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{field} must be numbers, got others; give one for each row") from None
    if found.shape not in ((rows,), (rows, 1)):
        raise InvalidInput(f"{field} must have a value for each of the {rows} rows, got shape {found.shape}; check it")
    return finite_rows(field, found.reshape(-1, 1))[:, 0]


def widest(field: str, rows: Floats) -> Floats:
    """How far from zero each column reaches, where no public bound is given; no message tells the number."""
    found = np.abs(rows).max(axis=0)
    found[found == 0] = 1.0
    try:
        return np.array([positive(field, value) for value in found])
    except InvalidInput:  # whose text would quote the number
        raise InvalidInput(f"{field} must be given where a column reaches so far; or change the unit of it") from None


def number_column(y: Any) -> Floats:
    """(n,) finite numbers, or one line that shows none of them."""
    try:
        column = np.asarray(y, dtype=np.float64).reshape(-1, 1)
    except (TypeError, ValueError):
        raise InvalidInput("y must be numeric, got another type; convert or drop what is not a number") from None
    return finite_rows("y", column)[:, 0]


def arviz_rows(
    estimator: Any, X: Any, y: Any, outcomes: Callable[[Any], Floats]
) -> tuple[Floats | None, Floats | None]:
    """Rows and outcomes that `to_arviz` was given, checked; where there are outcomes, with a warning that they show."""
    if X is None:
        if y is not None:
            raise InvalidInput("X must be given with y, got y alone; call to_arviz(X, y), or leave both out")
        return None, None
    rows = new_rows(estimator, X)
    if y is None:
        return rows, None
    found = outcomes(y)
    same_length(rows, found)
    warn_of_rows("to_arviz(X, y)", stacklevel=4)
    return rows, found


def same_length(X: Floats, y: Floats) -> None:
    """Refuse a y that has another length than X."""
    if len(X) != len(y):
        raise InvalidInput(f"y must have a value for each of the {len(X)} rows, got {len(y)}; check them")
