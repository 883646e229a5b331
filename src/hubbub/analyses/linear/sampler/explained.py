"""The move of the variance of y, of the share of it that x explains, and of the prior's power."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hubbub.analyses.linear.sampler.state import Info, State, halves
from hubbub.analyses.linear.sampler.target import Target
from hubbub.analyses.linear.tuning import TUNING


def move_explained(rng: np.random.Generator, state: State, target: Target) -> tuple[State, Info]:
    """(V, R2, power) of one half of the walkers, along differences within the other half (differential evolution)."""
    hypers, likelihoods, count = state.hyper.copy(), state.likelihood.copy(), 0
    step = rng.choice(TUNING.hyper_steps)
    for mine, others in halves(state.walkers):
        hyper, pool, level = hypers[mine], hypers[others], state.level[mine]
        one, two = rng.integers(len(pool), size=(2, len(hyper)))
        jitter = TUNING.hyper_jitter * rng.standard_normal(hyper.shape)
        proposed = hyper + step * (pool[one] - pool[two]) + jitter
        likelihood = target.log_likelihood(
            state.sums.taken(mine), proposed, state.model[mine], state.variances.taken(mine)
        )
        gain = likelihood - likelihoods[mine]
        gain += target.log_prior(proposed, level) - target.log_prior(hyper, level)
        taken = np.log(rng.uniform(size=len(hyper))) < gain
        hypers[mine] = np.where(taken[:, None], proposed, hyper)
        likelihoods[mine] = np.where(taken, likelihood, likelihoods[mine])
        count += int(taken.sum())
    return replace(state, hyper=hypers, likelihood=likelihoods), Info(count / state.walkers)
