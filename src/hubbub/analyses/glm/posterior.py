"""The posterior of a generalised linear model: draws of coefficients and intercept, the noise of all steps counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from hubbub.analyses.glm.dispersion import Dispersion
from hubbub.analyses.glm.families import FAMILIES, Family
from hubbub.analyses.glm.laws import law_of
from hubbub.analyses.glm.look import Stepped
from hubbub.analyses.glm.target import KnownVariance
from hubbub.analyses.linear.noise_aware import Prior, centre_of
from hubbub.analyses.linear.sampler.chains import Effort, walks
from hubbub.analyses.linear.sampler.diagnostics import Diagnostics, diagnose
from hubbub.analyses.linear.sampler.noise_share import noise_share
from hubbub.analyses.linear.sampler.on_rows import on_rows
from hubbub.analyses.posterior import LinearPosterior
from hubbub.arrays import Floats
from hubbub.progress import watched

GAUSSIAN = "gaussian"
"""The family of a linear regression, which has an analysis of its own."""
_CELLS = 1 << 20  # numbers held at once while predictions are averaged over draws


@dataclass(frozen=True)
class GLMPosterior:
    """Draws of coefficients and intercept, in the units of the data, and what they say of y."""

    linear: LinearPosterior
    """The draws; its residual variance is 1 and means nothing here, but of the Gaussian family."""
    family: str
    dispersion: Dispersion | None = None
    """Of y beside its mean mu: the variance is mu + dispersion mu^2 of negative binomial counts, dispersion mu^2 of the
    gamma family, and the dispersion itself of the Gaussian. None where the family has none."""

    @classmethod
    def gaussian(cls, linear: LinearPosterior) -> GLMPosterior:
        """That of a linear regression, whose dispersion is the residual variance."""
        assert linear.draws is not None
        logs = np.log(linear.draws[:, -1])
        return cls(linear, GAUSSIAN, Dispersion(float(logs.mean()), float(logs.std())))

    @property
    def mean(self) -> Floats:
        """Of the coefficients."""
        return self.linear.mean

    @property
    def std(self) -> Floats:
        """Of the coefficients."""
        return self.linear.std

    @property
    def covariance(self) -> Floats:
        """Of the coefficients."""
        return self.linear.covariance

    @property
    def intercept(self) -> float:
        """Posterior mean of the intercept."""
        return self.linear.intercept

    @property
    def draws(self) -> Floats:
        """(k, d + 1): coefficients and, last, the intercept."""
        assert self.linear.draws is not None
        return self.linear.draws[:, :-1]

    @property
    def chains(self) -> Floats:
        """(chains, k, d + 1): draws of the same posterior with the sampler's chains kept apart."""
        assert self.linear.chains is not None
        return self.linear.chains[..., :-1]

    @property
    def diagnostics(self) -> Diagnostics:
        """Of the chains, for coefficients and intercept."""
        found = self.linear.diagnostics
        assert found is not None
        return Diagnostics(found.ess_bulk[:-1], found.r_hat[:-1])

    @property
    def noise_share(self) -> Floats | None:
        """(d + 1,): of the variance of coefficients and intercept the part that is there because of the noise."""
        return self.linear.noise_share

    @property
    def labels(self) -> list[str]:
        """The names of the coefficients."""
        return self.linear.labels

    def interval(self, level: float = 0.9) -> Floats:
        """(d, 2) central credible intervals of the coefficients."""
        return self.linear.interval(level)

    def intervals(self, level: float = 0.9) -> Floats:
        """(d + 1, 2): the same, with that of the intercept last."""
        return self.linear.intervals(level)

    def sample(self, size: int = 1, seed: int | None = None) -> Floats:
        """(size, d) draws of the coefficients."""
        return self.sample_all(size, seed)[:, :-1]

    def sample_all(self, size: int = 1, seed: int | None = None) -> Floats:
        """(size, d + 1) draws of coefficients and intercept."""
        return self.linear.sample_all(size, seed)[:, :-1]

    def linear_predictor(self, X: Floats, offset: Floats | float = 0.0) -> Floats:
        """Posterior mean of the linear predictor of these rows, with an offset for each or for all."""
        return np.asarray(X @ self.mean + self.intercept + offset)

    def expected(self, X: Floats, offset: Floats | float = 0.0) -> Floats:
        """The probability of y = 1, or the expected y, of these rows: averaged over the posterior."""
        if self.family == GAUSSIAN:
            return self.linear_predictor(X, offset)
        mean = FAMILIES[self.family].mean
        return self._averaged(X, offset, lambda eta: np.asarray(mean(eta).mean(axis=0)))

    def predictive(self, X: Floats, size: int = 1000, seed: int | None = None, offset: Floats | float = 0.0) -> Floats:
        """(size, n) draws of y for these rows."""
        rng, law = np.random.default_rng(seed), law_of(self.family)
        draws = self._on_rows[rng.integers(len(self._on_rows), size=size)]
        return law.drawn(rng, draws[:, :-1] @ X.T + draws[:, -1:] + offset, self.dispersions(rng, (size, 1)))

    def dispersions(self, rng: np.random.Generator, size: tuple[int, ...]) -> Floats:
        """Draws of the dispersion; ones where the family has none."""
        if self.dispersion is None:
            return np.ones(size)
        return np.exp(self.dispersion.log + self.dispersion.log_std * rng.standard_normal(size))

    @property
    def _on_rows(self) -> Floats:
        """(k, d + 1): the draws, as they predict for a row."""
        return self.draws if self.linear.on_rows is None else self.linear.on_rows

    def _repr_html_(self) -> str:
        return self.linear._repr_html_()

    def expected_interval(self, X: Floats, level: float = 0.9, offset: Floats | float = 0.0) -> Floats:
        """(n, 2) central credible intervals of the same."""
        ends = [(1 - level) / 2, (1 + level) / 2]
        mean = np.asarray if self.family == GAUSSIAN else FAMILIES[self.family].mean
        return self._averaged(X, offset, lambda eta: np.asarray(np.quantile(mean(eta), ends, axis=0).T))

    def _averaged(self, X: Floats, offset: Floats | float, what: Callable[[Floats], Floats]) -> Floats:
        """`what` of (draws, rows) linear predictors, in pieces, so that memory stays bounded."""
        rows, draws = np.column_stack([X, np.ones(len(X)), np.broadcast_to(offset, len(X))]), self._on_rows
        draws = np.column_stack([draws, np.ones(len(draws))])
        size = max(1, _CELLS // len(draws))
        parts = [rows[first : first + size] for first in range(0, len(X), size)] or [rows]
        return np.concatenate([what(draws @ part.T) for part in parts])


def sample_glm(
    stepped: Stepped,
    family: Family,
    prior: Prior | None = None,
    *,
    draws: int = 1000,
    seed: int | None = 0,
    names: tuple[str, ...] = (),
) -> GLMPosterior:
    """Draws of the coefficients, until chains agree or the longest effort is reached (`sampler/chains.py`)."""
    rng, target = np.random.default_rng(seed), KnownVariance(stepped, prior or Prior())
    effort = Effort.of(target.p)
    with threadpool_limits(1), watched("sampling") as advance:
        for walked in walks(rng, target, effort, effort.attempts(draws), advance):
            weights = np.exp(walked.draws.log_weight - walked.draws.log_weight.max())
            weights /= weights.sum()
            rows = walked.chains(weights)
            chains = _in_data_units(walked.draws.beta[rows.ravel()], stepped).reshape(*rows.shape, -1)
            if not diagnose(chains[..., :-1]).bad.any():
                break
    mean_S = np.einsum("k,kij->ij", weights, walked.draws.S)
    centre = centre_of(walked.draws, weights, mean_S)
    taken, chained = (walked.draws.taken(each) for each in (rng.choice(weights.size, draws, p=weights), rows.ravel()))
    found = _in_data_units(taken.beta, stepped)
    moved, chains_moved = (
        _in_data_units(on_rows(each.beta, each.S, mean_S, centre), stepped)[:, :-1] for each in (taken, chained)
    )
    chains_moved = chains_moved.reshape(*rows.shape, -1)
    if stepped.dispersion is not None:
        for drawn, on_row in ((found, moved), (chains, chains_moved)):
            off = stepped.dispersion.of_intercept(rng, drawn.shape[:-1])
            drawn[..., -2] += off
            on_row[..., -1] += off
    linear = LinearPosterior.of_draws(
        found, chains, _in_data_units(centre[None], stepped)[0, :-1], moved, chains_on_rows=chains_moved,
        noise_share=noise_share(walked.draws, weights, stepped), names=names,
    )  # fmt: skip
    return GLMPosterior(linear, family.name, stepped.dispersion)


def _in_data_units(beta: Floats, stepped: Stepped) -> Floats:
    """(k, d + 2): coefficients, intercept, and 1 for a residual variance."""
    coefficients, intercept = stepped.original(beta)
    return np.column_stack([coefficients, intercept, np.ones(len(beta))])
