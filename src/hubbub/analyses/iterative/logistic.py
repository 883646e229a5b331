"""Bayesian logistic regression by Jaakkola and Jordan's bound, from expected statistics (kind "logistic")."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from hubbub.analyses.iterative.expected import FORGETTING, Averaged, fingerprint, named_columns, shortened
from hubbub.analyses.iterative.plan import StepPlan
from hubbub.analyses.iterative.report import TrainingReport
from hubbub.analyses.iterative.stepwise import NoisySum, StepState, Stepwise
from hubbub.analyses.iterative.stored import StoredReport
from hubbub.analyses.posterior import NormalPosterior
from hubbub.arrays import Floats, finite_rows
from hubbub.protocols import Description, Result
from hubbub.statistics import install
from hubbub.statistics.bounds import positive

_MARK = 0.1  # size of the mark of a shortened row, in the length of the rest of its vector
_SURE = 1.64  # standard deviations: 95 % on one side


@dataclass(frozen=True)
class JaakkolaProgram:
    """(x, y) -> (mark, lambda(xi) x x', (y - 1/2) x) with |(x, 1)| <= radius and xi^2 = x' E[beta beta'] x.

    The products are weighted so that their length is that of the matrix: at most radius^2/8, as lambda <= 1/8. The
    mark is positive for a row that had to be shortened and negative for one that had not; its size is a tenth of what
    the rest can reach, so that the noise has to be 0.5 % larger for it.
    """

    features: int
    radius: float

    @property
    def name(self) -> str:
        """What people call it."""
        return "expected statistics of a logistic regression"

    @property
    def fingerprint(self) -> str:
        """Of name, version and settings."""
        return fingerprint(self.name, 2, self.features, self.radius)

    @property
    def columns(self) -> int:
        """The features and the class."""
        return self.features + 1

    @property
    def dimension(self) -> int:
        """The mark, the upper triangle, and one product with the class for each coefficient."""
        d = self.features + 1
        return 1 + d * (d + 1) // 2 + d

    @property
    def at_once(self) -> int:
        """Rows computed together."""
        return 2048

    @property
    def mark(self) -> float:
        """How far a row's mark lies from zero, to either side."""
        return _MARK * float(np.hypot(self.radius**2 / 8, self.radius / 2))

    @property
    def bound(self) -> float:
        """The largest length of a vector."""
        return float(np.hypot(self.mark / _MARK, self.mark))

    def vectors(self, state: Floats, rows: Floats) -> Floats:
        """At the second moments E[beta beta'], flat."""
        d = self.features + 1
        x = np.column_stack([rows[:, :-1], np.ones(rows.shape[0])])
        mark = np.where(np.linalg.norm(x, axis=1) > self.radius, self.mark, -self.mark)
        x = shortened(x, self.radius)
        y = np.clip(rows[:, -1], 0.0, 1.0)
        xi = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", x, state.reshape(d, d), x), 1e-12))
        upper = np.triu_indices(d)
        weights = np.where(upper[0] == upper[1], 1.0, np.sqrt(2.0))
        products = x[:, upper[0]] * x[:, upper[1]] * weights * (np.tanh(xi / 2) / (4 * xi))[:, None]
        return np.hstack([mark[:, None], products, (y - 0.5)[:, None] * x])

    def unpack(self, vector: Floats) -> tuple[Floats, Floats]:
        """The matrix and the vector of a sum."""
        d = self.features + 1
        upper = np.triu_indices(d)
        matrix = np.zeros((d, d))
        matrix[upper] = vector[1:-d] / np.where(upper[0] == upper[1], 1.0, np.sqrt(2.0))
        return matrix + np.triu(matrix, 1).T, vector[-d:]


@dataclass(frozen=True)
class LogisticResult(Result):
    """The posterior of the coefficients, and how far it can be trusted."""

    features: tuple[str, ...]
    posterior: NormalPosterior
    """Of the coefficients, the intercept last; its variance counts the noise."""
    noise_covariance: Floats
    """What the noise has added to the covariance."""
    shortened: tuple[float, float]
    """About which share of the rows was shortened, and the standard deviation of that estimate."""
    caution: str | None
    """Why the coefficients must not be trusted, or None."""
    privacy: TrainingReport | StoredReport

    def probabilities(self, X: Any) -> Floats:
        """(n, 2): posterior predictive probabilities of 0 and 1 for new rows (MacKay's approximation)."""
        rows = finite_rows("X", X, len(self.features))
        x = np.column_stack([rows, np.ones(rows.shape[0])])
        variance = np.einsum("ij,jk,ik->i", x, self.posterior.covariance, x)
        p = 1 / (1 + np.exp(-(x @ self.posterior.mean) / np.sqrt(1 + np.pi / 8 * variance)))
        return np.column_stack([1 - p, p])

    def table(self, level: float = 0.9) -> list[dict[str, Any]]:
        """The coefficients and the intercept: mean, deviation, interval, probability of being positive."""
        from scipy.special import ndtr

        mean, std, ends = self.posterior.mean, self.posterior.std, self.posterior.interval(level)
        return [
            {"name": name, "mean": float(m), "std": float(s), "low": float(low), "high": float(high),
             "positive": float(ndtr(m / s))}
            for name, m, s, (low, high) in zip((*self.features, "intercept"), mean, std, ends, strict=True)
        ]  # fmt: skip

    def notes(self) -> list[str]:
        """Lines for people: how many rows were shortened, and what follows from it."""
        share, deviation = self.shortened
        said = f"about {_percent(share)} % (standard deviation {100 * deviation:.2g}) of the rows were shortened"
        return [said] if self.caution is None else [said, self.caution]

    def cautions(self) -> tuple[str, ...]:
        """That most rows were shortened, or may have been."""
        return () if self.caution is None else (self.caution,)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        rows = {row["name"]: {key: value for key, value in row.items() if key != "name"} for row in self.table()}
        share, deviation = self.shortened
        return {
            "coefficients": rows, "intervals": "90 %, the privacy noise counted",
            "shortened": {"share": share, "std": deviation}, "caution": self.caution, "n": self.privacy.samples,
        }  # fmt: skip


@dataclass(frozen=True)
class LogisticRegression(Stepwise[Averaged, LogisticResult]):
    """Bayesian logistic regression, beta ~ N(0, prior_scale^2), with an intercept; every step refits it.

    Parameters
    ----------
    features, target : names of the columns; the target is 0 or 1.
    x_norm : public bound of the length of (x, 1); longer rows are shortened, with their class as it is.
    prior_scale : of every coefficient and the intercept.
    steps, batch, selection, noise_multiplier, seed : as in `Schedule`.
    """

    kind: ClassVar[str] = "logistic"
    label: ClassVar[str] = "expected statistics (logistic)"
    features: tuple[str, ...]
    target: str
    x_norm: float = 3.0
    prior_scale: float = 1.0
    steps: int = field(default=20, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "features", named_columns(self.features, self.target)[:-1])
        object.__setattr__(self, "x_norm", positive("x_norm", self.x_norm))
        object.__setattr__(self, "prior_scale", positive("prior_scale", self.prior_scale))

    @property
    def columns(self) -> tuple[str, ...]:
        """The features and the target."""
        return (*self.features, self.target)

    @cached_property
    def program(self) -> JaakkolaProgram:
        """What clients run; part of hubbub."""
        return JaakkolaProgram(len(self.features), self.x_norm)

    @property
    def longest(self) -> float:
        """No vector is longer, so nothing is ever clipped."""
        return self.program.bound

    def first(self, steps: int) -> Averaged:
        """No sums yet: the prior."""
        return Averaged.empty(self.program.dimension)

    def numbers(self, inner: Averaged) -> Floats:
        """The second moments of the coefficients under the current posterior."""
        mean, covariance = self._posterior(inner)
        return np.asarray((covariance + np.outer(mean, mean)).ravel())

    def moved(self, inner: Averaged, noisy: NoisySum, plan: StepPlan) -> Averaged:
        """Marks and products with the class do not change from step to step, the matrix does."""
        powers = np.ones(self.program.dimension)
        powers[1 : -len(self.columns)] = FORGETTING
        return inner.with_step(noisy, powers)

    def found(self, state: StepState[Averaged], report: TrainingReport) -> LogisticResult:
        """The posterior from the averaged sums, wider by what their noise has added."""
        sums = state.inner
        mean, covariance = self._posterior(sums)
        noise = covariance @ covariance * (sums.variance[-1] + 4 * sums.variance[1] * float(mean @ mean))
        share = _share_shortened(state, self.program)
        caution = _caution(*share, self.x_norm)
        report = replace(report, caution=caution)
        return LogisticResult(self.features, NormalPosterior(mean, covariance + noise), noise, share, caution, report)

    def describe(self) -> dict[str, Any]:
        """Names and settings, for a study."""
        return {
            "kind": self.kind, "features": list(self.features), "target": self.target, "x_norm": self.x_norm,
            "prior_scale": self.prior_scale, **self.described(),
        }  # fmt: skip

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description; a client that reads it can then take part."""
        columns = tuple(description["features"]), description["target"]
        settings = cls.settings_in(description)
        found = cls(*columns, description["x_norm"], description["prior_scale"], **settings)
        install(found.program)
        return found

    def _posterior(self, sums: Averaged) -> tuple[Floats, Floats]:
        """Mean and covariance, the noise in the sums not counted yet."""
        d = len(self.columns)
        matrix, vector = self.program.unpack(sums.value)
        values, vectors = np.linalg.eigh(2 * matrix)
        least = 2 * np.sqrt(2 * d * sums.variance[1])  # what noise alone can make of the smallest one
        precision = np.eye(d) / self.prior_scale**2 + (vectors * np.maximum(values, least)) @ vectors.T
        covariance = np.linalg.inv(precision)
        return covariance @ vector, covariance


def _share_shortened(state: StepState[Averaged], program: JaakkolaProgram) -> tuple[float, float]:
    """About which share of the rows was shortened, and the standard deviation: of the noise, and of the batches."""
    sums, plan = state.inner, state.plan
    span = 2 * program.mark * plan.samples  # from no row to all of them
    coins = (plan.scale - 1) * plan.samples * program.mark**2 / state.done
    return float(0.5 + sums.value[0] / span), float(np.sqrt(sums.variance[0] + coins) / span)


def _caution(share: float, deviation: float, x_norm: float) -> str | None:
    """One line where most rows were shortened, or where that cannot be ruled out; else None."""
    if share + _SURE * deviation <= 0.5:
        return None
    if share - _SURE * deviation > 0.5:
        start = "do not trust these coefficients: about"
    else:
        start = "it cannot be told whether these coefficients can be trusted: too few rows or too much noise;"
    return (
        f"{start} {_percent(share)} % (standard deviation {100 * deviation:.2g}) of the rows were longer than "
        f"x_norm={x_norm:g} and were shortened, which changes the model; standardise the columns with a public "
        "centre and scale, or raise x_norm"
    )


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.0f}"
