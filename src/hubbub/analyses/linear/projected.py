"""Bayesian linear regression by sufficient-statistic perturbation: plain and projected (Algorithm 2).

    y_i ~ N(x_i' beta, 1/noise_precision),   beta ~ N(0, I/prior_precision)

The private part ends with the Gram sums; what follows is post-processing and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.analyses.linear.repair import Repair, repaired_matrix
from hubbub.analyses.linear.thresholds import find_thresholds
from hubbub.analyses.posterior import NormalPosterior
from hubbub.analyses.rounds import Engine, Rounds
from hubbub.arrays import Floats, finite_rows
from hubbub.privacy import Ledger, Release
from hubbub.privacy.report import Round
from hubbub.statistics import Box, Formula, Gram, Regression, SecondMoments

DEVIATIONS_SHARE = 0.3  # the paper's share of the budget for the deviations
FALLBACK_DEVIATION = 1 / 15  # of the assumed bound: the paper's 0.5 at its bound of 7.5


@dataclass(frozen=True)
class Fit:
    """What the private rounds gave: the noisy sums, how they were bounded, and how they were made."""

    gram: Gram
    n: int
    bound: Box
    rounds: tuple[Round, ...]

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise in each of the sums."""
        return self.rounds[-1].release.noise_std


def fit_plain(
    rows: Floats,
    bound: Box,
    multiplier: float,
    engine: Engine,
    *,
    ledger: Ledger | None = None,
    formula: Formula = "tight",
) -> Fit:
    """One round: the regression sums of data clipped to the assumed bounds."""
    rows = finite_rows("rows", rows, bound.features + 1)
    with Rounds(engine, ledger, [("regression", multiplier)]) as rounds:
        return _regression_round(rounds, rows, bound, formula)


def fit_projected(
    rows: Floats,
    bound: Box,
    multipliers: Sequence[float],
    engine: Engine,
    *,
    ledger: Ledger | None = None,
    formula: Formula = "tight",
    prior_precision: float = 1.0,
    noise_precision: float = 1.0,
    thresholds: tuple[float, float] | None = None,
    fallback: float | None = None,
) -> Fit:
    """Algorithm 2: deviations, then thresholds found on auxiliary data, then the regression sums.

    `thresholds` skips the search where the caller has done it. `fallback` is the deviation assumed where the
    noise makes a variance negative: the paper's 0.5, or by default a fifteenth of the bound.
    """
    rows = finite_rows("rows", rows, bound.features + 1)
    assert bound.y is not None
    limits = np.array([*bound.x, bound.y])
    p_x, p_y = thresholds or find_thresholds(
        clients=rows.shape[0], features=bound.features, multiplier=multipliers[1],
        population=engine.population(rows.shape[0]),
        formula=formula, prior_precision=prior_precision, noise_precision=noise_precision,
    )  # fmt: skip
    with Rounds(engine, ledger, list(zip(("deviations", "regression"), multipliers, strict=True))) as rounds:
        release = rounds.run(rows, SecondMoments(tuple(limits)))
        deviations = private_deviations(release, limits * FALLBACK_DEVIATION if fallback is None else fallback)
        projected = np.minimum(deviations * np.append(np.full(bound.features, p_x), p_y), limits)
        inner = Box(tuple(projected[:-1]), float(projected[-1]))
        return _regression_round(rounds, rows, inner, formula)


def private_deviations(release: Release, fallback: float | Floats) -> Floats:
    """Standard deviations of (centred) columns from the noisy second moments."""
    variance = release.value / release.n
    return np.where(variance > 0, np.sqrt(np.maximum(variance, 0.0)), fallback)


def _regression_round(rounds: Rounds, rows: Floats, bound: Box, formula: Formula) -> Fit:
    statistic = Regression(bound, formula=formula)
    release = rounds.run(rows, statistic)
    return Fit(statistic.unflatten(release.value), release.n, bound, rounds.done)


def normal_posterior(
    gram: Gram,
    *,
    noise_std: float = 0.0,
    prior_precision: float = 1.0,
    noise_precision: float = 1.0,
    repair: Repair = "flip",
) -> NormalPosterior:
    """The paper's posterior: the noisy sums in the formula as if they were exact, XX' repaired first.

    Its intervals ignore the noise of the mechanism and are too narrow where that noise is large.
    """
    xx = repaired_matrix(gram.xx, repair, noise_std)
    precision = prior_precision * np.eye(gram.xy.size) + noise_precision * xx
    covariance = np.linalg.inv(precision)
    return NormalPosterior(covariance @ (noise_precision * gram.xy), (covariance + covariance.T) / 2)
