"""A fitted linear regression as a JSON file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from hubbub.analyses.files import Content, numbers
from hubbub.analyses.posterior import LinearPosterior, NormalPosterior
from hubbub.analyses.stored import Stored
from hubbub.analyses.summary import posterior_rows
from hubbub.arrays import Floats

INTERVALS = {
    "auto": "90 %, the privacy noise counted",
    "shrinkage": "90 %, counting the privacy noise approximately: too narrow where clients are few beside the noise",
    "projected": "90 %, treating the noisy sums as exact: too narrow where the privacy noise is large",
    "plain": "90 %, treating the noisy sums as exact: too narrow where the privacy noise is large",
}
"""What the intervals of each method mean."""


@dataclass(frozen=True)
class StoredModel(Stored[LinearPosterior]):
    """What `hubbub predict` needs of a linear regression: means and covariances."""

    FORMAT: ClassVar[str] = "hubbub linear regression 2"

    def rows(self, level: float = 0.9) -> list[dict[str, Any]]:
        """Coefficients, intercept (if there is one) and residual deviation, each with its interval."""
        return posterior_rows(self.posterior, self.names, level)

    def summary(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {**super().summary(), "residual_deviation": self.rows()[-1]["mean"]}

    def predict(self, X: Floats) -> tuple[Floats, Floats]:
        """Posterior predictive mean and standard deviation."""
        return self.posterior.predict(X)

    def predictions(self, X: Floats) -> dict[str, Floats]:
        """The same, by name."""
        return dict(zip(("prediction", "std"), self.predict(X), strict=True))

    def content(self) -> Content:
        """Means and covariances as plain JSON values."""
        found: Content = {
            "mean": self.posterior.joint.mean.tolist(), "covariance": self.posterior.joint.covariance.tolist(),
            "residual_variance": self.posterior.residual_variance,
        }  # fmt: skip
        if self.posterior.rows_covariance is not None:
            found["rows_covariance"] = self.posterior.rows_covariance.tolist()
        return found

    @classmethod
    def of(cls, content: Content) -> Self:
        """From what a file holds."""
        names, target, privacy = cls.common(content)
        size = len(names) + 1  # the intercept is last
        joint = NormalPosterior(numbers(content["mean"], size), _covariance(content["covariance"], size))
        residual, of_rows = float(content["residual_variance"]), content.get("rows_covariance")
        if not 0 < residual < np.inf:
            raise ValueError
        rows = None if of_rows is None else _covariance(of_rows, size)
        return cls(names, target, LinearPosterior(joint, residual, rows_covariance=rows), privacy)


def _covariance(value: object, size: int) -> Floats:
    """A matrix that can be one, or a ValueError."""
    found = numbers(value, size, size)
    if np.linalg.eigvalsh(found).min() < -1e-9 * float(np.trace(found)):
        raise ValueError
    return found
