"""The moves of how far columns lie from zero."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hubbub.analyses.linear.sampler.state import Info, State, halves
from hubbub.analyses.linear.sampler.target import Target, log_off
from hubbub.analyses.linear.tuning import TUNING


def move_centres_with_sums(rng: np.random.Generator, state: State, target: Target) -> tuple[State, Info]:
    """Along differences between walkers; S moves by what the new centres add to it."""
    return _move(rng, state, target, carry=True)


def move_centres_alone(rng: np.random.Generator, state: State, target: Target) -> tuple[State, Info]:
    """Along differences between walkers; S stays."""
    return _move(rng, state, target, carry=False)


def _move(rng: np.random.Generator, state: State, target: Target, *, carry: bool) -> tuple[State, Info]:
    away_all, S_all, likelihoods = state.away.copy(), state.S, state.likelihood
    if carry:
        S_all, likelihoods = S_all.copy(), likelihoods.copy()
    step = rng.choice(TUNING.centre_steps) / (1.0 if carry else 2.0)
    count = 0
    for mine, others in halves(state.walkers):
        away, pool, S = away_all[mine], away_all[others], S_all[mine]
        one, two = rng.integers(len(pool), size=(2, len(away)))
        jitter = TUNING.centre_jitter * target.off_centre * rng.standard_normal(away.shape)
        jump = step * (pool[one] - pool[two]) + jitter
        proposed = away + jump * (rng.uniform(size=away.shape) < rng.choice(TUNING.centre_parts))
        level = np.exp(state.level[mine])[:, None, None]
        old, new = level * target.pattern(away), level * target.pattern(proposed)
        moved = S + target.kept(new - old) if carry else S
        gain = target.log_centres(proposed) - target.log_centres(away)
        gain += target.log_diagonal(moved, np.diagonal(new, axis1=-2, axis2=-1))
        gain -= target.log_diagonal(S, np.diagonal(old, axis1=-2, axis2=-1))
        if carry:
            noise = state.variances.taken(mine)
            likelihood = target.log_likelihood(moved, state.hyper[mine], state.model[mine], noise)
            gain += likelihood - likelihoods[mine] + target.log_density(moved, noise) - target.log_density(S, noise)
        else:
            gain += log_off(S, new, state.off[mine]) - log_off(S, old, state.off[mine])
        taken = np.log(rng.uniform(size=len(away))) < gain
        away_all[mine] = np.where(taken[:, None], proposed, away)
        if carry:
            S_all[mine] = np.where(taken[:, None, None], moved, S)
            likelihoods[mine] = np.where(taken, likelihood, likelihoods[mine])
        count += int(taken.sum())
    return replace(state, away=away_all, S=S_all, likelihood=likelihoods), Info(count / state.walkers)
