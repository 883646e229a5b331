"""The move of S, the exact sum of uu'."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hubbub.analyses.linear.sampler.state import Info, State, symmetric
from hubbub.analyses.linear.sampler.target import Target
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats


def move_sums(rng: np.random.Generator, state: State, target: Target) -> tuple[State, Info]:
    """Elliptical slice sampling around what the noisy value of S and its prior say.

    A walker whose slice has not been hit after `slice_steps` shrinkings stays where it is.
    """
    expected = np.exp(state.level)[:, None, None] * target.pattern(state.away)
    center = np.diagonal(expected, axis1=-2, axis2=-1)
    mean, other = _ellipse(rng, state, target, expected, center)
    here = state.S - mean
    least = state.likelihood + target.log_shape(state.S, center) + np.log(rng.uniform(size=state.walkers))
    angle = rng.uniform(0, 2 * np.pi, state.walkers)
    low, high = angle - 2 * np.pi, angle.copy()
    todo = np.arange(state.walkers)
    S, likelihood = state.S.copy(), state.likelihood.copy()
    for _ in range(TUNING.slice_steps):
        turn = angle[todo, None, None]
        proposed = mean[todo] + np.cos(turn) * here[todo] + np.sin(turn) * other[todo]
        found = target.log_likelihood(proposed, state.hyper[todo], state.model[todo], state.variances.taken(todo))
        good = found + target.log_shape(proposed, center[todo]) > least[todo]
        S[todo[good]], likelihood[todo[good]] = proposed[good], found[good]
        todo = todo[~good]
        if not todo.size:
            break
        back = angle[todo] < 0
        low[todo] = np.where(back, angle[todo], low[todo])
        high[todo] = np.where(back, high[todo], angle[todo])
        angle[todo] = rng.uniform(low[todo], high[todo])
    return replace(state, S=S, likelihood=likelihood), Info(1 - todo.size / state.walkers)


def _ellipse(
    rng: np.random.Generator, state: State, target: Target, expected: Floats, center: Floats
) -> tuple[Floats, Floats]:
    """Mean of the normal part of S, and another draw from it (around zero); at the known trace, where there is one."""
    prior = np.where(target.eye > 0, ((center * target.doubt[:-1]) ** 2)[:, :, None], (state.off**2)[:, None, None])
    noise = state.variances.S
    trust = prior / (prior + target.noise**2 * noise)
    mean = expected * (1 - trust) + trust * target.S
    other = symmetric(rng, state.walkers, target.p) * np.sqrt(trust) * target.noise * np.sqrt(noise)
    if target.full:
        free = trust * noise  # variance of each term, in units of the noise: so much of the missing trace goes to it
        share = np.where(target.eye > 0, free, 0.0) / np.trace(free, axis1=-2, axis2=-1)[:, None, None]
        mean += share * (target.most - np.trace(mean, axis1=-2, axis2=-1))[:, None, None]
        other -= share * np.trace(other, axis1=-2, axis2=-1)[:, None, None]
    return mean, other
