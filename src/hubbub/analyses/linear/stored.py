"""A fitted model as a JSON file: the posterior and the privacy report it came with."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.analyses.posterior import LinearPosterior, NormalPosterior
from hubbub.analyses.summary import posterior_rows
from hubbub.arrays import Floats
from hubbub.errors import InvalidInput

FORMAT = "hubbub linear regression 2"
INTERVALS = {
    "auto": "90 %, the privacy noise counted",
    "shrinkage": "90 %, counting the privacy noise approximately: too narrow where clients are few beside the noise",
    "projected": "90 %, treating the noisy sums as exact: too narrow where the privacy noise is large",
    "plain": "90 %, treating the noisy sums as exact: too narrow where the privacy noise is large",
}
"""What the intervals of each method mean."""


@dataclass(frozen=True)
class StoredModel:
    """What `hubbub predict` needs."""

    names: list[str]
    target: str
    posterior: LinearPosterior
    privacy: dict[str, object]
    intervals: str = ""

    @property
    def mean(self) -> Floats:
        """Posterior mean of the coefficients."""
        return self.posterior.mean

    def coefficients(self) -> dict[str, dict[str, float]]:
        """For each feature: mean, std, and the 90 % interval."""
        interval = self.posterior.interval(0.9)
        return {
            name: {"mean": float(m), "std": float(s), "low": float(low), "high": float(high)}
            for name, m, s, (low, high) in zip(
                self.names, self.posterior.mean, self.posterior.std, interval, strict=True
            )
        }

    def rows(self, level: float = 0.9) -> list[dict[str, Any]]:
        """Coefficients, intercept (if there is one) and residual deviation, each with its interval."""
        return posterior_rows(self.posterior, self.names, level)

    def summary(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "target": self.target,
            "coefficients": self.coefficients(),
            "intercept": self.posterior.intercept,
            "residual_deviation": self.rows()[-1]["mean"],
            "intervals": self.intervals,
        }

    def predict(self, X: Floats) -> tuple[Floats, Floats]:
        """Posterior predictive mean and standard deviation."""
        return self.posterior.predict(X)

    def save(self, path: Path) -> None:
        """Write the JSON file."""
        content = {
            "format": FORMAT, "names": self.names, "target": self.target,
            "mean": self.posterior.joint.mean.tolist(), "covariance": self.posterior.joint.covariance.tolist(),
            "residual_variance": self.posterior.residual_variance, "privacy": self.privacy,
        }  # fmt: skip
        if self.posterior.rows_covariance is not None:
            content["rows_covariance"] = self.posterior.rows_covariance.tolist()
        path.write_text(json.dumps(content, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> StoredModel:
        """Read the JSON file, or say in one line what is wrong with it."""
        try:
            content: dict[str, Any] = json.loads(path.read_text())
            if content["format"] != FORMAT:
                raise ValueError
            joint = NormalPosterior(np.array(content["mean"], float), np.array(content["covariance"], float))
            size = len(content["names"]) + 1  # the intercept is last
            if joint.mean.shape != (size,):
                raise ValueError
            residual = float(content["residual_variance"])
            if not (np.isfinite(joint.mean).all() and 0 < residual < np.inf):
                raise ValueError
            of_rows = content.get("rows_covariance")
            rows = None if of_rows is None else np.array(of_rows, float)
            for covariance in (joint.covariance, *([] if rows is None else [rows])):
                if covariance.shape != (size, size):
                    raise ValueError
                least = -1e-9 * float(np.trace(covariance))
                if not np.linalg.eigvalsh(covariance).min() >= least:  # so that NaN is refused too
                    raise ValueError
            posterior = LinearPosterior(joint, residual, rows_covariance=rows)
            return cls(list(content["names"]), str(content["target"]), posterior, {**content["privacy"]})
        except OSError as error:
            raise InvalidInput(f"model must be readable, got model={path}: {error.strerror}; check the path") from None
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError, np.linalg.LinAlgError):
            raise InvalidInput(
                f"model must be a file written by `hubbub fit --out`, got model={path}; fit it again"
            ) from None
