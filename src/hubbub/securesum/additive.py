"""Additive sharing among M Computes: one masked vector and M-1 seeds that expand to the masks.

Any M-1 of the M shares are uniform words, whatever the secret; all M add up to it exactly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from hubbub.arrays import Words
from hubbub.errors import invalid, whole
from hubbub.protocols import Description, SecureSum, Share, Tally, Trust
from hubbub.randomness import Randomness
from hubbub.securesum.seeds import SEED_BYTES, Generator, expand_seed, fresh_seeds, generator_for
from hubbub.securesum.tally import AdditiveTally, Masks, check_masks

MOST_COMPUTES = 1000
MASKED = 1
"""The form of a share that is the masked vector: its words, little-endian."""
SEEDS: dict[Generator, int] = {"AES-128-CTR": 2, "SHAKE-128": 3}
"""The forms of a share that is a seed, by the generator that expands it."""
_GENERATORS = {form: generator for generator, form in SEEDS.items()}


@dataclass(frozen=True)
class Additive(SecureSum):
    """All M Computes are needed, and any M-1 of them learn nothing.

    Parameters
    ----------
    computes : M, at least 2.
    masks : how a simulation on one machine makes them: "raw" (drawn in bulk), "seeds" (expanded by client and Compute,
        as over a network) or "auto" (raw: on one machine no byte is saved). Parties do not agree on this.
    """

    computes: int = 3
    masks: Masks = field(default="auto", compare=False)

    def __post_init__(self) -> None:
        check_computes(self.computes)
        check_masks(self.masks)

    def shard(self, words: Words, client: str, randomness: Randomness) -> tuple[Share, ...]:
        """M shares in the order of the Computes; which one is the masked vector follows from the client's name."""
        return self.shard_at(words, long_share_at(client, self.computes), randomness)

    def shard_at(self, words: Words, long_at: int, randomness: Randomness) -> tuple[Share, ...]:
        """The same with the masked vector for a given Compute."""
        dimension = words.size
        generator = generator_for(dimension)
        seeds = fresh_seeds(self.computes - 1, generator, randomness)
        masked = words.copy()
        for seed in seeds:
            masked -= expand_seed(seed, dimension, generator)
        short = iter(seeds)
        return tuple(
            Share(MASKED, dimension, masked.astype("<u8", copy=False).tobytes())
            if k == long_at % self.computes
            else Share(SEEDS[generator], dimension, next(short))
            for k in range(self.computes)
        )

    def forms(self, dimension: int) -> Mapping[int, int]:
        """A masked vector of eight bytes a word, or a seed."""
        return {MASKED: 8 * dimension} | dict.fromkeys(_GENERATORS, SEED_BYTES)

    def accumulate(self, total: Words, share: Share) -> None:
        """Add the share's words, expanded from the seed where it is one."""
        total += expanded(share)

    def enough(self, computes: Collection[int]) -> bool:
        """All of them."""
        return set(computes) == set(range(self.computes))

    def unshard(self, sums: Mapping[int, Words]) -> Words:
        """Add up the Computes' sums: the masks cancel exactly."""
        total: Words = np.stack([*sums.values()]).sum(axis=0, dtype=np.uint64)
        return total

    def trust(self) -> Trust:
        """One honest Compute is enough."""
        return Trust(
            self.computes, self.computes - 1,
            f"at least one of the {self.computes} Computes does not show what it holds to the others",
        )  # fmt: skip

    def tally(self, dimension: int, randomness: Randomness) -> Tally:
        """Masks of many clients at once, in blocks that stay in the cache."""
        return AdditiveTally(self.computes, dimension, randomness, self.masks)

    def describe(self) -> dict[str, object]:
        """Name and number of Computes, for the study."""
        return {"scheme": "additive", "computes": self.computes}

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        return cls(description["computes"])


def expanded(share: Share) -> Words:
    """A share's words: as they are, or expanded from the seed."""
    if share.form == MASKED:
        return np.frombuffer(share.body, dtype="<u8").astype(np.uint64, copy=False)
    return expand_seed(share.body, share.dimension, _GENERATORS[share.form])


def long_share_at(client: str, computes: int) -> int:
    """Which Compute gets this client's masked vector: spread evenly over clients."""
    return int.from_bytes(hashlib.sha256(client.encode()).digest()[:8], "big") % computes


def check_secure_sum(secure_sum: object) -> None:
    """A secure sum or None, or one line that says how to make one."""
    if secure_sum is not None and not hasattr(secure_sum, "unshard"):
        found, remedy = repr(secure_sum)[:40], "give for example hubbub.securesum.Replicated(3, 2)"
        raise invalid("secure_sum", "a secure sum of the Computes", found, remedy)


def check_computes(computes: int) -> None:
    """M >= 2, or one line that says so."""
    whole("computes", computes, 2, "one Compute alone would see every vector; 3 is common", most=MOST_COMPUTES)
