"""Many clients at once, on one machine: the client's road, vectorised, into the Computes' sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats
from hubbub.privacy import add_share
from hubbub.randomness import Randomness
from hubbub.roles.selection import vectors_of
from hubbub.roles.study import RoundPlan
from hubbub.securesum import Tally, clients_at_once
from hubbub.statistics import rows_at_once


def share_out(
    plan: RoundPlan, rows: Floats, tally: Tally, randomness: Randomness, silent: NDArray[np.bool_] | None = None
) -> None:
    """Take each row from sample to shares, and the shares into the sums, a cache-sized number of clients at a time.

    `silent` marks the clients who add no noise: colluders of a simulation.
    """
    sigma, size = plan.mechanism.sigma_client, rows_at_once(plan.statistic) or clients_at_once(plan.dimension)
    scratch = np.empty(0)
    for start in range(0, rows.shape[0], size):
        vectors = vectors_of(plan.statistic, rows[start : start + size], randomness)
        for block in tally.blocks(vectors.shape[0]):
            part = vectors[block]
            if scratch.size < part.size:
                scratch = np.empty(part.size)
            room = scratch[: part.size].reshape(part.shape)
            noisy = add_share(part, sigma, randomness, out=room)
            if silent is not None and sigma > 0:
                quiet = silent[start : start + size][block[0]]
                noisy[quiet] = part[quiet]
            tally.add(plan.fixed_point.encode(noisy, out=room), block[1])
