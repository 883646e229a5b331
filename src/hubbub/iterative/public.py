"""Public keyword arguments of a model."""

from __future__ import annotations

from typing import Any


class Public(dict[str, Any]):
    """Keywords of a model that can name a cached one: equal where they print alike."""

    def __hash__(self) -> int:  # type: ignore[override]  # a dict has none
        return hash(tuple(sorted((name, repr(value)) for name, value in self.items())))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Public) and hash(self) == hash(other)
