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
from hubbub.models.repair import Repair
from hubbub.models.rounds import Engine
from hubbub.models.scaled import SHARES, ScaledFit, fit_scaled
from hubbub.models.shrinkage import in_original_units, shrinkage_posterior
from hubbub.privacy import Budget, Ledger, PrivacyReport, current_ledger, split
from hubbub.statistics import Box

Method = Literal["auto", "projected", "plain"]
PosteriorKind = Literal["auto", "shrinkage", "regularised", "plugin"]

POSTERIORS: dict[str, tuple[str, ...]] = {
    "auto": ("shrinkage",),
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
    x_bound, y_bound : public bounds, |x_j| <= x_bound (one number or one per column), |y| <= y_bound.
        Left out, they are taken from the data with a PrivacyLeakWarning.
    method : "auto" estimates the columns' scales first and sums scaled rows in a ball (two rounds); "projected" is
        the paper's Algorithm 2 (two rounds); "plain" clips to the bounds (one round).
    posterior : "auto" is "shrinkage" for the method "auto", which knows about the noise and learns the residual
        variance and the prior's width, and "regularised" (a ridge from the noise level) for the others, which can
        also have "plugin" (the paper's). These two treat the noisy sums as exact: their intervals are too narrow.
    engine : where the roles run; default LocalEngine(computes=3).
    ledger : a total budget that every fit charges; default the one of an enclosing `with Ledger(...)`.
    prior_precision, noise_precision : of beta ~ N(0, I/prior_precision), y ~ N(x'beta, 1/noise_precision), for the
        methods "projected" and "plain".

    The columns and the target are taken to be centred: there is no intercept.

    Attributes
    ----------
    posterior_ : posterior of the coefficients.   privacy_ : PrivacyReport.   coef_ : posterior mean.
    residual_variance_ : of y, learned or assumed.   fit_ : the released sums, free to be used again.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        x_bound: float | Sequence[float] | None = None,
        y_bound: float | None = None,
        method: Method = "auto",
        posterior: PosteriorKind = "auto",
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
        engine = LocalEngine(computes=3) if self.engine is None else self.engine
        ledger = current_ledger() if self.ledger is None else self.ledger
        if self.method == "auto":
            self._fit_scaled(rows, bound, budget, engine, ledger)
        else:
            self._fit_box(rows, bound, budget, engine, ledger)
        self.privacy_ = PrivacyReport(budget, self.fit_.rounds, caveats)
        self.coef_ = self.posterior_.mean
        return self

    def _fit_scaled(self, rows: Floats, bound: Box, budget: Budget, engine: Engine, ledger: Ledger | None) -> None:
        self.fit_: Fit | ScaledFit = fit_scaled(rows, bound, split(budget, SHARES), engine, ledger=ledger)
        scaled = in_original_units(shrinkage_posterior(self.fit_.gram), self.fit_.gram, self.fit_.scales)
        self.posterior_: NormalPosterior = scaled.coefficients
        self.residual_variance_ = scaled.residual_variance

    def _fit_box(self, rows: Floats, bound: Box, budget: Budget, engine: Engine, ledger: Ledger | None) -> None:
        prior, noise = self.prior_precision, self.noise_precision
        if self.method == "plain":
            fit = fit_plain(rows, bound, split(budget, [1.0])[0], engine, ledger=ledger)
        else:
            fit = fit_projected(
                rows,
                bound,
                split(budget, [DEVIATIONS_SHARE, 1 - DEVIATIONS_SHARE]),
                engine,
                tolerated=getattr(engine, "tolerated", 0),
                ledger=ledger,
                prior_precision=prior,
                noise_precision=noise,
            )
        repair: Repair = "flip" if self.posterior == "plugin" else "ridge"
        self.fit_ = fit
        self.posterior_ = normal_posterior(
            fit.gram, noise_std=fit.noise_std, repair=repair, prior_precision=prior, noise_precision=noise
        )
        self.residual_variance_ = 1 / noise

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Posterior predictive mean, with `return_std` also the standard deviation."""
        check_is_fitted(self)
        X = finite_rows("X", validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False))
        mean, std = self.posterior_.predict(X, 1 / self.residual_variance_)
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

    def _checked_budget(self) -> Budget:
        """Refuse what is wrong in the parameters before any data is looked at."""
        if self.method not in POSTERIORS:
            raise invalid("method", f"one of {', '.join(POSTERIORS)}", repr(self.method), "use 'auto'")
        if self.posterior not in ("auto", *POSTERIORS[self.method]):
            allowed = ", ".join(("auto", *POSTERIORS[self.method]))
            bound = f"one of {allowed} for method {self.method!r}"
            raise invalid("posterior", bound, repr(self.posterior), "use 'auto'")
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
