"""Whether an object has everything that a protocol asks for: no member forgotten, none that takes other arguments.

An implementation that subclasses a protocol inherits its empty bodies, which give None in silence, so inheriting one of
those does not count.
"""

from __future__ import annotations

import inspect
from typing import Any

_NOT_MEMBERS = {"_is_protocol", "_is_runtime_protocol", "__init__", "__subclasshook__"}


def members(protocol: type) -> list[str]:
    """The names of the methods, properties and annotated attributes of a protocol and of those it is made from."""
    bases = [base for base in protocol.__mro__ if getattr(base, "_is_protocol", False) and base.__module__ != "typing"]
    names = [name for base in bases for name in (*vars(base), *inspect.get_annotations(base))]
    return sorted({name for name in names if not name.startswith("_") and name not in _NOT_MEMBERS})


def satisfies(found: Any, protocol: type) -> None:
    """Every member of the protocol is there, with a body of its own, and takes the protocol's arguments."""
    for name in members(protocol):
        wanted = inspect.getattr_static(protocol, name, None)
        own = inspect.getattr_static(found, name, None)
        place = f"{type(found).__name__}.{name}"
        assert own is not None or hasattr(found, name), f"{place} is missing"
        assert not (own is wanted and _empty(wanted)), f"{place} is the empty one of {protocol.__name__}"
        if inspect.isfunction(wanted):
            assert callable(getattr(found, name)), f"{place} must be a method"
            _same_arguments(place, getattr(protocol, name), getattr(type(found), name))
        elif isinstance(wanted, classmethod):
            assert inspect.ismethod(getattr(found, name)), f"{place} must be a class method"
        else:
            assert not inspect.isroutine(getattr(found, name)), f"{place} must be a value"


def _same_arguments(place: str, wanted: Any, own: Any) -> None:
    """What the protocol's callers pass is understood; more arguments must have defaults."""
    theirs, ours = (list(inspect.signature(function).parameters.values()) for function in (wanted, own))
    names = [parameter.name for parameter in ours]
    assert names[: len(theirs)] == [parameter.name for parameter in theirs], f"{place} takes {names}"
    for parameter, model in zip(ours, theirs, strict=False):
        assert model.default is inspect.Parameter.empty or parameter.default is not inspect.Parameter.empty, place
    for parameter in ours[len(theirs) :]:
        assert parameter.default is not inspect.Parameter.empty, f"{place} needs {parameter.name}"


def _empty(member: Any) -> bool:
    """A member of a protocol without a body: `...`, or no more than an annotation."""
    function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    return not inspect.isfunction(function) or inspect.getsource(function).rstrip().endswith("\n        ...")
