"""The move of the common level of log S_jj and log n V."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hubbub.analyses.linear.sampler.state import Info, State
from hubbub.analyses.linear.sampler.target import Target
from hubbub.analyses.linear.tuning import TUNING


def move_level(rng: np.random.Generator, state: State, target: Target) -> tuple[State, Info]:
    """Draw it given the rest: normal, cut off where the trace would exceed its bound."""
    from scipy.special import ndtr, ndtri

    logs = np.column_stack([np.log(np.diagonal(state.S, axis1=-2, axis2=-1)), state.hyper[:, 0]])
    precision = 1 / target.doubt**2
    mean, deviation = logs @ precision / precision.sum(), 1 / np.sqrt(precision.sum())
    top = np.log(target.most / target.p)
    bottom = top + np.log(TUNING.least_level)
    low, high = (ndtr((end - mean) / deviation) for end in (bottom, top))
    uniform = np.clip(low + (high - low) * rng.uniform(size=state.walkers), 1e-12, 1 - 1e-12)
    return replace(state, level=np.clip(mean + deviation * ndtri(uniform), bottom, top)), Info(1.0)
