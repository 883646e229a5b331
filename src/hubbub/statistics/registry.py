"""From a description back to the statistic: how a study made elsewhere is read and checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hubbub.errors import InvalidInput, whole
from hubbub.protocols import Description, Statistic
from hubbub.registry import Builder, Registry
from hubbub.statistics.bounds import Ball, Box, positive
from hubbub.statistics.clipped import KIND, Clipped, installed
from hubbub.statistics.counts import Count, OneHot
from hubbub.statistics.distances import Distances
from hubbub.statistics.histogram import ColumnHistogram
from hubbub.statistics.moments import MeanAndSquare, Means, SecondMoments
from hubbub.statistics.newton import NAME as NEWTON
from hubbub.statistics.newton import NewtonStep
from hubbub.statistics.regression import Regression
from hubbub.statistics.spread import Spread
from hubbub.statistics.stacked import Stacked

MOST_DIMENSIONS = 1_000_000
"""Longer vectors are refused, so that a description of a few bytes cannot ask for all the memory there is."""


def statistic_from(description: object) -> Statistic:
    """The statistic that describes itself in exactly these words; anything else is refused."""
    statistic = STATISTICS.read(description)
    whole("dimension", statistic.dimension, 1, "describe a smaller statistic", most=MOST_DIMENSIONS)
    return statistic


def _numbers(values: Sequence[Any]) -> tuple[float, ...]:
    if not 1 <= len(values) <= MOST_DIMENSIONS:
        raise InvalidInput(f"bounds must be a list of numbers, got {len(values)}; name one per column")
    return tuple(positive("bound", value) for value in values)


def _small(value: Any, least: int) -> int:
    return whole("size", value, least, "describe a smaller statistic", most=MOST_DIMENSIONS)


def _optional(value: Any) -> float | None:
    return None if value is None else positive("y_bound", value)


def _regression(d: Description) -> Statistic:
    if d["formula"] not in ("tight", "paper"):
        raise InvalidInput(f"formula must be tight or paper, got formula={str(d['formula'])[:80]!r}; use tight")
    bound = _box(d) if d["bound"] == "box" else _ball(d)
    return Regression(bound, bool(d["target_square"]), d["formula"])


def _box(d: Description) -> Box:
    return Box(_numbers(d["x"]), _optional(d["y"]))


def _ball(d: Description) -> Ball:
    return Ball(positive("radius", d["radius"]), _small(d["d"], 1), _optional(d["y"]), positive("weight", d["weight"]))


def _stacked(d: Description) -> Statistic:
    parts = tuple(STATISTICS.build(part) for part in d["parts"])
    if any(isinstance(part, Stacked) for part in parts) or len(parts) > MOST_DIMENSIONS:
        raise InvalidInput("parts must be plain statistics, got a stack in a stack; name the parts one by one")
    shares = _numbers(d["shares"])
    if len(parts) != len(shares):
        raise InvalidInput(f"shares must be one for each part, got {len(shares)} for {len(parts)}; name one per part")
    return Stacked(parts, shares)


def _clipped(d: Description) -> Statistic:
    texts, state = (d["program"], d["fingerprint"]), d["state"]
    if not all(isinstance(text, str) and 0 < len(text) <= 200 for text in texts):
        raise InvalidInput("program must be a name and a fingerprint, got others; ask for the whole description")
    if not isinstance(state, list) or len(state) > MOST_DIMENSIONS or not all(isinstance(v, float) for v in state):
        raise InvalidInput("state must be a list of numbers, got others; use describe()")
    if not isinstance(d["probability"], float):
        raise InvalidInput("probability must be a number in (0, 1], got another; use describe()")
    program = installed(*texts, _small(d["columns"], 1), _small(d["dimension"], 1))
    return Clipped(program, np.array(state, dtype=np.float64), d["clip"], d["probability"])


_OWN: dict[str, Builder[Statistic] | str] = {
    "regression": _regression,
    "second moments": lambda d: SecondMoments(_numbers(d["bounds"])),
    "means": lambda d: Means(_numbers(d["bounds"])),
    "mean and square": lambda d: MeanAndSquare(positive("bound", d["bound"])),
    "count": lambda d: Count(positive("bound", d["bound"]), bool(d.get("whole", False))),
    "one-hot": lambda d: OneHot(_small(d["categories"], 2)),
    "distances": lambda d: Distances(_numbers(d["edges"])),
    "column histogram": lambda d: ColumnHistogram(
        _numbers(d["bounds"]), _small(d["wide"], 2), _small(d["places"], 2), d["share"]
    ),
    "spread": lambda d: Spread(positive("norm", d["norm"]), _small(d["features"], 1)),
    "stacked": _stacked,
    KIND: _clipped,
    NEWTON: NewtonStep.of,
}
STATISTICS: Registry[Statistic] = Registry("hubbub.statistics", "statistic", _OWN)
"""Every statistic that is installed here."""
