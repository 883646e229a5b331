"""The move of the deviation of log S's eigenvalues: how far those of S lie apart a priori."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hubbub.analyses.linear.sampler.state import Info, State
from hubbub.analyses.linear.sampler.target import Target, log_eigenvalues
from hubbub.analyses.linear.tuning import TUNING


def move_spread(rng: np.random.Generator, state: State, target: Target) -> tuple[State, Info]:
    """Draw it given log S: its inverse square is a gamma law, cut off at the bounds."""
    from scipy.special import gammainc, gammaincinv

    low, high = TUNING.spread
    squares = np.maximum(np.sum(log_eigenvalues(state.sums) ** 2, axis=-1), 1e-300)
    half = (target.p - 1) / 2
    a, b = gammainc(half, squares / (2 * high**2)), gammainc(half, squares / (2 * low**2))
    gamma = gammaincinv(half, np.clip(a + (b - a) * rng.uniform(size=state.walkers), 1e-300, 1 - 1e-15))
    spread = np.clip(np.sqrt(squares / (2 * np.maximum(gamma, 1e-300))), low, high)
    return replace(state, spread=spread), Info(1.0)
