"""Moves of the level or the spread of log S together with log S: where noise hides S, one given the other goes slowly.

Given S its level is known up to its doubt, and given the level so is S. Where the noisy sums say little of S, the two
have a long way to go in such short steps; here they go together, and only what was seen decides.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hubbub.analyses.linear.sampler.state import Info, State
from hubbub.analyses.linear.sampler.target import Target
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats


def move_level_and_sums(rng: np.random.Generator, state: State, target: Target) -> tuple[State, Info]:
    """S and V multiplied by the same factor, and the level moved with them: their prior stays as it is."""
    step = _step(rng, state)
    hyper = state.hyper.copy()
    hyper[:, 0] += step
    top = np.log(target.most / target.p)
    level = state.level + step
    possible = (level <= top) & (level >= top + np.log(TUNING.least_level))
    proposed = replace(state, level=level, log_S=state.log_S + step[:, None, None] * target.eye, hyper=hyper)
    return _decided(rng, state, proposed, target, possible)


def move_spread_and_sums(rng: np.random.Generator, state: State, target: Target) -> tuple[State, Info]:
    """The spread and log S without its level multiplied by the same factor, the mean of log S_jj being held.

    The density of log S then falls by as much as the volume grows, and a shift of its mean eigenvalue that depends on
    the rest changes no volume.
    """
    step = _step(rng, state)
    spread = state.spread * np.exp(step)
    low, high = TUNING.spread
    without_level = state.log_S - np.trace(state.log_S, axis1=-2, axis2=-1)[:, None, None] / target.p * target.eye
    more = np.expm1(np.clip(step, -10, 10))[:, None, None] * without_level
    log_S = state.log_S + more
    back = _mean_log_diagonal(state.S, target) - _mean_log_diagonal(target.sums(log_S).S, target)
    proposed = replace(state, spread=spread, log_S=log_S + back[:, None, None] * target.eye)
    return _decided(rng, state, proposed, target, (spread >= low) & (spread <= high))


def _mean_log_diagonal(S: Floats, target: Target) -> Floats:
    """As the prior of the level weighs it."""
    log = np.log(np.maximum(np.diagonal(S, axis1=-2, axis2=-1), 1e-300))
    return np.asarray(np.average(log, axis=1, weights=target.doubt[:-1] ** -2.0))


def _step(rng: np.random.Generator, state: State) -> Floats:
    """Of a logarithm: short ones and long ones."""
    return np.asarray(rng.choice(TUNING.together_steps, state.walkers) * rng.standard_normal(state.walkers))


def _decided(
    rng: np.random.Generator, state: State, proposed: State, target: Target, possible: np.ndarray
) -> tuple[State, Info]:
    """Taken by what was seen, and by the prior of the diagonal."""
    sums = target.sums(proposed.log_S)
    likelihood = target.log_likelihood(sums, proposed.hyper, state.model, state.variances)
    gain = likelihood + target.log_density(sums.S, state.variances) + target.log_diagonal(sums.S, proposed.level)
    gain -= state.likelihood + target.log_density(state.S, state.variances) + target.log_diagonal(state.S, state.level)
    taken = possible & (np.log(rng.uniform(size=state.walkers)) < gain)
    wide = taken[:, None, None]
    moved = replace(
        state, level=np.where(taken, proposed.level, state.level),
        spread=np.where(taken, proposed.spread, state.spread),
        log_S=np.where(wide, proposed.log_S, state.log_S), hyper=np.where(taken[:, None], proposed.hyper, state.hyper),
        sums=state.sums.put(np.flatnonzero(taken), sums.taken(taken)),
        likelihood=np.where(taken, likelihood, state.likelihood),
    )  # fmt: skip
    return moved, Info(float(taken.mean()))
