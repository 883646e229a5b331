"""The move between the models that are compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hubbub.analyses.linear.sampler.state import Info, State
from hubbub.analyses.linear.sampler.target import Target


def move_model(rng: np.random.Generator, state: State, target: Target) -> tuple[State, Info]:
    """Draw each walker's model from their likelihoods; with a single model there is nothing to do."""
    models, walkers = len(target.models), state.walkers
    if models == 1:
        return state, Info(0.0, np.ones(1))
    all_in = np.full(walkers, 1)
    each = np.array(
        [target.log_likelihood(state.sums, state.hyper, m * all_in, state.variances) for m in range(models)]
    )
    probability = np.exp(each - each.max(axis=0))
    probability /= probability.sum(axis=0)
    chosen = (np.cumsum(probability, axis=0) < rng.uniform(size=walkers)).sum(axis=0)
    chosen = np.minimum(chosen, models - 1)
    info = Info(float(np.mean(chosen != state.model)), probability.mean(axis=1))
    return replace(state, model=chosen, likelihood=each[chosen, np.arange(walkers)]), info
