"""The noise-aware posterior of a regression: the exact sums are latent, seen through noise of known size.

    S = sum of uu'            seen as S + noise, S positive definite with trace <= n R^2
    q = S beta + N(0, s2 S)   seen as q + noise                      (sum of u y)
    y'y = q' S^-1 q + s2 chi2(n - p)    seen as y'y + noise

No distribution of x is assumed beyond what S says of it. A priori the share R2 of the variance of y that x explains
is uniform, every column's part in it is alike, s2 = (1 - R2) V; log S_jj and log V lie around a common level, as
widely as the first round left their scales open; off-diagonal terms are normal with a learned deviation. Where the
first round left open where columns lie, too, S may have a part of rank one beside the constant's 1: their means.

Normal noise has a known variance. Laplace noise (`Released.shape`) is normal noise whose variance was drawn for every
released number: then walkers sample these variances, too (`sampler/variances.py`), and given them nothing changes.

beta and q are integrated out in closed form, save that the law of y'y given the rest is replaced by a t law of the
same mean and spread; each draw then carries the weight that makes up for it. What is left is sampled by many walkers
at once (`sampler/`): S by elliptical slice sampling from its normal part, (V, R2) by differential evolution between
the walkers.

With few rows for the columns S is close to singular, and no walker moves among such matrices. Then noise is added until
they do: the posterior is that of noisier sums, wider and on its way to the prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hubbub.analyses.linear.released import Released, clipped_target
from hubbub.analyses.linear.sampler.chains import Effort, walk
from hubbub.analyses.linear.sampler.draw import Draw
from hubbub.analyses.linear.sampler.target import Prior, Target
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats

__all__ = ["Draws", "Prior", "enough_noise", "sample_posterior"]


@dataclass(frozen=True)
class Draws:
    """Equally weighted draws from the posterior, in the units of the data."""

    coefficients: Floats
    intercept: Floats
    residual_variance: Floats
    effective: float
    """Effective number of draws behind the importance weights, as a share."""
    models: Floats = field(default_factory=lambda: np.ones(1))
    """Posterior probability of each of the models that were compared."""
    chains: Floats | None = None
    """(chains, k, d + 2): the same posterior, drawn chain by chain, in the order in which walkers went."""


def sample_posterior(
    released: Released,
    prior: Prior | None = None,
    *,
    draws: int = 1000,
    seed: int | None = 0,
    models: Sequence[Sequence[int]] | None = None,
) -> Draws:
    """Draws of coefficients, intercept and residual variance; 1000 at d = 10 take less than a second.

    `models` are lists of features, equally likely a priori: the draws then go through all of them, and their
    posterior probabilities compare the models. Post-processing: free, and the seed is harmless.
    """
    prior, rng = prior or Prior(), np.random.default_rng(seed)
    p = released.sums.xy.size
    level = min(float(np.trace(released.sums.xx)), released.n * released.ball.radius**2) / p
    released = released.blurred(enough_noise(released.n, p, level), rng)
    kept = released.left_by_clipping if prior.scale is not None else None  # so that the prior meets it in its units
    target = Target(released, prior.shortened(1.0 if kept is None else kept), models)
    effort = Effort.of(target.p)
    walked = walk(rng, target, effort, effort.sweeps(draws))
    weights = np.exp(walked.draws.log_weight - walked.draws.log_weight.max())
    weights /= weights.sum()
    chosen = rng.choice(weights.size, draws, p=weights)
    found = _in_data_units(rng, walked.draws.taken(chosen), released, kept)
    rows = walked.chains(weights)  # after all that the draws above depend on
    again = _in_data_units(rng, walked.draws.taken(rows.ravel()), released, kept)
    chains = np.column_stack(again).reshape(*rows.shape, -1)
    return Draws(*found, float(1 / np.sum(weights**2) / weights.size), walked.probabilities, chains)


def _in_data_units(
    rng: np.random.Generator, draw: Draw, released: Released, kept: float | None
) -> tuple[Floats, Floats, Floats]:
    """Coefficients, intercept and residual variance, with what clipping y took away put back.

    That lies between nothing and what it takes from normal data, and rather near the latter: a share of it with
    density 2s on (0, 1). Where the user gave a prior, coefficients get `kept` back, as the prior did.
    """
    assert released.ball.y is not None
    attenuation, growth = clipped_target(draw.square, released.ball.y)
    share = np.sqrt(rng.uniform(size=len(draw.square)))
    left = 1 - share * (1 - attenuation) if kept is None else np.full(len(share), kept)
    coefficients, intercept = released.original(draw.beta / left[:, None])
    # of the residual variance more is put back: a judgement, made on predictive intervals (docs/decisions/0008)
    most = np.minimum(1 + TUNING.more_growth * (growth - 1), TUNING.most_growth)
    grown = draw.residual_variance * np.maximum(1 + share * (growth - 1), most)
    return coefficients, intercept, grown / released.shortening(draw.S) * released.columns.scale[-1] ** 2


def enough_noise(n: int, p: int, level: float) -> float:
    """The least noise that lets walkers move: none with many rows a column, twice S_jj with one, more with fewer."""
    few = TUNING.few_rows if p <= TUNING.many_columns else TUNING.few_rows_of_many
    return TUNING.blur * level * max(0.0, few * p / n - 1) / (few - 1)
