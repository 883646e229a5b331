"""How much of a coefficient's variance is there because noise hides the exact sums.

By the law of total variance Var(beta) = E Var(beta | exact sums) + Var E(beta | exact sums). The first part is what
sampling and the prior would leave had the exact sums been released; the second is what not knowing them adds. A draw
brings its own exact sums, with the residual variance and the prior's width, and what beta would be given all these: so
what is not known of these two variances is in the second part as well.
"""

from __future__ import annotations

import numpy as np

from hubbub.analyses.linear.released import Released
from hubbub.analyses.linear.sampler.draw import Draw
from hubbub.arrays import Floats


def noise_share(draws: Draw, weights: Floats, released: Released) -> Floats:
    """(d + 1,) shares from 0 to 1, of coefficients and intercept in the units of the data."""
    p = draws.mean.shape[1]
    turn = np.column_stack(released.original(np.eye(p))) - np.column_stack(released.original(np.zeros((1, p))))
    left = np.einsum("ij,ik,kj->j", turn, np.einsum("k,kij->ij", weights, draws.covariance), turn)
    means = draws.mean @ turn
    added = weights @ (means - weights @ means) ** 2
    return np.asarray(added / np.maximum(left + added, 1e-300))
