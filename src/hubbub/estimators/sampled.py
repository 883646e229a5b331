"""What every estimator with draws of latent sites offers: a table, ArviZ, predictions."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from hubbub.analyses.summary import Summary
from hubbub.arrays import Floats
from hubbub.errors import InvalidInput
from hubbub.estimators.options import fitted, note_of

if TYPE_CHECKING:
    from hubbub.analyses.iterative.report import TrainingReport
    from hubbub.analyses.iterative.sampled import SampledResult


class SampledEstimator(ABC):
    """An estimator whose fitted posterior can be drawn from."""

    privacy_: TrainingReport | None = None

    @abstractmethod
    def sample(self, draws: int = 1000, *, seed: int = 0) -> dict[str, Floats]:
        """Draws of the latent sites, by name."""

    @property
    @abstractmethod
    def _result(self) -> SampledResult | None:
        """What the last fit has found."""

    def summary(self, level: float = 0.9) -> Summary:
        """A table of the latent sites: mean, deviation, interval, probability of being positive."""
        found = self._found()
        return Summary(tuple(found.table(level)), level, note_of(found.privacy))

    def predict(self, *args: Any, draws: int = 500, seed: int = 0, **public: Any) -> dict[str, Floats]:
        """Draws of the sites that the model observes in fit, for new rows: `predict(X)` calls `model(X)`."""
        return self._found().predictions(*args, draws=draws, seed=seed, **public)

    def to_arviz(self, *args: Any, draws: int = 1000, **public: Any) -> Any:
        """Posterior draws for ArviZ, with predictions for new rows where given, and the privacy report."""
        try:
            import arviz
        except ImportError:
            raise InvalidInput("to_arviz needs the package arviz, got none; run: pip install 'hubbub[arviz]'") from None
        report = self._found().privacy
        groups = {"posterior": {name: values[None] for name, values in self.sample(draws).items()}}
        if args:
            found = self.predict(*args, draws=min(draws, 500), **public)
            groups["posterior_predictive"] = {name: values[None] for name, values in found.items()}
        attributes = {"privacy_report": json.dumps(report.as_dict()), "inference_library": "hubbub"}
        if int(arviz.__version__.split(".")[0]) >= 1:
            return arviz.from_dict(groups, attrs=dict.fromkeys(groups, attributes))
        named = {f"{group}_attrs": attributes for group in groups}
        return arviz.from_dict(**groups, **named, attrs=attributes)  # type: ignore[arg-type]  # its groups are keywords

    def _found(self) -> SampledResult:
        return fitted(self._result, type(self).__name__)
