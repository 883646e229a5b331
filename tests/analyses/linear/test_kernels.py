"""Each kernel on its own: it changes nothing in place, keeps to its part of the state, and leaves the law as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import beta, kstest

from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.released import LaterLook, Released
from hubbub.analyses.linear.residuals import EDGES
from hubbub.analyses.linear.sampler.explained import move_explained
from hubbub.analyses.linear.sampler.level import move_level
from hubbub.analyses.linear.sampler.model import move_model
from hubbub.analyses.linear.sampler.spread import move_spread
from hubbub.analyses.linear.sampler.start import start
from hubbub.analyses.linear.sampler.state import FIXED, Info, State, Sums, Variances
from hubbub.analyses.linear.sampler.sums import move_sums
from hubbub.analyses.linear.sampler.target import Prior, Target, log_eigenvalues
from hubbub.analyses.linear.sampler.together import move_level_and_sums, move_spread_and_sums
from hubbub.analyses.linear.sampler.variances import move_variances
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats
from hubbub.statistics import Ball, Gram
from linear_prior import drawn_counts, drawn_hyper, drawn_sums, symmetric

Kernel = Callable[[np.random.Generator, State, Target], tuple[State, Info]]
MOVES: dict[Kernel, set[str]] = {
    move_level: {"level"},
    move_spread: {"spread"},
    move_level_and_sums: {"level", "hyper", "log_S", "S", "values", "likelihood"},
    move_spread_and_sums: {"spread", "log_S", "S", "values", "likelihood"},
    move_sums: {"log_S", "S", "values", "axes", "likelihood"},
    move_explained: {"hyper", "likelihood"},
    move_model: {"model", "likelihood"},
    move_variances: {"noise of S", "noise of q", "noise of yy", "likelihood"},
}


def arrays(state: State) -> dict[str, Floats]:
    """All arrays of a state by name."""
    named = {each.name: getattr(state, each.name) for each in fields(State) if each.name not in ("variances", "sums")}
    named |= {each.name: getattr(state.sums, each.name) for each in fields(Sums)}
    return named | {f"noise of {each.name}": getattr(state.variances, each.name) for each in fields(Variances)}


def target(models: list[list[int]] | None = None, shape: float | None = None) -> Target:
    """Three columns and a constant, under much noise."""
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
    changed = {name for name, value in before.items() if not np.allclose(arrays(after)[name], value, rtol=1e-12)}
    assert MOVES[kernel] - {"axes"} <= changed <= MOVES[kernel] | {"axes"}  # whose signs mean nothing
    assert 0 < info.moved <= 1
    # what a state says of its sums and of its likelihood is so
    np.testing.assert_allclose(after.S, law.sums(after.log_S).S, rtol=1e-9, atol=1e-9)
    again = (after.sums.axes * after.sums.values[:, None, :]) @ np.swapaxes(after.sums.axes, -1, -2)
    np.testing.assert_allclose(again, after.S, rtol=1e-9, atol=1e-9)
    likelihood = law.log_likelihood(after.sums, after.hyper, after.model, after.variances)
    np.testing.assert_allclose(after.likelihood, likelihood, rtol=1e-9)


@pytest.mark.parametrize("kernel", [move_sums, move_explained, move_level_and_sums, move_spread_and_sums])
def test_info_counts_the_walkers_that_moved(kernel: Kernel):
    rng, law = np.random.default_rng(2), target()
    state = start(rng, law, 40)
    after, info = kernel(rng, state, law)
    assert info.moved == np.mean((after.S != state.S).any(axis=(1, 2)) | (after.hyper != state.hyper).any(axis=1))


def test_explained_share_and_power_follow_their_prior_where_nothing_is_seen():
    """With a flat likelihood both stay as they are, started from draws of it. False alarm 2e-4."""
    rng, law = np.random.default_rng(3), target()
    law.q_noise, law.square_noise = 1e30, 1e30  # nothing is seen of q and squares
    state = start(rng, law, 2000)
    size = state.level + law.doubt[-1] * rng.standard_normal(2000)
    shape = TUNING.explained_shape
    hyper = np.column_stack([size, logit(rng.beta(shape, shape, 2000)), rng.logistic(size=2000)])
    likelihood = law.log_likelihood(state.sums, hyper, state.model, FIXED)
    state = replace(state, hyper=hyper, likelihood=likelihood)
    for _ in range(10):
        state, _ = move_explained(rng, state, law)
    assert not np.array_equal(state.hyper, hyper)
    explained, power = expit(state.hyper[:, 1:]).T
    assert kstest(explained, beta(shape, shape).cdf).pvalue > 1e-4
    assert kstest(power, "uniform").pvalue > 1e-4


NOISE, LAST_NOISE, WEIGHT = 12.0, 9.0, 1.3


def seen(
    sums: Gram, last: Gram | None, around: Floats, radius: float, shape: float | None, intercept: bool,
    counts: Floats | None = None,
) -> Target:  # fmt: skip
    """What two columns' noisy sums tell, those of the last round beside them (with its counts) or alone."""
    p = len(around)
    columns = Columns(*(np.full(p + 1 - int(intercept), value) for value in (0.0, 1.0, 0.5)))
    data = Released(sums, 300, NOISE, Ball(radius, p, y=1e6, weight=WEIGHT), columns, intercept, shape)
    if last is not None:
        counts = np.zeros(len(EDGES) + 1) if counts is None else counts
        data = replace(data, later=(LaterLook(last, LAST_NOISE, around, 1.0, counts, LAST_NOISE, left=1.0),))
    return Target(data, Prior(), None)


def drawn_together(
    rng: np.random.Generator, radius: float, shape: float | None, again: bool, intercept: bool
) -> tuple[Target, State]:
    """Data and the state that made them, both from the law that the kernels share: the stand-in law of squares in it."""
    p, around = 2, rng.standard_normal(2) * (0.3 if again else 0.0)
    nothing = Gram(np.eye(p), np.zeros(p), 0.0)
    empty = seen(nothing, nothing if again else None, around, radius, shape, intercept)
    S, level, spread = drawn_sums(rng, empty)
    hyper = drawn_hyper(rng, empty, level)[None]
    (s2,), (T,) = empty.variances(Sums.of(S[None]), hyper, np.zeros(1, int))
    coefficients = np.linalg.cholesky(T) @ rng.standard_normal(p)
    q = S @ coefficients + np.sqrt(s2) * np.linalg.cholesky(S) @ rng.standard_normal(p)
    variances = FIXED
    if shape is not None:
        loud = np.triu(rng.gamma(shape, 1 / shape, (p, p)))
        of_q = rng.gamma(shape, 1 / shape, p)
        variances = Variances((loud + np.triu(loud, 1).T)[None], of_q[None], np.array([rng.gamma(shape, 1 / shape)]))
    of_q = np.sqrt(variances.q[0]) * np.ones(p)

    def released(noise: float, b: Floats, square: float) -> Gram:
        normal = symmetric(rng, p) * np.sqrt(variances.S[0])
        xy = q - S @ b + noise / (np.sqrt(2) * WEIGHT) * of_q * rng.standard_normal(p)
        return Gram(S + noise * normal, xy, square)

    first, last = released(NOISE, np.zeros(p), 0.0), released(LAST_NOISE, around, 0.0) if again else None
    law = seen(first, last, around, radius, shape, intercept)
    sums = Sums.of(S[None])
    parts = law.parts(sums, hyper, np.zeros(1, int), variances)
    center, counts = float((parts.square - parts.gap)[0]), None
    if last is None:
        first = first._replace(yy=center + float(np.sqrt(parts.width[0]) * rng.standard_t(4)))
    else:
        shortening = np.clip(S[0, 0] / law.n if intercept else 1.0, TUNING.least_shortening, 1.0)
        counts = drawn_counts(rng, np.sqrt(center / law.n / shortening), law.n, LAST_NOISE)
    law = seen(first, last, around, radius, shape, intercept, counts)
    values, axes = np.linalg.eigh(law.axes.T @ S @ law.axes)
    log_S = (axes * np.log(values)) @ axes.T
    likelihood = law.log_likelihood(sums, hyper, np.zeros(1, int), variances)
    one = State(
        np.array([level]), np.array([spread]), log_S[None], law.sums(log_S[None]), hyper, np.zeros(1, int), likelihood,
        variances,
    )  # fmt: skip
    return law, one


def with_others(rng: np.random.Generator, law: Target, one: State) -> State:
    """The walker with three others, somewhere: they are nothing to it, but `move_explained` moves along them."""
    others = start(rng, law, 3)
    both = {name: np.concatenate([arrays(one)[name], value]) for name, value in arrays(others).items()}
    variances = FIXED if one.variances is FIXED else Variances(*(both[f"noise of {n}"] for n in ("S", "q", "yy")))
    sums = Sums(both["S"], both["values"], both["axes"])
    rest = {name: both[name] for name in ("level", "spread", "log_S", "hyper", "model", "likelihood")}
    return State(sums=sums, variances=variances, **rest)


def features(state: State) -> Floats:
    """Of the first walker: all that a kernel may move, and how it goes together."""
    width = np.sqrt(np.sum(log_eigenvalues(state.sums.taken(np.array([0]))) ** 2))
    S, (size, share, power) = state.S[0], state.hyper[0]
    level, spread, of_S = state.level[0], np.log(state.spread[0]), np.linalg.slogdet(S)[1] / 2
    loud = np.log([state.variances.S[0].flat[0], state.variances.q[0].flat[0], state.variances.yy[0]])
    found = [
        level,
        spread,
        of_S,
        np.log(width),
        np.log(S[0, 0] / S[1, 1]),
        size,
        np.tanh(share / 2),
        np.tanh(power / 2),
    ]
    return np.array([*found, S[0, 1] / np.sqrt(S[0, 0] * S[1, 1]), (level - of_S) ** 2, (size - level) ** 2,
                     np.tanh(share / 2) ** 2, spread**2, (spread - np.log(width)) ** 2, *loud])  # fmt: skip


CASES = {
    "one look": (0.7, None, False, False),
    "two looks and a constant": (1.2, None, True, True),
    "known trace": (0.9, None, True, True),
    "Laplace": (0.7, 1.0, False, False),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_kernel_leaves_the_law_of_parameters_and_data_as_it_is(case: str):
    """Parameters from the prior, data from the parameters, a kernel given the data: parameters are from the prior still.

    So nothing that one can compute of them changes on average: 5 standard errors, false alarm 1e-4 for all of a case.
    """
    rng = np.random.default_rng([len(case), 11])
    kernels = [kernel for kernel in MOVES if kernel is not move_model]
    if CASES[case][1] is None:
        kernels.remove(move_variances)
    if case == "known trace":
        kernels.remove(move_level_and_sums)
    changes: dict[str, list[Floats]] = {kernel.__name__: [] for kernel in kernels}
    for _ in range(250):
        law, one = drawn_together(rng, *CASES[case])
        state = with_others(rng, law, one)
        for kernel in kernels:
            moved = state
            for _ in range(3):
                moved, _ = kernel(rng, moved, law)
            changes[kernel.__name__].append(features(moved) - features(state))
    for name, each in changes.items():
        change = np.array(each)
        assert np.ptp(change) > 0, name
        error = change.std(axis=0) / np.sqrt(len(change))
        assert (np.abs(change.mean(axis=0)) <= 5 * error + 1e-9).all(), (name, (change.mean(axis=0) / error).round(1))
