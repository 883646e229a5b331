"""The move of the common level of log S_jj and log n V."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hubbub.analyses.linear.sampler.state import Info, State
from hubbub.analyses.linear.sampler.target import Target, log_off
from hubbub.analyses.linear.tuning import TUNING


def move_level(rng: np.random.Generator, state: State, target: Target) -> tuple[State, Info]:
    """Draw it given the rest: normal, cut off where the trace would exceed its bound.

    Where columns may lie away from zero the off-diagonal terms depend on the level, too: then the draw is a proposal.
    """
    from scipy.special import ndtr, ndtri

    pattern = target.pattern(state.away)
    log = np.log(np.diagonal(state.S, axis1=-2, axis2=-1) / np.diagonal(pattern, axis1=-2, axis2=-1))
    logs = np.column_stack([log, state.hyper[:, 0]])
    precision = 1 / target.doubt**2
    mean, deviation = logs @ precision / precision.sum(), 1 / np.sqrt(precision.sum())
    top = np.log(target.most / target.p)
    bottom = top + np.log(TUNING.least_level)
    low, high = (ndtr((end - mean) / deviation) for end in (bottom, top))
    uniform = np.clip(low + (high - low) * rng.uniform(size=state.walkers), 1e-12, 1 - 1e-12)
    level = np.clip(mean + deviation * ndtri(uniform), bottom, top)
    if not target.centre_moves:
        return replace(state, level=level), Info(1.0)
    old, new = (np.exp(each)[:, None, None] * pattern for each in (state.level, level))
    gain = log_off(state.S, new, state.off) - log_off(state.S, old, state.off)
    taken = np.log(rng.uniform(size=state.walkers)) < gain
    return replace(state, level=np.where(taken, level, state.level)), Info(float(taken.mean()))
