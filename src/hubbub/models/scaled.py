"""The default regression: column scales from a histogram, then the sums of scaled rows in a ball.

Scaling first makes one noise level fit all columns; the ball's sensitivity does not grow with their number; and
x and y are shortened by the same factor, so that long rows do not bias the regression (clipping y afterwards does,
a little, where noise rules and its bound is tight).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hubbub.arrays import Floats, finite_rows
from hubbub.models.rounds import Engine, Rounds
from hubbub.models.shrinkage import NoisyGram
from hubbub.privacy import Ledger
from hubbub.privacy.report import Round
from hubbub.statistics import Ball, Box, Regression, ScaleHistogram

SHARES = (math.sqrt(0.1), math.sqrt(0.9))  # a tenth of the squared signal for the scales


@dataclass(frozen=True)
class ScaledFit:
    """What the two rounds gave: the noisy sums of scaled rows, and the scales."""

    gram: NoisyGram
    scales: Floats
    bound: Ball
    rounds: tuple[Round, ...]


def fit_scaled(
    rows: Floats, bound: Box, multipliers: Sequence[float], engine: Engine, *, ledger: Ledger | None = None
) -> ScaledFit:
    """Two rounds: how large each column is, then the regression sums of the rows in these units."""
    rows = bound.apply(finite_rows("rows", rows, bound.features + 1))
    assert bound.y is not None
    histogram = ScaleHistogram((*bound.x, bound.y))
    with Rounds(engine, ledger, list(zip(("scales", "regression"), multipliers, strict=True))) as rounds:
        scales = histogram.sizes(rounds.run(rows, histogram).value)
        ball = choose_ball(rows.shape[0], bound.features, multipliers[1])
        statistic = Regression(ball, target_square=True)
        release = rounds.run(rows / scales, statistic)
    gram = NoisyGram(statistic.unflatten(release.value), release.n, release.noise_std, ball.weight)
    return ScaledFit(gram, scales, ball, rounds.done)


def choose_ball(clients: int, features: int, multiplier: float) -> Ball:
    """Radius and bound of y, in column scales: tight where noise rules, wide where there is plenty of data.

    Depends on public numbers alone. The weight gives x and y equal parts of the sensitivity, which costs xy no
    noise beyond what it needs on its own (docs/privacy.md, section 4).
    """
    plenty = math.log(max(clients / (max(multiplier, 1e-6) * features), math.e))
    radius = max(0.25, 0.15 * plenty) * math.sqrt(features)
    y = max(0.8, 0.36 * plenty)
    return Ball(radius, features, y=y, weight=radius / y)
