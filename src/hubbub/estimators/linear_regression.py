"""PrivateLinearRegression: the models behind scikit-learn's interface."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.analyses.driver import run
from hubbub.analyses.exported import inference_data, linear_groups
from hubbub.analyses.linear.auto import LinearRegression
from hubbub.analyses.linear.projected import BoxResult, PlainRegression, ProjectedRegression
from hubbub.analyses.linear.release import RegressionRelease, checked_prior
from hubbub.analyses.linear.result import RegressionResult
from hubbub.analyses.linear.stored import INTERVALS, StoredModel
from hubbub.analyses.posterior import LinearPosterior
from hubbub.analyses.summary import Summary, note_on, posterior_rows
from hubbub.arrays import Floats, finite_rows
from hubbub.engines import LocalEngine
from hubbub.errors import PrivacyLeakWarning, invalid, warn_of_rows
from hubbub.estimators.arrays import arviz_rows, checked, new_rows, number_column, widest
from hubbub.estimators.intervals import intervals
from hubbub.privacy import Budget, Ledger, PrivacyReport, current_ledger
from hubbub.protocols import Engine, Mechanism, Table
from hubbub.statistics.bounds import positive

Method = Literal["auto", "projected", "plain"]
PosteriorKind = Literal["auto", "noise-aware", "shrinkage", "regularised", "plugin"]

POSTERIORS: dict[str, tuple[str, ...]] = {
    "auto": ("noise-aware", "shrinkage"),
    "projected": ("regularised", "plugin"),
    "plain": ("regularised", "plugin"),
}
"""The posteriors that each method's sums allow, its default first."""

DEFAULT_BUDGET = Budget(epsilon=1.0, delta=1e-5)


class PrivateLinearRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Bayesian linear regression from noisy sums over clients.

    Parameters
    ----------
    budget : what one fit may spend; default (epsilon=1, delta=1e-5).
    x_bound, y_bound : public bounds. A number c means |x_j| <= c, a pair (low, high) an interval; x_bound can also be
        a list with one of these per column, or a dict by column name. The method "auto" shortens a row that lies beyond
        them as a whole, the others clip it. Left out, they are taken from the data with a PrivacyLeakWarning.
    x_norm : public bound of a row's Euclidean length, in place of x_bound, for columns of one kind (unit rows, say).
    fit_intercept : "auto" is True for the method "auto" (which then centres columns privately, too) and False for
        the others, which take columns and target to be centred.
    method : "auto" estimates where columns lie and how widely, then sums standardised rows in a ball, then those
        rows with residuals in place of y, twice (four rounds);
        "projected" is the paper's Algorithm 2 (two rounds); "plain" clips to the bounds (one round).
    posterior : for the method "auto" "noise-aware" (default; sampled, counts all the noise) or "shrinkage" (closed
        form, approximate); for the others "regularised" (default, a ridge from the noise level) or "plugin" (the
        paper's), which treat the noisy sums as exact: their intervals are too narrow.
    prior_scale, prior_mean : beta_j ~ N(prior_mean, prior_scale^2) in the units of the data, a number or one per
        column; without prior_scale the prior's width is learned. For "noise-aware".
    draws : how many draws from the posterior "noise-aware".
    engine : where the roles run; default LocalEngine(computes=3).
    ledger : a total budget that every fit charges; default the one of an enclosing `with Ledger(...)`.
    prior_precision, noise_precision : of beta ~ N(0, I/prior_precision), y ~ N(x'beta, 1/noise_precision), for the
        methods "projected" and "plain".
    mechanism : the law of the noise, or its name; by default the engine's. Its amount follows from the budget.

    Attributes
    ----------
    posterior_ : LinearPosterior.   privacy_ : PrivacyReport.   coef_, intercept_ : what predicts best.
    residual_variance_ : of y, learned or assumed.   result_ : what the analysis found, the released sums included.
    release_ : RegressionRelease (method "auto"): save it, refit it with another prior, compare models, for free.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        x_bound: Any = None,
        y_bound: Any = None,
        method: Method = "auto",
        posterior: PosteriorKind = "auto",
        engine: Engine | None = None,
        ledger: Ledger | None = None,
        prior_precision: float = 1.0,
        noise_precision: float = 1.0,
        *,
        x_norm: float | None = None,
        fit_intercept: bool | Literal["auto"] = "auto",
        prior_scale: float | Sequence[float] | None = None,
        prior_mean: float | Sequence[float] | None = None,
        draws: int = 1000,
        mechanism: Mechanism | str | None = None,
    ) -> None:
        self.budget = budget
        self.x_bound = x_bound
        self.y_bound = y_bound
        self.method = method
        self.posterior = posterior
        self.engine = engine
        self.ledger = ledger
        self.prior_precision = prior_precision
        self.noise_precision = noise_precision
        self.x_norm = x_norm
        self.fit_intercept = fit_intercept
        self.prior_scale = prior_scale
        self.prior_mean = prior_mean
        self.draws = draws
        self.mechanism = mechanism

    def fit(self, X: Any, y: Any) -> PrivateLinearRegression:
        """Run the private rounds over the rows (one client each) and form the posterior.

        X can be a table that stays where it is, such as a SparkTable, and y the name of its target column: its rows
        are not looked at beyond the rounds (method "auto", public bounds), and one that is not finite counts as zero
        there. Arrays that are not finite are refused, as in scikit-learn: whoever sees that a fit failed learns that.
        """
        budget = self._checked_budget()
        rows = self._table(X, y) if isinstance(X, Table) else self._rows(X, y)
        checked_prior(rows.shape[1] - 1, self.prior_scale, self.prior_mean, self.posterior, self.draws)
        ranges, caveats = self._ranges(rows)
        engine = self.engine or (rows.engine() if isinstance(rows, Table) else LocalEngine(computes=3))
        result: Any = run(self._analysis(ranges), rows, engine, budget, self.ledger, mechanism=self.mechanism)
        self.result_: RegressionResult | BoxResult = result.with_caveats(caveats)
        self.privacy_: PrivacyReport = self.result_.privacy
        self.__dict__.pop("release_", None)  # of an earlier fit
        if isinstance(self.result_, RegressionResult):
            self.release_: RegressionRelease = self.result_.release
        self.posterior_ = self._posterior()
        self.coef_ = self.posterior_.mean
        self.intercept_ = self.posterior_.intercept
        self.residual_variance_ = self.posterior_.residual_variance
        return self

    def _analysis(self, ranges: Floats) -> LinearRegression | PlainRegression:
        """The regression that was asked for, on columns with these public bounds."""
        names, (*x, y) = tuple(self._names()), [(float(low), float(high)) for low, high in ranges]
        target = "y" if "y" not in names else "target"
        if self.method == "auto":
            intercept = self.fit_intercept in ("auto", True)
            x_bound = () if self.x_norm is not None else tuple(x)
            return LinearRegression(names, target, y, x_bound, self.x_norm, intercept)
        kind = PlainRegression if self.method == "plain" else ProjectedRegression
        repair: Literal["flip", "ridge"] = "flip" if self.posterior == "plugin" else "ridge"
        return kind(names, target, y, tuple(x), self.prior_precision, self.noise_precision, repair)

    def _posterior(self) -> LinearPosterior:
        if isinstance(self.result_, BoxResult):
            return self.result_.posterior
        kind = "shrinkage" if self.posterior == "shrinkage" else "noise-aware"
        return self.release_.posterior(
            prior_scale=self.prior_scale, prior_mean=self.prior_mean, kind=kind, draws=self.draws
        )

    def stored(self, names: Sequence[str], target: str) -> StoredModel:
        """What `hubbub predict` needs, under these names of columns."""
        check_is_fitted(self)
        kind = "shrinkage" if self.posterior == "shrinkage" else self.method
        return StoredModel(list(names), target, self.posterior_, self.privacy_.as_dict(), INTERVALS[kind])

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Posterior predictive mean, with `return_std` also the standard deviation."""
        check_is_fitted(self)
        mean, std = self.posterior_.predict(self._new_rows(X))
        return (mean, std) if return_std else mean

    def predict_interval(self, X: Any, level: float = 0.9) -> Any:
        """(n, 2): intervals that hold y with this probability."""
        check_is_fitted(self)
        return self.posterior_.predictive_interval(self._new_rows(X), level)

    def sample_predictive(self, X: Any, size: int = 1000, seed: int | None = None) -> Any:
        """(size, n) draws of y from the posterior predictive."""
        check_is_fitted(self)
        return self.posterior_.predictive(self._new_rows(X), size, seed)

    def summary(self, level: float = 0.9) -> Summary:
        """A table of the coefficients: mean, deviation, interval, probability of being positive."""
        check_is_fitted(self)
        rows = posterior_rows(self.posterior_, self._names(), level)
        return Summary(tuple(rows), level, note_on(self.privacy_))

    def to_arviz(self, X: Any = None, y: Any = None, *, seed: int | None = 0) -> Any:
        """The posterior for ArviZ (needs the package arviz): chains of `beta`, `intercept` and `sigma`.

        With rows X also `y` drawn for them (posterior_predictive), and with their y also log_likelihood and
        observed_data, for `az.plot_ppc` and `az.loo`. These are computed from the rows as they are: of private rows
        they are outside the privacy guarantee, as their attributes say; with y a PrivacyLeakWarning says so, too.
        """
        check_is_fitted(self)
        groups = linear_groups(self.posterior_, *arviz_rows(self, X, y, number_column), seed)
        return inference_data(groups, self.privacy_, self._names())

    def _names(self) -> list[str]:
        """The columns' names, or x0, x1, .. where the data had none."""
        numbered = [f"x{j}" for j in range(self.n_features_in_)]
        return [str(name) for name in getattr(self, "feature_names_in_", numbered)]

    def _new_rows(self, X: Any) -> Floats:
        return new_rows(self, X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 on these rows. Computed from them as they are, so outside the privacy guarantee."""
        warn_of_rows("score")
        return float(super().score(X, y, sample_weight))

    def __getstate__(self) -> Any:
        """An unfitted model takes the ledger of an enclosing `with` block along, or is refused if that is in memory.

        On this machine the block is found without that (`privacy/blocks.py`). On another one the ledger's file must
        be the same file, say on a shared drive.
        """
        state = super().__getstate__()
        if not hasattr(self, "result_") and self.ledger is None and current_ledger() is not None:
            state = {**state, "ledger": current_ledger()}
        return state

    def _checked_budget(self) -> Budget:
        """Refuse what is wrong in the parameters before any data is looked at."""
        if self.method not in POSTERIORS:
            raise invalid("method", f"one of {', '.join(POSTERIORS)}", repr(self.method), "use 'auto'")
        if self.posterior not in ("auto", *POSTERIORS[self.method]):
            allowed = ", ".join(("auto", *POSTERIORS[self.method]))
            bound = f"one of {allowed} for method {self.method!r}"
            raise invalid("posterior", bound, repr(self.posterior), "use 'auto'")
        self._check_method_options()
        for field in ("prior_precision", "noise_precision"):
            value = getattr(self, field)
            if not isinstance(value, int | float | np.number) or not (np.isfinite(value) and value > 0):
                raise invalid(field, "positive and finite", repr(value), "1.0 is the paper's choice")
        if self.ledger is not None and not isinstance(self.ledger, Ledger):
            raise invalid("ledger", "a Ledger", repr(self.ledger), "use Ledger(budget, path='ledger.json')")
        if self.engine is not None and (isinstance(self.engine, type) or not isinstance(self.engine, Engine)):
            raise invalid("engine", "an engine", repr(self.engine), "use LocalEngine(computes=3)")
        budget = DEFAULT_BUDGET if self.budget is None else self.budget
        if not isinstance(budget, Budget):
            raise invalid("budget", "a Budget", repr(budget), "use Budget(epsilon=1.0, delta=1e-5)")
        return budget

    def _check_method_options(self) -> None:
        if not (isinstance(self.fit_intercept, bool) or self.fit_intercept == "auto"):
            raise invalid("fit_intercept", "True, False or 'auto'", repr(self.fit_intercept), "use 'auto'")
        if self.method != "auto":
            for field in ("fit_intercept", "x_norm", "prior_scale", "prior_mean"):
                value = getattr(self, field)
                if not (value is None or value is False or isinstance(value, str)):
                    raise invalid(field, f"left out for method {self.method!r}", repr(value), "use method='auto'")
        if self.x_norm is not None:
            positive("x_norm", self.x_norm)
            if self.x_bound is not None:
                raise invalid("x_norm", "given without x_bound", self.x_norm, "give one of the two")

    def _rows(self, X: Any, y: Any) -> Floats:
        column = _numbers(y)
        if y is not None and column is not None:
            finite_rows("y", column[:, None])
        X, y = checked(self, X, y, y_numeric=True, ensure_min_samples=2)
        X, y = finite_rows("X", X), np.asarray(y, dtype=np.float64)[:, None]
        return np.hstack([X, y])

    def _table(self, table: Table, target: Any) -> Table:
        """The table's features, then its target; everything that needs its rows at hand is refused."""
        if not isinstance(target, str) or target not in table.columns or len(table.columns) < 2:
            bound = f"the name of one of several columns, {', '.join(table.columns)}"
            raise invalid("y", bound, repr(target), "name the target column")
        if self.method != "auto":
            raise invalid("method", "'auto' for a table", repr(self.method), "leave it out")
        names = [name for name in table.columns if name != target]
        self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
        return table.select([*names, target])

    def _ranges(self, rows: Floats | Table) -> tuple[Floats, tuple[str, ...]]:
        """(d + 1, 2) public intervals of features and target, or read off the data with a warning."""
        d = rows.shape[1] - 1
        asked = ("y_bound",) if self.x_norm is not None else ("x_bound", "y_bound")
        leaks = [field for field in asked if getattr(self, field) is None]
        if leaks and isinstance(rows, Table):
            raise invalid(leaks[0], "given for a table", None, "its rows are not looked at: give the public bound")
        for field in leaks:
            warnings.warn(
                f"{field} was taken from the data, which reveals something about it; pass the public bound",
                PrivacyLeakWarning,
                stacklevel=3,
            )
        reach = np.ones(d + 1)  # for those bounds that are read off the data
        if not isinstance(rows, Table):
            read = ["x_bound" in leaks] * d + ["y_bound" in leaks]
            reach[read] = widest(leaks[0], rows[:, read]) if leaks else 1.0
        if self.x_norm is not None:
            x = np.tile([-float(self.x_norm), float(self.x_norm)], (d, 1))
        else:
            x = intervals("x_bound", reach[:-1] if self.x_bound is None else self.x_bound, d, self._names())
        y = intervals("y_bound", reach[-1] if self.y_bound is None else self.y_bound, 1)
        return np.vstack([x, y]), tuple(f"{field} was taken from the data" for field in leaks)

    def __sklearn_tags__(self) -> Any:
        """The fit is random, and accuracy depends on the budget."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.regressor_tags.poor_score = True
        return tags


def _numbers(y: Any) -> Floats | None:
    """y as numbers, or None where scikit-learn's own check will say what it is instead."""
    try:
        return np.asarray(y, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        return None
