"""Where walkers start, and how lost ones start again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hubbub.analyses.linear.sampler.state import FIXED, State, Variances, symmetric
from hubbub.analyses.linear.sampler.target import Target
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats


def start(rng: np.random.Generator, target: Target, walkers: int) -> State:
    """Scattered around what the noisy sums say, inside what is possible."""
    p, top = target.p, target.most / target.p
    around = np.trace(target.S) / p + target.noise / np.sqrt(p) * rng.standard_normal(walkers)
    level = np.log(np.clip(around, 0.05 * top, 0.95 * top))
    least, most = np.log(TUNING.off_diagonal)
    off = top * np.exp(rng.uniform(least, most, walkers))
    loose = symmetric(rng, walkers, p) * 0.2 / np.sqrt(p) * (1 - target.eye)
    away = _first_centres(rng, target, level)
    S = np.exp(level)[:, None, None] * target.pattern(away, target.eye + loose)
    room = target.most / np.maximum(np.trace(S, axis1=-2, axis2=-1), 1e-300)
    S *= (room if target.full else np.minimum(1.0, 0.9 * room))[:, None, None]
    hyper = np.column_stack([level + rng.normal(0, 0.3, walkers), rng.normal(0, 1, walkers)])
    model = rng.integers(len(target.models), size=walkers)
    variances = _first_variances(target, walkers)
    likelihood = target.log_likelihood(S, hyper, model, variances)
    return State(level, off, away, S, hyper, model, likelihood, variances)


def rescue(rng: np.random.Generator, state: State, target: Target) -> State:
    """Walkers far below the others, which the others' differences no longer move, start again from one of them.

    Before the first draw only: afterwards it would change the law.
    """
    height = state.likelihood + target.log_prior(state.hyper, state.level)
    low, middle = np.quantile(height, [0.25, 0.5])
    lost = np.flatnonzero(height < low - TUNING.lost * (middle - low) - 2)
    from_ = np.arange(state.walkers)
    from_[lost] = rng.choice(np.flatnonzero(height >= low), lost.size)
    names = ("level", "off", "away", "S", "hyper", "model", "likelihood")
    found = {name: getattr(state, name)[from_] for name in names}
    return replace(state, **found, variances=state.variances.taken(from_))


def _first_variances(target: Target, walkers: int) -> Variances:
    """Every one at its mean: the first move draws them."""
    if target.shape is None:
        return FIXED
    return Variances(np.ones((walkers, target.p, target.p)), np.ones((walkers, target.p)), np.ones(walkers))


def _first_centres(rng: np.random.Generator, target: Target, level: Floats) -> Floats:
    """How far columns lie from zero, by the noisy row of the constant in S."""
    size = np.exp(level)[:, None]
    noise, prior = target.noise**2 / 2, target.off_centre**2
    precision = size**2 * prior + noise
    mean, deviation = prior * size * target.S[0] / precision, np.sqrt(prior * noise / precision)
    return np.asarray(mean + deviation * rng.standard_normal(mean.shape))
