"""Arrays as scikit-learn checks them, without a value of anybody's in a message."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from hubbub.arrays import Floats, finite_rows
from hubbub.errors import InvalidInput
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


def widest(field: str, rows: Floats) -> Floats:
    """How far from zero each column reaches, where no public bound is given; no message tells the number."""
    found = np.abs(rows).max(axis=0)
    found[found == 0] = 1.0
    try:
        return np.array([positive(field, value) for value in found])
    except InvalidInput:  # whose text would quote the number
        raise InvalidInput(f"{field} must be given where a column reaches so far; or change the unit of it") from None
