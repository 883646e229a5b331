"""Public keyword arguments of a model."""

from __future__ import annotations

from typing import Any

import numpy as np


class Public(dict[str, Any]):
    """Keywords of a model that can name a cached one: arrays by their content, everything else as it prints."""

    def _key(self) -> tuple[tuple[str, object], ...]:
        return tuple(sorted((name, _content(value)) for name, value in self.items()))

    def __hash__(self) -> int:  # type: ignore[override]  # a dict has none
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Public) and self._key() == other._key()

    def __ne__(self, other: object) -> bool:
        return not self == other  # a dict has one of its own


def _content(value: Any) -> str:
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        return f"{array.dtype} {array.shape} {array.tobytes().hex()}"
    return repr(value)
