"""The moves of the variances of the noise, where the noise is Laplace: normal, with a variance that nobody was told.

All variances are in units of their mean. A priori each is a gamma draw of mean 1; given the noise itself it follows
`inverse_gaussian`. The noise in S is known to a walker, which knows S. The noise in q is not, as q is integrated out:
so it is drawn first, and forgotten again afterwards.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hubbub.analyses.linear.sampler.draw import draw_q
from hubbub.analyses.linear.sampler.inverse_gaussian import inverse_gaussian
from hubbub.analyses.linear.sampler.state import Info, State, Variances
from hubbub.analyses.linear.sampler.target import Parts, Target, log_stand_in
from hubbub.arrays import Floats

_LEAST = 1e-10  # of a variance, in units of its mean: matrices stay invertible, and no draw comes near it


def move_variances(rng: np.random.Generator, state: State, target: Target) -> tuple[State, Info]:
    """Those of S given S; then those of q, then that of y'y, each as often as the law of y'y agrees."""
    held = replace(state.variances, S=_of_sums(rng, state, target))
    parts = target.parts(state.sums, state.hyper, state.model, held)
    q, parts = _of_products(rng, state, target, held, parts)
    yy, of_square = _of_square(rng, target, held.yy, parts)
    likelihood = parts.log - parts.of_square + of_square
    moved = np.mean((q != held.q).any(axis=1))  # those of S always move
    return replace(state, variances=Variances(held.S, q, yy), likelihood=likelihood), Info(float(moved))


def _of_sums(rng: np.random.Generator, state: State, target: Target) -> Floats:
    """Given the noise in S, one for each term on and above the diagonal: below it are the same released numbers."""
    row, column = np.triu_indices(target.p)
    noise = (target.S - state.S)[:, row, column] / target.noise
    square = np.where(row == column, 1.0, 2.0) * noise**2  # off the diagonal noise has half the variance
    found = np.empty_like(state.S)
    found[:, row, column] = found[:, column, row] = _given(rng, target, square)
    return found


def _of_products(
    rng: np.random.Generator, state: State, target: Target, held: Variances, parts: Parts
) -> tuple[Floats, Parts]:
    """Of q, with what they say of q and y'y.

    q, drawn given the noisy q alone, tells the noise and so the variances. They are a proposal: were it not for y'y,
    they would follow their law, so the stand-in law of y'y decides, which looks at them.
    """
    noise = parts.q - draw_q(rng, parts)
    proposed = replace(held, q=_given(rng, target, noise**2 / target.q_noise))
    there = target.parts(state.sums, state.hyper, state.model, proposed)
    taken = np.log(rng.uniform(size=state.walkers)) < there.of_square - parts.of_square
    return np.where(taken[:, None], proposed.q, held.q), there.where(taken, parts)


def _of_square(rng: np.random.Generator, target: Target, yy: Floats, parts: Parts) -> tuple[Floats, Floats]:
    """Of y'y, with the logarithm of its stand-in law. That has so heavy tails that it hardly tells variances apart:
    so they are proposed from their prior, which it mostly agrees with."""
    assert target.shape is not None
    if target.counted:
        return yy, parts.of_square
    proposed = np.maximum(rng.gamma(target.shape, 1 / target.shape, yy.shape), _LEAST)
    there = log_stand_in(parts.gap, parts.width + target.square_noise * (proposed - yy))
    taken = np.log(rng.uniform(size=yy.shape)) < there - parts.of_square
    return np.where(taken, proposed, yy), np.where(taken, there, parts.of_square)


def _given(rng: np.random.Generator, target: Target, square: Floats) -> Floats:
    """Variances given the squares of the noise they made, both in units of the mean variance."""
    assert target.shape is not None
    return np.maximum(inverse_gaussian(rng, target.shape - 0.5, 2 * target.shape, square), _LEAST)
