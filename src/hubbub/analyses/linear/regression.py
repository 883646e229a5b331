"""What all linear regressions have in common: the names and public bounds of columns, rounds done, and the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from hubbub.analyses.linear.ranges import parse_ranges
from hubbub.arrays import Floats
from hubbub.errors import InvalidInput, invalid
from hubbub.privacy import PrivacyReport
from hubbub.privacy.report import Round
from hubbub.protocols import Plan, Release
from hubbub.statistics.bounds import positive

Interval = tuple[float, float]


@dataclass(frozen=True)
class RegressionState:
    """A plan, and the releases so far."""

    plan: Plan
    done: tuple[Release, ...] = ()

    def after(self, release: Release) -> RegressionState:
        """With one more release."""
        return RegressionState(self.plan, (*self.done, release))

    def report(self) -> PrivacyReport:
        """The privacy report of the rounds so far."""
        labels = [spec.label for spec in self.plan.specs]
        return PrivacyReport(self.plan.budget, tuple(map(Round, labels[: len(self.done)], self.done)))


@dataclass(frozen=True)
class RegressionColumns:
    """The features and the target by name, with their public bounds (low, high)."""

    features: tuple[str, ...]
    target: str
    y_bound: Interval
    x_bound: tuple[Interval, ...] = ()

    def __post_init__(self) -> None:
        names = self.columns
        if not self.features or len(set(names)) != len(names) or not all(isinstance(name, str) for name in names):
            raise InvalidInput("features and target must be distinct names, got others; name every column once")
        for low, high in (*self.x_bound, self.y_bound):
            if not low < high:
                raise InvalidInput(f"bound must be an interval low < high, got {low}..{high}; correct it")
            positive("bound", (high - low) / 2)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns a client needs, in order."""
        return (*self.features, self.target)

    def check_bounds(self) -> None:
        """Refuse a number of bounds that is not the number of features."""
        if len(self.x_bound) != len(self.features):
            raise InvalidInput(f"x_bound must be one interval per feature, got {len(self.x_bound)}; name each")

    def described(self) -> dict[str, Any]:
        """Names and bounds as plain JSON values."""
        return {
            "features": list(self.features), "target": self.target,
            "x_bound": [list(pair) for pair in self.x_bound], "y_bound": list(self.y_bound),
        }  # fmt: skip

    @classmethod
    def read(cls, content: Mapping[str, Any], **more: Any) -> Self:
        """From plain JSON values; `more` are the settings of the analysis itself."""
        low, high = content["y_bound"]
        pairs = tuple((float(a), float(b)) for a, b in content["x_bound"])
        return cls(tuple(content["features"]), content["target"], (float(low), float(high)), pairs, **more)

    @property
    def ranges(self) -> Floats:
        """(d + 1, 2): the bounds of features and target."""
        return np.array([*self.x_bound, self.y_bound], dtype=np.float64)


def written_columns(settings: Mapping[str, Any], own: set[str], bounded: bool = True) -> dict[str, Any]:
    """Names and bounds from study.toml; refuses entries that are neither these nor the analysis's `own`."""
    known = {"features", "target", "x_bound", "y_bound", *own}
    if unknown := sorted(set(settings) - known):
        raise invalid("analysis", f"made of {', '.join(sorted(known))}", unknown[0], "check the spelling")
    if not isinstance(settings.get("features", []), list):
        raise InvalidInput("features must be a list of names, got another; see `hubbub study create --help`")
    try:
        features, target = [str(name) for name in settings["features"]], str(settings["target"])
        (y_bound,) = parse_ranges(str(settings["y_bound"]), [target], "y_bound")
        x_bound = tuple(parse_ranges(str(settings["x_bound"]), features)) if bounded else ()
    except KeyError as error:
        raise InvalidInput(f"analysis must have the entry {error.args[0]}, got none; add it to the study") from None
    return {"features": tuple(features), "target": target, "y_bound": y_bound, "x_bound": x_bound}


def checked_positive(field: str, value: object) -> float:
    """A positive, finite number, or one line that says so."""
    if not isinstance(value, int | float | np.number) or not (np.isfinite(value) and value > 0):
        raise invalid(field, "positive and finite", repr(value), "1.0 is the paper's choice")
    return float(value)
