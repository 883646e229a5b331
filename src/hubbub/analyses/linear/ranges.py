"""Public bounds and prior widths as people write them on a command line or in a study: 7.5, 0:120, age=0:120,dose=3."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hubbub.errors import InvalidInput
from hubbub.statistics.bounds import positive


def parse_ranges(text: str, names: Sequence[str], field: str = "x_bound") -> list[tuple[float, float]]:
    """Read (low, high) for each feature.

    The text is `7.5` or `0:120` for all features, `0:1,5,-3:3` for one after the other, or `age=0:120,dose=3` by name.
    """
    return [_range(part, text, field) for part in _per_feature(text, names, field, "7.5, 0:120, 0:1,5,-3:3")]


def parse_numbers(text: str, names: Sequence[str], field: str) -> list[float]:
    """Read one positive number for each feature.

    The text is `2.5` for all features, `1,2,3` for one after the other, or `age=0.1,dose=2` by name.
    """
    option, parts = field.replace("_", "-"), _per_feature(text, names, field, "2.5, 1,2,3")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = [float("nan")]
    if not all(0 < number < np.inf for number in numbers):
        raise InvalidInput(f"{option} must be positive and finite, got {option}={text}; give for example 2.5")
    return numbers


def _per_feature(text: str, names: Sequence[str], field: str, examples: str) -> list[str]:
    """Split the text into one piece for each feature, whichever way they were given."""
    option, parts = field.replace("_", "-"), [part.strip() for part in text.split(",") if part.strip()]
    named = [(name.strip(), value) for name, equals, value in (part.rpartition("=") for part in parts) if equals]
    if named and len(named) != len(parts):
        raise InvalidInput(f"{option} must name every feature or none, got {option}={text}; give {examples} or pairs")
    if named:
        given = [name for name, _ in named]
        for wrong in (*names, *given):
            if given.count(wrong) != 1 or wrong not in names:
                what = "twice" if given.count(wrong) > 1 else "missing or unknown"
                raise InvalidInput(f"{option} must name every feature once, got {wrong} {what}; name each one once")
        return [dict(named)[name] for name in names]
    if len(parts) not in (1, len(names)):
        only = "one entry" if len(names) == 1 else f"one number or {len(names)} of them"
        raise InvalidInput(f"{option} must be {only}, got {len(parts)}; give {examples} or name=value pairs")
    return parts * len(names) if len(parts) == 1 else parts


def _range(part: str, text: str, field: str) -> tuple[float, float]:
    option = field.replace("_", "-")
    try:
        ends = [float(end) for end in part.split(":")]
    except ValueError:
        ends = []
    if len(ends) == 1:
        half = positive(field, ends[0])
        return -half, half
    if len(ends) != 2:
        raise InvalidInput(
            f"{option} must be numbers or ranges, got {option}={text}; give 7.5, 0:120 or pairs age=0:120"
        )
    low, high = ends
    if not (np.isfinite(ends).all() and low < high):
        raise InvalidInput(f"{option} must be ranges low:high with low < high, got {part}; give for example 0:120")
    positive(field, (high - low) / 2)
    return low, high
