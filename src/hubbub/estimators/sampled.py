"""What every estimator with draws of latent sites offers: a table, ArviZ, predictions."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from hubbub.analyses.exported import inference_data
from hubbub.analyses.summary import Summary
from hubbub.arrays import Floats
from hubbub.estimators.options import TrainingEstimator, note_of


class SampledEstimator(TrainingEstimator):
    """An estimator whose fitted posterior can be drawn from."""

    @abstractmethod
    def sample(self, draws: int = 1000, *, seed: int = 0) -> dict[str, Floats]:
        """Draws of the latent sites, by name."""

    def summary(self, level: float = 0.9) -> Summary:
        """A table of the latent sites: mean, deviation, interval, probability of being positive."""
        found = self._fitted()
        return Summary(tuple(found.table(level)), level, "\n".join([note_of(found.privacy), *found.notes()]))

    def predict(self, *args: Any, draws: int = 500, seed: int = 0, **public: Any) -> dict[str, Floats]:
        """Draws of the sites that the model observes in fit, for new rows: `predict(X)` calls `model(X)`."""
        return self._fitted().predictions(*args, draws=draws, seed=seed, **public)  # type: ignore[no-any-return]

    def to_arviz(self, *args: Any, draws: int = 1000, **public: Any) -> Any:
        """Posterior draws for ArviZ, with predictions for new rows where given, and the privacy report."""
        groups = {"posterior": {name: values[None] for name, values in self.sample(draws).items()}}
        if args:
            found = self.predict(*args, draws=min(draws, 500), **public)
            groups["posterior_predictive"] = {name: values[None] for name, values in found.items()}
        return inference_data(groups, self._fitted().privacy)
