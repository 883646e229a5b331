"""Additive sharing among M Computes: one masked vector and M-1 seeds that expand to the masks.

Any M-1 of the M shares are uniform words, whatever the secret; all M add up to it exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hubbub.arrays import Words
from hubbub.errors import invalid, whole
from hubbub.randomness import Randomness, fill, keystream

MOST_COMPUTES = 1000
SEED_BYTES = 32  # an AES-128 key and the counter block it starts from


@dataclass(frozen=True, eq=False)
class Share:
    """One Compute's part of one vector: either the masked words or a seed. Unprintable."""

    dimension: int
    masked: Words | None = field(default=None, repr=False)
    seed: bytes | None = field(default=None, repr=False)

    def expand(self) -> Words:
        """The share's words: as they are, or expanded from the seed by AES-128-CTR."""
        if self.masked is not None:
            return self.masked
        assert self.seed is not None
        return expand_seed(self.seed, self.dimension)


def expand_seed(seed: bytes, dimension: int) -> Words:
    """`dimension` uniform words from a 32-byte seed (key, then initial counter block)."""
    words = np.empty(dimension, dtype=np.uint64)
    fill(keystream(seed[:16], seed[16:]), words)
    return words.view("<u8").astype(np.uint64, copy=False)


def split(secret: Words, computes: int, long_at: int, randomness: Randomness) -> tuple[Share, ...]:
    """M shares in the order of the Computes; the one at `long_at` is the masked vector."""
    check_computes(computes)
    dimension = secret.size
    seeds = [randomness.bytes(SEED_BYTES) for _ in range(computes - 1)]
    masked = secret.copy()
    for seed in seeds:
        masked -= expand_seed(seed, dimension)
    short = iter(seeds)
    return tuple(
        Share(dimension, masked=masked) if k == long_at % computes else Share(dimension, seed=next(short))
        for k in range(computes)
    )


def check_computes(computes: int) -> None:
    """M >= 2, or one line that says so."""
    whole("computes", computes, 2, "one Compute alone would see every vector; 3 is common", most=MOST_COMPUTES)


class BulkShares:
    """The sums of M Computes over many clients at once, for a simulation in one process.

    Every client's M-1 masks are really drawn (raw uniform words from one keyed stream, the same
    distribution as expanded seeds) and subtracted from its own vector; each Compute adds up only
    what it was sent. The plain vectors are never added. Share s of client i goes to Compute
    (i + s) mod M, so the masked vector rotates with the client.
    """

    def __init__(self, computes: int, dimension: int, randomness: Randomness) -> None:
        check_computes(computes)
        self._randomness = randomness
        self._by_slot = np.zeros((computes, computes, dimension), dtype=np.uint64)
        self.clients = 0

    def add(self, vectors: Words) -> None:
        """Share out one vector per row; consumes (overwrites) the array."""
        M = self._by_slot.shape[0]
        if self.clients % M:
            raise invalid("vectors", f"full multiples of M={M} rows but for the last", self.clients, "chunk by M")
        mask = np.empty(vectors.shape, dtype=np.uint64)
        for slot in range(1, M):
            self._randomness.fill_words(mask)
            self._receive(slot, mask)
            vectors -= mask
        self._receive(0, vectors)
        self.clients += vectors.shape[0]

    def _receive(self, slot: int, words: Words) -> None:
        """Add rows to the running sums, apart by the client's number modulo M."""
        M, _, d = self._by_slot.shape
        whole = words.shape[0] // M * M
        self._by_slot[slot] += words[:whole].reshape(-1, M, d).sum(axis=0, dtype=np.uint64)
        self._by_slot[slot, : words.shape[0] - whole] += words[whole:]

    def sums(self) -> Words:
        """(M, d): what each Compute has added up."""
        M = self._by_slot.shape[0]
        return np.stack(
            [sum((self._by_slot[s, (k - s) % M] for s in range(1, M)), start=self._by_slot[0, k]) for k in range(M)]
        )


def combine(sums: Words) -> Words:
    """Add up the Computes' sums: the masks cancel exactly."""
    total: Words = sums.sum(axis=0, dtype=np.uint64)
    return total
