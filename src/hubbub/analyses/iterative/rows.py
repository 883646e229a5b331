"""Arrays that a model is fitted to, as a table with a row for each client, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from hubbub.arrays import Floats, finite_rows
from hubbub.errors import InvalidInput

_LARGEST_WHOLE = 1 << 24  # JAX computes in 32 bits, which hold no larger ones exactly


@dataclass(frozen=True)
class RowShape:
    """How a row of numbers is cut into the model's arguments."""

    parts: tuple[tuple[tuple[int, ...], str], ...]
    """For each argument the shape of one row's share, and its kind of number."""

    @property
    def columns(self) -> int:
        """Numbers in one row."""
        return sum(int(np.prod(shape)) for shape, _ in self.parts)

    def named(self, names: Sequence[str] = ()) -> tuple[str, ...]:
        """Names of the numbers in a row: as given, or x0, x1, ..; refuses another number of them."""
        found = tuple(names) or tuple(f"x{j}" for j in range(self.columns))
        if len(found) != self.columns:
            raise InvalidInput(f"names must be {self.columns}, one for each number of a row, got {len(found)}")
        return found

    def unpack(self, rows: Any) -> list[Any]:
        """(n, columns) -> the arguments, n rows each."""
        cuts = np.cumsum([int(np.prod(shape)) for shape, _ in self.parts])[:-1]
        blocks = zip(jnp.split(rows, cuts, axis=1), self.parts, strict=True)
        return [_typed(block.reshape(rows.shape[:1] + shape), kind) for block, (shape, kind) in blocks]

    def made_up(self, n: int, seed: int = 0, between: tuple[float, float] | None = None) -> list[Any]:
        """Rows that nobody owns: columns of tables are normal draws, single and whole numbers 0 or 1.

        With `between` all that are not whole lie there: some models know no other numbers.
        """
        rng = np.random.default_rng(seed)
        found = []
        for shape, kind in self.parts:
            if kind in "iub" or (not shape and between is None):
                values = rng.integers(0, 2, (n, *shape)).astype(float)
            else:
                values = rng.standard_normal((n, *shape)) if between is None else rng.uniform(*between, (n, *shape))
            found.append(_typed(jnp.asarray(values, dtype=float), kind))
        return found


def _typed(values: Any, kind: str) -> Any:
    return values.astype({"i": int, "u": int, "b": bool}.get(kind, float))


def as_rows(data: Sequence[Any]) -> tuple[Floats, RowShape]:
    """The arrays as one table, a row for each client, checked to be finite."""
    if not data:
        raise InvalidInput("data must be arrays with a row for each client, got none; use fit(X, y)")
    try:
        arrays = [np.asarray(part) for part in data]
    except ValueError:
        raise InvalidInput("data must be arrays of numbers, got rows of different lengths; check them") from None
    if any(part.ndim == 0 or part.dtype.kind not in "iubf" for part in arrays):
        raise InvalidInput("data must be arrays of numbers with a row for each client, got others; convert them")
    lengths = [part.shape[0] for part in arrays]
    if len(set(lengths)) != 1:
        raise InvalidInput(f"data must have as many rows in each array, got {lengths}; check the arrays")
    if any(part.dtype.kind in "iu" and part.size and np.abs(part).max() > _LARGEST_WHOLE for part in arrays):
        raise InvalidInput(f"data must hold whole numbers up to {_LARGEST_WHOLE}, got larger ones; number them from 0")
    table = np.concatenate([part.reshape(lengths[0], -1).astype(np.float64) for part in arrays], axis=1)
    return finite_rows("data", table), RowShape(tuple((part.shape[1:], part.dtype.kind) for part in arrays))


def shape_of(parts: Sequence[Any]) -> RowShape:
    """From what a file says of it."""
    found = tuple((tuple(int(size) for size in shape), str(kind)) for shape, kind in parts)
    if not found or any(kind not in "iubf" or len(kind) != 1 or min(shape, default=1) < 1 for shape, kind in found):
        raise ValueError
    return RowShape(found)
