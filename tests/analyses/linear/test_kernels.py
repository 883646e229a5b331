"""Each kernel on its own: it changes nothing in place, keeps to its part of the state, and tells the truth of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np
import pytest
from scipy.stats import kstest

from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.released import Released
from hubbub.analyses.linear.sampler.centres import move_centres_alone, move_centres_with_sums
from hubbub.analyses.linear.sampler.explained import move_explained
from hubbub.analyses.linear.sampler.level import move_level
from hubbub.analyses.linear.sampler.model import move_model
from hubbub.analyses.linear.sampler.off_diagonal import move_off_diagonal
from hubbub.analyses.linear.sampler.start import start
from hubbub.analyses.linear.sampler.state import FIXED, Info, State, Variances
from hubbub.analyses.linear.sampler.sums import move_sums
from hubbub.analyses.linear.sampler.target import Prior, Target
from hubbub.analyses.linear.sampler.variances import move_variances
from hubbub.statistics import Ball, Gram

Kernel = Callable[[np.random.Generator, State, Target], tuple[State, Info]]
MOVES: dict[Kernel, set[str]] = {
    move_level: {"level"},
    move_off_diagonal: {"off", "S", "likelihood"},
    move_sums: {"S", "likelihood"},
    move_centres_with_sums: {"away", "S", "likelihood"},
    move_centres_alone: {"away"},
    move_explained: {"hyper", "likelihood"},
    move_model: {"model", "likelihood"},
    move_variances: {"noise of S", "noise of q", "noise of yy", "likelihood"},
}


def arrays(state: State) -> dict[str, np.ndarray]:
    """All arrays of a state by name."""
    named = {each.name: getattr(state, each.name) for each in fields(State) if each.name != "variances"}
    return named | {f"noise of {each.name}": getattr(state.variances, each.name) for each in fields(Variances)}


def target(models: list[list[int]] | None = None, shape: float | None = None) -> Target:
    """Three columns and a constant, off centre, under much noise."""
    S = np.diag([300.0, 120.0, 100.0, 90.0]) + 5.0
    columns = Columns(np.zeros(4), np.ones(4), np.full(4, 0.9))
    data = Released(Gram(S, np.full(4, 20.0), 200.0), 400, 30.0, Ball(1.5, 4, y=2.0, weight=1.2), columns, True, shape)
    return Target(data, Prior(), models)


@pytest.mark.parametrize("kernel", MOVES)
def test_a_kernel_keeps_to_its_part_and_leaves_the_old_state_alone(kernel: Kernel):
    rng, law = np.random.default_rng(1), target([[0], [0, 1, 2]], shape=1.5)
    state = start(rng, law, 40)
    before = {name: value.copy() for name, value in arrays(state).items()}
    after, info = kernel(rng, state, law)
    for name, value in before.items():
        np.testing.assert_array_equal(arrays(state)[name], value)
    changed = {name for name, value in before.items() if not np.array_equal(arrays(after)[name], value)}
    assert changed == MOVES[kernel]
    assert 0 < info.moved <= 1
    # what a state says of its likelihood is its likelihood
    likelihood = law.log_likelihood(after.S, after.hyper, after.model, after.variances)
    np.testing.assert_allclose(after.likelihood, likelihood, rtol=1e-9)


@pytest.mark.parametrize("kernel", [move_sums, move_explained])
def test_info_counts_the_walkers_that_moved(kernel: Kernel):
    rng, law = np.random.default_rng(2), target()
    state = start(rng, law, 40)
    after, info = kernel(rng, state, law)
    assert info.moved == np.mean((after.S != state.S).any(axis=(1, 2)) | (after.hyper != state.hyper).any(axis=1))


def test_explained_share_alone_follows_its_prior_where_nothing_is_seen():
    """A kernel leaves its law alone: with a flat likelihood R2 stays uniform, started from uniform draws."""
    rng, law = np.random.default_rng(3), target()
    law.q_noise, law.yy_noise = 1e30, 1e30  # nothing is seen of q and y'y
    state = start(rng, law, 2000)
    hyper = np.column_stack([state.level + law.doubt[-1] * rng.standard_normal(2000), rng.logistic(size=2000)])
    state = State(state.level, state.off, state.away, state.S, hyper, state.model,
                  law.log_likelihood(state.S, hyper, state.model, FIXED))  # fmt: skip
    for _ in range(10):
        state, _ = move_explained(rng, state, law)
    assert not np.array_equal(state.hyper, hyper)
    assert kstest(1 / (1 + np.exp(-state.hyper[:, 1])), "uniform").pvalue > 1e-4
