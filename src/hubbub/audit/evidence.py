"""From what an attack found to what can be said for sure of epsilon.

An attack gives every outcome a score: a high one speaks for the second of two neighbouring data sets. A threshold is
chosen on one half of the trials; on the other half it is counted how often it is passed under either data set, and
Clopper and Pearson bound the two probabilities. Whatever the attack, the threshold and the law of the outcomes, the
bounds below are wrong with the stated probability at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hubbub.arrays import Floats

_TRIED = 200  # thresholds, at quantiles of the scores


@dataclass(frozen=True, eq=False)
class Scores:
    """What an attack gave the outcomes of two neighbouring data sets, in independent trials."""

    first: Floats
    second: Floats

    def halves(self) -> tuple[Scores, Scores]:
        """Trials to choose on, and trials to count."""
        a, b = self.first.size // 2, self.second.size // 2
        return Scores(self.first[:a], self.second[:b]), Scores(self.first[a:], self.second[b:])

    @property
    def trials(self) -> int:
        """Of both data sets together."""
        return self.first.size + self.second.size


@dataclass(frozen=True)
class Rates:
    """How often a threshold is passed: at most under the first data set, and at least under the second."""

    false: float
    true: float


def at_least(count: int, trials: int, error: float) -> float:
    """A probability that is no more than the true one, but for this error (Clopper and Pearson)."""
    from scipy.special import betaincinv

    return 0.0 if count == 0 else float(betaincinv(count, trials - count + 1, error))


def at_most(count: int, trials: int, error: float) -> float:
    """A probability that is no less than the true one, but for this error."""
    return 1.0 - at_least(trials - count, trials, error)


def rates(scores: Scores, threshold: float, error: float) -> Rates:
    """Of passing the threshold, both together wrong with probability `error` at most."""
    false, true = int((scores.first > threshold).sum()), int((scores.second > threshold).sum())
    return Rates(
        at_most(false, scores.first.size, error / 2),
        at_least(true, scores.second.size, error / 2),
    )


def epsilon_of_rates(found: Rates, delta: float) -> float:
    """What epsilon must be at least: P'(S) <= e^epsilon P(S) + delta for passing, and the other way for not passing."""
    passed = _log_ratio(found.true - delta, found.false)
    stayed = _log_ratio(1 - found.false - delta, 1 - found.true)
    return max(0.0, passed, stayed)


def _log_ratio(above: float, below: float) -> float:
    return math.log(above / below) if above > 0 and below > 0 else 0.0


def mu_of_rates(found: Rates) -> float:
    """How many deviations two normal laws must be apart at least to be told apart so well."""
    from scipy.special import ndtri

    if found.true <= 0 or found.false >= 1:
        return 0.0
    return max(0.0, float(ndtri(found.true) - ndtri(found.false)))


def least_epsilon(scores: Scores, delta: float, error: float) -> float:
    """A lower bound for epsilon at this delta, whatever the law."""
    return _best(scores, lambda found: epsilon_of_rates(found, delta), error)


def least_mu(scores: Scores, error: float) -> float:
    """A lower bound for the distance of the two laws in deviations, where both are normal."""
    return _best(scores, mu_of_rates, error)


def _best(scores: Scores, value: Callable[[Rates], float], error: float) -> float:
    """The value at the threshold that looks best on one half of the trials, counted on the other half."""
    chosen, counted = scores.halves()
    pooled = np.concatenate([chosen.first, chosen.second])
    tried = np.unique(np.quantile(pooled, (np.arange(_TRIED) + 0.5) / _TRIED))
    best = max(tried, key=lambda threshold: value(rates(chosen, float(threshold), error)))
    return value(rates(counted, float(best), error))


def least_epsilon_of_guesses(correct: int, guesses: int, canaries: int, delta: float, error: float) -> float:
    """A lower bound for epsilon from one run with many canaries (Steinke, Nasr and Jagielski 2023, theorem 5.2).

    Each canary is one of two samples, by a coin of its own; the attack guesses so many of the coins.
    """

    def too_lucky(epsilon: float) -> bool:
        return _luck(epsilon, correct, guesses, canaries, delta) <= error

    if not too_lucky(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while too_lucky(high):
        low, high = high, 2 * high
        if high > 50:
            return low
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if too_lucky(middle) else (low, middle)
    return low


def _luck(epsilon: float, correct: int, guesses: int, canaries: int, delta: float) -> float:
    """The largest probability of so many correct guesses for a mechanism that keeps epsilon and delta."""
    from scipy.stats import binom

    right = 1 / (1 + math.exp(-epsilon))
    beta = float(binom.sf(correct - 1, guesses, right))
    if delta == 0:
        return beta
    steps = np.arange(1, canaries + 1)
    between = binom.cdf(correct - 1, guesses, right) - binom.cdf(correct - steps - 1, guesses, right)
    alpha = float((2 / steps * between).max())
    return min(1.0, beta + alpha * canaries * delta)
