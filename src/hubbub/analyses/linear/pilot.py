"""What the sums so far say of where the next round should look: coefficients, and how widely residuals vary.

A closed form, and rounded: whoever replays a study from its releases, on another machine, gets the same steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hubbub.analyses.linear.released import Released
from hubbub.analyses.linear.shrinkage import shrinkage_posterior
from hubbub.analyses.linear.tuning import TUNING
from hubbub.analyses.linear.turned import choose_turn
from hubbub.arrays import Floats


@dataclass(frozen=True)
class Pilot:
    """In standard units."""

    around: Floats
    """Coefficients, that of the constant first where there is an intercept."""
    unit: float
    """The deviation of residuals."""


def pilot(released: Released) -> Pilot:
    """From the rounds of sums so far."""
    quick = shrinkage_posterior(released)
    xx, beta = released.evidence.xx, quick.coefficients.mean
    if released.intercept:  # rows are shortened by as much as the ball does to unit columns, or less
        most = released.n * min(1.0, released.ball.radius**2 / xx.shape[0])
        xx = xx.copy()
        xx[0, 0] = np.clip(xx[0, 0], TUNING.least_shortening * released.n, most)
    shortened = float(np.clip(released.shortening(xx[None])[0], TUNING.least_shortening, 1.0))
    variance = quick.residual_variance / shortened
    if released.residuals:
        counted = np.array([released.residuals[-1].deviation])
        variance = float(released.unexplained(counted, beta[None], xx[None])[0])
    return Pilot(_rounded(beta), float(_rounded(math.sqrt(variance))))


def turn_of(first: Released) -> Floats | None:
    """What the rows of later rounds are multiplied by, from the first sums; nothing where that would not pay.

    Nor where it would make things harder: with many columns, few rows for them, noise that is not normal, or a ball
    that cannot hold the constant, in which the trace of the sums is known.
    """
    p = len(first.sums.xx)
    few = TUNING.few_rows if p <= TUNING.many_columns else TUNING.few_rows_of_many
    if first.shape is not None or p > TUNING.most_turned or first.n < few * p or first.ball.radius <= 1:
        return None
    return choose_turn(first.sums.xx, first.noise_std, first.n)


def _rounded(values: Floats | float) -> Floats:
    """Six digits: closed forms differ by less from machine to machine."""
    return np.vectorize(lambda value: float(f"{value:.6g}"))(values)  # type: ignore[no-any-return]
