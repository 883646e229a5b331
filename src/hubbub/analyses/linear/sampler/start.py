"""Where walkers start: scattered around what the noisy sums say."""

from __future__ import annotations

import numpy as np

from hubbub.analyses.linear.sampler.reference import reference
from hubbub.analyses.linear.sampler.state import FIXED, State, Variances, symmetric
from hubbub.analyses.linear.sampler.target import Target
from hubbub.arrays import Floats


def start(rng: np.random.Generator, target: Target, walkers: int) -> State:
    """Draws of the normal law that log S is proposed from, brought inside what is possible."""
    p = target.p
    level = np.full(walkers, np.log(np.clip(np.trace(target.S), 0.5 * target.noise, target.most) / p))
    spread = np.exp(rng.normal(0, 0.3, walkers))
    around = reference(target, level, spread)
    log_S = around.mean[:, :, None] * target.eye + around.deviation * symmetric(rng, walkers, p)
    over = np.trace(target.sums(log_S).S, axis1=-2, axis2=-1) / (0.95 * target.most)
    log_S = log_S - np.log(np.maximum(over, 1.0))[:, None, None] * target.eye
    sums = target.sums(log_S)
    level = np.log(np.trace(sums.S, axis1=-2, axis2=-1) / p)
    hyper = np.column_stack([level + rng.normal(0, 0.3, walkers), rng.normal(0, 1, (walkers, 2))])
    model = rng.integers(len(target.models), size=walkers)
    variances = _first_variances(target, walkers)
    likelihood = target.log_likelihood(sums, hyper, model, variances)
    return State(level, spread, log_S, sums, hyper, model, likelihood, variances)


def _first_variances(target: Target, walkers: int) -> Variances:
    """Every one at its mean: the first move draws them."""
    if target.shape is None:
        return FIXED
    return Variances(_ones(walkers, target.p, target.p), _ones(walkers, target.p), _ones(walkers))


def _ones(*shape: int) -> Floats:
    return np.ones(shape)
