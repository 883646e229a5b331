"""Many clients at once, on one machine: the client's road, vectorised, into the Computes' sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats
from hubbub.protocols import Tally
from hubbub.randomness import Randomness
from hubbub.roles.selection import Outside, vectors_of
from hubbub.roles.study import RoundPlan
from hubbub.securesum import clients_at_once


def share_out(
    plan: RoundPlan, rows: Floats, tally: Tally, randomness: Randomness, silent: NDArray[np.bool_] | None = None
) -> Outside:
    """Take the clients' rows from sample to shares, and the shares into the sums, a cache-sized number at a time.

    Every client holds `population.largest` rows, one after the other; the last one may hold fewer. `silent` marks the
    clients who add no noise: colluders of a simulation. Returns which samples were outside the statistic's domain.
    """
    held = plan.population.largest
    size = plan.statistic.at_once or clients_at_once(plan.dimension)
    size = -(-size // held) * held
    share, outside = _share_rows if held == 1 else _share_parties, Outside()
    for start in range(0, rows.shape[0], size):
        vectors, found = vectors_of(plan, rows[start : start + size], randomness)
        outside = outside.and_then(found, start)
        quiet = None if silent is None else silent[start // held : (start + size) // held]
        share(plan, vectors, tally, randomness, quiet)
    return outside


def _share_rows(
    plan: RoundPlan, vectors: Floats, tally: Tally, randomness: Randomness, silent: NDArray[np.bool_] | None
) -> None:
    """One row a client: the mechanism makes noisy words of its vector."""
    scratch = np.empty(0)
    for block in tally.blocks(vectors.shape[0]):
        part = vectors[block]
        if scratch.size < part.size:
            scratch = np.empty(part.size)
        room = scratch[: part.size].reshape(part.shape)
        quiet = None if silent is None else silent[block[0]]
        tally.add(plan.noise.noisy_words(part, randomness, quiet, room), block[1])


def _share_parties(
    plan: RoundPlan, vectors: Floats, tally: Tally, randomness: Randomness, silent: NDArray[np.bool_] | None
) -> None:
    """Several rows a client: their vectors are added up on the grid, and each client adds one share of noise."""
    starts = np.arange(0, vectors.shape[0], plan.population.largest)
    words = np.add.reduceat(plan.noise.encoded(vectors), starts, axis=0)
    noise = plan.noise.shares(starts.size, plan.dimension, randomness)
    words += noise if silent is None else np.where(silent[:, None], np.uint64(0), noise)
    for block in tally.blocks(starts.size):
        tally.add(np.ascontiguousarray(words[block]), block[1])
