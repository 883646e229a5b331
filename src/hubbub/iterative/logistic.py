"""PrivateLogisticRegression: Bayesian logistic regression by Jaakkola and Jordan's bound, from expected statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.arrays import Floats, finite_rows
from hubbub.errors import InvalidInput
from hubbub.estimators.summary import Summary
from hubbub.iterative.expected import FORGETTING, Averaged, fingerprint, shortened
from hubbub.iterative.plan import Selection
from hubbub.iterative.report import TrainingReport
from hubbub.iterative.settings import Settings, Tick, checked_fit
from hubbub.iterative.trainer import Method, NoisySum
from hubbub.models.posterior import NormalPosterior
from hubbub.models.rounds import Engine
from hubbub.privacy import Budget, Ledger
from hubbub.statistics import install
from hubbub.statistics.bounds import positive


@dataclass(frozen=True)
class JaakkolaProgram:
    """(x, y) -> (lambda(xi) x x', (y - 1/2) x) with |(x, 1)| <= radius and xi^2 = x' E[beta beta'] x.

    The products are weighted so that their length is that of the matrix: at most radius^2/8, as lambda <= 1/8.
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
        return fingerprint(self.name, 1, self.features, self.radius)

    @property
    def columns(self) -> int:
        """The features and the class."""
        return self.features + 1

    @property
    def dimension(self) -> int:
        """The upper triangle, and one product with the class for each coefficient."""
        d = self.features + 1
        return d * (d + 1) // 2 + d

    @property
    def at_once(self) -> int:
        """Rows computed together."""
        return 2048

    @property
    def bound(self) -> float:
        """The largest length of a vector."""
        return float(np.hypot(self.radius**2 / 8, self.radius / 2))

    def vectors(self, state: Floats, rows: Floats) -> Floats:
        """At the second moments E[beta beta'], flat."""
        d = self.features + 1
        x = shortened(np.column_stack([rows[:, :-1], np.ones(rows.shape[0])]), self.radius)
        y = np.clip(rows[:, -1], 0.0, 1.0)
        xi = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", x, state.reshape(d, d), x), 1e-12))
        upper = np.triu_indices(d)
        weights = np.where(upper[0] == upper[1], 1.0, np.sqrt(2.0))
        products = x[:, upper[0]] * x[:, upper[1]] * weights * (np.tanh(xi / 2) / (4 * xi))[:, None]
        return np.hstack([products, (y - 0.5)[:, None] * x])

    def unpack(self, vector: Floats) -> tuple[Floats, Floats]:
        """The matrix and the vector of a sum."""
        d = self.features + 1
        upper = np.triu_indices(d)
        matrix = np.zeros((d, d))
        matrix[upper] = vector[:-d] / np.where(upper[0] == upper[1], 1.0, np.sqrt(2.0))
        return matrix + np.triu(matrix, 1).T, vector[-d:]


class PrivateLogisticRegression:
    """Bayesian logistic regression, beta ~ N(0, prior_scale^2), with an intercept.

    Parameters
    ----------
    x_norm : public bound of the length of (x, 1); longer rows are shortened. 3 suits a few standardised columns.
    prior_scale : of every coefficient and the intercept.
    budget, batch, steps, engine, selection, ledger, noise_multiplier, seed, tick : as in PrivateSVI.

    Attributes
    ----------
    posterior_ : NormalPosterior of the coefficients, the intercept last; its variance counts the noise.
    coef_, intercept_ : posterior means.   noise_covariance_ : what the noise has added to the covariance.
    privacy_report_ : TrainingReport.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        x_norm: float = 3.0,
        prior_scale: float = 1.0,
        batch: int | None = None,
        steps: int = 20,
        engine: Engine | None = None,
        *,
        selection: Selection = "self",
        ledger: Ledger | None = None,
        noise_multiplier: float | None = None,
        seed: int | None = None,
        tick: Tick | None = None,
    ) -> None:
        self.x_norm, self.prior_scale = positive("x_norm", x_norm), positive("prior_scale", prior_scale)
        self.settings = Settings(budget, steps, batch, selection, engine, ledger, noise_multiplier, seed, tick)
        self.privacy_report_: TrainingReport | None = None

    def fit(self, X: Any, y: Any) -> PrivateLogisticRegression:
        """Run all steps over the rows (one client each); y is 0 or 1."""
        rows = _labelled(X, y)
        program = JaakkolaProgram(rows.shape[1] - 1, self.x_norm)
        plan = self.settings.plan(rows.shape[0])
        install(program)
        powers = np.where(np.arange(program.dimension) < program.dimension - program.features - 1, FORGETTING, 1.0)
        d = program.features + 1
        prior = np.eye(d) / self.prior_scale**2

        def posterior(sums: Averaged) -> tuple[Floats, Floats]:
            matrix, vector = program.unpack(sums.value)
            values, vectors = np.linalg.eigh(2 * matrix)
            least = 2 * np.sqrt(2 * d * sums.variance[0])  # what noise alone can make of the smallest one
            precision = prior + (vectors * np.maximum(values, least)) @ vectors.T
            covariance = np.linalg.inv(precision)
            return covariance @ vector, covariance

        def numbers(sums: Averaged) -> Floats:
            mean, covariance = posterior(sums)
            return np.asarray((covariance + np.outer(mean, mean)).ravel())

        def update(sums: Averaged, noisy: NoisySum) -> Averaged:
            return sums.with_step(noisy, powers)

        start = Averaged.empty(program.dimension)
        method = Method("expected statistics (logistic)", program, program.bound, start, numbers, update)
        training, self.privacy_report_ = self.settings.run(method, rows, plan)
        mean, covariance = posterior(training.state)
        spread = training.state.variance[-1] + 4 * training.state.variance[0] * float(mean @ mean)
        self.noise_covariance_ = covariance @ covariance * spread
        self.posterior_ = NormalPosterior(mean, covariance + self.noise_covariance_)
        self.coef_, self.intercept_ = mean[:-1], float(mean[-1])
        return self

    def predict_proba(self, X: Any) -> Floats:
        """(n, 2): posterior predictive probabilities of 0 and 1 (MacKay's approximation)."""
        checked_fit(self.privacy_report_, "PrivateLogisticRegression")
        x = np.column_stack([finite_rows("X", X, self.coef_.size), np.ones(np.shape(X)[0])])
        variance = np.einsum("ij,jk,ik->i", x, self.posterior_.covariance, x)
        p = 1 / (1 + np.exp(-(x @ self.posterior_.mean) / np.sqrt(1 + np.pi / 8 * variance)))
        return np.column_stack([1 - p, p])

    def predict(self, X: Any) -> Any:
        """The more probable class of each row."""
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)

    def summary(self, level: float = 0.9) -> Summary:
        """A table of the coefficients: mean, deviation, interval, probability of being positive."""
        checked_fit(self.privacy_report_, "PrivateLogisticRegression")
        from scipy.stats import norm

        assert self.privacy_report_ is not None
        mean, std = self.posterior_.mean, self.posterior_.std
        half = float(norm.ppf((1 + level) / 2))
        names = [*(f"x{j}" for j in range(self.coef_.size)), "intercept"]
        rows = [
            {"name": n, "mean": float(m), "std": float(s), "low": float(m - half * s), "high": float(m + half * s),
             "positive": float(norm.cdf(m / s))}
            for n, m, s in zip(names, mean, std, strict=True)
        ]  # fmt: skip
        report = self.privacy_report_
        kind = f"{report.budget}-differentially private" if report.is_guarantee else "NOT A GUARANTEE"
        return Summary(tuple(rows), level, f"n = {report.plan.clients}; {report.steps} steps; {kind}")


def _labelled(X: Any, y: Any) -> Floats:
    x = finite_rows("X", X)
    try:
        labels = finite_rows("y", np.asarray(y, dtype=np.float64).reshape(-1, 1))
    except (TypeError, ValueError):
        raise InvalidInput("y must be 0 or 1, got other values; code the two classes") from None
    if x.shape[0] != labels.shape[0]:
        raise InvalidInput(f"y must have a value for each of the {x.shape[0]} rows, got {labels.shape[0]}; check them")
    if not np.isin(labels, (0.0, 1.0)).all():
        raise InvalidInput("y must be 0 or 1, got other values; code the two classes")
    return np.hstack([x, labels])
