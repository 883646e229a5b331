"""What the first sums say of where the last round should look: coefficients, and how widely residuals vary.

A closed form, and rounded: whoever replays a study from its releases, on another machine, gets the same steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hubbub.analyses.linear.released import Released
from hubbub.analyses.linear.shrinkage import shrinkage_posterior
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats


@dataclass(frozen=True)
class Pilot:
    """In standard units."""

    around: Floats
    """Coefficients, that of the constant first where there is an intercept."""
    unit: float
    """The deviation of residuals."""


def pilot(released: Released) -> Pilot:
    """From a release of one round of sums."""
    assert released.second is None
    quick = shrinkage_posterior(released)
    xx = released.sums.xx
    if released.intercept:  # rows are shortened by as much as the ball does to unit columns, or less
        most = released.n * min(1.0, released.ball.radius**2 / xx.shape[0])
        xx = xx.copy()
        xx[0, 0] = np.clip(xx[0, 0], TUNING.least_shortening * released.n, most)
    shortened = float(np.clip(released.shortening(xx[None])[0], TUNING.least_shortening, 1.0))
    return Pilot(_rounded(quick.coefficients.mean), float(_rounded(math.sqrt(quick.residual_variance / shortened))))


def _rounded(values: Floats | float) -> Floats:
    """Six digits: closed forms differ by less from machine to machine."""
    return np.vectorize(lambda value: float(f"{value:.6g}"))(values)  # type: ignore[no-any-return]
