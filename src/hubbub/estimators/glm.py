"""PrivateGLM and PrivatePoissonRegression: generalised linear models behind scikit-learn's interface."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hubbub.analyses.driver import run
from hubbub.analyses.glm.analysis import GLM
from hubbub.analyses.glm.families import FAMILIES
from hubbub.analyses.glm.posterior import GLMPosterior
from hubbub.analyses.glm.result import GLMResult, table_of
from hubbub.analyses.linear.release import checked_prior
from hubbub.analyses.summary import Summary, note_on, to_arviz
from hubbub.arrays import Floats, finite_rows
from hubbub.engines import LocalEngine
from hubbub.errors import InvalidInput, PrivacyLeakWarning, invalid
from hubbub.estimators.arrays import checked, new_rows, widest
from hubbub.estimators.intervals import intervals
from hubbub.privacy import Budget, Ledger, PrivacyReport, current_ledger
from hubbub.protocols import Engine, Mechanism, Table

DEFAULT_BUDGET = Budget(epsilon=1.0, delta=1e-5)


class GLMEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """What all estimators of generalised linear models share; the parameters are described in PrivateGLM."""

    budget: Budget | None
    x_bound: Any
    engine: Engine | None
    ledger: Ledger | None
    prior_scale: float | Sequence[float] | None
    prior_mean: float | Sequence[float] | None
    draws: int
    mechanism: Mechanism | str | None

    def _fitted(self, rows: Floats | Table, family: str, y_bound: tuple[float, float], leaks: tuple[str, ...]) -> Any:
        """Run the private rounds over rows with the target last, and form the posterior."""
        checked_prior(rows.shape[1] - 1, self.prior_scale, self.prior_mean, "noise-aware", self.draws)
        x_bound, leaked = self._x_ranges(rows)
        leaks = (*leaked, *leaks)
        for field in leaks:
            warnings.warn(
                f"{field} was taken from the data, which reveals something about it; pass the public value",
                PrivacyLeakWarning,
                stacklevel=3,
            )
        names = tuple(self._names())
        analysis = GLM(names, "y" if "y" not in names else "target", y_bound, x_bound, family)
        engine = self.engine or (rows.engine() if isinstance(rows, Table) else LocalEngine(computes=3))
        budget = DEFAULT_BUDGET if self.budget is None else self.budget
        result = run(analysis, rows, engine, budget, self.ledger, mechanism=self.mechanism)
        self.result_: GLMResult = result.with_caveats(tuple(f"{field} was taken from the data" for field in leaks))
        self.privacy_: PrivacyReport = self.result_.privacy
        self.posterior_: GLMPosterior = self.result_.sampled(
            prior_scale=self.prior_scale, prior_mean=self.prior_mean, draws=self.draws
        )
        return self

    def _check_options(self) -> None:
        """Refuse a wrong ledger, engine or budget before any data is looked at."""
        if self.ledger is not None and not isinstance(self.ledger, Ledger):
            raise invalid("ledger", "a Ledger", repr(self.ledger), "use Ledger(budget, path='ledger.json')")
        if self.engine is not None and (isinstance(self.engine, type) or not isinstance(self.engine, Engine)):
            raise invalid("engine", "an engine", repr(self.engine), "use LocalEngine(computes=3)")
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise invalid("budget", "a Budget", repr(self.budget), "use Budget(epsilon=1.0, delta=1e-5)")

    def _x_ranges(self, rows: Floats | Table) -> tuple[tuple[tuple[float, float], ...], tuple[str, ...]]:
        """Public intervals of the features; read off the data where none are given, and then what leaked."""
        d, bound, leaks = rows.shape[1] - 1, self.x_bound, tuple[str, ...]()
        if bound is None and isinstance(rows, Table):
            raise invalid("x_bound", "given for a table", None, "its rows are not looked at: give the public bound")
        if bound is None:
            assert isinstance(rows, np.ndarray)
            bound, leaks = widest("x_bound", rows[:, :-1]), ("x_bound",)
        if isinstance(bound, Mapping):
            names = self._names()
            if set(bound) != set(names):
                raise invalid("x_bound", f"given for {', '.join(names)}", ", ".join(map(str, bound)), "name each once")
            bound = [bound[name] for name in names]
        return tuple((float(low), float(high)) for low, high in intervals("x_bound", bound, d)), leaks

    def _table(self, table: Table, target: Any) -> Table:
        """The table's features, then its target."""
        if not isinstance(target, str) or target not in table.columns or len(table.columns) < 2:
            bound = f"the name of one of several columns, {', '.join(table.columns)}"
            raise invalid("y", bound, repr(target), "name the target column")
        names = [name for name in table.columns if name != target]
        self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
        return table.select([*names, target])

    def _names(self) -> list[str]:
        """The columns' names, or x0, x1, .. where the data had none."""
        numbered = [f"x{j}" for j in range(self.n_features_in_)]
        return [str(name) for name in getattr(self, "feature_names_in_", numbered)]

    def _new_rows(self, X: Any) -> Floats:
        check_is_fitted(self)
        return new_rows(self, X)

    def _expected(self, X: Any) -> Floats:
        """Of y = 1 the probability, of a count the rate, averaged over the posterior."""
        rows = self._new_rows(X)
        return self.posterior_.expected(rows)

    def summary(self, level: float = 0.9) -> Summary:
        """A table of the coefficients: mean, deviation, interval, probability of being positive."""
        check_is_fitted(self)
        return Summary(tuple(table_of(self.posterior_, self._names(), level)), level, note_on(self.privacy_))

    def to_arviz(self) -> Any:
        """The posterior draws for ArviZ (needs the package arviz): `beta` and `intercept`."""
        check_is_fitted(self)
        found = to_arviz(self.posterior_.linear, self._names())
        found["posterior"] = found["posterior"].drop_vars("sigma")
        return found

    def __getstate__(self) -> Any:
        """An unfitted model takes the ledger of an enclosing `with` block along, as PrivateLinearRegression does."""
        state = super().__getstate__()
        if not hasattr(self, "result_") and self.ledger is None and current_ledger() is not None:
            state = {**state, "ledger": current_ledger()}
        return state

    def __sklearn_tags__(self) -> Any:
        """The fit is random, and accuracy depends on the budget."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags


class PrivateGLM(RegressorMixin, GLMEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A Bayesian generalised linear model from noisy sums over clients, with an intercept.

    Parameters
    ----------
    family : "bernoulli" (y is 0 or 1, logistic regression), "probit", or "poisson" (counts, log link).
    budget : what one fit may spend; default (epsilon=1, delta=1e-5).
    x_bound : public bounds. A number c means |x_j| <= c, a pair (low, high) an interval; also a list with one of
        these per column, or a dict by column name. A row that lies beyond them is not clipped, but counts less. Left
        out, they are taken from the data with a PrivacyLeakWarning.
    y_bound : of counts, a number B: about how large they get. It tells the first round where to look, and a count
        beyond it is no error. Left out, it is taken from the data with a PrivacyLeakWarning.
    engine : where the roles run; default LocalEngine(computes=3).
    ledger : a total budget that every fit charges; default the one of an enclosing `with Ledger(...)`.
    prior_scale, prior_mean : beta_j ~ N(prior_mean, prior_scale^2) in the units of the data, a number or one per
        column; without prior_scale the prior's width is learned.
    draws : how many draws from the posterior.
    mechanism : the law of the noise, or its name; by default the engine's. Its amount follows from the budget.

    Attributes
    ----------
    posterior_ : GLMPosterior.   privacy_ : PrivacyReport.   coef_, intercept_ : posterior means.
    result_ : GLMResult, which makes posteriors under other priors for free (`sampled`).

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

    def fit(self, X: Any, y: Any) -> PrivateGLM:
        """Run the private rounds over the rows (one client each) and form the posterior.

        X can be a table that stays where it is, such as a SparkTable, and y the name of its target column. Arrays that
        are not finite, and values of y that the family does not know, are refused: whoever sees that a fit failed
        learns that.
        """
        self._check_options()
        if self.family not in FAMILIES:
            raise invalid("family", f"one of {', '.join(FAMILIES)}", repr(self.family)[:80], "use 'bernoulli'")
        rows = self._table(X, y) if isinstance(X, Table) else self._rows(X, y)
        y_bound, leaks = self._y_range(rows)
        self._fitted(rows, self.family, y_bound, leaks)
        self.coef_, self.intercept_ = self.posterior_.mean, self.posterior_.intercept
        return self

    def predict(self, X: Any) -> Any:
        """The expected y of each row, averaged over the posterior: a probability, or a rate of counts."""
        return self._expected(X)

    def predict_interval(self, X: Any, level: float = 0.9) -> Any:
        """(n, 2): intervals that hold the expected y of each row with this probability."""
        rows = self._new_rows(X)
        return self.posterior_.expected_interval(rows, level)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 on these rows. Computed from them as they are, so outside the privacy guarantee."""
        warn_of_score()
        return float(super().score(X, y, sample_weight))

    def _rows(self, X: Any, y: Any) -> Floats:
        X, y = checked(self, X, y, y_numeric=True, ensure_min_samples=2)
        X, y = finite_rows("X", X), finite_rows("y", np.asarray(y, dtype=np.float64).reshape(-1, 1))
        check_outcomes(self.family, y[:, 0])
        return np.hstack([X, y])

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

    @property
    def family(self) -> str:  # type: ignore[override]  # no parameter here
        """Always "poisson"."""
        return "poisson"


def check_outcomes(family: str, y: Floats) -> None:
    """Refuse values that the family does not know, without a word of which they are."""
    if FAMILIES[family].responses[-1].inside(y).all():
        return  # were outcomes of one kind refused, one row would decide whether a fit fails
    bound = "0 or 1" if FAMILIES[family].yes_no else "a whole number >= 0"
    raise InvalidInput(f"y must be {bound} for the family {family}, got other values; correct or drop such rows")


def warn_of_score() -> None:
    """Say that a score leaks."""
    warnings.warn(
        "score is computed from the rows as they are: it is not private, nor is a setting chosen by it; "
        "use public rows, or keep it to yourself",
        PrivacyLeakWarning,
        stacklevel=3,
    )
