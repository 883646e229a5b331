"""PrivateGaussianMixture: a mixture of normal distributions behind scikit-learn's interface."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

from hubbub.analyses.iterative.expected import named_columns
from hubbub.analyses.iterative.mixture import GaussianMixture, MixtureResult
from hubbub.analyses.iterative.plan import Batches
from hubbub.analyses.summary import Summary
from hubbub.arrays import finite_rows
from hubbub.estimators.arrays import checked, new_rows
from hubbub.estimators.options import Tick, TrainingEstimator, note_of
from hubbub.privacy import Budget, Ledger
from hubbub.protocols import Engine


class PrivateGaussianMixture(TrainingEstimator):
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

    kind = "mixture"
    own = ("components", "x_norm")

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
        self.components = components
        self.budget = budget
        self.x_norm = x_norm
        self.batch = batch
        self.steps = steps
        self.engine = engine
        self.selection = selection
        self.ledger = ledger
        self.noise_multiplier = noise_multiplier
        self.seed = seed
        self.tick = tick

    def fit(self, X: Any, y: Any = None) -> PrivateGaussianMixture:
        """Run all steps over the rows (one client each); `y` is there for pipelines and is not looked at."""
        schedule = self._schedule()
        rows = finite_rows("X", checked(self, X, ensure_min_samples=2))
        analysis = GaussianMixture(self._names(rows.shape[1]), self.components, self.x_norm, **schedule)
        return self._with(self._result_of(analysis, rows))

    def predict(self, X: Any) -> Any:
        """The most probable component of each row."""
        return self._fitted().nearest(new_rows(self, X))

    def summary(self, level: float = 0.9) -> Summary:
        """A table of weights, means and variances: mean, deviation, interval."""
        rows = tuple({**row, "positive": None} for row in self._fitted().table(level))
        return Summary(rows, level, note_of(self.privacy_))

    def save(self, path: str | PathLike[str]) -> None:
        """Write what was found, the settings and the privacy report to a JSON file."""
        found = self._fitted()
        names, values = ("weights", "means", "variances"), (found.weights, found.means, found.variances)
        deviations = {f"{name}_std": value for name, value in zip(names, found.deviations, strict=True)}
        self._write(path, {"features": found.features, **dict(zip(names, values, strict=True)), **deviations})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """The fitted estimator in such a file."""
        model, stored = cls._read(path)
        features = stored.checked(lambda: named_columns(stored.found["features"]))
        weights = stored.array("weights", None, least=0)
        shape = (weights.size, len(features))
        deviations = (
            stored.array("weights_std", weights.size, least=0),
            stored.array("means_std", *shape, least=0),
            stored.array("variances_std", *shape, least=0),
        )
        means, variances = stored.array("means", *shape), stored.array("variances", *shape, least=0)
        found = MixtureResult(features, weights, means, variances, deviations, stored.report)
        model._named(features)
        return model._with(found)  # type: ignore[no-any-return]

    def _with(self, found: MixtureResult) -> Self:
        self.result_, self.privacy_ = found, found.privacy
        self.weights_, self.means_, self.variances_ = found.weights, found.means, found.variances
        return self

    def __sklearn_tags__(self) -> Any:
        """The fit is random."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags
