"""What a generalised linear model can be expected to find, from public numbers alone.

A model study: independent normal columns of unit variance, all with effects of one size, that give the linear predictor
a deviation of SIGNAL; and a guess of the mean of y. First-order, so a guide:
`tests/analyses/glm/test_forecast.py` holds it against simulated fits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.analyses.glm.analysis import GLM, newton_step
from hubbub.analyses.glm.families import FAMILIES
from hubbub.analyses.glm.tuning import TUNING
from hubbub.analyses.linear.forecast import HALF_WIDTH, Forecast, chi_square
from hubbub.arrays import Floats
from hubbub.protocols import Budget, Mechanism, Population, RoundSpec
from hubbub.statistics import NewtonStep
from hubbub.statistics.responses import Response

SIGNAL = 0.7  # deviation of the linear predictor, as in `hubbub experiment glm`
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(21)


def guess_of_mean(family: str, y_bound: tuple[float, float]) -> float:
    """Of y, where none is given: half say yes; others have a mean of a tenth of their bound."""
    return 0.5 if FAMILIES[family].yes_no else y_bound[1] / 10


def forecast(analysis: GLM, mean: float, budget: Budget, population: Population, mechanism: Mechanism) -> Forecast:
    """Widths are of the linear predictor per deviation of a column; `mean` is a guess of the mean of y."""
    family, d = FAMILIES[analysis.family], len(analysis.features)
    origin, steps, lacking, missed = family.start(mean / analysis.unit), list[_Step](), SIGNAL**2, list[float]()
    variance = SIGNAL**2 / d
    for number, spec in enumerate(analysis.plan(budget, population, mechanism).specs[1:]):
        if number == family.rough:  # what the first looks found is where to look
            steps, missed = [], []
        steps.append(_step(spec, population, origin, 0.0 if number == 0 else SIGNAL, d))
        missed.append(lacking)
        variance, intercept = _posterior(steps, missed, family.intercept, d)
        lacking = min(SIGNAL**2, d * variance + intercept)
    best, _ = _posterior([_exact(steps[-1], population.n, origin, d)], [0.0], family.intercept, d)
    prior = 2 * HALF_WIDTH * SIGNAL / math.sqrt(d)
    return Forecast(2 * HALF_WIDTH * math.sqrt(variance), prior, math.sqrt(variance / best))


@dataclass(frozen=True)
class _Step:
    """What one round will tell: information of intercept and direction of the effects, and of every other direction."""

    response: Response
    plane: Floats
    """(2, 2)."""
    others: float
    ratio: float
    """Variance of the score, over the information."""
    noise: float
    """Of a diagonal term of the information."""
    score_noise: float


def _step(spec: RoundSpec, population: Population, origin: float, effect: float, d: int) -> _Step:
    """Of a round whose state has this effect: rows are shortened as they will be, if the columns are normal."""
    assert isinstance(spec.statistic, NewtonStep)
    response = spec.statistic.response
    step = newton_step(response, (origin, effect, *(0.0 for _ in range(d - 1))), origin)
    noise = spec.mechanism.settled(step, population).law(population.clients).std
    along, rest, weights = _rows(d)
    found = response.working(origin + effect * along, np.ones_like(along))
    square = 1 + along**2 + rest
    c = np.minimum(1.0, step.score / (found.most * np.sqrt(square)))
    c = np.minimum(c, step.information / np.maximum(found.information * square, 1e-300))
    plane, others, ratio = _moments(c, found.information, along, rest, weights, d)
    return _Step(response, population.n * plane, population.n * others, ratio, noise, noise / step.weight)


def _exact(step: _Step, n: int, origin: float, d: int) -> _Step:
    """The same without noise or shortened rows."""
    along, rest, weights = _rows(d)
    information = step.response.working(origin + SIGNAL * along, np.ones_like(along)).information
    plane, others, _ = _moments(np.ones_like(along), information, along, rest, weights, d)
    return _Step(step.response, n * plane, n * others, 1.0, 0.0, 0.0)


def _rows(d: int) -> tuple[Floats, Floats, Floats]:
    """Rows with their weights: x along the effects, and its squared length in the other directions."""
    rest = np.zeros(1) if d == 1 else chi_square(d - 1)
    along, rest = (part.ravel() for part in np.meshgrid(_NODES, rest))
    weights = np.tile(_WEIGHTS / _WEIGHTS.sum(), along.size // _NODES.size)
    return along, rest, weights / weights.sum()


def _moments(
    c: Floats, information: Floats, along: Floats, rest: Floats, weights: Floats, d: int
) -> tuple[Floats, float, float]:
    """Of an average row, and how much smaller shortening makes the variance of the score."""
    u, w = np.column_stack([np.ones_like(along), along]), weights * c * information
    square = 1 + along**2 + rest
    return (u * w[:, None]).T @ u, float(w @ rest) / max(d - 1, 1), float((w * c) @ square) / float(w @ square)


def _posterior(steps: Sequence[_Step], missed: Sequence[float], intercept: float, d: int) -> tuple[float, float]:
    """Mean variance of a coefficient, and that of the intercept, from all steps around the last one's state.

    `missed` is the squared error of each step's state. As in `look.py`, the way between two states bears the noise of
    both informations, and the last score the noise of its own information times what its state still lacks.
    """
    last, precision = steps[-1], 0.0
    for step, squared in zip(steps, missed, strict=True):
        way = 0.0 if step is last else math.sqrt(squared + missed[-1])
        change = 0.5 * way * (step.plane - last.plane)[1]
        curved = TUNING.curvature**2 * float(change @ change) / (d + 1)
        moved = way**2 * (step.noise**2 + last.noise**2) / 8
        precision += 1 / max(step.score_noise**2 + curved + moved, 1e-300)
    noise = 1 / precision + missed[-1] * last.noise**2 / 2
    prior, H = SIGNAL**2 / d, last.plane
    V = last.ratio * H + noise * np.eye(2)
    plane = np.linalg.inv(np.diag([intercept**-2, 1 / prior]) + H @ np.linalg.solve(V, H))
    others = 1 / (1 / prior + last.others**2 / (last.ratio * last.others + noise)) if d > 1 else 0.0
    return float((plane[1, 1] + (d - 1) * others) / d), float(plane[0, 0])
