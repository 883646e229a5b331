"""The default regression as rounds that somebody else runs: what to sum next, and the posterior at the end.

The same two rounds as `PrivateLinearRegression`, for an analyst who never has the rows: clients take the public steps
to each round's statistic on their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.release import RegressionRelease
from hubbub.analyses.linear.scaled import (
    LABELS,
    column_statistic,
    found_columns,
    regression_statistic,
    released_sums,
    shares,
)
from hubbub.errors import InvalidInput
from hubbub.privacy import Budget, PrivacyReport, Release, split
from hubbub.privacy.report import Round
from hubbub.statistics import Box, Statistic
from hubbub.statistics.bounds import positive
from hubbub.statistics.preparation import constant, scale, shift

KIND = "linear regression"


@dataclass(frozen=True)
class NextRound:
    """What the next round sums, with how much noise, and from which rows."""

    label: str
    statistic: Statistic
    noise_multiplier: float
    steps: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class RegressionPlan:
    """A regression's public settings: names and bounds of the columns. In a study they are its model."""

    features: tuple[str, ...]
    target: str
    y_bound: tuple[float, float]
    x_bound: tuple[tuple[float, float], ...] = ()
    x_norm: float | None = None
    intercept: bool = True

    def __post_init__(self) -> None:
        names = (*self.features, self.target)
        if not self.features or len(set(names)) != len(names) or not all(isinstance(name, str) for name in names):
            raise InvalidInput("features and target must be distinct names, got others; name every column once")
        if self.x_norm is None and len(self.x_bound) != len(self.features):
            raise InvalidInput(f"x_bound must be one interval per feature, got {len(self.x_bound)}; name each")
        for low, high in (*self.x_bound, self.y_bound):
            if not low < high:
                raise InvalidInput(f"bound must be an interval low < high, got {low}..{high}; correct it")
            positive("bound", (high - low) / 2)

    def content(self) -> dict[str, Any]:
        """Plain JSON values, for a study."""
        return {
            "kind": KIND, "rounds": len(LABELS), "features": list(self.features), "target": self.target,
            "x_bound": [list(pair) for pair in self.x_bound], "x_norm": self.x_norm, "y_bound": list(self.y_bound),
            "intercept": self.intercept,
        }  # fmt: skip

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> RegressionPlan:
        """From a study's model."""
        try:
            if content["kind"] != KIND:
                raise ValueError
            pairs = tuple((float(low), float(high)) for low, high in content["x_bound"])
            low, high = content["y_bound"]
            norm = None if content["x_norm"] is None else float(content["x_norm"])
            return cls(
                tuple(content["features"]), content["target"], (float(low), float(high)), pairs, norm,
                bool(content["intercept"]),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError):
            raise InvalidInput(f"model must be a {KIND} in full, got another; make the study again") from None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns a client needs, in order."""
        return (*self.features, self.target)

    def next_round(self, budget: Budget, clients: int, done: Sequence[Release]) -> NextRound | None:
        """What to run after these releases; None where the posterior can be made."""
        if len(done) >= len(LABELS):
            return None
        multipliers = split(budget, shares(self.x_norm))
        label, multiplier = LABELS[len(done)], multipliers[len(done)]
        if not done:
            return NextRound(label, self._first(), multiplier, (shift(self._middle()),))
        found = found_columns(self._first(), done[0], self.intercept)
        steps = [shift(self._middle()), shift(found.centre), scale(found.scale)]
        statistic = regression_statistic(clients, self._box(), multiplier, self.intercept)
        return NextRound(label, statistic, multiplier, tuple([*steps, constant()] if self.intercept else steps))

    def result(self, budget: Budget, clients: int, done: Sequence[Release]) -> tuple[RegressionRelease, PrivacyReport]:
        """The release that any posterior is made from, and the privacy report, from the releases of all rounds."""
        found = found_columns(self._first(), done[0], self.intercept)
        multiplier = split(budget, shares(self.x_norm))[1]
        statistic = regression_statistic(clients, self._box(), multiplier, self.intercept)
        sums = released_sums(statistic, done[1], found, self.intercept)
        moved = replace(sums, columns=Columns(found.centre + self._middle(), found.scale, found.doubt))
        rounds = tuple(Round(label, release) for label, release in zip(LABELS, done, strict=True))
        report = PrivacyReport(budget, rounds)
        return RegressionRelease(moved, self.features, self.target, report.as_dict()), report

    def _ranges(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        x = self.x_bound if self.x_norm is None else ((-self.x_norm, self.x_norm),) * len(self.features)
        return np.array([*x, self.y_bound], dtype=np.float64)

    def _middle(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        ranges = self._ranges()
        return np.asarray(ranges.mean(axis=1) if self.intercept else np.zeros(len(ranges)))

    def _box(self) -> Box:
        half = np.abs(self._ranges() - self._middle()[:, None]).max(axis=1)
        return Box(tuple(half[:-1].tolist()), float(half[-1]))

    def _first(self) -> Statistic:
        return column_statistic(self._box(), self.x_norm)
