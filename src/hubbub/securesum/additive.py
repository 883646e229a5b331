"""Additive sharing among M Computes: one masked vector and M-1 seeds that expand to the masks.

Any M-1 of the M shares are uniform words, whatever the secret; all M add up to it exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hubbub.arrays import Words
from hubbub.errors import whole
from hubbub.randomness import Randomness
from hubbub.securesum.seeds import Generator, expand_seed, fresh_seeds, generator_for

MOST_COMPUTES = 1000


@dataclass(frozen=True, eq=False)
class Share:
    """One Compute's part of one vector: either the masked words or a seed. Unprintable."""

    dimension: int
    masked: Words | None = field(default=None, repr=False)
    seed: bytes | None = field(default=None, repr=False)
    generator: Generator = field(default="AES-128-CTR", repr=False)

    def expand(self) -> Words:
        """The share's words: as they are, or expanded from the seed."""
        if self.masked is not None:
            return self.masked
        assert self.seed is not None
        return expand_seed(self.seed, self.dimension, self.generator)


def split(secret: Words, computes: int, long_at: int, randomness: Randomness) -> tuple[Share, ...]:
    """M shares in the order of the Computes; the one at `long_at` is the masked vector."""
    check_computes(computes)
    dimension = secret.size
    generator = generator_for(dimension)
    seeds = fresh_seeds(computes - 1, generator, randomness)
    masked = secret.copy()
    for seed in seeds:
        masked -= expand_seed(seed, dimension, generator)
    short = iter(seeds)
    return tuple(
        Share(dimension, masked=masked)
        if k == long_at % computes
        else Share(dimension, seed=next(short), generator=generator)
        for k in range(computes)
    )


def check_computes(computes: int) -> None:
    """M >= 2, or one line that says so."""
    whole("computes", computes, 2, "one Compute alone would see every vector; 3 is common", most=MOST_COMPUTES)


def combine(sums: Words) -> Words:
    """Add up the Computes' sums: the masks cancel exactly."""
    total: Words = sums.sum(axis=0, dtype=np.uint64)
    return total
