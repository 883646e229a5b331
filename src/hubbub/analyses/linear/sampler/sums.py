"""The move of S, the exact sum of uu', by its logarithm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.linear.sampler.reference import Reference, reference
from hubbub.analyses.linear.sampler.state import Info, State, Sums, symmetric
from hubbub.analyses.linear.sampler.target import Target, log_prior_of_sums
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats


def move_sums(rng: np.random.Generator, state: State, target: Target) -> tuple[State, Info]:
    """Elliptical slice sampling of log S around what the noisy S and the prior say; what they leave out is weighed.

    Whatever log S is, S is positive definite, so no proposal is lost to that. A walker whose slice has not been hit
    after `slice_steps` tries stays where it is: the law stays as it is, too, since a way of so many tries is as likely
    there as back. Most walkers need one or two, and all would wait for the few that need a dozen.
    """
    around = reference(target, state.level, state.spread)
    if target.full:
        state = _level_drawn(rng, state, around)
    mean = around.mean[:, :, None] * target.eye
    here, other = state.log_S - mean, around.deviation * symmetric(rng, state.walkers, target.p)
    everybody = np.arange(state.walkers)
    least = state.likelihood + _rest(target, state, everybody, state.log_S, state.sums, around)
    least += np.log(rng.uniform(size=state.walkers))
    angle = rng.uniform(0, 2 * np.pi, state.walkers)
    low, high = angle - 2 * np.pi, angle.copy()
    log_S, sums, likelihood = state.log_S.copy(), state.sums, state.likelihood.copy()
    todo = everybody
    for _ in range(TUNING.slice_steps):
        turn = angle[todo, None, None]
        proposed = mean[todo] + np.cos(turn) * here[todo] + np.sin(turn) * other[todo]
        there = target.sums(proposed)
        found = target.log_likelihood(there, state.hyper[todo], state.model[todo], state.variances.taken(todo))
        good = found + _rest(target, state, todo, proposed, there, around) > least[todo]
        log_S[todo[good]], likelihood[todo[good]] = proposed[good], found[good]
        sums = sums.put(todo[good], there.taken(good))
        todo = todo[~good]
        if not todo.size:
            break
        back = angle[todo] < 0
        low[todo] = np.where(back, angle[todo], low[todo])
        high[todo] = np.where(back, high[todo], angle[todo])
        angle[todo] = rng.uniform(low[todo], high[todo])
    moved = replace(state, log_S=log_S, sums=sums, likelihood=likelihood)
    return moved, Info(1 - todo.size / state.walkers)


def _rest(target: Target, state: State, rows: NDArray[np.intp], log_S: Floats, sums: Sums, around: Reference) -> Floats:
    """What the law of log S has beside the normal law that it is proposed from, and beside the likelihood."""
    around = around.taken(rows)
    law = target.log_density(sums.S, state.variances.taken(rows)) + target.log_diagonal(sums.S, state.level[rows])
    law += log_prior_of_sums(sums, state.spread[rows])
    if target.full:
        law += _log_free_level(log_S, around)
    return np.asarray(law - around.log_density(log_S))


def _level_drawn(rng: np.random.Generator, state: State, around: Reference) -> State:
    """Where the trace of S is known, the level of log S means nothing: it is drawn anew."""
    p = state.log_S.shape[-1]
    here = np.trace(state.log_S, axis1=-2, axis2=-1) / p
    drawn = around.mean.mean(axis=1) + _FREE * rng.standard_normal(state.walkers)
    return replace(state, log_S=state.log_S + (drawn - here)[:, None, None] * np.eye(p))


def _log_free_level(log_S: Floats, around: Reference) -> Floats:
    level = np.trace(log_S, axis1=-2, axis2=-1) / log_S.shape[-1]
    return np.asarray(-0.5 * ((level - around.mean.mean(axis=1)) / _FREE) ** 2)


_FREE = 0.1  # deviation of that level: any will do
