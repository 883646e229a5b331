"""PrivateGaussianMixture: a mixture of normal distributions behind scikit-learn's interface."""

from __future__ import annotations

from typing import Any

from hubbub.analyses.iterative.mixture import MOST_COMPONENTS, GaussianMixture, MixtureResult
from hubbub.analyses.iterative.plan import Batches
from hubbub.analyses.iterative.report import TrainingReport
from hubbub.arrays import finite_rows
from hubbub.errors import whole
from hubbub.estimators.options import Tick, TrainingOptions, fitted
from hubbub.privacy import Budget, Ledger
from hubbub.protocols import Engine
from hubbub.statistics.bounds import positive


class PrivateGaussianMixture:
    """A mixture of normal distributions with diagonal covariances, by variational Bayes.

    Parameters
    ----------
    components : how many. Those that the data do not need stay almost empty.
    x_norm : public bound of the length of a row; longer ones are shortened.
    budget, batch, steps, engine, selection, ledger, noise_multiplier, seed, tick : as in PrivateSVI; the seed also
        says where the components start.

    Attributes
    ----------
    weights_, means_, variances_ : posterior means, components by falling weight.   privacy_ : TrainingReport.
    result_ : MixtureResult, which holds all of these and their standard deviations.
    """

    def __init__(
        self,
        components: int = 2,
        budget: Budget | None = None,
        x_norm: float = 3.0,
        batch: int | None = None,
        steps: int = 30,
        engine: Engine | None = None,
        *,
        selection: Batches = "self",
        ledger: Ledger | None = None,
        noise_multiplier: float | None = None,
        seed: int | None = None,
        tick: Tick | None = None,
    ) -> None:
        self.components = whole("components", components, 1, "give how many groups there may be", most=MOST_COMPONENTS)
        self.x_norm = positive("x_norm", x_norm)
        self.options = TrainingOptions(budget, steps, batch, selection, engine, ledger, noise_multiplier, seed, tick)
        self.result_: MixtureResult | None = None
        self.privacy_: TrainingReport | None = None

    def fit(self, X: Any) -> PrivateGaussianMixture:
        """Run all steps over the rows (one client each)."""
        rows = finite_rows("X", X)
        names = tuple(f"x{j}" for j in range(rows.shape[1]))
        analysis = GaussianMixture(names, self.components, self.x_norm, **self.options.schedule())
        self.result_ = found = self.options.result_of(analysis, rows)
        self.weights_, self.means_, self.variances_ = found.weights, found.means, found.variances
        self.privacy_ = found.privacy
        return self

    def predict(self, X: Any) -> Any:
        """The most probable component of each row."""
        return fitted(self.result_, "PrivateGaussianMixture").nearest(X)
