"""PrivateLinearRegression: the models behind scikit-learn's interface."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hubbub.arrays import Floats, finite_rows
from hubbub.engines import LocalEngine
from hubbub.errors import InvalidInput, PrivacyLeakWarning, invalid
from hubbub.models.linear_regression import DEVIATIONS_SHARE, Fit, fit_plain, fit_projected, normal_posterior
from hubbub.models.posterior import NormalPosterior
from hubbub.models.rounds import Engine
from hubbub.privacy import Budget, Ledger, PrivacyReport, current_ledger, split
from hubbub.statistics import Box

Method = Literal["projected", "plain"]
PosteriorKind = Literal["regularised", "plugin"]

DEFAULT_BUDGET = Budget(epsilon=1.0, delta=1e-5)


class PrivateLinearRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Bayesian linear regression from one noisy sum (method "plain") or two ("projected", Algorithm 2).

    Parameters
    ----------
    budget : what one fit may spend; default (epsilon=1, delta=1e-5).
    x_bound, y_bound : public bounds, |x_j| <= x_bound (one number or one per column), |y| <= y_bound.
        Data outside is clipped. Left out, they are taken from the data with a PrivacyLeakWarning.
    method : "projected" estimates the columns' deviations first and clips more tightly; "plain" does not.
    posterior : "regularised" (ridge from the known noise level) or "plugin" (the paper's).
    engine : where the roles run; default LocalEngine(computes=3).
    ledger : a total budget that every fit charges; default the one of an enclosing `with Ledger(...)`.
    prior_precision, noise_precision : of beta ~ N(0, I/prior_precision), y ~ N(x'beta, 1/noise_precision).

    The columns and the target are taken to be centred: there is no intercept. The posterior treats the noisy sums
    as exact, so its intervals are too narrow where the noise is large.

    Attributes
    ----------
    posterior_ : posterior of the coefficients.   privacy_ : PrivacyReport.   coef_ : posterior mean.
    fit_ : the released sums, free to be used again.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        x_bound: float | Sequence[float] | None = None,
        y_bound: float | None = None,
        method: Method = "projected",
        posterior: PosteriorKind = "regularised",
        engine: Engine | None = None,
        ledger: Ledger | None = None,
        prior_precision: float = 1.0,
        noise_precision: float = 1.0,
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

    def fit(self, X: Any, y: Any) -> PrivateLinearRegression:
        """Run the private rounds over the rows (one client each) and form the posterior."""
        budget = self._checked_budget()
        rows = self._rows(X, y)
        bound, caveats = self._bound(rows)
        self.fit_ = self._run(rows, bound, budget)
        self.privacy_ = PrivacyReport(budget, self.fit_.rounds, caveats)
        self.posterior_: NormalPosterior = normal_posterior(
            self.fit_.gram,
            noise_std=self.fit_.noise_std,
            prior_precision=self.prior_precision,
            noise_precision=self.noise_precision,
            repair="ridge" if self.posterior == "regularised" else "flip",
        )
        self.coef_ = self.posterior_.mean
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Posterior predictive mean, with `return_std` also the standard deviation."""
        check_is_fitted(self)
        X = finite_rows("X", validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False))
        mean, std = self.posterior_.predict(X, self.noise_precision)
        return (mean, std) if return_std else mean

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 on these rows. Computed from them as they are, so outside the privacy guarantee."""
        warnings.warn(
            "score is computed from the rows as they are: it is not private, nor is a setting chosen by it; "
            "use public rows, or keep it to yourself",
            PrivacyLeakWarning,
            stacklevel=2,
        )
        return float(super().score(X, y, sample_weight))

    def __getstate__(self) -> Any:
        """In another process the ledger of an enclosing `with` block is charged too, or the pickle is refused."""
        state = super().__getstate__()
        if not hasattr(self, "fit_") and self.ledger is None and current_ledger() is not None:
            state = {**state, "ledger": current_ledger()}
        return state

    def _run(self, rows: Floats, bound: Box, budget: Budget) -> Fit:
        engine = LocalEngine(computes=3) if self.engine is None else self.engine
        ledger = current_ledger() if self.ledger is None else self.ledger
        if self.method == "plain":
            return fit_plain(rows, bound, split(budget, [1.0])[0], engine, ledger=ledger)
        return fit_projected(
            rows,
            bound,
            split(budget, [DEVIATIONS_SHARE, 1 - DEVIATIONS_SHARE]),
            engine,
            tolerated=getattr(engine, "tolerated", 0),
            ledger=ledger,
            prior_precision=self.prior_precision,
            noise_precision=self.noise_precision,
        )

    def _checked_budget(self) -> Budget:
        """Refuse what is wrong in the parameters before any data is looked at."""
        for field, allowed in (("method", ("projected", "plain")), ("posterior", ("regularised", "plugin"))):
            if getattr(self, field) not in allowed:
                raise invalid(field, f"one of {', '.join(allowed)}", repr(getattr(self, field)), f"use {allowed[0]!r}")
        for field in ("prior_precision", "noise_precision"):
            value = getattr(self, field)
            if not isinstance(value, int | float | np.number) or not (np.isfinite(value) and value > 0):
                raise invalid(field, "positive and finite", repr(value), "1.0 is the paper's choice")
        if self.ledger is not None and not isinstance(self.ledger, Ledger):
            raise invalid("ledger", "a Ledger", repr(self.ledger), "use Ledger(budget, path='ledger.json')")
        if self.engine is not None and (isinstance(self.engine, type) or not hasattr(self.engine, "private_sum")):
            raise invalid("engine", "an engine", repr(self.engine), "use LocalEngine(computes=3)")
        budget = DEFAULT_BUDGET if self.budget is None else self.budget
        if not isinstance(budget, Budget):
            raise invalid("budget", "a Budget", repr(budget), "use Budget(epsilon=1.0, delta=1e-5)")
        return budget

    def _rows(self, X: Any, y: Any) -> Floats:
        column = _numbers(y)
        if y is not None and column is not None:
            finite_rows("y", column[:, None])
        X, y = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, ensure_all_finite=False, ensure_min_samples=2
        )
        X, y = finite_rows("X", X), np.asarray(y, dtype=np.float64)[:, None]
        constant = np.flatnonzero(np.ptp(X, axis=0) == 0)
        if constant.size:
            raise InvalidInput(f"X must have no constant column, got one value throughout X[:, {constant[0]}]; drop it")
        return np.hstack([X, y])

    def _bound(self, rows: Floats) -> tuple[Box, tuple[str, ...]]:
        """The public bounds, or bounds read off the data with a warning."""
        d = rows.shape[1] - 1
        leaks = [field for field in ("x_bound", "y_bound") if getattr(self, field) is None]
        for field in leaks:
            warnings.warn(
                f"{field} was taken from the data, which reveals something about it; pass the public bound",
                PrivacyLeakWarning,
                stacklevel=3,
            )
        widest = np.abs(rows).max(axis=0)
        try:
            x = widest[:-1] if self.x_bound is None else np.asarray(self.x_bound, dtype=float)
        except (TypeError, ValueError):
            raise invalid(
                "x_bound", "one number or one per column", repr(self.x_bound), "give for example 7.5"
            ) from None
        if x.ndim > 1 or (x.ndim == 1 and x.size != d):
            raise invalid("x_bound", f"one number or {d} of them", f"{x.size} numbers", "give one per column of X")
        y = (widest[-1] or 1.0) if self.y_bound is None else self.y_bound
        caveats = tuple(f"{field} was taken from the data" for field in leaks)
        return Box(tuple(np.broadcast_to(x, d).tolist()), y), caveats

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
