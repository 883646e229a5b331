"""What every result with draws of latent sites offers: a table and predictions."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from hubbub.analyses.iterative.report import TrainingReport
from hubbub.analyses.iterative.row_model import RowModel
from hubbub.analyses.iterative.stored import StoredFit, StoredReport
from hubbub.arrays import Floats
from hubbub.errors import InvalidInput
from hubbub.protocols import Result


class SampledResult(Result):
    """A posterior of a model's latent sites that can be drawn from."""

    privacy: TrainingReport | StoredReport

    @property
    @abstractmethod
    def rows(self) -> RowModel:
        """The model."""

    @abstractmethod
    def sample(self, draws: int = 1000, *, seed: int = 0) -> dict[str, Floats]:
        """Draws of the latent sites, by name."""

    def _sites(self) -> dict[str, Any]:
        """For a file: how rows are cut, and the latent sites with the shape of each."""
        sites = {name: list(np.shape(value)) for name, value in self.rows.values(self.rows.start).items()}
        return {"rows": self.rows.shape.parts, "sites": sites}

    def _check_sites(self, stored: StoredFit) -> None:
        """Refuse a model that is not the one of the file."""
        mine, theirs = self._sites()["sites"], stored.found.get("sites")
        if mine != theirs:
            raise InvalidInput(
                f"model must be the one that was fitted, with sites {str(theirs)[:150]}, got one with sites "
                f"{str(mine)[:150]}; give that model and the public keywords of the fit"
            )

    def table(self, level: float = 0.9) -> list[dict[str, Any]]:
        """The latent sites: mean, deviation, interval, probability of being positive."""
        rows: list[dict[str, Any]] = []
        for name, values in self.sample(4000).items():
            flat = values.reshape(values.shape[0], -1)
            labels = [name] if flat.shape[1] == 1 else [f"{name}[{j}]" for j in range(flat.shape[1])]
            low, high = np.quantile(flat, [(1 - level) / 2, (1 + level) / 2], axis=0)
            rows += [
                {"name": label, "mean": float(flat[:, j].mean()), "std": float(flat[:, j].std()),
                 "low": float(low[j]), "high": float(high[j]), "positive": float(np.mean(flat[:, j] > 0))}
                for j, label in enumerate(labels)
            ]  # fmt: skip
        return rows

    def notes(self) -> list[str]:
        """Lines for people: what the intervals count and what they leave out."""
        return []

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        rows = {row["name"]: {key: value for key, value in row.items() if key != "name"} for row in self.table()}
        return {"sites": rows, "intervals": "90 %", "n": self.privacy.samples}

    def predictions(self, *args: Any, draws: int = 500, seed: int = 0, **public: Any) -> dict[str, Floats]:
        """Draws of the sites that the model observes, for new rows: `predictions(X)` calls `model(X)`."""
        import jax
        from numpyro.infer import Predictive

        rows = [np.asarray(arg) for arg in args]
        predictive = Predictive(self.rows.model, self.sample(draws, seed=seed))
        try:
            found = predictive(jax.random.PRNGKey(seed), *rows, **public)
        except (ValueError, TypeError, IndexError) as error:
            shapes = ", ".join(str(each.shape) for each in rows)
            raise InvalidInput(
                f"rows must be ones that the model takes, got shapes {shapes}: {str(error).splitlines()[0][:150]}; "
                "give the columns of fit, and no more rows at once than the model's plate has"
            ) from None
        return {name: np.asarray(values) for name, values in found.items()}
