"""From a description back to what it describes: how a party reads what another one has planned.

Each seam has one registry. What hubbub brings is listed where the registry is made; what other packages bring is found
by entry points (group `hubbub.statistics`, `hubbub.mechanisms`, `hubbub.secure_sums`, `hubbub.engines`,
`hubbub.analyses`) whose name is the registered name and whose object has a method `of(description)`. Nothing is ever
loaded that is not installed on this machine: a study names things and brings no code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, Protocol, TypeVar, cast

from hubbub.errors import InvalidInput


class Describes(Protocol):
    """Something that can be read back from its description."""

    def describe(self) -> dict[str, Any]:
        """Plain JSON values."""
        ...


T = TypeVar("T", bound=Describes)
Builder = Callable[[Mapping[str, Any]], T]


Found = TypeVar("Found")


class Finder(Generic[Found]):
    """All implementations of one seam, by name.

    Parameters
    ----------
    group : of the entry points of other packages.
    field : what an error calls it; of a description, in which the name stands.
    own : what hubbub brings, or the place "module:name" of it, which is imported when it is first asked for.
    """

    def __init__(self, group: str, field: str, own: Mapping[str, Found | str]) -> None:
        self.group, self.field, self._own = group, field, own

    def names(self) -> list[str]:
        """Everything that is installed here."""
        return [*self._own, *(point.name for point in entry_points(group=self.group) if point.name not in self._own)]

    def find(self, name: object, package: object = None) -> Found:
        """What is registered under this name, or one line that says which package is missing."""
        own = self._own.get(name) if isinstance(name, str) else None
        if own is not None:
            return cast("Found", _imported(own)) if isinstance(own, str) else own
        found = entry_points(group=self.group, name=name) if isinstance(name, str) else ()
        for point in found:
            return cast("Found", point.load())
        known = ", ".join(self.names())
        if isinstance(package, str) and package and package != "hubbub":
            raise InvalidInput(
                f"{self.field} must be installed here, got {self.field}={str(name)[:80]!r} of the package "
                f"{package[:80]!r}, which is not; install that from a source that you trust (known here: {known})"
            )
        raise InvalidInput(
            f"{self.field} must be one of {known}, got {self.field}={str(name)[:80]!r}; "
            "update hubbub, or install the package that brings it"
        )


class Registry(Finder[Any], Generic[T]):
    """Implementations that describe themselves, and are read back from their description.

    What is registered is a function of the description, or a class with a method `of(description)`.
    """

    def read(self, description: object) -> T:
        """What describes itself in exactly these words; anything else is refused."""
        found = self.build(description)
        if canonical(self.field, found.describe()) != canonical(self.field, description):
            raise InvalidInput(
                f"{self.field} must be described as hubbub describes it: "
                f"{canonical(self.field, found.describe())[:200]}, got other fields or values; use the same version"
            )
        return found

    def build(self, description: object) -> T:
        """The same without the comparison."""
        if not isinstance(description, Mapping):
            raise InvalidInput(f"{self.field} must be described by named values, got another; use describe()")
        builder = self.find(description.get(self.field), description.get("package"))
        build: Builder[T] = getattr(builder, "of", builder)  # a class that reads itself, or a function
        try:
            return build(description)
        except InvalidInput:
            raise
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError):
            raise InvalidInput(
                f"{self.field} must be described in full, got an incomplete {description[self.field]}; "
                "ask for the whole"
            ) from None


def canonical(field: str, description: object) -> str:
    """The same text for the same description."""
    try:
        return json.dumps(description, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput(f"{field} must be described in plain JSON values, got others; use describe()") from None


def _imported(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(module), name)
