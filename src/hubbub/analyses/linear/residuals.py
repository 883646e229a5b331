"""How widely residuals vary: read off a noisy histogram of their absolute values.

Sums of squares that are clipped say too little of it, and those that are not cost much noise. Counts cost little, and
need no guess of what clipping took away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats

EDGES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0)
"""Of the bins, in units of what the residuals' deviation is thought to be."""
HALF_NORMAL = 1.6448536269514722  # deviations within which a normal residual lies with probability 0.9
_STEP = 0.05
_FAR, _FINE = 4.5, 0.0025  # of logarithms of deviations: beyond what any law's widths reach, and finer than counts tell
_WIDTHS = np.exp(np.arange(-60, 61) * _STEP)


@dataclass(frozen=True)
class ResidualShape:
    """What noisy counts tell of the residuals' law, in units of the edges.

    A law's deviation is here that of the normal law with the same central 90 %.
    """

    counts: Floats
    n: int
    noise_std: float
    together: int = 1
    """How many such counts of the same rows are used together: what they share counts once in all."""

    def log_likelihood(self, deviation: Floats) -> Floats:
        """Of the counts, for residuals of these deviations and any of the laws; up to a constant."""
        return np.interp(np.log(np.maximum(deviation, 1e-300)), *self._table)

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """Logarithms of deviations, and the log likelihood there: samplers ask for it a million times."""
        logs = np.arange(-_FAR, _FAR, _FINE)
        each = self._log_likelihoods(residual_laws().at(np.exp(logs)))
        return logs, np.asarray(np.logaddexp.reduce(each, axis=0))

    @property
    def deviation(self) -> float:
        """The likely one, where nothing else is known than that the unit is about right."""
        return float(np.exp(np.sum(self._weights * np.log(residual_laws().deviations))))

    def within(self, distance: float) -> float:
        """Share of residuals that are closer to zero than this, likewise."""
        below = np.cumsum(np.einsum("lw,lwb->b", self._weights, residual_laws().shares))
        return float(np.interp(distance, (0.0, *EDGES), (0.0, *below[:-1])))

    @cached_property
    def _weights(self) -> Floats:
        """(laws, widths)."""
        laws = residual_laws()
        log = self._log_likelihoods(laws.shares) - 0.5 * (np.log(laws.deviations) / TUNING.residual_doubt) ** 2
        weights = np.exp(log - log.max())
        return np.asarray(weights / weights.sum())

    def _log_likelihoods(self, shares: Floats) -> Floats:
        """Of the counts, given the expected share of each bin (in the last axis)."""
        shared = shares * (1 - shares) / self.n + TUNING.residual_shape**2
        variance = (self.noise_std / self.n) ** 2 + self.together * shared
        gap = self.counts / self.n - shares
        return np.asarray(-0.5 * np.sum(gap**2 / variance + np.log(variance), axis=-1))


class ResidualLaws(NamedTuple):
    """What residuals may follow."""

    deviations: Floats
    """(laws, widths)."""
    shares: Floats
    """(laws, widths, bins)."""

    def at(self, deviation: Floats) -> Floats:
        """(laws, k, bins): the shares where residuals have these deviations."""
        place = (np.log(np.maximum(deviation, 1e-300)) - np.log(self.deviations[:, :1])) / _STEP
        place = np.clip(np.nan_to_num(place), 0.0, _WIDTHS.size - 1.001)
        below, law = place.astype(np.intp), np.arange(len(place))[:, None]
        above = (place - below)[..., None]
        return np.asarray((1 - above) * self.shares[law, below] + above * self.shares[law, below + 1])


@lru_cache(maxsize=1)
def residual_laws() -> ResidualLaws:
    """Every law in many widths."""
    from scipy.optimize import brentq

    deviations, shares = [], []
    for within in _within():
        end = brentq(lambda x, within=within: float(within(x)) - 0.9, 0.0, 100.0)
        inside = within(np.asarray(EDGES) / _WIDTHS[:, None])
        shares.append(np.diff(inside, axis=1, prepend=0.0, append=1.0))
        deviations.append(_WIDTHS * end / HALF_NORMAL)
    return ResidualLaws(np.array(deviations), np.array(shares))


def _within() -> list[Callable[[Floats | float], Floats]]:
    """For each law that residuals may have the share of them within a distance from zero.

    t laws, from heavy tails to none; one with a flat top and an abrupt end, as working hours have; and residuals with
    a flat top of which some part lies four times as far out, as durations and counts have.
    """
    from scipy.special import ndtr
    from scipy.stats import gennorm, t

    tails = [lambda x, tail=tail: 2 * t.cdf(x, tail) - 1 for tail in (2.5, 4.0, 8.0, 200.0)]
    mixed = [
        lambda x, far=far: (1 - far) * (2 * gennorm.cdf(x, 4) - 1) + far * (2 * ndtr(np.divide(x, 4)) - 1)
        for far in (0.05, 0.1, 0.2)
    ]
    return [*tails, lambda x: 2 * gennorm.cdf(x, 8) - 1, *mixed]
