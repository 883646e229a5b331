"""PrivateLogisticRegression: Bayesian logistic regression as a classifier of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from hubbub.arrays import Floats, finite_rows
from hubbub.errors import InvalidInput, invalid, warn_of_rows
from hubbub.estimators.arrays import checked
from hubbub.estimators.glm_base import GLMEstimator
from hubbub.privacy import Budget, Ledger
from hubbub.protocols import Engine, Mechanism, Table

_LEAST = 1e-300


class PrivateLogisticRegression(ClassifierMixin, GLMEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Bayesian logistic regression from noisy sums over clients, with an intercept.

    Parameters
    ----------
    classes : the two labels, that of "no" first; public. Left out they are 0 and 1 where y has no others, and otherwise
        taken from the data with a PrivacyLeakWarning.
    budget, x_bound, engine, ledger, prior_scale, prior_mean, draws, mechanism : as in PrivateGLM.

    Attributes
    ----------
    classes_ : the two labels.   coef_ : (1, d) posterior means.   intercept_ : (1,) posterior mean.
    posterior_ : GLMPosterior.   privacy_ : PrivacyReport.   result_ : GLMResult.   release_ : GLMRelease.

    For example: `PrivateLogisticRegression(x_bound={"age": (0, 110), "smoker": (0, 1)}).fit(X, claim)`.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        x_bound: Any = None,
        engine: Engine | None = None,
        ledger: Ledger | None = None,
        *,
        classes: Sequence[Any] | None = None,
        prior_scale: float | Sequence[float] | None = None,
        prior_mean: float | Sequence[float] | None = None,
        draws: int = 1000,
        mechanism: Mechanism | str | None = None,
    ) -> None:
        self.budget = budget
        self.x_bound = x_bound
        self.engine = engine
        self.ledger = ledger
        self.classes = classes
        self.prior_scale = prior_scale
        self.prior_mean = prior_mean
        self.draws = draws
        self.mechanism = mechanism

    def fit(self, X: Any, y: Any) -> PrivateLogisticRegression:
        """Run the private rounds over the rows (one client each) and form the posterior.

        X can be a table that stays where it is, such as a SparkTable, and y the name of its target column of zeros and
        ones. Rows that are not finite, and labels that are none of the classes, are refused: whoever sees that a fit
        failed learns that. Without `classes` so are labels of one kind only, since there is nothing then to take the
        other class from; give `classes` where a single row might decide that.
        """
        self._check_options()
        leaks: tuple[str, ...] = ()
        if isinstance(X, Table):
            if self.classes is not None and list(self.classes) != [0, 1]:
                raise invalid("classes", "left out for a table", repr(self.classes)[:80], "code the column as 0 and 1")
            rows: Floats | Table = self._table(X, y)
            self.classes_ = np.array([0, 1])
        else:
            X, y = checked(self, X, y, ensure_min_samples=2)
            features = finite_rows("X", X)
            self.classes_, codes, leaks = self._coded(y)
            rows = np.column_stack([features, codes])
        self._fitted(rows, "bernoulli", (0.0, 1.0), leaks)
        first, second = map(str, self.classes_.tolist())
        self.release_ = replace(self.release_, labels=(first, second))
        self.coef_ = self.posterior_.mean[None]
        self.intercept_ = np.array([self.posterior_.intercept])
        return self

    def decision_function(self, X: Any) -> Any:
        """The log odds of the predictive probability of the second class."""
        found = self._expected(X)
        return np.log(np.maximum(found, _LEAST)) - np.log(np.maximum(1 - found, _LEAST))

    def predict_proba(self, X: Any) -> Any:
        """(n, 2): predictive probabilities of the two classes, averaged over the posterior."""
        found = self._expected(X)
        return np.column_stack([1 - found, found])

    def predict_log_proba(self, X: Any) -> Any:
        """(n, 2): logarithms of the same."""
        return np.log(np.maximum(self.predict_proba(X), _LEAST))

    def predict(self, X: Any) -> Any:
        """The more probable class of each row."""
        second = self.decision_function(X) > 0
        return self.classes_[second.astype(int)]

    def sample_predictive(self, X: Any, size: int = 1000, seed: int | None = None) -> Any:
        """(size, n) draws of labels from the posterior predictive."""
        return self.classes_[super().sample_predictive(X, size, seed).astype(int)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on these rows. Computed from them as they are, so outside the privacy guarantee."""
        warn_of_rows("score")
        return float(super().score(X, y, sample_weight))

    def _outcomes(self, y: Any) -> Floats:
        y = column_or_1d(y)
        if not np.isin(y, self.classes_).all():
            raise InvalidInput("y must be one of the two classes, got other labels; name both in classes")
        return np.asarray(y == self.classes_[1], dtype=np.float64)

    def _coded(self, y: Any) -> tuple[NDArray[Any], Floats, tuple[str, ...]]:
        """The two classes, each row's as 0 or 1, and what leaked."""
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        present, leaks = np.unique(y), tuple[str, ...]()
        if self.classes is not None:
            classes = np.asarray(self.classes)
            if classes.shape != (2,) or classes[0] == classes[1]:
                raise invalid("classes", "two distinct labels", repr(self.classes)[:80], "give for example [0, 1]")
            if not np.isin(present, classes).all():
                raise InvalidInput("y must be one of the two classes, got other labels; name both in classes")
        elif len(present) > 2:
            raise InvalidInput(
                "y must have two classes, got more; merge or drop some. "
                "Only binary classification is supported. The type of the target is multiclass"
            )
        else:
            classes = present
            leaks = () if set(present.tolist()) <= {0, 1} else ("classes",)
        if self.classes is None and len(present) < 2:
            raise InvalidInput("y must have two classes, got one class only; name both in classes")
        return classes, (y == classes[1]).astype(np.float64), leaks

    def __sklearn_tags__(self) -> Any:
        """Two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags
