"""From a state to a draw of the regression: what was integrated out is drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.linear.sampler.state import State
from hubbub.analyses.linear.sampler.target import Parts, Target
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats


@dataclass(frozen=True)
class Draw:
    """One draw for each row, in standard units."""

    beta: Floats
    residual_variance: Floats
    S: Floats
    log_weight: Floats
    """What makes up for the stand-in law of the squares."""
    mean: Floats
    """Of beta, had the exact sums of this draw been released."""
    covariance: Floats
    """Of beta, had they been."""

    def taken(self, rows: NDArray[np.intp]) -> Draw:
        """The draws of these rows."""
        return Draw(*(part[rows] for part in self._parts()))

    @classmethod
    def joined(cls, draws: Sequence[Draw]) -> Draw:
        """All draws, those of the first sweep first."""
        return cls(*(np.concatenate(part) for part in zip(*(each._parts() for each in draws), strict=True)))

    def _parts(self) -> tuple[Floats, ...]:
        return self.beta, self.residual_variance, self.S, self.log_weight, self.mean, self.covariance


def draw(rng: np.random.Generator, state: State, target: Target) -> Draw:
    """q given the noisy q, then beta given q, for each walker.

    Of several draws of q one is kept, as likely as the squares find it; the mean of what they find is the weight.
    """
    sums, tries = state.sums, TUNING.tries
    parts = target.parts(sums, state.hyper, state.model, state.variances)
    s2, rows = parts.s2, np.arange(state.walkers)
    drawn = draws_of_q(rng, parts, tries)
    along = np.einsum("cij,kci->kcj", sums.axes, drawn)
    center = np.sum(along**2 / sums.values, axis=-1) + target.dof * s2
    width = 2 * target.dof * s2**2 + target.square_noise * state.variances.yy
    if target.counted:
        log = target.log_counts(sums.S, drawn, center) - parts.of_square
    else:
        log = -0.5 * np.log(width) - 0.5 * (parts.square - center) ** 2 / width - parts.of_square
    reached = np.cumsum(np.exp(log - log.max(axis=0)), axis=0)
    kept = np.minimum((reached < rng.uniform(size=state.walkers) * reached[-1]).sum(axis=0), tries - 1)
    q = drawn[kept, rows]
    least = 1e-12 * _mean_diagonal(parts.T) + 1e-300  # a prior may be so narrow that its variance is 0
    root = np.linalg.cholesky(parts.T + least[:, None, None] * target.eye)
    back = np.swapaxes(root, -1, -2)
    precision = target.eye + back @ sums.S @ root / s2[:, None, None]
    gap = back @ (q - sums.S @ target.mean)[..., None] / s2[:, None, None]
    normal = rng.standard_normal((*q.shape, 1))
    upper = np.swapaxes(np.linalg.cholesky(precision), -1, -2)
    turned = np.linalg.solve(upper, normal)
    middle = np.linalg.solve(precision, gap)
    gamma = target.mean + (root @ (middle + turned))[..., 0]
    weight = np.log(reached[-1] / tries) + log.max(axis=0)
    mean = target.around + target.mean + (root @ middle)[..., 0]
    return Draw(target.around + gamma, s2, sums.S, weight, mean, root @ np.linalg.solve(precision, back))


def draw_q(rng: np.random.Generator, parts: Parts) -> Floats:
    """The exact q of each walker, given the noisy one."""
    return np.asarray(draws_of_q(rng, parts, 1)[0])


def draws_of_q(rng: np.random.Generator, parts: Parts, size: int) -> Floats:
    """(size, walkers, p): several of them."""
    values, vectors = np.linalg.eigh((parts.covariance + np.swapaxes(parts.covariance, -1, -2)) / 2)
    normal = np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal((size, *parts.mean.shape))
    return np.asarray(parts.mean + np.einsum("cij,kcj->kci", vectors, normal))


def _mean_diagonal(matrices: Floats) -> Floats:
    return np.asarray(np.trace(matrices, axis1=-2, axis2=-1) / matrices.shape[-1])
