"""What all estimators of generalised linear models share, from bounds that are checked to a posterior that is shown."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hubbub.analyses.driver import run
from hubbub.analyses.exported import glm_groups, inference_data
from hubbub.analyses.glm.analysis import GLM
from hubbub.analyses.glm.families import FAMILIES
from hubbub.analyses.glm.offset import Offset
from hubbub.analyses.glm.posterior import GLMPosterior
from hubbub.analyses.glm.release import GLMRelease
from hubbub.analyses.glm.result import GLMResult
from hubbub.analyses.glm.stored import StoredGLM, table_of
from hubbub.analyses.linear.release import checked_prior
from hubbub.analyses.summary import Summary, note_on
from hubbub.arrays import Floats
from hubbub.engines import LocalEngine
from hubbub.errors import InvalidInput, PrivacyLeakWarning, invalid
from hubbub.estimators.arrays import arviz_rows, new_rows, number_column, widest
from hubbub.estimators.intervals import intervals
from hubbub.estimators.linear_regression import DEFAULT_BUDGET
from hubbub.privacy import Budget, Ledger, PrivacyReport, current_ledger
from hubbub.protocols import Engine, Mechanism, Table


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

    def _fitted(
        self,
        rows: Floats | Table,
        family: str,
        y_bound: tuple[float, float],
        leaks: tuple[str, ...],
        offset: Offset | None = None,
    ) -> Any:
        """Run the private rounds over rows with the target last, the offset before it, and form the posterior."""
        checked_prior(self.n_features_in_, self.prior_scale, self.prior_mean, "noise-aware", self.draws)
        x_bound, leaked = self._x_ranges(rows)
        leaks = (*leaked, *leaks)
        for field in leaks:
            warnings.warn(
                f"{field} was taken from the data, which reveals something about it; pass the public value",
                PrivacyLeakWarning,
                stacklevel=3,
            )
        names = tuple(self._names())
        analysis = GLM(names, "y" if "y" not in names else "target", y_bound, x_bound, family, offset)
        engine = self.engine or (rows.engine() if isinstance(rows, Table) else LocalEngine(computes=3))
        budget = DEFAULT_BUDGET if self.budget is None else self.budget
        result = run(analysis, rows, engine, budget, self.ledger, mechanism=self.mechanism)
        self.result_: GLMResult = result.with_caveats(tuple(f"{field} was taken from the data" for field in leaks))
        self.privacy_: PrivacyReport = self.result_.privacy
        self.release_: GLMRelease = self.result_.release
        self.posterior_: GLMPosterior = self.release_.posterior(
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
        d, bound, leaks = self.n_features_in_, self.x_bound, tuple[str, ...]()
        if bound is None and isinstance(rows, Table):
            raise invalid("x_bound", "given for a table", None, "its rows are not looked at: give the public bound")
        if bound is None:
            assert isinstance(rows, np.ndarray)
            bound, leaks = widest("x_bound", rows[:, :d]), ("x_bound",)
        found = intervals("x_bound", bound, d, self._names())
        return tuple((float(low), float(high)) for low, high in found), leaks

    def _table(self, table: Table, target: Any, **more: Any) -> Table:
        """The table's features, then further columns, then its target."""
        others = {"y": target, **more}
        for field, name in others.items():
            if not isinstance(name, str) or name not in table.columns or len(table.columns) <= len(others):
                bound = f"the name of one of several columns, {', '.join(table.columns)}"
                raise invalid(field, bound, repr(name)[:80], "name the column")
        names = [name for name in table.columns if name not in others.values()]
        self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
        return table.select([*names, *more.values(), target])

    def _names(self) -> list[str]:
        """The columns' names, or x0, x1, .. where the data had none."""
        numbered = [f"x{j}" for j in range(self.n_features_in_)]
        return [str(name) for name in getattr(self, "feature_names_in_", numbered)]

    def _new_rows(self, X: Any) -> Floats:
        check_is_fitted(self)
        return new_rows(self, X)

    def _expected(self, X: Any) -> Floats:
        """Of y = 1 the probability, averaged over the posterior."""
        rows = self._new_rows(X)
        return self.posterior_.expected(rows)

    def stored(self, names: Sequence[str], target: str) -> StoredGLM:
        """What `hubbub predict` needs, under these names of columns; `save` writes it to a file."""
        check_is_fitted(self)
        return replace(self.release_, names=tuple(names), target=target).stored(self.posterior_)

    def sample_predictive(self, X: Any, size: int = 1000, seed: int | None = None) -> Any:
        """(size, n) draws of y from the posterior predictive."""
        rows = self._new_rows(X)
        return self.posterior_.predictive(rows, size, seed)

    def summary(self, level: float = 0.9) -> Summary:
        """A table of the coefficients: mean, deviation, interval, probability of being positive."""
        check_is_fitted(self)
        return Summary(tuple(table_of(self.posterior_, self._names(), level)), level, note_on(self.privacy_))

    def to_arviz(self, X: Any = None, y: Any = None, *, seed: int | None = 0) -> Any:
        """The posterior for ArviZ (needs the package arviz): chains of `beta`, `intercept` and any `dispersion`.

        With rows X also `y` drawn for them (posterior_predictive), and with their y also log_likelihood and
        observed_data, for `az.plot_ppc` and `az.loo`. These are computed from the rows as they are: of private rows
        they are outside the privacy guarantee, as their attributes say; with y a PrivacyLeakWarning says so, too.
        There two classes are 0 and 1.
        """
        return self._exported(X, y, seed)

    def _exported(self, X: Any, y: Any, seed: int | None, offset: Floats | float = 0.0) -> Any:
        check_is_fitted(self)
        rows, outcomes = arviz_rows(self, X, y, self._outcomes)
        return inference_data(glm_groups(self.posterior_, rows, outcomes, seed, offset), self.privacy_, self._names())

    def _outcomes(self, y: Any) -> Floats:
        """Checked, and two classes as 0 and 1."""
        outcomes = number_column(y)
        check_outcomes(self.posterior_.family, outcomes)
        return outcomes

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


def check_outcomes(family: str, y: Floats) -> None:
    """Refuse values that the family does not know, without a word of which they are."""
    if FAMILIES[family].responses[-1].inside(y).all():
        return  # were outcomes of one kind refused, one row would decide whether a fit fails
    raise InvalidInput(
        f"y must be {FAMILIES[family].domain} for the family {family}, got other values; correct or drop such rows"
    )
