"""How widely residuals vary: read off a noisy histogram of their absolute values.

Sums of squares that are clipped say too little of it, and those that are not cost much noise. Counts cost little, and
need no guess of what clipping took away.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats

EDGES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0)
"""Of the bins, in units of what the residuals' deviation is thought to be."""
TAILS = (2.5, 4.0, 8.0, 200.0)
"""Degrees of freedom of the t laws that residuals may have: from heavy tails to normal ones."""
HALF_NORMAL = 1.6448536269514722  # deviations within which a normal residual lies with probability 0.9


@dataclass(frozen=True)
class ResidualShape:
    """The residuals' law, as far as counts tell, in units of the edges."""

    deviations: Floats
    """Of each law that was weighed: that of the normal law with the same central 90 % interval."""
    weights: Floats
    """How likely each law is."""
    edges: Floats
    below: Floats
    """Share of residuals that are closer to zero than each edge."""

    @property
    def deviation(self) -> float:
        """The likely one."""
        return float(np.exp(self.weights @ np.log(self.deviations)))

    def drawn(self, rng: np.random.Generator, size: int) -> Floats:
        """Draws of it."""
        return np.asarray(rng.choice(self.deviations, size, p=self.weights))

    def within(self, distance: float) -> float:
        """Share of residuals that are closer to zero than this."""
        return float(np.interp(distance, np.append(0.0, self.edges), np.append(0.0, self.below)))


def residual_shape(counts: Floats, n: int, noise_std: float) -> ResidualShape:
    """Weigh t laws of many widths and tails by the counts, the noise in them being known."""
    laws = _laws()
    variance = (noise_std / n) ** 2 + laws.shares * (1 - laws.shares) / n + TUNING.residual_shape**2
    gap = counts / n - laws.shares
    log = -0.5 * np.sum(gap**2 / variance + np.log(variance), axis=1)
    log -= 0.5 * (laws.log_width / TUNING.residual_doubt) ** 2
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    return ResidualShape(laws.central / HALF_NORMAL, weights, np.asarray(EDGES), np.cumsum(weights @ laws.shares)[:-1])


class _Laws(NamedTuple):
    shares: Floats
    """(laws, bins)."""
    central: Floats
    """Where the central 90 % end."""
    log_width: Floats


@lru_cache(maxsize=1)
def _laws() -> _Laws:
    from scipy.stats import t

    widths = np.exp(np.linspace(-1.6, 1.6, 65))
    shares, central = [], []
    for tail in TAILS:
        inside = 2 * t.cdf(np.asarray(EDGES) / widths[:, None], tail) - 1
        shares.append(np.diff(inside, axis=1, prepend=0.0, append=1.0))
        central.append(widths * t.ppf(0.95, tail))
    return _Laws(np.vstack(shares), np.concatenate(central), np.tile(np.log(widths), len(TAILS)))
