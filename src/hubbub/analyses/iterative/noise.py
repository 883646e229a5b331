"""What the privacy noise adds to the posterior of a normal guide, and a guide that is wider by as much.

Near the optimum the gradient of the bound in the guide's mean m is -H (m - m*), and a normal guide that has converged
has the covariance S = H^-1. The mean of K averaged steps is then off by S times the mean of their gradient noise
(Polyak and Juditsky 1992), so its variance is S V S / K with V the variance of one step's gradient. Of V the privacy
noise is known; the rest (the guide's draws, batches) is read off the released gradients. For a diagonal guide H is
taken to be diagonal, too. The bias of clipping is not in this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpyro.infer.autoguide import AutoDiagonalNormal, AutoMultivariateNormal, AutoNormal

from hubbub.analyses.iterative.guides import FlatGuide
from hubbub.arrays import Floats

LOC, SCALE, TRIL = "_loc", "_scale", "_scale_tril"
_NORMAL = (AutoDiagonalNormal, AutoNormal, AutoMultivariateNormal)


@dataclass(frozen=True)
class AddedNoise:
    """For the mean of each normal site of the guide: the variance that the noise has added to it."""

    variance: Mapping[str, Floats]
    """By the name of the mean: a vector for a diagonal guide, a matrix for a full one."""
    privacy_share: float
    """How much of it is privacy noise; the rest comes from the guide's draws and from batches."""

    def widened(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The guide's parameters with the added variance in their scales."""
        found = dict(parameters)
        for name, variance in self.variance.items():
            stem = name.removesuffix(LOC)
            if variance.ndim == 2:
                tril = np.asarray(parameters[stem + TRIL])
                found[stem + TRIL] = np.linalg.cholesky(tril @ tril.T + variance)
            else:
                found[stem + SCALE] = np.sqrt(np.square(parameters[stem + SCALE]) + variance.reshape(
                    np.shape(parameters[stem + SCALE])))  # fmt: skip
        return found


def added_noise(
    guide: FlatGuide, parameters: Mapping[str, Any], gradients: Floats, noise_std: Floats, steps: int
) -> AddedNoise | None:
    """From the gradients of the averaged steps and the privacy noise in each of their numbers (what it says of means
    is used only); None for a guide that is not known to be normal."""
    if type(guide.guide) not in _NORMAL:
        return None
    gradients = gradients - gradients.mean(axis=0)
    spread = gradients.var(axis=0, ddof=1) if steps > 1 else np.full(gradients.shape[1], np.nan)
    by_name = {k: np.asarray(v) for k, v in guide.unravel(np.maximum(np.nan_to_num(spread), noise_std**2)).items()}
    private = {k: np.asarray(v) for k, v in guide.unravel(np.square(noise_std)).items()}
    found: dict[str, Floats] = {}
    for name in parameters:
        stem = name.removesuffix(LOC)
        if not name.endswith(LOC):
            continue
        if stem + TRIL in parameters:
            tril = np.asarray(parameters[stem + TRIL], dtype=np.float64)
            covariance = tril @ tril.T
            found[name] = covariance @ np.diag(by_name[name].ravel()) @ covariance / steps
        elif stem + SCALE in parameters:
            variance = np.square(np.asarray(parameters[stem + SCALE], dtype=np.float64))
            found[name] = np.square(variance) * by_name[name] / steps
    if not found:
        return None
    total = sum(float(np.sum(by_name[name])) for name in found)
    known = sum(float(np.sum(private[name])) for name in found)
    return AddedNoise(found, known / total if total > 0 else 0.0)
