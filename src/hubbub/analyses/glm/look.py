"""What the Newton steps of one study released, and what they say together of the coefficients.

The score of step k around b_k is q_k = sum c e u. At the truth its mean is zero, so around b_k it is about H_k (theta -
b_k), with H_k the information: the same as X'y of a linear regression around b_k with X'X = H_k, whose errors have the
covariance sum c^2 v uu'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hubbub.analyses.glm.dispersion import Dispersion
from hubbub.analyses.glm.tuning import TUNING
from hubbub.analyses.linear.evidence import Evidence, Look
from hubbub.analyses.linear.released import Released
from hubbub.analyses.linear.shrinkage import shrunk_covariance
from hubbub.arrays import Floats
from hubbub.protocols import Release
from hubbub.statistics import NewtonStep
from hubbub.statistics.responses import Response

NOT_SEEN = 1e100
"""The noise of the sum of squares, of which a generalised linear model has none."""
_PRIOR_VARIANCES = np.logspace(-3, 2, 40)  # of a standardised coefficient
_LEAST_EIGENVALUE = 0.02  # of the information, of the mean one: the closed form needs an inverse


@dataclass(frozen=True)
class Step:
    """One Newton step's release, in standard units. Noise is a standard deviation."""

    at: Floats
    """b, the public state."""
    score: Floats
    score_noise: float
    information: Floats
    noise: float
    """Of a diagonal term of the information; others bear it over the square root of two."""
    variance: float
    """Trace of the covariance of the score, as the squared lengths of the rows' scores add up to it."""
    variance_noise: float
    most: float
    """Largest trace that the information of one row can have."""
    response: Response | None = None
    spread: float = 0.0
    """Sum of what rows say of the dispersion, less what is expected where it is the response's."""
    spread_noise: float = 0.0

    @classmethod
    def of(cls, statistic: NewtonStep, release: Release) -> Step:
        """What a round released."""
        sums, noise = statistic.unflatten(release.value), max(release.noise_std, 1e-9 * release.n)
        return cls(
            np.array(statistic.state), sums.score, noise / statistic.weight, sums.information, noise, sums.variance,
            noise / statistic.trace, statistic.information, statistic.response, sums.spread,
            noise / statistic.spread if statistic.spread > 0 else 0.0,
        )  # fmt: skip

    @property
    def ratio(self) -> float:
        """Variance of the score over the information, by their traces; 1 where noise hides them.

        Below 1 where rows are shortened or clipped, above where y varies more than its family says.
        """
        trace, p = float(np.trace(self.information)), len(self.at)
        if trace < TUNING.known_ratio * self.noise * np.sqrt(p):
            return 1.0
        return float(np.clip(self.variance / trace, *TUNING.ratios))

    @property
    def overdispersed(self) -> bool:
        """True where scores surely vary more than the family says: their variance exceeds the information."""
        trace, p = float(np.trace(self.information)), len(self.at)
        doubt = 3 * float(np.hypot(self.variance_noise, self.noise * np.sqrt(p)))
        return self.variance > TUNING.dispersed * trace + doubt


@dataclass(frozen=True)
class Stepped(Released):
    """The last step as a noisy regression of known residual variance, with the steps before it as further looks."""

    looks: tuple[Look, ...] = ()
    ratio: float = 1.0
    """Residual variance: the covariance of the score is about so many times the information."""
    dispersion: Dispersion | None = None
    """Of the law of y, where it has one."""

    @cached_property
    def evidence(self) -> Evidence:
        """All steps around the last one's state."""
        return self._cautious(Evidence(self.sums.xx, self.noise_std, self.shape, self.looks))


def looks(steps: Sequence[Step], found: Floats | None = None) -> tuple[Look, ...]:
    """Every step's score, as one of the regression that the last step is.

    Between the states of two steps the score changes by their mean information times the way between them, up to the
    third order. What that differs by from the last information is added to the earlier score, with its noise; and as
    its deviation, for the order that is left out.

    With `found`, where the coefficients are thought to be, the last score has a deviation, too: by what the information
    changes on the way there, if it goes on changing as it did between the last two states.
    """
    last, seen = steps[-1], list[Look]()
    for step in steps:
        way = step.at - last.at
        change, noise = _change(step, last, way)
        left_out = TUNING.curvature * _beyond(change, noise)
        seen.append(Look(step.at, step.score + change, float(np.hypot(step.score_noise, left_out)), 0.0, NOT_SEEN))
        seen[-1] = replace(seen[-1], xy_noise=float(np.hypot(seen[-1].xy_noise, noise)))
    if found is not None and len(steps) > 1:
        on = found - last.at
        further = np.linalg.norm(on) / max(float(np.linalg.norm(steps[-2].at - last.at)), 1e-9)
        left_out = TUNING.curvature * float(further) * _beyond(*_change(steps[-2], last, on))
        seen[-1] = replace(seen[-1], xy_noise=float(np.hypot(seen[-1].xy_noise, left_out)))
    return tuple(seen)


def _change(step: Step, last: Step, way: Floats) -> tuple[Floats, float]:
    """Half of what the information changes by between two steps, times a way; and the noise in that."""
    noise = float(np.linalg.norm(way)) * float(np.hypot(step.noise, last.noise)) / np.sqrt(8)
    return 0.5 * (step.information - last.information) @ way, float(noise)


def _beyond(change: Floats, noise: float) -> float:
    """The size of a term of this beyond what noise makes of it."""
    return float(np.sqrt(max(0.0, float(change @ change) / len(change) - noise**2)))


def unattenuated(found: Floats, first: Step, attenuation: float) -> Floats:
    """Coefficients that a first look from an intercept alone found, as large as they are if x is normal: six digits.

    The deviation s of their linear predictor is that of normal columns with the noisy information as their covariance.
    """
    if attenuation == 0:
        return found
    b, S = found[1:], first.information
    square = attenuation * max(0.0, float(b @ S[1:, 1:] @ b) / max(float(S[0, 0]), first.noise))
    return rounded(found / np.sqrt(max(1 - square, TUNING.least_left)))


def still_to_go(steps: Sequence[Step], found: Floats) -> float:
    """How far the last step would move on: the information-weighted deviation of the change in the linear predictor,
    beyond three deviations of what noise and sampling make of it.
    """
    last, on = steps[-1], found - steps[-1].at
    values = np.linalg.eigvalsh(last.information)
    chance = last.score_noise**2 * float(np.sum(1 / np.maximum(values, last.noise))) + len(on) * last.ratio
    moved = float(on @ last.information @ on)
    return float(np.sqrt(max(0.0, moved - 9 * chance) / max(float(last.information[0, 0]), last.noise)))


def estimate(steps: Sequence[Step], n: int, intercept: float) -> Floats:
    """Coefficients that a closed form finds: where the next step looks. Six digits, for replays on other machines.

    theta ~ N(0, t I) but for the intercept, whose deviation is given, with the evidence weighing t; information is
    shrunk by what its noise warrants.
    """
    last, seen = steps[-1], looks(steps)
    S, _ = shrunk_covariance(last.information, last.noise, n)
    values, axes = np.linalg.eigh(S)
    S = axes * np.maximum(values, _LEAST_EIGENVALUE * values.mean()) @ axes.T
    precisions = np.array([look.xy_noise**-2.0 for look in seen])
    q = np.asarray(sum(w * (look.xy + S @ (look.around - last.at)) for w, look in zip(precisions, seen, strict=True)))
    q, p = q / precisions.sum() + S @ last.at, len(S)
    priors = np.column_stack([np.full(len(_PRIOR_VARIANCES), intercept**2), *[_PRIOR_VARIANCES] * (p - 1)])
    covariances = (S * priors[:, None]) @ S + last.ratio * S + np.eye(p) / precisions.sum()  # one for each prior
    solved = np.linalg.solve(covariances, q[:, None])[..., 0]
    evidence = -0.5 * (np.linalg.slogdet(covariances)[1] + solved @ q)
    means = priors * (solved @ S.T)
    weights = np.exp(evidence - evidence.max())
    return rounded(weights @ means / weights.sum())


def rounded(values: Floats) -> Floats:
    """Six digits: closed forms differ by less from machine to machine."""
    return np.array([float(f"{value:.6g}") for value in np.asarray(values).ravel()])
