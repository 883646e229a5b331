"""A fitted generalised linear model as a JSON file: draws of its coefficients."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from hubbub.analyses.files import Content, numbers
from hubbub.analyses.glm.dispersion import Dispersion
from hubbub.analyses.glm.families import FAMILIES
from hubbub.analyses.glm.offset import Offset
from hubbub.analyses.glm.posterior import GLMPosterior
from hubbub.analyses.posterior import LinearPosterior
from hubbub.analyses.stored import Stored
from hubbub.analyses.summary import posterior_rows
from hubbub.arrays import Floats

INTERVALS = "90 %, the privacy noise counted; coefficients are those of the linear predictor, in units of the data"

ZERO_ONE = ("0", "1")
"""The labels of no and yes where none are given."""


@dataclass(frozen=True)
class StoredGLM(Stored[GLMPosterior]):
    """What `hubbub predict` needs of a generalised linear model: draws, so that its intervals are those of the fit."""

    FORMAT: ClassVar[str] = "hubbub generalised linear model 1"

    intervals: str = INTERVALS
    labels: tuple[str, str] = ZERO_ONE
    """Of no and yes, where y is one."""
    offset: Offset | None = None
    """What rows added to their linear predictor."""

    @property
    def classes(self) -> tuple[str, str] | None:
        """The labels of no and yes; None where y is a number."""
        return self.labels if self._yes_no else None

    @property
    def note(self) -> str:
        """What the intervals mean, and what the model is of."""
        of = f"the probability that {self.target} is {self.labels[1]}" if self._yes_no else f"the mean of {self.target}"
        return f"{self.intervals}; family {self.family}, for {of}"

    @property
    def family(self) -> str:
        """Its name."""
        return self.posterior.family

    def rows(self, level: float = 0.9) -> list[dict[str, Any]]:
        """Coefficients and intercept, each with its interval."""
        return table_of(self.posterior, self.names, level)

    def summary(self) -> dict[str, object]:
        """Plain values for JSON."""
        of: dict[str, object] = {} if self.classes is None else {"classes": list(self.classes)}
        if (found := self.posterior.dispersion) is not None:
            low, high = found.interval()
            of["dispersion"] = {"median": found.value, "low": low, "high": high}
        if self.offset is not None:
            of["exposure" if self.offset.exposure else "offset"] = self.offset.column
        return {"family": self.family, **super().summary(), **of}

    def predictions(self, X: Floats, offset: Floats | float = 0.0) -> dict[str, Floats]:
        """The probability of 1 (or of the second class), or the expected y; with the ends of its 90 % interval."""
        low, high = self.posterior.expected_interval(X, offset=offset).T
        return {
            "probability" if self._yes_no else "expected": self.posterior.expected(X, offset),
            "low": low,
            "high": high,
        }

    @property
    def _yes_no(self) -> bool:
        return FAMILIES[self.family].yes_no

    @property
    def error_name(self) -> tuple[str, str]:
        """Of probabilities the mean squared error, which is least where they are right."""
        return ("brier", "Brier score (mean squared error)") if self._yes_no else super().error_name

    def error(self, predicted: Floats, y: Floats) -> float:
        """Of predictions for rows whose target is known."""
        return float(np.square(predicted - y).mean()) if self._yes_no else super().error(predicted, y)

    def content(self) -> Content:
        """Mean and draws as plain JSON values."""
        linear = self.posterior.linear
        assert linear.draws is not None
        assert linear.on_rows is not None
        return {
            "family": self.family, "labels": self.labels, "mean": linear.joint.mean.tolist(),
            "draws": linear.draws.tolist(), "on_rows": linear.on_rows.tolist(),
            "dispersion": plain(self.posterior.dispersion),
            "offset": plain_offset(self.offset),
        }  # fmt: skip

    @classmethod
    def of(cls, content: Content) -> Self:
        """From what a file holds."""
        names, target, privacy = cls.common(content)
        size, family = len(names) + 1, family_of(content)  # the intercept is last
        draws = numbers(content["draws"], -1, size + 1)
        on_rows = numbers(content["on_rows"], len(draws), size)
        posterior = LinearPosterior.of_draws(draws, centre=numbers(content["mean"], size), on_rows=on_rows)
        found = GLMPosterior(posterior, family, dispersion_of(content))
        return cls(names, target, found, privacy, labels=labels_of(content), offset=Offset.of(content["offset"]))


def family_of(content: Content) -> str:
    """The family's name, or a ValueError where it is not known."""
    if content["family"] not in FAMILIES:
        raise ValueError
    return str(content["family"])


def plain(found: Dispersion | None) -> Content | None:
    """As plain JSON values."""
    return None if found is None else asdict(found)


def plain_offset(offset: Offset | None) -> Content | None:
    """As plain JSON values."""
    return None if offset is None else offset.describe()


def dispersion_of(content: Content) -> Dispersion | None:
    """What is known of the dispersion, if the family has one, or a ValueError."""
    found = content["dispersion"]
    if (found is not None) is not FAMILIES[content["family"]].dispersed:
        raise ValueError
    return None if found is None else Dispersion(**{name: float(numbers(value)) for name, value in found.items()})


def labels_of(content: Content) -> tuple[str, str]:
    """The two labels of a yes or no, or a ValueError."""
    first, second = map(str, content["labels"])
    if first == second:
        raise ValueError
    return first, second


def table_of(posterior: GLMPosterior, names: list[str] | tuple[str, ...], level: float) -> list[dict[str, Any]]:
    """Rows of a summary: coefficients and intercept, without a residual deviation."""
    return posterior_rows(posterior.linear, names, level)[:-1]
