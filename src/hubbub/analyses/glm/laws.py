"""What y is given a linear predictor: its log likelihood and draws of it, for checks on rows of the caller's own.

Laws whose variance has a parameter of its own take this dispersion, too; others leave it alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hubbub.arrays import Floats
from hubbub.errors import invalid

_LARGEST = 1e15  # mean of a count that is drawn: numpy draws none beyond 9e18


@dataclass(frozen=True)
class Law:
    """Both broadcast, as numpy does."""

    log_likelihood: Callable[[Floats, Floats, Floats], Floats]
    """Of y, by linear predictor, y and dispersion."""
    drawn: Callable[[np.random.Generator, Floats, Floats], Floats]
    """One y for each linear predictor, with this dispersion."""


def law_of(family: str) -> Law:
    """The law of this family."""
    if family not in LAWS:
        bound = f"one of {', '.join(LAWS)} for draws of y"
        raise invalid("family", bound, repr(family)[:80], "leave the rows out")
    return LAWS[family]


def _mean(eta: Floats) -> Floats:
    """With a log link, and no larger than what can be drawn."""
    return np.exp(np.minimum(eta, np.log(_LARGEST)))


def _logit(eta: Floats, y: Floats, _: Floats) -> Floats:
    from scipy.special import log_expit

    return np.asarray(log_expit(np.where(y > 0, eta, -eta)))


def _probit(eta: Floats, y: Floats, _: Floats) -> Floats:
    from scipy.special import log_ndtr

    return np.asarray(log_ndtr(np.where(y > 0, eta, -eta)))


def _poisson(eta: Floats, y: Floats, _: Floats) -> Floats:
    from scipy.special import gammaln

    return np.asarray(y * eta - np.exp(np.minimum(eta, 700.0)) - gammaln(y + 1))


def _negative_binomial(eta: Floats, y: Floats, dispersion: Floats) -> Floats:
    from scipy.special import gammaln

    shape, log = 1 / dispersion, eta + np.log(dispersion)
    combinations = gammaln(y + shape) - gammaln(shape) - gammaln(y + 1)
    return np.asarray(combinations + y * log - (y + shape) * np.logaddexp(0.0, log))


def _gamma(eta: Floats, y: Floats, dispersion: Floats) -> Floats:
    from scipy.special import gammaln

    shape, ratio = 1 / dispersion, np.log(y) - eta
    return np.asarray(shape * (ratio - np.exp(ratio) - np.log(dispersion)) - np.log(y) - gammaln(shape))


def _yes_no(log_likelihood: Callable[[Floats, Floats, Floats], Floats]) -> Law:
    def drawn(rng: np.random.Generator, eta: Floats, dispersion: Floats) -> Floats:
        return (np.log(rng.random(eta.shape)) < log_likelihood(eta, np.ones(1), dispersion)).astype(np.float64)

    return Law(log_likelihood, drawn)


def _drawn_gamma(rng: np.random.Generator, eta: Floats, dispersion: Floats) -> Floats:
    shape = np.broadcast_to(1 / dispersion, eta.shape)
    return np.asarray(rng.gamma(shape) * dispersion * _mean(eta))


def _drawn_counts(rng: np.random.Generator, mean: Floats) -> Floats:
    return rng.poisson(np.minimum(mean, _LARGEST)).astype(np.float64)


LAWS = {
    "bernoulli": _yes_no(_logit),
    "probit": _yes_no(_probit),
    "poisson": Law(_poisson, lambda rng, eta, _: _drawn_counts(rng, _mean(eta))),
    "negative-binomial": Law(
        _negative_binomial, lambda rng, eta, dispersion: _drawn_counts(rng, _drawn_gamma(rng, eta, dispersion))
    ),
    "gamma": Law(_gamma, _drawn_gamma),
}
"""Every family's, by name."""
