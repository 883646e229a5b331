"""The noise-aware posterior of a regression: the exact sums are latent, seen through noise of known size.

    S = sum of uu'            seen as S + noise, in each round of sums; S positive definite with trace <= n R^2
    q = S beta + N(0, s2 S)   seen as q - S b + noise, around the coefficients b of that round
    where a round turned its rows by A, in place of these A S A' and A (q - S b)
    squares of residuals      q' S^-1 q + s2 chi2(n - p) around b: counts tell how wide they are, or a noisy sum

No distribution of x is assumed beyond what S says of it. A priori the axes of S may lie in any direction, and the
logarithms of its eigenvalues are normal around their mean, with a learned deviation. Walkers move the logarithm of the
matrix: so S is positive definite whatever they do, and neither strong nor weak axes are flattened. log S_jj and log V
lie around a common level, as widely as the first round left their scales open. The share R2 of the variance of y that
x explains has the arcsine law, s2 = (1 - R2) V; coefficients are normal with a covariance that is a power of S^-1,
learned, too: 0 is all coefficients alike, 1 all axes of S alike, and up to 2 the largest effects lie along the axes
with the least variance, as where two columns are nearly the same.

Normal noise has a known variance. Laplace noise (`Released.shape`) is normal noise whose variance was drawn for every
released number: then walkers sample these variances, too (`sampler/variances.py`), and given them nothing changes.

beta and q are integrated out in closed form, save that the law of the squares given the rest is replaced by a t law of
the same mean and spread, or where residuals are counted by five points for what q may be; each draw then carries the
weight that makes up for it. Coefficients predict for rows as `sampler/on_rows.py` says. What is left is sampled by many
walkers at once (`sampler/`): log S by elliptical slice sampling around its normal approximation, (V, R2, power) by
differential evolution between the walkers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from hubbub.analyses.linear.released import Released
from hubbub.analyses.linear.sampler.chains import Effort, walks
from hubbub.analyses.linear.sampler.diagnostics import diagnose
from hubbub.analyses.linear.sampler.draw import Draw
from hubbub.analyses.linear.sampler.noise_share import noise_share
from hubbub.analyses.linear.sampler.on_rows import on_rows
from hubbub.analyses.linear.sampler.target import Prior, Target
from hubbub.arrays import Floats
from hubbub.progress import watched

__all__ = ["Draws", "Prior", "centre_of", "sample_posterior"]


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
    centre: Floats | None = None
    """(d + 1,) coefficients and intercept that predict best over all draws (`centre_of`)."""
    on_rows: Floats | None = None
    """(k, d + 1) coefficients and intercept of the draws, as they predict for a row (`sampler/on_rows.py`)."""
    chains_on_rows: Floats | None = None
    """(chains, k, d + 1): the same of the chains."""
    noise_share: Floats | None = None
    """(d + 1,): of the variance of coefficients and intercept the part that is noise (`sampler/noise_share.py`)."""


def sample_posterior(
    released: Released,
    prior: Prior | None = None,
    *,
    draws: int = 1000,
    seed: int | None = 0,
    models: Sequence[Sequence[int]] | None = None,
) -> Draws:
    """Draws of coefficients, intercept and residual variance; 1000 at d = 10 take less than a second.

    Sampling goes on until chains agree and hold enough (`sampler/diagnostics.py`), or `Effort.longest` is reached.

    `models` are lists of features, equally likely a priori: the draws then go through all of them, and their
    posterior probabilities compare the models. Post-processing: free, and the seed is harmless.
    """
    prior, rng = prior or Prior(), np.random.default_rng(seed)
    target = Target(released, prior, models)
    effort = Effort.of(target.p)
    with threadpool_limits(1), watched("sampling") as advance:  # matrices are small: threads would wait for one another
        for walked in walks(rng, target, effort, effort.attempts(draws), advance):
            weights = np.exp(walked.draws.log_weight - walked.draws.log_weight.max())
            weights /= weights.sum()
            rows = walked.chains(weights)
            chained = walked.draws.taken(rows.ravel())
            chains = np.column_stack(_in_data_units(chained, released)).reshape(*rows.shape, -1)
            if not diagnose(chains).bad.any():
                break
    mean_S = np.einsum("k,kij->ij", weights, walked.draws.S)
    centre = centre_of(walked.draws, weights, mean_S)
    taken = walked.draws.taken(rng.choice(weights.size, draws, p=weights))
    found = _in_data_units(taken, released)
    effective = float(1 / np.sum(weights**2) / weights.size)
    moved, chains_moved = (on_rows(each.beta, each.S, mean_S, centre) for each in (taken, chained))
    return Draws(
        *found, effective, walked.probabilities, chains, _joint(centre[None], released)[0], _joint(moved, released),
        _joint(chains_moved, released).reshape(*rows.shape, -1), noise_share(walked.draws, weights, released),
    )  # fmt: skip


def _joint(beta: Floats, released: Released) -> Floats:
    """Coefficients, and last the intercept, in the units of the data."""
    return np.column_stack(released.original(beta))


def centre_of(draws: Draw, weights: Floats, mean_S: Floats) -> Floats:
    """Standardised coefficients with the least expected squared error of predictions: E[S]^-1 E[S beta].

    A draw whose S is nearly flat along some axis has coefficients along it that may be anything, and says itself that
    hardly any row lies there. In a plain mean one such draw in a thousand outweighs all others; here its S weighs it.
    """
    q = np.einsum("k,kij,kj->i", weights, draws.S, draws.beta)
    return np.asarray(np.linalg.lstsq(mean_S, q)[0])


def _in_data_units(draw: Draw, released: Released) -> tuple[Floats, Floats, Floats]:
    """Coefficients, intercept and residual variance."""
    coefficients, intercept = released.original(draw.beta)
    whole = draw.residual_variance / released.shortening(draw.S)
    return coefficients, intercept, whole * released.columns.scale[-1] ** 2
