"""What engines hold that run in this process: an array."""

from __future__ import annotations

from typing import Any

from hubbub.arrays import Floats, number_rows
from hubbub.errors import InvalidInput
from hubbub.protocols import Table


def held_array(rows: Any) -> Floats:
    """An array, as it is; a table that stays elsewhere is refused in a line that says who can take it."""
    if isinstance(rows, Table):
        raise InvalidInput(
            f"engine must run where the rows of a {type(rows).__name__} are, got one that takes arrays; "
            "leave the engine out, or use that of the table"
        )
    return number_rows("rows", rows)
