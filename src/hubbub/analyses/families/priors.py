"""Numbers of a prior, checked: a wrong one is refused in one line."""

from __future__ import annotations

from typing import Any

from hubbub.errors import invalid

_LARGEST = 1e12  # parameter of a prior, in the units of the data


def pair(prior: Any, first: str, second: str) -> tuple[float, float]:
    """Two positive numbers, with their names."""
    try:
        one, two = prior
    except (TypeError, ValueError):
        raise invalid("prior", "a pair of numbers", repr(prior), "give for example (1.0, 1.0)") from None
    return prior_number(first, one), prior_number(second, two)


def prior_number(field: str, value: object) -> float:
    """A positive number."""
    found = number(field, value)
    if not 1 / _LARGEST <= found <= _LARGEST:
        bound = f"positive and finite, {1 / _LARGEST:g}..{_LARGEST:g}"
        raise invalid(field, bound, found, "give a proper prior, a known variance")
    return found


def prior_mean_of(value: object) -> float:
    """Where a mean is expected."""
    found = number("prior_mean", value)
    if not abs(found) <= _LARGEST:
        raise invalid("prior_mean", f"in -{_LARGEST:g}..{_LARGEST:g}", found, "say where the mean is expected")
    return found


def number(field: str, value: object) -> float:
    """Whatever float() makes a number of."""
    try:
        return float(value)  # type: ignore[arg-type]  # whatever it is, float() decides
    except (TypeError, ValueError, OverflowError):
        raise invalid(field, "a number", repr(value), "give for example 1.0") from None
