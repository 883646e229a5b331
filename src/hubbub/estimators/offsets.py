"""Exposures and offsets as estimators take them: one number for each row, and public bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from hubbub.analyses.glm.offset import Offset
from hubbub.arrays import Floats
from hubbub.errors import InvalidInput, invalid
from hubbub.estimators.arrays import one_per_row
from hubbub.estimators.intervals import intervals
from hubbub.protocols import Table

FIELDS = ("exposure", "offset")


def named(exposure: Any, offset: Any) -> dict[str, Any]:
    """The one of the two that is given, by name; refuses both."""
    given = {field: values for field, values in zip(FIELDS, (exposure, offset), strict=True) if values is not None}
    if len(given) > 1:
        raise InvalidInput("exposure and offset must not both be given, got two; add the exposure's logarithm to it")
    return given


def values_of(field: str, values: Any, rows: int) -> Floats:
    """A finite number for each row, of an exposure above zero."""
    found = one_per_row(field, values, rows)
    if field == "exposure" and not (found > 0).all():
        raise InvalidInput("exposure must be above zero in every row, got others; correct or drop such rows")
    return found


def added(fitted: Offset | None, given: dict[str, Any], rows: int) -> Floats | float:
    """What is added to the linear predictor of rows to predict for; 0 where nothing is given."""
    for field, values in given.items():
        if fitted is None or fitted.exposure is not (field == "exposure"):
            raise InvalidInput(f"{field} must be left out where the model was fitted without, got one")
        found = values_of(field, values, rows)
        return np.log(found) if fitted.exposure else found
    return 0.0


def offset_of(rows: Floats | Table, field: str | None, bounds: dict[str, Any], names: list[str]) -> Any:
    """The offset with its public bounds, and what leaked: they are read off the data where none are given."""
    for name in FIELDS:
        if name != field and bounds[name] is not None:
            raise InvalidInput(f"{name} must be given to fit where {name}_bound is, got none; or leave that out")
    if field is None:
        return None, ()
    name, exposure, bound = f"{field}_bound", field == "exposure", bounds[field]
    column = field if field not in names else f"{field} of rows"
    if bound is not None:
        pair = tuple(bound) if isinstance(bound, list | np.ndarray) else bound
        low, high = (float(end) for end in intervals(name, pair, 1)[0])
        return Offset(column, (low, high), exposure), ()
    if isinstance(rows, Table):
        raise invalid(name, "given for a table", None, "its rows are not looked at: give the public bound")
    low, high = float(rows[:, -2].min()), float(rows[:, -2].max())
    high = max(high, low + max(1e-3 * abs(low), 1e-6))
    try:
        return Offset(column, (low, high), exposure), (name,)
    except InvalidInput:  # whose text would quote the numbers
        raise InvalidInput(f"{name} must be given where values reach so far; or change their unit") from None
