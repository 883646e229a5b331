"""From a state to a draw of the regression: what was integrated out is drawn again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.linear.sampler.state import State
from hubbub.analyses.linear.sampler.target import Parts, Target
from hubbub.arrays import Floats


@dataclass(frozen=True)
class Draw:
    """One draw for each row, in standard units."""

    beta: Floats
    residual_variance: Floats
    square: Floats
    """Mean square of y."""
    S: Floats
    log_weight: Floats
    """What makes up for the stand-in law of y'y."""

    def taken(self, rows: NDArray[np.intp]) -> Draw:
        """The draws of these rows."""
        return Draw(*(part[rows] for part in self._parts()))

    @classmethod
    def joined(cls, draws: list[Draw]) -> Draw:
        """All draws, those of the first sweep first."""
        return cls(*(np.concatenate(part) for part in zip(*(each._parts() for each in draws), strict=True)))

    def _parts(self) -> tuple[Floats, ...]:
        return self.beta, self.residual_variance, self.square, self.S, self.log_weight


def draw(rng: np.random.Generator, state: State, target: Target) -> Draw:
    """q given the noisy q, then beta given q, for each walker."""
    S = state.S
    parts = target.parts(S, state.hyper, state.model, state.variances)
    s2, q = parts.s2, draw_q(rng, parts)
    root = np.sqrt(parts.t)
    precision = target.eye + root[:, :, None] * S * root[:, None, :] / s2[:, None, None]
    gap = root * (q - S @ target.mean) / s2[:, None]
    normal = rng.standard_normal((*q.shape, 1))
    turned = np.linalg.solve(np.swapaxes(np.linalg.cholesky(precision), -1, -2), normal)
    beta = target.mean + root * (np.linalg.solve(precision, gap[..., None]) + turned)[..., 0]
    center = np.sum(q * np.linalg.solve(S, q[..., None])[..., 0], axis=-1) + target.dof * s2
    width = 2 * target.dof * s2**2 + target.yy_noise * state.variances.yy
    exact = -0.5 * np.log(width) - 0.5 * (target.yy - center) ** 2 / width
    return Draw(beta, s2, center / target.n, S, exact - parts.of_yy)


def draw_q(rng: np.random.Generator, parts: Parts) -> Floats:
    """The exact q of each walker, given the noisy one."""
    values, vectors = np.linalg.eigh((parts.covariance + np.swapaxes(parts.covariance, -1, -2)) / 2)
    normal = np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(parts.mean.shape)
    return np.asarray(parts.mean + np.einsum("cij,cj->ci", vectors, normal))
