"""What every estimator with draws of latent sites offers: a table, ArviZ, predictions."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.analyses.iterative.settings import checked_fit
from hubbub.arrays import Floats
from hubbub.errors import InvalidInput
from hubbub.estimators.summary import Summary

if TYPE_CHECKING:
    from hubbub.analyses.iterative.report import TrainingReport


class Draws(ABC):
    """A fitted posterior that can be sampled."""

    model: Any
    privacy_: TrainingReport | None

    @abstractmethod
    def sample(self, draws: int = 1000, *, seed: int = 0) -> dict[str, Floats]:
        """Draws of the latent sites, by name."""

    def summary(self, level: float = 0.9) -> Summary:
        """A table of the latent sites: mean, deviation, interval, probability of being positive."""
        report = self._report()
        rows = []
        for name, values in self.sample(4000).items():
            flat = values.reshape(values.shape[0], -1)
            labels = [name] if flat.shape[1] == 1 else [f"{name}[{j}]" for j in range(flat.shape[1])]
            low, high = np.quantile(flat, [(1 - level) / 2, (1 + level) / 2], axis=0)
            rows += [
                {"name": label, "mean": float(flat[:, j].mean()), "std": float(flat[:, j].std()),
                 "low": float(low[j]), "high": float(high[j]), "positive": float(np.mean(flat[:, j] > 0))}
                for j, label in enumerate(labels)
            ]  # fmt: skip
        kind = f"{report.budget}-differentially private" if report.is_guarantee else "NOT A GUARANTEE"
        return Summary(tuple(rows), level, f"n = {report.plan.clients}; {report.steps} steps; {kind}")

    def predict(self, *args: Any, draws: int = 500, seed: int = 0, **public: Any) -> dict[str, Floats]:
        """Draws of the sites that the model observes in fit, for new rows: `predict(X)` calls `model(X)`."""
        import jax
        from numpyro.infer import Predictive

        self._report()
        rows = [np.asarray(arg) for arg in args]
        predictive = Predictive(self.model, self.sample(draws, seed=seed))
        try:
            found = predictive(jax.random.PRNGKey(seed), *rows, **public)
        except (ValueError, TypeError, IndexError) as error:
            shapes = ", ".join(str(each.shape) for each in rows)
            raise InvalidInput(
                f"rows must be ones that the model takes, got shapes {shapes}: {str(error).splitlines()[0][:150]}; "
                "give the columns of fit, and no more rows at once than the model's plate has"
            ) from None
        return {name: np.asarray(values) for name, values in found.items()}

    def to_arviz(self, *args: Any, draws: int = 1000, **public: Any) -> Any:
        """Posterior draws for ArviZ, with predictions for new rows where given, and the privacy report."""
        try:
            import arviz
        except ImportError:
            raise InvalidInput("to_arviz needs the package arviz, got none; run: pip install 'hubbub[arviz]'") from None
        report = self._report()
        groups = {"posterior": {name: values[None] for name, values in self.sample(draws).items()}}
        if args:
            found = self.predict(*args, draws=min(draws, 500), **public)
            groups["posterior_predictive"] = {name: values[None] for name, values in found.items()}
        attributes = {"privacy_report": json.dumps(report.as_dict()), "inference_library": "hubbub"}
        if int(arviz.__version__.split(".")[0]) >= 1:
            return arviz.from_dict(groups, attrs=dict.fromkeys(groups, attributes))
        named = {f"{group}_attrs": attributes for group in groups}
        return arviz.from_dict(**groups, **named, attrs=attributes)  # type: ignore[arg-type]  # its groups are keywords

    def _report(self) -> TrainingReport:
        checked_fit(self.privacy_, type(self).__name__)
        assert self.privacy_ is not None
        return self.privacy_
