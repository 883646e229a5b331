"""A part of the linear predictor that every row brings along, with the coefficient 1: an exposure, or any offset."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from hubbub.analyses.linear.ranges import parse_ranges
from hubbub.analyses.linear.regression import Interval
from hubbub.errors import InvalidInput, invalid
from hubbub.statistics.bounds import positive


@dataclass(frozen=True)
class Offset:
    """A column of the offset, or of the exposure, whose logarithm the offset is.

    Values beyond the public bounds count as the nearer bound: their rows are then taken to have, say, been watched for
    longer or less long than they were.
    """

    column: str
    bound: Interval
    exposure: bool = False

    def __post_init__(self) -> None:
        low, high = self.bound
        field = "exposure_bound" if self.exposure else "offset_bound"
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise invalid(field, "an interval low < high", f"{low:g}..{high:g}", "give for example 0.1:10")
        if self.exposure and low <= 0:
            raise invalid(field, "above 0", f"{low:g}..{high:g}", "give the least exposure of a row, for example 0.01")
        positive(field, self.half)

    @property
    def ends(self) -> Interval:
        """The bounds of what is added to the linear predictor."""
        low, high = self.bound
        return (math.log(low), math.log(high)) if self.exposure else (low, high)

    @property
    def middle(self) -> float:
        """Of these: what a row's offset is counted from."""
        return sum(self.ends) / 2

    @property
    def half(self) -> float:
        """How far from there they reach."""
        return (self.ends[1] - self.ends[0]) / 2

    def describe(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {"column": self.column, "bound": list(self.bound), "exposure": self.exposure}

    @classmethod
    def of(cls, description: Mapping[str, Any] | None) -> Self | None:
        """From its description; None where there is none."""
        if description is None:
            return None
        low, high = description["bound"]
        return cls(description["column"], (float(low), float(high)), bool(description["exposure"]))

    @classmethod
    def written(cls, settings: Mapping[str, Any]) -> Self | None:
        """From study.toml: `exposure = "years"` with `exposure_bound = "0.1:10"`, or the same of `offset`."""
        given = [name for name in ("exposure", "offset") if name in settings]
        for name in ("exposure", "offset"):
            if f"{name}_bound" in settings and name not in given:
                raise InvalidInput(f"{name} must name a column where {name}_bound is given, got none; add it")
        if not given:
            return None
        if len(given) > 1:
            raise InvalidInput("exposure and offset must not both be given, got two columns; leave one out")
        name = given[0]
        if f"{name}_bound" not in settings:
            raise InvalidInput(f"{name}_bound must be given with {name}, got none; give for example 0.1:10")
        column = str(settings[name])
        (bound,) = parse_ranges(str(settings[f"{name}_bound"]), [column], f"{name}_bound")
        return cls(column, bound, name == "exposure")
