"""What is sampled for a generalised linear model: the regression's target, with a residual variance that is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.glm.look import Stepped
from hubbub.analyses.linear.sampler.state import Sums
from hubbub.analyses.linear.sampler.target import Prior, Target
from hubbub.analyses.linear.tuning import TUNING
from hubbub.arrays import Floats


class KnownVariance(Target):
    """The law of the exact information given the noisy one, with the coefficients integrated out.

    A share R2, uniform a priori, says how wide the coefficients are: their information-weighted variance is the odds
    R2/(1 - R2) for each row, in units of what the linear predictor of one row leaves open. The covariance follows a
    learned power of the information, as in the linear regression. The variance of y that the linear regression learns
    has no part in this; walkers carry it along, and it follows its prior.
    """

    def __init__(self, stepped: Stepped, prior: Prior) -> None:
        super().__init__(stepped, prior, None)
        self.full, self.ratio, self.explained_shape = False, stepped.ratio, 1.0
        self.mean[0] += stepped.intercept_prior.mean
        self.intercept_std = stepped.intercept_prior.std

    def variances(self, sums: Sums, hyper: Floats, model: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Residual variance, and prior covariance of the coefficients."""
        odds = np.exp(np.clip(hyper[:, 1], -50.0, 50.0))
        power = TUNING.most_power / (1 + np.exp(-hyper[:, 2]))
        if self.scale is None:
            size = np.maximum(sums.values, 1e-12 * sums.values.max(axis=1, keepdims=True)) ** -power[:, None]
            explained = np.maximum(np.sum(size * sums.values, axis=1), 1e-300)
            size = size * (odds * self.n / explained)[:, None]
            T = (sums.axes * size[:, None, :]) @ np.swapaxes(sums.axes, -1, -2)
            T[:, 0, :] = T[:, :, 0] = 0.0
        else:
            T = np.broadcast_to(np.diag(np.append(0.0, self.scale)), sums.S.shape).copy()
        T[:, 0, 0] = self.intercept_std**2
        return np.full(len(odds), self.ratio), T
