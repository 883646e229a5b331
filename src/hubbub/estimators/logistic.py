"""VariationalLogisticRegression: logistic regression by Jaakkola and Jordan's bound, an example of the paper's kind."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from hubbub.analyses.iterative.expected import named_columns
from hubbub.analyses.iterative.logistic import LogisticRegression, LogisticResult
from hubbub.analyses.iterative.plan import Batches
from hubbub.analyses.iterative.report import TrainingReport
from hubbub.analyses.posterior import NormalPosterior
from hubbub.analyses.summary import Summary
from hubbub.arrays import Floats, finite_rows
from hubbub.errors import PrivacyLeakWarning, warn_of_rows
from hubbub.estimators.arrays import checked, new_rows
from hubbub.estimators.logistic_regression import PrivateLogisticRegression
from hubbub.estimators.options import Tick, TrainingEstimator, note_of
from hubbub.privacy import Budget, Ledger
from hubbub.protocols import Engine


class VariationalLogisticRegression(ClassifierMixin, TrainingEstimator):  # type: ignore[misc]  # untyped
    """Bayesian logistic regression by a variational bound, beta ~ N(0, prior_scale^2), with an intercept.

    An example of learning in many steps. Its intervals hold the truth less often than they say, and columns have to be
    standardised by hand. PrivateLogisticRegression takes columns in raw units, and its intervals are wider where the
    noise demands it; how often they hold on real data is in docs/experiments.md (`outcomes`).

    Parameters
    ----------
    x_norm : public bound of the length of (x, 1); longer rows are shortened, with their class as it is, which changes
        the model. 3 suits a few standardised columns. How many rows are shortened is estimated with the same noisy
        sums, inside the budget; where it may be most of them, fit raises an UntrustworthyWarning, and summary, report
        and repr say it, too.
    prior_scale : of every coefficient and the intercept.
    classes : the two labels, as in PrivateLogisticRegression.
    budget, batch, steps, engine, selection, ledger, noise_multiplier, seed, tick : as in PrivateSVI.

    Attributes
    ----------
    posterior_ : NormalPosterior of the coefficients, the intercept last; its variance counts the noise.
    classes_ : the two labels.   coef_, intercept_ : posterior means.   privacy_ : TrainingReport.
    noise_covariance_ : what the noise has added to the covariance.
    shortened_ : about which share of the rows was shortened, and the standard deviation of that estimate.
    caution_ : why the coefficients must not be trusted, or None.   result_ : LogisticResult, which holds all of these.
    """

    kind = "variational logistic regression"
    own = ("x_norm", "prior_scale")

    def __init__(
        self,
        budget: Budget | None = None,
        x_norm: float = 3.0,
        prior_scale: float = 1.0,
        batch: int | None = None,
        steps: int = 20,
        engine: Engine | None = None,
        *,
        classes: Sequence[Any] | None = None,
        selection: Batches = "self",
        ledger: Ledger | None = None,
        noise_multiplier: float | None = None,
        seed: int | None = None,
        tick: Tick | None = None,
    ) -> None:
        self.budget = budget
        self.x_norm = x_norm
        self.prior_scale = prior_scale
        self.batch = batch
        self.steps = steps
        self.engine = engine
        self.classes = classes
        self.selection = selection
        self.ledger = ledger
        self.noise_multiplier = noise_multiplier
        self.seed = seed
        self.tick = tick

    def fit(self, X: Any, y: Any) -> VariationalLogisticRegression:
        """Run all steps over the rows (one client each)."""
        schedule = self._schedule()
        X, y = checked(self, X, y, ensure_min_samples=2)
        features = finite_rows("X", X)
        self.classes_, codes, leaks = PrivateLogisticRegression._coded(self, y)
        if leaks:
            warnings.warn(
                "classes was taken from the data, which reveals something about it; pass the public value",
                PrivacyLeakWarning,
                stacklevel=2,
            )
        names = self._names(features.shape[1])
        target = "y" if "y" not in names else "target"
        analysis = LogisticRegression(names, target, self.x_norm, self.prior_scale, **schedule)
        found = self._result_of(analysis, np.column_stack([features, codes]))
        if leaks:
            assert isinstance(found.privacy, TrainingReport)  # of a run, not of a file
            found = replace(found, privacy=replace(found.privacy, caveats=("classes was taken from the data",)))
        return self._with(found)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        caution = getattr(self, "caution_", None)
        return str(super().__repr__(N_CHAR_MAX)) + ("" if caution is None else f": {caution}")

    def predict_proba(self, X: Any) -> Floats:
        """(n, 2): posterior predictive probabilities of the two classes (MacKay's approximation)."""
        return self._fitted().probabilities(new_rows(self, X))  # type: ignore[no-any-return]

    def predict(self, X: Any) -> Any:
        """The more probable class of each row."""
        second = self.predict_proba(X)[:, 1] > 0.5
        return self.classes_[second.astype(int)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on these rows. Computed from them as they are, so outside the privacy guarantee."""
        warn_of_rows("score")
        return float(super().score(X, y, sample_weight))

    def summary(self, level: float = 0.9) -> Summary:
        """A table of the coefficients: mean, deviation, interval, probability of being positive."""
        found = self._fitted()
        return Summary(tuple(found.table(level)), level, "\n".join([note_of(found.privacy), *found.notes()]))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the posterior, the settings and the privacy report to a JSON file."""
        found = self._fitted()
        self._write(path, {
            "features": found.features, "classes": self.classes_, "mean": found.posterior.mean,
            "covariance": found.posterior.covariance, "noise_covariance": found.noise_covariance,
            "shortened": found.shortened, "caution": found.caution,
        })  # fmt: skip

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """The fitted estimator in such a file."""
        model, stored = cls._read(path)
        features = stored.checked(lambda: named_columns(stored.found["features"]))
        size = len(features) + 1  # the intercept is last
        mean, covariance = stored.array("mean", size), stored.covariance("covariance", size)
        share, deviation = stored.array("shortened", 2).tolist()
        caution = stored.checked(lambda: stored.found["caution"] and str(stored.found["caution"]))
        noise, posterior = stored.covariance("noise_covariance", size), NormalPosterior(mean, covariance)
        model.classes_ = stored.checked(lambda: _two(stored.found["classes"]))
        model._named(features)
        return model._with(  # type: ignore[no-any-return]
            LogisticResult(features, posterior, noise, (share, deviation), caution, stored.report)
        )

    def _with(self, found: LogisticResult) -> Self:
        self.result_, self.privacy_ = found, found.privacy
        self.posterior_, self.noise_covariance_ = found.posterior, found.noise_covariance
        self.coef_, self.intercept_ = found.posterior.mean[:-1], float(found.posterior.mean[-1])
        self.shortened_, self.caution_ = found.shortened, found.caution
        return self

    def __sklearn_tags__(self) -> Any:
        """Two classes only; the fit is random, and accuracy depends on the budget."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags


def _two(classes: Any) -> Any:
    found = np.array(classes)
    if found.shape != (2,) or found[0] == found[1]:
        raise ValueError
    return found
