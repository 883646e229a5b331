"""What a fit of the default regression can be expected to find, from public numbers alone.

A model study: independent normal columns of unit variance that explain half of the variance of y, each in equal parts.
First-order, so a guide: `tests/analyses/linear/test_forecast.py` holds it against simulated fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hubbub.analyses.linear.auto import choose_ball, multiplier_of, together, weights
from hubbub.analyses.linear.tuning import TUNING
from hubbub.privacy import DEFAULT, Budget
from hubbub.protocols import Mechanism

EXPLAINED = 0.5  # of the variance of y
HALF_WIDTH = 1.645  # of a 90 % interval, in deviations


@dataclass(frozen=True)
class Forecast:
    """Expected width of a coefficient's 90 % interval, in deviations of y per deviation of x, and of predictions.

    The prior is taken to know the columns' scales. Where the fit is hopeless they are open, too: it is wider.
    """

    width: float
    prior_width: float
    """The width that no data at all would give."""
    error_ratio: float
    """Expected prediction error over that of a non-private fit of the same rows."""

    @property
    def learned(self) -> float:
        """How much narrower than the prior, from 0 (nothing is learned) to 1."""
        return 1 - self.width / self.prior_width

    @property
    def hopeless(self) -> bool:
        """True where the noise hides nearly everything."""
        return self.width > TUNING.useless * self.prior_width

    @property
    def good(self) -> bool:
        """True where coefficients of an ordinary size will be told from zero."""
        return self.width < TUNING.good * self.prior_width


def forecast(
    clients: int, features: int, budget: Budget, not_counted: float = 0, mechanism: Mechanism = DEFAULT
) -> Forecast:
    """For the default method with an intercept; `not_counted` clients' noise is not counted on (D + C)."""
    _, *sums = mechanism.within(budget, weights())
    multipliers = [multiplier_of(each, features + 1) for each in sums]
    ball = choose_ball(clients, features + 1, together(sums, features + 1))
    assert ball.y is not None
    squares = chi_square(features)
    factor = np.minimum(1.0, ball.radius**2 / (1 + squares))
    level = float(np.mean(factor * squares)) / features  # mean square of a shortened column
    shortened = float(np.mean(factor))
    shares = math.sqrt(clients / max(clients - not_counted - 1, 1))
    noises = [multiplier * ball.sensitivity(True) * shares for multiplier in multipliers]
    sum_ = clients * level
    kept = math.erf(ball.y / math.sqrt(2 * shortened))  # of X'y, after clipping y
    prior, residual = EXPLAINED / features, 1 - EXPLAINED

    def noise_in_target(noise: float, unit: float, lacking: float) -> float:
        """Of X'y, with residuals of this variance, where coefficients lack so much of the variance of y."""
        of_sums = lacking / (sum(2 / each**2 for each in noises) + 1 / (TUNING.left_open * sum_) ** 2)
        return unit * noise**2 / (2 * ball.weight**2) + of_sums

    def left(noise: float) -> float:
        """Of a coefficient's variance."""
        return 1 / (1 / prior + (kept * sum_) ** 2 / (residual * shortened * sum_ + noise))

    told = 1 / noise_in_target(noises[0], 1.0, EXPLAINED)
    for noise in noises[1:]:  # each round around what those before it gave
        lacking = features * left(1 / told)
        told += 1 / noise_in_target(noise, residual + lacking, lacking)
    variance = left(1 / told)
    best = 1 / (1 / prior + clients / (1 - EXPLAINED))
    return Forecast(
        2 * HALF_WIDTH * math.sqrt(variance),
        2 * HALF_WIDTH * math.sqrt(prior),
        math.sqrt((1 - EXPLAINED + features * variance) / (1 - EXPLAINED + features * best)),
    )


def advice(
    clients: int, features: int, budget: Budget, not_counted: float = 0, mechanism: Mechanism = DEFAULT
) -> list[str]:
    """What would make the fit a good one; nothing where it is one already."""

    def good(clients: int, features: int, epsilon: float) -> bool:
        return forecast(clients, features, Budget(epsilon, budget.delta), not_counted, mechanism).good

    return advised(good, clients, features, budget.epsilon)


def advised(good: Callable[[int, int, float], bool], clients: int, features: int, epsilon: float) -> list[str]:
    """The same where `good` forecasts whether so many clients and features give a good fit at this epsilon."""
    if good(clients, features, epsilon):
        return []
    found = []
    more = next((int(n) for n in _upward(clients) if good(int(n), features, epsilon)), None)
    if more is not None:
        found.append(f"more clients: about {more} at this budget")
    wider = next((each for each in _upward(epsilon) if each <= 20 and good(clients, features, each)), None)
    if wider is not None:
        found.append(f"a larger epsilon: about {wider:.2g} with these clients")
    fewer, too_many = 0, features
    while too_many - fewer > 1:  # fewer are better, so halve
        middle = (fewer + too_many) // 2
        fewer, too_many = (middle, too_many) if good(clients, middle, epsilon) else (fewer, middle)
    if fewer:
        found.append(f"fewer columns: about {fewer} of the {features}")
    return found or ["a simpler question, such as means or counts: nothing moderate would help this one"]


def _upward(start: float) -> list[float]:
    """Some round values above the start, up to a thousand times of it."""
    return [float(f"{start * 10 ** (k / 8):.2g}") for k in range(1, 25)]


def chi_square(features: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Equally likely values of the squared length of a row."""
    from scipy.special import gammaincinv

    return np.asarray(2 * gammaincinv(features / 2, (np.arange(200) + 0.5) / 200))
