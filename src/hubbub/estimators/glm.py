"""PrivateGLM and PrivatePoissonRegression: generalised linear models behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from hubbub.analyses.glm.families import FAMILIES
from hubbub.analyses.glm.offset import Offset
from hubbub.analyses.glm.posterior import GAUSSIAN, GLMPosterior
from hubbub.arrays import Floats, finite_rows
from hubbub.errors import InvalidInput, invalid, warn_of_rows
from hubbub.estimators.arrays import checked, widest
from hubbub.estimators.glm_base import GLMEstimator, check_outcomes
from hubbub.estimators.intervals import intervals
from hubbub.estimators.linear_regression import PrivateLinearRegression
from hubbub.estimators.offsets import added, named, offset_of, values_of
from hubbub.privacy import Budget, Ledger
from hubbub.protocols import Engine, Mechanism, Table


class PrivateGLM(RegressorMixin, GLMEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A Bayesian generalised linear model from noisy sums over clients, with an intercept.

    Parameters
    ----------
    family : "bernoulli" (y is 0 or 1, logistic regression), "probit", "poisson" (counts, log link), or
        "negative-binomial" (counts that vary more, with variance mu + dispersion mu^2; the dispersion is learned),
        "gamma" (positive numbers with variance dispersion mu^2, log link), or "gaussian" (any numbers, no link): that
        is PrivateLinearRegression's own analysis, and the fitted one is `linear_`, which has intervals of new y, too.
    budget : what one fit may spend; default (epsilon=1, delta=1e-5).
    x_bound : public bounds. A number c means |x_j| <= c, a pair (low, high) an interval; also a list with one of
        these per column, or a dict by column name. A row that lies beyond them is not clipped, but counts less. Left
        out, they are taken from the data with a PrivacyLeakWarning.
    y_bound : of counts and positive numbers, a number B: about how large they get. It tells the first round where to
        look, and one beyond it is no error. Of "gaussian", bounds as PrivateLinearRegression has them. Left out, it is
        taken from the data with a PrivacyLeakWarning.
    engine : where the roles run; default LocalEngine(computes=3).
    ledger : a total budget that every fit charges; default the one of an enclosing `with Ledger(...)`.
    prior_scale, prior_mean : beta_j ~ N(prior_mean, prior_scale^2) in the units of the data, a number or one per
        column; without prior_scale the prior's width is learned.
    draws : how many draws from the posterior.
    mechanism : the law of the noise, or its name; by default the engine's. Its amount follows from the budget.
    exposure_bound, offset_bound : public interval (low, high) of the exposure or offset that `fit` is given; exposures
        are above zero. A value beyond counts as the nearer bound, so its row is taken to have been watched for, say,
        less long than it was. Left out, it is taken from the data with a PrivacyLeakWarning.

    Attributes
    ----------
    posterior_ : GLMPosterior, with the `dispersion` where the family has one.   privacy_ : PrivacyReport.
    coef_, intercept_ : posterior means.
    result_ : GLMResult (not of "gaussian").   release_ : GLMRelease, or the linear regression's of "gaussian": save it,
        make posteriors under other priors of it, for free.

    For example: `PrivateGLM("poisson", x_bound={"age": (0, 110)}, y_bound=20).fit(df[["age"]], df["visits"])`.
    """

    def __init__(
        self,
        family: str = "bernoulli",
        budget: Budget | None = None,
        x_bound: Any = None,
        y_bound: float | None = None,
        engine: Engine | None = None,
        ledger: Ledger | None = None,
        *,
        prior_scale: float | Sequence[float] | None = None,
        prior_mean: float | Sequence[float] | None = None,
        draws: int = 1000,
        mechanism: Mechanism | str | None = None,
        exposure_bound: Any = None,
        offset_bound: Any = None,
    ) -> None:
        self.family = family
        self.budget = budget
        self.x_bound = x_bound
        self.y_bound = y_bound
        self.engine = engine
        self.ledger = ledger
        self.prior_scale = prior_scale
        self.prior_mean = prior_mean
        self.draws = draws
        self.mechanism = mechanism
        self.exposure_bound = exposure_bound
        self.offset_bound = offset_bound

    def fit(self, X: Any, y: Any, *, exposure: Any = None, offset: Any = None) -> PrivateGLM:
        """Run the private rounds over the rows (one client each) and form the posterior.

        `offset` has a number for each row, which is added to its linear predictor; `exposure` one whose logarithm is,
        such as the years that a row was watched for: the coefficients are then those of the rate per year.

        X can be a table that stays where it is, such as a SparkTable, and y the name of its target column, as exposure
        or offset that of theirs. Arrays that are not finite, and values of y that the family does not know, are
        refused: whoever sees that a fit failed learns that.
        """
        self._check_options()
        more = named(exposure, offset)
        if self.family == GAUSSIAN:
            return self._as_linear(X, y, more)
        if self.family not in FAMILIES:
            known = ", ".join((*FAMILIES, GAUSSIAN))
            raise invalid("family", f"one of {known}", repr(self.family)[:80], "use 'bernoulli'")
        rows = self._table(X, y, **more) if isinstance(X, Table) else self._rows(X, y, more)
        y_bound, leaks = self._y_range(rows)
        bounds = {"exposure": self.exposure_bound, "offset": self.offset_bound}
        column, leaked = offset_of(rows, next(iter(more), None), bounds, self._names())
        self._fitted(rows, self.family, y_bound, (*leaks, *leaked), column)
        self.coef_, self.intercept_ = self.posterior_.mean, self.posterior_.intercept
        return self

    def predict(self, X: Any, *, exposure: Any = None, offset: Any = None) -> Any:
        """The expected y of each row, averaged over the posterior: a probability, or a rate of counts.

        Without an exposure it is the rate for an exposure of 1, and without an offset that for 0.
        """
        rows = self._new_rows(X)
        return self.posterior_.expected(rows, added(self._offset, named(exposure, offset), len(rows)))

    def predict_interval(self, X: Any, level: float = 0.9, *, exposure: Any = None, offset: Any = None) -> Any:
        """(n, 2): intervals that hold the expected y of each row with this probability."""
        rows = self._new_rows(X)
        offsets = added(self._offset, named(exposure, offset), len(rows))
        return self.posterior_.expected_interval(rows, level, offsets)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, exposure: Any = None, offset: Any = None) -> float:
        """R^2 on these rows. Computed from them as they are, so outside the privacy guarantee."""
        warn_of_rows("score")
        found = self.predict(X, exposure=exposure, offset=offset)
        return float(r2_score(y, found, sample_weight=sample_weight))

    def stored(self, names: Sequence[str], target: str) -> Any:
        """What `hubbub predict` needs, under these names of columns; `save` writes it to a file."""
        check_is_fitted(self)
        return self.linear_.stored(names, target) if self._is_linear else super().stored(names, target)

    def sample_predictive(
        self, X: Any, size: int = 1000, seed: int | None = None, *, exposure: Any = None, offset: Any = None
    ) -> Any:
        """(size, n) draws of y from the posterior predictive."""
        rows = self._new_rows(X)
        offsets = added(self._offset, named(exposure, offset), len(rows))
        if self._is_linear:
            return self.linear_.sample_predictive(X, size, seed)
        return self.posterior_.predictive(rows, size, seed, offsets)

    def to_arviz(
        self, X: Any = None, y: Any = None, *, seed: int | None = 0, exposure: Any = None, offset: Any = None
    ) -> Any:
        """As of all generalised linear models, with the exposure or offset of the rows X.

        A model of the family "gaussian" has `sigma`, and is exported as PrivateLinearRegression exports it.
        """
        check_is_fitted(self)
        more = named(exposure, offset)
        if X is None and more:
            raise InvalidInput(f"X must be given with {next(iter(more))}, got that alone; call to_arviz(X, y, ..)")
        offsets = added(self._offset, more, 0 if X is None else len(X))
        return self.linear_.to_arviz(X, y, seed=seed) if self._is_linear else self._exported(X, y, seed, offsets)

    @property
    def _is_linear(self) -> bool:
        """True where what was fitted is a linear regression, whatever `family` has been set to since."""
        return self.posterior_.family == GAUSSIAN

    @property
    def _offset(self) -> Offset | None:
        """What the model was fitted with."""
        return None if self._is_linear else self.result_.offset

    def _as_linear(self, X: Any, y: Any, more: Mapping[str, Any]) -> PrivateGLM:
        """Fit a linear regression in its place."""
        if more or self.exposure_bound is not None or self.offset_bound is not None:
            raise InvalidInput("offset and exposure must be left out for gaussian, got one; take it away from y")
        self.linear_ = found = PrivateLinearRegression(
            self.budget, self.x_bound, self.y_bound, engine=self.engine, ledger=self.ledger, mechanism=self.mechanism,
            prior_scale=self.prior_scale, prior_mean=self.prior_mean, draws=self.draws,
        ).fit(X, y)  # fmt: skip
        for name in ("n_features_in_", "feature_names_in_", "privacy_", "coef_", "intercept_", "release_"):
            if hasattr(found, name):
                setattr(self, name, getattr(found, name))
        self.posterior_ = GLMPosterior.gaussian(found.posterior_)
        return self

    def _rows(self, X: Any, y: Any, more: Mapping[str, Any]) -> Floats:
        X, y = checked(self, X, y, y_numeric=True, ensure_min_samples=2)
        X, y = finite_rows("X", X), finite_rows("y", np.asarray(y, dtype=np.float64).reshape(-1, 1))
        check_outcomes(self.family, y[:, 0])
        return np.column_stack([X, *(values_of(field, values, len(X)) for field, values in more.items()), y])

    def _y_range(self, rows: Floats | Table) -> tuple[tuple[float, float], tuple[str, ...]]:
        """Public interval of the target; read off the data where it is a count and none is given."""
        if FAMILIES[self.family].yes_no:
            if self.y_bound is not None:
                raise invalid("y_bound", f"left out for {self.family}", repr(self.y_bound), "y is 0 or 1")
            return (0.0, 1.0), ()
        if self.y_bound is not None:
            if isinstance(self.y_bound, tuple | list):
                low, high = intervals("y_bound", self.y_bound, 1)[0]
                return (float(low), float(high)), ()
            return (0.0, float(intervals("y_bound", self.y_bound, 1)[0, 1])), ()
        if isinstance(rows, Table):
            raise invalid("y_bound", "given for a table", None, "its rows are not looked at: give the public bound")
        assert isinstance(rows, np.ndarray)
        return (0.0, max(float(widest("y_bound", rows[:, -1:])[0]), 1.0)), ("y_bound",)


class PrivatePoissonRegression(PrivateGLM):
    """PrivateGLM(family="poisson"): Bayesian regression of counts, log E y = x'beta + intercept.

    The parameters are those of PrivateGLM but for the family.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        x_bound: Any = None,
        y_bound: float | None = None,
        engine: Engine | None = None,
        ledger: Ledger | None = None,
        *,
        prior_scale: float | Sequence[float] | None = None,
        prior_mean: float | Sequence[float] | None = None,
        draws: int = 1000,
        mechanism: Mechanism | str | None = None,
        exposure_bound: Any = None,
        offset_bound: Any = None,
    ) -> None:
        self.budget = budget
        self.x_bound = x_bound
        self.y_bound = y_bound
        self.engine = engine
        self.ledger = ledger
        self.prior_scale = prior_scale
        self.prior_mean = prior_mean
        self.draws = draws
        self.mechanism = mechanism
        self.exposure_bound = exposure_bound
        self.offset_bound = offset_bound

    @property
    def family(self) -> str:  # type: ignore[override]  # no parameter here
        """Always "poisson"."""
        return "poisson"
