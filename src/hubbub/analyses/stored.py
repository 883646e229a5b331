"""A fitted regression as a JSON file: the posterior and the privacy report it came with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from hubbub.analyses.files import Content, names_of, read_json, write_json
from hubbub.arrays import Floats


class Coefficients(Protocol):
    """What every posterior of a regression tells of its coefficients."""

    @property
    def mean(self) -> Floats:
        """Posterior means."""
        ...

    @property
    def std(self) -> Floats:
        """Posterior deviations."""
        ...

    @property
    def intercept(self) -> float:
        """Posterior mean of the intercept."""
        ...

    def interval(self, level: float = 0.9) -> Floats:
        """(d, 2) central credible intervals."""
        ...


Posterior = TypeVar("Posterior", bound=Coefficients, covariant=True)


@dataclass(frozen=True)
class Stored(ABC, Generic[Posterior]):
    """What `hubbub predict` needs, whatever the regression."""

    FORMAT: ClassVar[str]

    names: list[str]
    target: str
    posterior: Posterior
    privacy: dict[str, object]
    intervals: str = ""
    """What the intervals mean."""

    @property
    def classes(self) -> tuple[str, str] | None:
        """The labels of no and yes; None where y is a number."""
        return None

    @property
    def note(self) -> str:
        """What the intervals mean, for below a table."""
        return self.intervals

    @property
    def mean(self) -> Floats:
        """Posterior mean of the coefficients."""
        return self.posterior.mean

    def coefficients(self) -> dict[str, dict[str, float]]:
        """For each feature: mean, std, and the 90 % interval."""
        found = zip(self.names, self.mean, self.posterior.std, self.posterior.interval(0.9), strict=True)
        return {
            name: {"mean": float(m), "std": float(s), "low": float(low), "high": float(high)}
            for name, m, s, (low, high) in found
        }

    @abstractmethod
    def rows(self, level: float = 0.9) -> list[dict[str, Any]]:
        """A row for each quantity, with its interval."""

    def summary(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "target": self.target, "coefficients": self.coefficients(), "intercept": self.posterior.intercept,
            "intervals": self.intervals,
        }  # fmt: skip

    @abstractmethod
    def predictions(self, X: Floats) -> dict[str, Floats]:
        """By name of a column: what is predicted for each row (first), and how sure that is."""

    @property
    def error_name(self) -> tuple[str, str]:
        """What `error` gives: for JSON, and in words."""
        return "mae", "mean absolute error"

    def error(self, predicted: Floats, y: Floats) -> float:
        """Of predictions for rows whose target is known."""
        return float(abs(predicted - y).mean())

    def save(self, path: str | Path) -> None:
        """Write the JSON file."""
        own = {"names": self.names, "target": self.target, **self.content(), "privacy": self.privacy}
        write_json(path, self.FORMAT, own)

    @abstractmethod
    def content(self) -> Content:
        """The posterior as plain JSON values."""

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the JSON file, or say in one line what is wrong with it."""
        return read_json("model", path, {cls.FORMAT: cls.of})

    @classmethod
    @abstractmethod
    def of(cls, content: Content) -> Self:
        """From what a file holds, or a ValueError, KeyError or TypeError where it is damaged."""

    @staticmethod
    def common(content: Content) -> tuple[list[str], str, dict[str, object]]:
        """Names, target and privacy report, as every such file has them."""
        return names_of(content["names"]), str(content["target"]), {**content["privacy"]}
