"""Many clients at once, on one machine: the client's road, vectorised, into the Computes' sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats, Words
from hubbub.privacy import add_share
from hubbub.randomness import Randomness
from hubbub.roles.selection import vectors_of
from hubbub.roles.study import RoundPlan
from hubbub.securesum import Tally, clients_at_once
from hubbub.statistics import rows_at_once


def share_out(
    plan: RoundPlan, rows: Floats, tally: Tally, randomness: Randomness, silent: NDArray[np.bool_] | None = None
) -> None:
    """Take the clients' rows from sample to shares, and the shares into the sums, a cache-sized number at a time.

    Every client holds `plan.mechanism.population.largest` rows, one after the other; the last one may hold fewer.
    `silent` marks the clients who add no noise: colluders of a simulation.
    """
    held = plan.mechanism.population.largest
    size = rows_at_once(plan.statistic) or clients_at_once(plan.dimension)
    size = -(-size // held) * held
    share = _share_rows if held == 1 else _share_parties
    for start in range(0, rows.shape[0], size):
        vectors = vectors_of(plan.statistic, rows[start : start + size], randomness)
        quiet = None if silent is None else silent[start // held : (start + size) // held]
        share(plan, vectors, tally, randomness, quiet)


def _share_rows(
    plan: RoundPlan, vectors: Floats, tally: Tally, randomness: Randomness, silent: NDArray[np.bool_] | None
) -> None:
    """One row a client: noise is added to its vector, and both are rounded together."""
    sigma, scratch = plan.mechanism.sigma_client, np.empty(0)
    for block in tally.blocks(vectors.shape[0]):
        part = vectors[block]
        if scratch.size < part.size:
            scratch = np.empty(part.size)
        room = scratch[: part.size].reshape(part.shape)
        noisy = add_share(part, sigma, randomness, out=room)
        if silent is not None and sigma > 0:
            quiet = silent[block[0]]
            noisy[quiet] = part[quiet]
        tally.add(plan.fixed_point.encode(noisy, out=room), block[1])


def _share_parties(
    plan: RoundPlan, vectors: Floats, tally: Tally, randomness: Randomness, silent: NDArray[np.bool_] | None
) -> None:
    """Several rows a client: their vectors are added up on the grid, and each client adds one share of noise."""
    starts = np.arange(0, vectors.shape[0], plan.mechanism.population.largest)
    words = np.add.reduceat(plan.fixed_point.encode(vectors), starts, axis=0)
    noise = noise_words(plan, starts.size, randomness)
    words += noise if silent is None else np.where(silent[:, None], np.uint64(0), noise)
    for block in tally.blocks(starts.size):
        tally.add(np.ascontiguousarray(words[block]), block[1])


def noise_words(plan: RoundPlan, clients: int, randomness: Randomness) -> Words:
    """(clients, d): one share of noise for each client, rounded to the grid."""
    noise = np.empty((clients, plan.dimension))
    randomness.fill_normals(noise, plan.mechanism.sigma_client)
    return plan.fixed_point.encode(noise, out=noise)
