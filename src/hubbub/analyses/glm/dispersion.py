"""The dispersion of y, from what the Newton steps released of it, and what it does to the intercept.

Each step sums, beside the score, what every row says of the dispersion: c^2 - a c less its mean, over 2.25 k^2, where c
is the clipped residual in deviations, k the band and a as in `statistics/log_link.py`. Its mean is zero where the
step's dispersion is the true one, and else a known function of the true one and of the row's mean. Means of rows are
known well enough for that: about e^eta with a normal eta.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hubbub.analyses.glm.tuning import TUNING
from hubbub.arrays import Floats
from hubbub.statistics.log_link import Dispersed

if TYPE_CHECKING:
    from hubbub.analyses.glm.look import Step

_GRID = np.linspace(np.log(1e-3), np.log(1e2), 461)  # of the logarithm
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True)
class Dispersion:
    """What is known of it: its logarithm is about normal."""

    log: float
    log_std: float
    tilt: float = 0.0
    """By how much the intercept falls short where the logarithm is larger by one."""

    @property
    def value(self) -> float:
        """Its median."""
        return float(np.exp(self.log))

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """Its central credible interval."""
        from scipy.special import ndtri

        half = float(ndtri((1 + level) / 2)) * self.log_std
        return float(np.exp(self.log - half)), float(np.exp(self.log + half))

    def of_intercept(self, rng: np.random.Generator, size: tuple[int, ...]) -> Floats:
        """Draws of what the intercept is off by, as the dispersion is not known exactly."""
        return self.tilt * self.log_std * rng.standard_normal(size)


def dispersion(steps: Sequence[Step], found: Floats, n: int, offset: tuple[float, float]) -> Dispersion:
    """From all steps; with mean and deviation of the rows' offsets, and coefficients that are thought to be near.

    Rows are the same in all steps, so what sampling does is common to them; the noise is each step's own. What a
    step's coefficients still lacked looks like dispersion, and counts as a deviation.
    """
    seen = [step for step in steps if isinstance(step.response, Dispersed)]
    expected = np.array([_averaged(step, offset, np.exp(_GRID))[1] for step in seen])
    gaps = np.array([step.spread for step in seen])[:, None] - n * expected
    own = np.array([step.spread_noise**2 + _lacked(step, found) ** 2 for step in seen])
    chance = n * TUNING.spread_variance
    precision = np.linalg.inv(np.diag(own + 1e-6 * chance) + chance)
    log = -0.5 * np.einsum("ig,ij,jg->g", gaps, precision, gaps)
    log -= 0.5 * ((_GRID - np.log(TUNING.dispersion)) / TUNING.dispersion_doubt) ** 2
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    mean = float(weights @ _GRID)
    std = float(np.hypot(np.sqrt(weights @ (_GRID - mean) ** 2), (_GRID[1] - _GRID[0]) / np.sqrt(12)))
    mean = float(f"{mean:.6g}")
    low, high = _shift(seen[-1], offset, np.exp(mean + np.array([-0.1, 0.1])))
    return Dispersion(mean, std, float(low - high) / 0.2)


def corrected(steps: Sequence[Step], found: Dispersion, offset: tuple[float, float]) -> list[Step]:
    """The steps with scores as they would be on average, had each been made with the dispersion that was found."""
    return [
        replace(step, score=step.score - _shift(step, offset, np.array([found.value])) * step.by_constant)
        if isinstance(step.response, Dispersed) else step
        for step in steps
    ]  # fmt: skip


def _shift(step: Step, offset: tuple[float, float], dispersions: Floats) -> Floats:
    """How far the intercept is moved by taking the response's dispersion for each of these."""
    residual, _, information = _averaged(step, offset, dispersions)
    return residual / max(information, 1e-300)


def _averaged(step: Step, offset: tuple[float, float], dispersions: Floats) -> tuple[Floats, Floats, float]:
    """Means over rows of residual and spread under each of these dispersions, and of the information."""
    assert isinstance(step.response, Dispersed)
    centre, scale = offset
    eta = step.at[0] + centre + np.hypot(np.linalg.norm(step.at[1:]), scale) * _NODES
    residual, spread = step.response.under(eta, dispersions[:, None])
    information = step.response.working(eta, np.ones_like(eta)).information
    return residual @ _WEIGHTS, spread @ _WEIGHTS, float(_WEIGHTS @ information)


def _lacked(step: Step, found: Floats) -> float:
    """What the way from a step's coefficients to those found adds to the squared residuals, over the squared band."""
    assert isinstance(step.response, Dispersed)
    on = step.away(found)
    return max(0.0, float(on @ step.information @ on)) / step.response.band**2
