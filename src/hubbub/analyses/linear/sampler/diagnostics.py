"""How well the draws stand for the posterior: r-hat and bulk effective sample size, after Vehtari et al. (2021).

Both are of ranks, so that heavy tails do no harm: each draw is replaced by the normal quantile of its rank among all,
and every chain is split into halves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats


@dataclass(frozen=True)
class Diagnostics:
    """Of each quantity: coefficients, intercept, residual deviation. NaN where a quantity does not vary."""

    ess_bulk: Floats
    """So many independent draws would tell its centre as well."""
    r_hat: Floats
    """Spread of all draws over that within chains: 1 where chains agree."""

    @property
    def bad(self) -> NDArray[np.bool_]:
        """Where chains disagree, or hold too little."""
        return np.asarray((self.ess_bulk < TUNING.least_ess) | (self.r_hat > TUNING.bad_r_hat))


def diagnose(chains: Floats) -> Diagnostics:
    """(chains, draws, quantities) -> one number each for every quantity."""
    quantities = [chains[:, :, j] for j in range(chains.shape[2])]
    return Diagnostics(
        np.array([ess_bulk(each) for each in quantities]), np.array([r_hat(each) for each in quantities])
    )


def r_hat(chains: Floats) -> float:
    """The larger of two: of ranks, and of the ranks of distances from the median (for chains of unequal width)."""
    if not _varies(chains):
        return float("nan")
    split = _split(chains)
    return max(_plain_r_hat(_ranked(split)), _plain_r_hat(_ranked(np.abs(split - np.median(split)))))


def ess_bulk(chains: Floats) -> float:
    """Of split chains of ranks; autocorrelations are added up as long as their pairs are positive (Geyer)."""
    if not _varies(chains):
        return float("nan")
    z = _ranked(_split(chains))
    m, n = z.shape
    covariance = _autocovariance(z)
    within = float(covariance[:, 0].mean()) * n / (n - 1)
    total = within * (n - 1) / n + float(z.mean(axis=1).var(ddof=1))
    rho = 1 - (within - covariance.mean(axis=0)) / total
    rho[0] = 1.0
    pairs = rho[: 2 * max((n - 3) // 2 + 1, 1)].reshape(-1, 2).sum(axis=1)
    last = int(np.argmax(np.append(pairs[:-1], -1.0) <= 0))  # the first pair that is not positive, or the last one
    even = float(rho[2 * last])
    rest = even if pairs[last] >= 0 else max(even, 0.0)
    tau = max(-1 + 2 * float(np.minimum.accumulate(pairs[:last]).sum()) + rest, 1 / np.log10(m * n))
    return float(m * n / tau)


def _varies(chains: Floats) -> bool:
    return chains.shape[1] >= 4 and bool(np.isfinite(chains).all()) and float(np.ptp(chains)) > 0


def _split(chains: Floats) -> Floats:
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, -half:]])


def _ranked(chains: Floats) -> Floats:
    """Normal quantiles of the ranks among all draws."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    return np.asarray(ndtri((rankdata(chains) - 0.375) / (chains.size + 0.25))).reshape(chains.shape)


def _plain_r_hat(chains: Floats) -> float:
    n = chains.shape[1]
    within, between = chains.var(axis=1, ddof=1).mean(), chains.mean(axis=1).var(ddof=1)
    return float(np.sqrt((n - 1) / n + between / within)) if within > 0 else float("inf")


def _autocovariance(chains: Floats) -> Floats:
    """(chains, lags), by Fourier transform."""
    n = chains.shape[1]
    spectrum = np.fft.rfft(chains - chains.mean(axis=1, keepdims=True), 2 * n, axis=1)
    return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2, 2 * n, axis=1)[:, :n] / n)
