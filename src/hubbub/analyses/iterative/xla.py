"""A program as portable XLA code: arithmetic on arrays and nothing else, compiled once in every process.

It can be sent to a worker, or kept in a file that clients install on their own, without any Python in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from hubbub.analyses.iterative.row_model import RowModel
from hubbub.arrays import Floats
from hubbub.errors import InvalidInput

_MOST_AT_ONCE, _WORDS_AT_ONCE = 2048, 1 << 20
_FEW = 512
_MAGIC = b"hubbub program 1\n"


@dataclass(frozen=True)
class XlaProgram:
    """(state, rows) -> vectors, of `block` rows at a time; its fingerprint is the hash of its code."""

    name: str
    columns: int
    dimension: int
    block: int
    code: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the code."""
        return _digest(self.code)

    @property
    def at_once(self) -> int:
        """The rows of one call."""
        return self.block

    def vectors(self, state: Floats, rows: Floats) -> Floats:
        """One vector for each row; the last rows are filled up, so that there is one shape and one compilation."""
        call, dtype = _compiled(self.code)
        at = np.asarray(state, dtype=dtype)
        out = np.empty((rows.shape[0], self.dimension))
        for start in range(0, rows.shape[0], self.block):
            part = rows[start : start + self.block].astype(dtype)
            if part.shape[0] < self.block:
                part = np.concatenate([part, np.repeat(part[-1:], self.block - part.shape[0], axis=0)])
            found = np.asarray(call(at, part))
            out[start : start + self.block] = found[: rows.shape[0] - start]
        return out

    def save(self, path: str | PathLike[str]) -> None:
        """Write the file that a client installs (`install(XlaProgram.load(path))`)."""
        head = {"name": self.name, "columns": self.columns, "dimension": self.dimension, "block": self.block}
        Path(path).write_bytes(_MAGIC + json.dumps(head).encode() + b"\n" + self.code)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> XlaProgram:
        """Read such a file; compare its fingerprint with the study's by another way."""
        try:
            data = Path(path).read_bytes()
            head, code = data.removeprefix(_MAGIC).split(b"\n", 1)
            if not data.startswith(_MAGIC):
                raise ValueError
            return cls(code=code, **json.loads(head))
        except (OSError, ValueError, TypeError):
            raise InvalidInput(f"program must be a file written by XlaProgram.save, got {path}; ask again") from None


def compile_program(
    name: str,
    function: Callable[[Any, Any], Any],
    dimension: int,
    columns: int,
    clients: int,
    state: int | None = None,
) -> XlaProgram:
    """Export `function(state, row) -> vector` over many rows at once; a state as long as the vector, or as told."""
    dtype = float_type()
    block = block_of(clients, max(16, min(_MOST_AT_ONCE, _WORDS_AT_ONCE // dimension)))
    shapes = (
        jax.ShapeDtypeStruct((dimension if state is None else state,), dtype),  # type: ignore[no-untyped-call]  # jax has no type for it
        jax.ShapeDtypeStruct((block, columns), dtype),  # type: ignore[no-untyped-call]
    )
    mapped = jax.jit(jax.vmap(function, in_axes=(None, 0)))
    code = bytes(export.export(mapped)(*shapes).serialize())
    return XlaProgram(name, columns, dimension, block, code)


def block_of(clients: int, most: int) -> int:
    """Rows at once: all of a few clients, else such that an even number of blocks (two cores) holds them all."""
    return clients if clients <= _FEW else -(-clients // (2 * -(-clients // (2 * most))))


def gradient_program(model: RowModel, clients: int) -> XlaProgram:
    """What clients run: the gradient of one row's log likelihood at a position, in all numbers that it looks at."""
    name, touched = f"gradient of the log likelihood of {getattr(model.model, '__name__', 'a model')}", model.touched

    def gradient(position: Any, row: Any) -> Any:
        return jax.grad(model.client_part)(position, row)[touched]

    return compile_program(name, gradient, touched.size, model.shape.columns, clients, model.dimension)


def float_type() -> Any:
    """What JAX computes in: 32 bits unless the user said otherwise."""
    return jnp.zeros(()).dtype


@lru_cache(maxsize=64)
def _digest(code: bytes) -> str:
    return hashlib.sha256(code).hexdigest()


@lru_cache(maxsize=64)
def _compiled(code: bytes) -> tuple[Callable[..., Any], Any]:
    exported = export.deserialize(bytearray(code))
    return jax.jit(exported.call), exported.in_avals[0].dtype
