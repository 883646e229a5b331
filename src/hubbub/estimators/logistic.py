"""VariationalLogisticRegression: logistic regression by Jaakkola and Jordan's bound, an example of the paper's kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from hubbub.analyses.iterative.logistic import LogisticRegression, LogisticResult
from hubbub.analyses.iterative.plan import Batches
from hubbub.analyses.iterative.report import TrainingReport
from hubbub.analyses.summary import Summary
from hubbub.arrays import Floats, finite_rows
from hubbub.errors import InvalidInput
from hubbub.estimators.options import Tick, TrainingOptions, fitted, note_of
from hubbub.privacy import Budget, Ledger
from hubbub.protocols import Engine
from hubbub.statistics.bounds import positive


class VariationalLogisticRegression:
    """Bayesian logistic regression by a variational bound, beta ~ N(0, prior_scale^2), with an intercept.

    An example of learning in many steps. Its intervals hold the truth less often than they say, and columns have to be
    standardised by hand; PrivateLogisticRegression has neither weakness.

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
    result_ : LogisticResult, which holds all of these.
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
        selection: Batches = "self",
        ledger: Ledger | None = None,
        noise_multiplier: float | None = None,
        seed: int | None = None,
        tick: Tick | None = None,
    ) -> None:
        self.x_norm, self.prior_scale = positive("x_norm", x_norm), positive("prior_scale", prior_scale)
        self.options = TrainingOptions(budget, steps, batch, selection, engine, ledger, noise_multiplier, seed, tick)
        self.result_: LogisticResult | None = None
        self.privacy_: TrainingReport | None = None
        self.caution_: str | None = None

    def fit(self, X: Any, y: Any) -> VariationalLogisticRegression:
        """Run all steps over the rows (one client each); y is 0 or 1."""
        rows = _labelled(X, y)
        names = tuple(f"x{j}" for j in range(rows.shape[1] - 1))
        analysis = LogisticRegression(names, "y", self.x_norm, self.prior_scale, **self.options.schedule())
        self.result_ = found = self.options.result_of(analysis, rows)
        self.posterior_, self.noise_covariance_ = found.posterior, found.noise_covariance
        self.coef_, self.intercept_ = found.posterior.mean[:-1], float(found.posterior.mean[-1])
        self.shortened_, self.caution_, self.privacy_ = found.shortened, found.caution, found.privacy
        return self

    def __repr__(self) -> str:
        caution = "" if self.caution_ is None else f": {self.caution_}"
        return f"VariationalLogisticRegression(x_norm={self.x_norm:g}, prior_scale={self.prior_scale:g}){caution}"

    def predict_proba(self, X: Any) -> Floats:
        """(n, 2): posterior predictive probabilities of 0 and 1 (MacKay's approximation)."""
        return fitted(self.result_, "VariationalLogisticRegression").probabilities(X)

    def predict(self, X: Any) -> Any:
        """The more probable class of each row."""
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)

    def summary(self, level: float = 0.9) -> Summary:
        """A table of the coefficients: mean, deviation, interval, probability of being positive."""
        found = fitted(self.result_, "VariationalLogisticRegression")
        return Summary(tuple(found.table(level)), level, "\n".join([note_of(found.privacy), *found.notes()]))


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
