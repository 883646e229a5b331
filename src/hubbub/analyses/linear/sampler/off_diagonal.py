"""The moves of the deviation of off-diagonal terms: given them, and together with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hubbub.analyses.linear.sampler.state import Info, State
from hubbub.analyses.linear.sampler.target import Target
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats


def move_off_diagonal(rng: np.random.Generator, state: State, target: Target) -> tuple[State, Info]:
    """Draw the deviation given S, then stretch the off-diagonal terms and their deviation by one factor."""
    low, high = (share * target.most / target.p for share in TUNING.off_diagonal)
    expected = np.exp(state.level)[:, None, None] * target.pattern(state.away)
    given = _given_sums(rng, state, target, expected, low, high)
    step = np.exp(rng.normal(0, TUNING.stretch_step, state.walkers))
    proposed = np.where(target.eye > 0, state.S, expected + (state.S - expected) * step[:, None, None])
    noise = state.variances
    likelihood = target.log_likelihood(proposed, state.hyper, state.model, noise)
    gain = likelihood - state.likelihood + target.log_density(proposed, noise) - target.log_density(state.S, noise)
    off = given * step
    taken = (np.log(rng.uniform(size=state.walkers)) < gain) & (off > low) & (off < high)
    moved = replace(
        state,
        off=np.where(taken, off, given),
        S=np.where(taken[:, None, None], proposed, state.S),
        likelihood=np.where(taken, likelihood, state.likelihood),
    )
    return moved, Info(float(taken.mean()))


def _given_sums(
    rng: np.random.Generator, state: State, target: Target, expected: Floats, low: float, high: float
) -> Floats:
    """The deviation given S: its inverse square is a gamma law, cut off at the bounds."""
    from scipy.special import gammainc, gammaincinv

    squares = np.maximum(np.sum((state.S - expected) ** 2 * (1 - target.eye), axis=(-1, -2)), 1e-300)
    half = target.p * (target.p - 1) / 4
    a, b = gammainc(half, squares / (2 * high**2)), gammainc(half, squares / (2 * low**2))
    gamma = gammaincinv(half, np.clip(a + (b - a) * rng.uniform(size=state.walkers), 1e-300, 1 - 1e-15))
    return np.asarray(np.clip(np.sqrt(squares / (2 * np.maximum(gamma, 1e-300))), low, high))
