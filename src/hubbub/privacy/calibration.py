"""Budget -> noise, for the Gaussian mechanism: how many sensitivities of standard deviation.

The noise multiplier is sigma_std / sensitivity. Where a root is found numerically it is then moved
upward until the budget really holds: noise is rounded toward privacy.
"""

from __future__ import annotations

import math
from typing import Literal

from hubbub.budget import Budget
from hubbub.errors import invalid

Calibration = Literal["analytic", "classic"]

_HEADROOM = 1e-9  # relative; above the rounding errors of log_delta and of a composition


def log_delta(noise_multiplier: float, epsilon: float) -> float:
    """log of the exact delta of a Gaussian mechanism at epsilon (Balle and Wang 2018).

    delta = Phi(m/2 - eps/m) - e^eps Phi(-m/2 - eps/m) with m = 1/noise_multiplier, evaluated in
    logarithms so that neither large epsilon nor small delta overflows or cancels.
    """
    half, slope = 1 / (2 * noise_multiplier), epsilon * noise_multiplier
    first = log_ndtr(half - slope)
    second = epsilon + log_ndtr(-half - slope)
    if second >= first:
        return -math.inf
    return first + math.log(-math.expm1(second - first))


def log_ndtr(x: float) -> float:
    """log Phi(x) without SciPy, which a client need not have; within 1e-13 of it, as the tests hold them together."""
    if x > 0:
        return math.log1p(-0.5 * math.erfc(x / math.sqrt(2)))
    if x > -35:
        return math.log(0.5 * math.erfc(-x / math.sqrt(2)))
    inverse = x**-2  # erfc underflows further out: the asymptotic series, of which four terms suffice
    series = 1 - inverse * (1 - 3 * inverse * (1 - 5 * inverse * (1 - 7 * inverse)))
    return -0.5 * x * x - math.log(-x * math.sqrt(2 * math.pi)) + math.log(series)


def analytic_multiplier(budget: Budget) -> float:
    """The smallest noise multiplier that meets the budget exactly, for every epsilon."""
    from scipy.optimize import brentq

    target = math.log(budget.delta)

    def excess(log_multiplier: float) -> float:
        value = log_delta(math.exp(log_multiplier), budget.epsilon)
        return max(value, -1e300) - target

    low, high = -1.0, 1.0
    while excess(low) < 0:
        low -= 2
    while excess(high) > 0:
        high += 2
    multiplier = math.exp(brentq(excess, low, high, xtol=1e-13, rtol=1e-14))
    step = _HEADROOM
    while log_delta(multiplier, budget.epsilon) > target:
        multiplier *= 1 + step
        step *= 2
    return multiplier * (1 + _HEADROOM)


def classic_multiplier(budget: Budget) -> float:
    """sqrt(2 ln(1.25/delta))/epsilon, the textbook's: a guarantee for epsilon < 1 only."""
    return math.sqrt(2 * math.log(1.25 / budget.delta)) / budget.epsilon


def noise_multiplier(budget: Budget, calibration: Calibration = "analytic", *, not_a_guarantee: bool = False) -> float:
    """How many sensitivities of noise the budget asks for.

    `classic` outside its range (epsilon >= 1) is refused unless a reproduction says in so many words
    that the result is not a guarantee.
    """
    if calibration == "analytic":
        return analytic_multiplier(budget)
    if calibration != "classic":
        raise invalid("calibration", "'analytic' or 'classic'", repr(calibration), "use 'analytic'")
    if budget.epsilon >= 1 and not not_a_guarantee:
        raise invalid(
            "epsilon", "below 1 for the classic calibration", budget.epsilon,
            "use calibration='analytic', which holds for every epsilon",
        )  # fmt: skip
    return classic_multiplier(budget)


def epsilon_of(multiplier: float, delta: float) -> float:
    """The smallest epsilon at which a Gaussian mechanism meets delta, rounded upward."""
    from scipy.optimize import brentq

    target = math.log(delta)
    if multiplier <= 0:
        return math.inf
    if log_delta(multiplier, 0.0) <= target:
        return 0.0
    high = 1.0
    while log_delta(multiplier, high) > target:
        high *= 2
    epsilon = float(brentq(lambda e: max(log_delta(multiplier, e), -1e300) - target, 0.0, high, xtol=1e-14, rtol=1e-14))
    step = _HEADROOM
    while log_delta(multiplier, epsilon) > target:
        epsilon += step * max(1.0, epsilon)
        step *= 2
    return epsilon
