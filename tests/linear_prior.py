"""Draws from the prior of the default regression, as its own documentation has it: what tests of the sampler start from."""

from __future__ import annotations

import numpy as np
from scipy.stats import ortho_group

from hubbub.analyses.linear.residuals import residual_laws
from hubbub.analyses.linear.sampler.state import Sums
from hubbub.analyses.linear.sampler.target import Target
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats


def symmetric(rng: np.random.Generator, p: int) -> Floats:
    normal = rng.standard_normal((p, p))
    return (normal + normal.T) / 2


def drawn_sums(rng: np.random.Generator, target: Target) -> tuple[Floats, float, float]:
    """S, its level and the deviation of log S from their prior, which the kernels imply (test_kernels has each of them):

    the deviation of log S's eigenvalues log-uniform, these independent and normal with it around their mean, the axes in
    any direction, the mean eigenvalue and the level flat, times the normal densities of log S_jj around the level. These depend on the difference of the two flat
    numbers, which is drawn from them; what is left of them is the chance that a draw is kept. Where the trace is known,
    so is the mean eigenvalue.
    """
    p, top = target.p, np.log(target.most / target.p)
    precision = target.doubt[:-1] ** -2.0
    while True:
        spread = np.exp(rng.uniform(*np.log(TUNING.spread)))
        logs = spread * rng.standard_normal(p)
        axes = ortho_group.rvs(p, random_state=rng) if p > 1 else np.eye(1)
        S = (axes * np.exp(logs - logs.mean())) @ axes.T
        level = top + np.log(TUNING.least_level) * rng.uniform()
        if target.full:
            S *= target.most / np.trace(S)
            middle = level
        else:
            middle = np.average(np.log(np.diag(S)), weights=precision)
            S *= np.exp(level - middle + rng.standard_normal() / np.sqrt(precision.sum()))
            middle = np.average(np.log(np.diag(S)), weights=precision)
        kept = np.exp(-0.5 * np.sum(precision * (np.log(np.diag(S)) - middle) ** 2))
        if np.trace(S) <= target.most * (1 + 1e-9) and rng.uniform() < kept:
            return S, level, float(spread)


def drawn_counts(rng: np.random.Generator, deviation: float, n: int, noise: float) -> Floats:
    """Noisy counts of residuals of this deviation that follow one of the laws, all of them equally likely."""
    shares = residual_laws().at(np.array([deviation]))
    shares = shares[rng.integers(len(shares)), 0]
    variance = (noise / n) ** 2 + shares * (1 - shares) / n + TUNING.residual_shape**2
    return n * (shares + np.sqrt(variance) * rng.standard_normal(shares.size))


def drawn_hyper(rng: np.random.Generator, target: Target, level: float) -> Floats:
    """Logarithm of n V, and logits of two shares: of a beta law of one shape, and uniform."""
    explained = rng.beta(TUNING.explained_shape, TUNING.explained_shape)
    explained = np.clip(explained, 1e-12, 1 - 1e-12)
    logit = np.log(explained / (1 - explained))
    return np.array([level + target.doubt[-1] * rng.standard_normal(), logit, rng.logistic()])


def drawn_parameters(rng: np.random.Generator, target: Target) -> tuple[Floats, Floats, float, int]:
    """S, beta, residual variance and model from their prior."""
    S, level, _ = drawn_sums(rng, target)
    hyper = drawn_hyper(rng, target, level)[None]
    model = int(rng.integers(len(target.models)))
    (s2,), (T,) = target.variances(Sums.of(S[None]), hyper, np.array([model]))
    values, vectors = np.linalg.eigh(T)
    beta = vectors @ (np.sqrt(np.maximum(values, 0)) * rng.standard_normal(target.p))
    return S, beta, float(s2), model
