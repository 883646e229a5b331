"""The closed form of `shrinkage.py` where some looks are at turned rows.

The same model, in the coordinates v = A u of the turned rows, in which S is near a multiple of the identity and can be
shrunk to that. There coefficients are A^-1 beta, with the prior covariance t A^-2, and noise differs from axis to axis.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from hubbub.analyses.linear.evidence import Evidence
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats

_FREE = 100.0  # prior variance of the intercept, of that of y: any large one will do
_ROUNDS = 4
_NEGLIGIBLE = 1e-6  # of a weight


class Found(NamedTuple):
    """In standard units."""

    mean: Floats
    covariance: Floats
    residual: float


def shrunk(seen: Evidence) -> tuple[Floats, Floats]:
    """S in the axes and units of the turned rows, pulled toward a multiple of the identity.

    And the variance of the noise that is left in each of its terms.
    """
    assert seen.uneven is not None
    (along, stretch), p = seen.uneven.axes, len(seen.xx)
    both = np.outer(stretch, stretch)
    S, variance = both * (along.T @ seen.xx @ along), (both * seen.uneven.xx) ** 2 * (1 + np.eye(p)) / 2
    mean = max(float(np.trace(S)) / p, 2 * float(np.sqrt(np.trace(variance))) / p)
    apart = S - mean * np.eye(p)
    kept = 1 - min(1.0, float(variance.sum()) / max(float(np.sum(apart**2)), 1e-300))
    values, axes = np.linalg.eigh(mean * np.eye(p) + kept * apart)
    return (axes * np.maximum(values, TUNING.least_eigenvalue * mean)) @ axes.T, kept * variance


def posterior(seen: Evidence, n: int, intercept: bool, mean_square: float, lacking: Floats, widths: Floats) -> Found:
    """beta ~ N(0, t I), mixed over widths t, but for an intercept that is free.

    `lacking` is the covariance of what the coefficients lack that the last look was around. Given t the products have
    the covariance S T S + residual S + noise: of the products themselves, and of what is left in S times what the
    coefficients lack. With T = t A^-2 and the rest brought to a diagonal together, every t is a matter of vectors.
    """
    assert seen.uneven is not None
    (along, stretch), products, square = seen.uneven.axes, *seen.together()
    S, left = shrunk(seen)
    into = along / stretch  # u = into v, and so the coefficients in the units of v are its inverse, transposed
    around = into.T @ seen.around
    c = stretch * (along.T @ products) + S @ around
    prior, products_noise = stretch**-2.0, (stretch * seen.uneven.xy_together) ** 2
    target = max(square, seen.looks[-1].square_noise, 1e-12 * n) / n
    size = max(mean_square, target)
    free = into[0] if intercept else np.zeros(len(S))
    variance = _FREE * size
    t = widths * size * n * len(S) / float(prior @ np.diagonal(S))
    lacked = np.diagonal(into.T @ lacking @ into)
    away, residual = lacked, target
    for _ in range(_ROUNDS):
        noise = residual * S + np.diag(products_noise + left @ away)
        signal = (S * prior) @ S
        values, basis = eigh(signal, noise)  # basis' noise basis = 1
        values = np.maximum(values, 0.0)
        seen_c, seen_free = basis.T @ c, basis.T @ (S @ free)
        shared = 1 / (t[:, None] * values + 1)
        open_ = 1 + variance * np.sum(seen_free**2 * shared, axis=1)
        met = np.sum(seen_c * seen_free * shared, axis=1)
        squares = np.sum(seen_c**2 * shared, axis=1) - variance * met**2 / open_
        evidence = 0.5 * np.sum(np.log(shared), axis=1) - 0.5 * np.log(open_) - 0.5 * squares
        weights = np.exp(evidence - evidence.max())
        weights /= weights.sum()
        solved = shared * seen_c - (variance * met / open_)[:, None] * shared * seen_free
        solved_S = solved @ (S @ basis).T
        means = t[:, None] * prior * solved_S + variance * (solved_S @ free)[:, None] * free
        mean = weights @ means
        step = mean - around
        residual = float(np.clip(target - step @ S @ step / n, TUNING.least_residual * target, target))
        away = np.minimum(float(weights @ t) * prior, lacked)
    covariance = np.zeros_like(S)
    through = S @ basis
    for row in np.flatnonzero(weights > _NEGLIGIBLE * weights.max()):
        T = np.diag(t[row] * prior) + variance * np.outer(free, free)
        inverse = (through * shared[row]) @ through.T
        along_free = through @ (shared[row] * seen_free)
        inverse -= variance / open_[row] * np.outer(along_free, along_free)
        spread = means[row] - mean
        covariance += weights[row] * (T - T @ inverse @ T + np.outer(spread, spread))
    back = along * stretch
    return Found(back @ mean, back @ covariance @ back.T, residual)


def noise_budget(seen: Evidence, mean: Floats, residual: float) -> dict[str, Floats]:
    """For each standardised coefficient the variance it owes to sampling, to the noise of X'y and to that of XX'."""
    assert seen.uneven is not None
    along = seen.uneven.axes.along
    values, vectors = np.linalg.eigh(seen.xx)
    size = np.einsum("ij,ik,kl,lj->j", vectors, along * np.diagonal(seen.uneven.xx), along.T, vectors)
    inverse = vectors @ np.diag(1 / np.maximum(values, size)) @ vectors.T  # below the noise nothing is known of S
    step, turned = along.T @ (mean - seen.around), inverse @ along
    variance = seen.uneven.xx**2 / 2
    of_xx = variance * np.outer(step, step) + np.diag(variance @ step**2)  # of the noise of XX' times the step
    return {
        "sampling": np.diag(inverse) * residual,
        "noise of X'y": turned**2 @ seen.uneven.xy_together**2,
        "noise of XX'": np.einsum("ij,jk,ik->i", turned, of_xx, turned),
    }
