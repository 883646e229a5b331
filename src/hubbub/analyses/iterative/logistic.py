"""PrivateLogisticRegression: Bayesian logistic regression by Jaakkola and Jordan's bound, from expected statistics."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hubbub.analyses.iterative.expected import FORGETTING, Averaged, fingerprint, shortened
from hubbub.analyses.iterative.plan import Selection
from hubbub.analyses.iterative.report import TrainingReport
from hubbub.analyses.iterative.settings import Settings, Tick, checked_fit
from hubbub.analyses.iterative.trainer import Method, NoisySum, Training
from hubbub.analyses.posterior import NormalPosterior
from hubbub.analyses.rounds import Engine
from hubbub.arrays import Floats, finite_rows
from hubbub.errors import InvalidInput, UntrustworthyWarning
from hubbub.estimators.summary import Summary
from hubbub.privacy import Budget, Ledger
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


class PrivateLogisticRegression:
    """Bayesian logistic regression, beta ~ N(0, prior_scale^2), with an intercept.

    Parameters
    ----------
    x_norm : public bound of the length of (x, 1); longer rows are shortened, with their class as it is, which changes
        the model. 3 suits a few standardised columns. How many rows are shortened is estimated with the same noisy
        sums, inside the budget; where it may be most of them, fit raises an UntrustworthyWarning, and summary, report
        and repr say it, too.
    prior_scale : of every coefficient and the intercept.
    budget, batch, steps, engine, selection, ledger, noise_multiplier, seed, tick : as in PrivateSVI.

    Attributes
    ----------
    posterior_ : NormalPosterior of the coefficients, the intercept last; its variance counts the noise.
    coef_, intercept_ : posterior means.   noise_covariance_ : what the noise has added to the covariance.
    shortened_ : about which share of the rows was shortened, and the standard deviation of that estimate.
    caution_ : why the coefficients must not be trusted, or None.   privacy_ : TrainingReport.
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
        self.privacy_: TrainingReport | None = None
        self.caution_: str | None = None

    def fit(self, X: Any, y: Any) -> PrivateLogisticRegression:
        """Run all steps over the rows (one client each); y is 0 or 1."""
        rows = _labelled(X, y)
        program = JaakkolaProgram(rows.shape[1] - 1, self.x_norm)
        plan = self.settings.plan(rows.shape[0])
        install(program)
        d = program.features + 1
        powers = np.ones(program.dimension)
        powers[1:-d] = FORGETTING
        prior = np.eye(d) / self.prior_scale**2

        def posterior(sums: Averaged) -> tuple[Floats, Floats]:
            matrix, vector = program.unpack(sums.value)
            values, vectors = np.linalg.eigh(2 * matrix)
            least = 2 * np.sqrt(2 * d * sums.variance[1])  # what noise alone can make of the smallest one
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
        training, self.privacy_ = self.settings.run(method, rows, plan)
        mean, covariance = posterior(training.state)
        spread = training.state.variance[-1] + 4 * training.state.variance[1] * float(mean @ mean)
        self.noise_covariance_ = covariance @ covariance * spread
        self.posterior_ = NormalPosterior(mean, covariance + self.noise_covariance_)
        self.coef_, self.intercept_ = mean[:-1], float(mean[-1])
        self.shortened_ = _share_shortened(training, program)
        self.caution_ = _caution(*self.shortened_, self.x_norm)
        self.privacy_ = replace(self.privacy_, caution=self.caution_)
        if self.caution_ is not None:
            warnings.warn(self.caution_, UntrustworthyWarning, stacklevel=2)
        return self

    def __repr__(self) -> str:
        caution = "" if self.caution_ is None else f": {self.caution_}"
        return f"PrivateLogisticRegression(x_norm={self.x_norm:g}, prior_scale={self.prior_scale:g}){caution}"

    def predict_proba(self, X: Any) -> Floats:
        """(n, 2): posterior predictive probabilities of 0 and 1 (MacKay's approximation)."""
        checked_fit(self.privacy_, "PrivateLogisticRegression")
        x = np.column_stack([finite_rows("X", X, self.coef_.size), np.ones(np.shape(X)[0])])
        variance = np.einsum("ij,jk,ik->i", x, self.posterior_.covariance, x)
        p = 1 / (1 + np.exp(-(x @ self.posterior_.mean) / np.sqrt(1 + np.pi / 8 * variance)))
        return np.column_stack([1 - p, p])

    def predict(self, X: Any) -> Any:
        """The more probable class of each row."""
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)

    def summary(self, level: float = 0.9) -> Summary:
        """A table of the coefficients: mean, deviation, interval, probability of being positive."""
        checked_fit(self.privacy_, "PrivateLogisticRegression")
        from scipy.stats import norm

        assert self.privacy_ is not None
        mean, std = self.posterior_.mean, self.posterior_.std
        half = float(norm.ppf((1 + level) / 2))
        names = [*(f"x{j}" for j in range(self.coef_.size)), "intercept"]
        rows = [
            {"name": n, "mean": float(m), "std": float(s), "low": float(m - half * s), "high": float(m + half * s),
             "positive": float(norm.cdf(m / s))}
            for n, m, s in zip(names, mean, std, strict=True)
        ]  # fmt: skip
        report = self.privacy_
        kind = f"{report.budget}-differentially private" if report.is_guarantee else "NOT A GUARANTEE"
        share, deviation = self.shortened_
        lines = [
            f"n = {report.plan.clients}; {report.steps} steps; {kind}",
            f"about {_percent(share)} % (standard deviation {100 * deviation:.2g}) of the rows were shortened",
        ]
        return Summary(tuple(rows), level, "\n".join(lines if self.caution_ is None else [*lines, self.caution_]))


def _share_shortened(training: Training[Averaged], program: JaakkolaProgram) -> tuple[float, float]:
    """About which share of the rows was shortened, and the standard deviation: of the noise, and of the batches."""
    sums, plan = training.state, training.plan
    span = 2 * program.mark * plan.clients  # from no row to all of them
    coins = (plan.scale - 1) * plan.clients * program.mark**2 / training.steps
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
