"""What the Newton steps of one study released, and what they say together of the coefficients.

The score of step k around b_k is q_k = sum c e u. At the truth its mean is zero, so around b_k it is about H_k (theta -
b_k), with H_k the information: the same as X'y of a linear regression around b_k with X'X = H_k, whose errors have the
covariance sum c^2 v uu'.

The last step may have been at turned rows A u (`linear/turned.py`). Steps are then held against one another in the axes
of A, stretched as these rows are: there the last step's noise is alike along all axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hubbub.analyses.glm.dispersion import Dispersion
from hubbub.analyses.glm.tuning import TUNING
from hubbub.analyses.linear.columns import Columns
from hubbub.analyses.linear.evidence import Evidence, Look
from hubbub.analyses.linear.released import Released
from hubbub.analyses.linear.shrinkage import shrunk_covariance
from hubbub.analyses.linear.tuning import TUNING as LINEAR
from hubbub.analyses.linear.turned import Axes, Uneven, choose_turn
from hubbub.arrays import Floats
from hubbub.protocols import Release
from hubbub.statistics import Ball, Gram, NewtonStep
from hubbub.statistics.responses import Response

NOT_SEEN = 1e100
"""The noise of the sum of squares, of which a generalised linear model has none."""
_PRIOR_VARIANCES = np.logspace(-3, 2, 40)  # of a standardised coefficient
_LEAST_EIGENVALUE = 0.02  # of the information, of the mean one: the closed form needs an inverse


@dataclass(frozen=True)
class Step:
    """One Newton step's release: its sums are of standardised rows u, or of turned ones. Noise is a deviation."""

    at: Floats
    """b, the public state, of u."""
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
    turn: Floats | None = None
    """A, where rows were A u."""

    @classmethod
    def of(cls, statistic: NewtonStep, release: Release, turn: Floats | None = None) -> Step:
        """What a round released."""
        sums, noise = statistic.unflatten(release.value), max(release.noise_std, 1e-9 * release.n)
        state = np.array(statistic.state)
        return cls(
            state if turn is None else turn @ state, sums.score, noise / statistic.weight, sums.information, noise,
            sums.variance, noise / statistic.trace, statistic.information, statistic.response, sums.spread,
            noise / statistic.spread if statistic.spread > 0 else 0.0, turn,
        )  # fmt: skip

    def away(self, theta: Floats) -> Floats:
        """From the state to these coefficients, in the units of the rows that were summed."""
        way = theta - self.at
        return np.asarray(way if self.turn is None else np.linalg.solve(self.turn, way), dtype=np.float64)

    @property
    def of_rows(self) -> Floats:
        """The information of rows u."""
        if self.turn is None:
            return self.information
        back = np.linalg.inv(self.turn)
        return np.asarray(back @ self.information @ back)

    @property
    def by_constant(self) -> Floats:
        """What the score changes by where the coefficient of the constant does."""
        first = np.eye(len(self.at))[0]
        return np.asarray(self.information @ (first if self.turn is None else np.linalg.solve(self.turn, first)))

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


class InterceptPrior(NamedTuple):
    """The prior of the intercept at the columns' means."""

    mean: float = 0.0
    std: float = 5.0


@dataclass(frozen=True)
class Stepped(Released):
    """The last step as a noisy regression of known residual variance, with the steps before it as further looks."""

    looks: tuple[Look, ...] = ()
    ratio: float = 1.0
    """Residual variance: the covariance of the score is about so many times the information."""
    dispersion: Dispersion | None = None
    """Of the law of y, where it has one."""
    uneven: Uneven | None = None
    """The noise, where the last step was at turned rows."""
    intercept_prior: InterceptPrior = field(default_factory=InterceptPrior)

    @cached_property
    def evidence(self) -> Evidence:
        """All steps around the last one's state."""
        return self._cautious(Evidence(self.sums.xx, self.noise_std, self.shape, self.looks, uneven=self.uneven))


def stepped(steps: Sequence[Step], coefficients: Floats, n: int, columns: Columns, shape: float | None) -> Stepped:
    """What the steps say, as a regression; `coefficients` is where they are thought to be."""
    last, (seen, noise) = steps[-1], looks(steps, coefficients)
    uneven, size, longest = None, last.noise, 1.0
    if last.turn is not None:
        axes = Axes.of(last.turn)
        uneven = Uneven(axes, last.noise / np.outer(axes.stretch, axes.stretch), noise)
        size, longest = float(np.median(np.diagonal(uneven.xx))), 1 / float(uneven.axes.stretch.min())
    ball = Ball(math.sqrt(last.most) * longest, len(last.at), y=1.0)
    return Stepped(
        Gram(last.of_rows, seen[-1].xy, 0.0), n, size, ball, columns, True, shape, looks=seen, ratio=last.ratio,
        uneven=uneven,
    )  # fmt: skip


def turn_after(step: Step, n: int, shape: float | None) -> Floats | None:
    """What rows of the last step are multiplied by, from the information of the step before; nothing where that would
    not pay, or make things harder (`linear/pilot.py`).

    The information counts a row by its part of what an average one tells, which a row in standard units does not.
    """
    p = len(step.at)
    if shape is not None or p > LINEAR.most_turned or n < LINEAR.few_rows_of_many * p:
        return None
    each = float(step.information[0, 0]) / n
    if n * each <= math.sqrt(2 * p) * step.noise:  # the edge of the eigenvalues that noise alone makes
        return None
    return choose_turn(step.information / each, step.noise / each, n)


def looks(steps: Sequence[Step], found: Floats | None = None) -> tuple[tuple[Look, ...], Floats]:
    """Every step's score, as one of the regression that the last step is; and its noise along each axis of the turn.

    Between the states of two steps the score changes by their mean information times the way between them, up to the
    third order. What that differs by from the last information is added to the earlier score, with its noise; and as
    its deviation, for the order that is left out.

    With `found`, where the coefficients are thought to be, the last score has a deviation, too: by what the information
    changes on the way there, if it goes on changing as it did between the last two states.
    """
    last, axes = _Along.of(steps[-1], steps[-1]), _axes(steps[-1])
    seen, deviations = list[Look](), list[Floats]()
    for step in steps:
        along = _Along.of(step, steps[-1])
        change, noise = along.change(last, along.at - last.at)
        left_out = TUNING.curvature * _beyond(change, noise)
        deviation = np.sqrt(along.score_noise**2 + left_out**2 + noise**2)
        if found is not None and step is steps[-1] and len(steps) > 1:
            before, on = _Along.of(steps[-2], step), axes.along.T @ (found - step.at) / axes.stretch
            further = np.linalg.norm(on) / max(float(np.linalg.norm(before.at - last.at)), 1e-9)
            left_out = TUNING.curvature * float(further) * _beyond(*before.change(last, on))
            deviation = np.sqrt(deviation**2 + left_out**2)
        deviations.append(deviation / axes.stretch)
        score = axes.along @ ((along.score + change) / axes.stretch)
        seen.append(Look(step.at, score, float(np.median(deviations[-1])), 0.0, NOT_SEEN))
    return tuple(seen), np.array(deviations)


def _axes(last: Step) -> Axes:
    """Those of the last step's turn; where it has none, those of the rows as they are."""
    p = len(last.at)
    return Axes(np.eye(p), np.ones(p)) if last.turn is None else Axes.of(last.turn)


@dataclass(frozen=True)
class _Along:
    """A step in the axes of the last step's turn, with rows stretched as there."""

    at: Floats
    score: Floats
    score_noise: Floats
    information: Floats
    noise: Floats
    """(p, p): of a term, as if it were on the diagonal."""

    @classmethod
    def of(cls, step: Step, last: Step) -> _Along:
        """A step that is not turned itself has its noise stretched as well."""
        (along, stretch), p = _axes(last), len(step.at)
        at = along.T @ step.at / stretch
        if step.turn is None:
            score, more = stretch * (along.T @ step.score), np.outer(stretch, stretch)
            information = more * (along.T @ step.information @ along)
            return cls(at, score, stretch * step.score_noise, information, more * step.noise)
        information = along.T @ step.information @ along
        return cls(at, along.T @ step.score, np.full(p, step.score_noise), information, np.full((p, p), step.noise))

    def change(self, last: _Along, way: Floats) -> tuple[Floats, Floats]:
        """Half of what the information changes by from here to the last step, times a way; and the noise in that."""
        noise = np.sqrt((self.noise**2 + last.noise**2) @ way**2 / 8)
        return 0.5 * (self.information - last.information) @ way, noise


def _beyond(change: Floats, noise: Floats) -> float:
    """The size of a term of this beyond what noise makes of it."""
    return float(np.sqrt(max(0.0, float(np.mean(change**2 - noise**2)))))


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
    last, on = steps[-1], steps[-1].away(found)
    values = np.linalg.eigvalsh(last.information)
    chance = last.score_noise**2 * float(np.sum(1 / np.maximum(values, last.noise))) + len(on) * last.ratio
    moved = float(on @ last.information @ on)
    return float(np.sqrt(max(0.0, moved - 9 * chance) / max(float(last.of_rows[0, 0]), last.noise)))


def estimate(steps: Sequence[Step], n: int, intercept_prior: InterceptPrior) -> Floats:
    """Coefficients that a closed form finds: where the next step looks. Six digits, for replays on other machines.

    theta ~ N(0, t I) but for the intercept, whose prior is given, with the evidence weighing t; information is shrunk
    by what its noise warrants.
    """
    (along, stretch), last = _axes(steps[-1]), _Along.of(steps[-1], steps[-1])
    seen, noise = looks(steps)
    S, _ = shrunk_covariance(last.information, steps[-1].noise, n)
    values, vectors = np.linalg.eigh(S)
    S, p = vectors * np.maximum(values, _LEAST_EIGENVALUE * values.mean()) @ vectors.T, len(S)
    precisions, q = (noise * stretch) ** -2.0, S @ last.at
    for look, weight in zip(seen, precisions / precisions.sum(axis=0), strict=True):
        q = q + weight * (stretch * (along.T @ look.xy) + S @ (along.T @ look.around / stretch - last.at))
    priors = np.column_stack([np.full(len(_PRIOR_VARIANCES), intercept_prior.std**2), *[_PRIOR_VARIANCES] * (p - 1)])
    back = (along / stretch).T  # coefficients of u along these axes
    q = q - S @ back[:, 0] * intercept_prior.mean
    covariances = S @ ((back * priors[:, None]) @ back.T) @ S  # one for each prior
    covariances = covariances + steps[-1].ratio * S + np.diag(1 / precisions.sum(axis=0))
    solved = np.linalg.solve(covariances, np.broadcast_to(q, (len(priors), p))[..., None])[..., 0]
    evidence = -0.5 * (np.linalg.slogdet(covariances)[1] + solved @ q)
    means = priors * (solved @ S.T @ back)
    weights = np.exp(evidence - evidence.max())
    return rounded(weights @ means / weights.sum() + intercept_prior.mean * np.eye(p)[0])


def rounded(values: Floats) -> Floats:
    """Six digits: closed forms differ by less from machine to machine."""
    return np.array([float(f"{value:.6g}") for value in np.asarray(values).ravel()])
