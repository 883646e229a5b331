"""Replicated additive sharing: any t of M Computes are enough, any t - 1 learn nothing. For few Computes.

The words are the sum, in Z/2^64, of one piece for each set of t - 1 Computes, all but one of them random. The piece of
a set goes to every Compute outside of it. So t - 1 Computes lack the piece of their own set, and the others are uniform
whatever the words. Of any t Computes there is one outside of every set, so together they hold all pieces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import NamedTuple, Self

import numpy as np

from hubbub.arrays import Words
from hubbub.errors import invalid
from hubbub.protocols import Description, SecureSum, Share, Tally, Trust
from hubbub.randomness import Randomness
from hubbub.securesum.additive import check_computes, long_share_at
from hubbub.securesum.seeds import GENERATORS, SEED_BYTES, expand_seed, fresh_seeds, generator_for
from hubbub.securesum.tally import AdditiveTally, Block
from hubbub.securesum.threshold import (
    are_enough,
    check_cheating,
    check_sums,
    check_threshold,
    most_named,
    quorum_of,
    sums_differ,
    threshold_described,
    threshold_trust,
)

MOST_PIECES = 120
"""All forms fit into a byte, and a sum stays short: 4 of 10 Computes, 3 of 16, 2 of 120."""
FIRST_FORM = 8
"""Forms below are those of other schemes."""


class _Form(NamedTuple):
    """What a share's number says: how its seeds expand, and which of its pieces, if any, is the long one."""

    generator: int
    long: int | None

    @property
    def number(self) -> int:
        place = 0 if self.long is None else self.long + 1
        return FIRST_FORM + len(GENERATORS) * place + self.generator

    @classmethod
    def of(cls, number: int) -> _Form:
        place, generator = divmod(number - FIRST_FORM, len(GENERATORS))
        return cls(generator, place - 1 if place else None)


@dataclass(frozen=True)
class Replicated(SecureSum):
    """Any `threshold` of the Computes are enough, and any fewer learn nothing.

    Parameters
    ----------
    computes : M, at least 2.
    threshold : t, from 2 to M, such that there are at most 120 pieces, M choose t - 1. `Shamir` has no such limit.
    cheating : f, below t (default 0): how many may sign contradicting statements about one round (two rosters, or a
        roster and a refusal), which sets `quorum`.

    A share holds M - 1 choose t - 1 pieces in the order of `held_by`: seeds of 32 bytes, but for the one long piece of
    the client, which M - t + 1 Computes get as 8 bytes a word; which piece that is follows from the client's name. With
    C = M choose t - 1 a client sends (M - t + 1)(8 d + 32 (C - 1)) bytes: 16 d + 128 for 2 of 3.

    A piece is held several times, so `unshard` notices up to n - t wrong ones among n sums, and names them where they
    are no more than (n - t)/2: then every piece has an honest majority. A wrong sum may also be the work of a client
    that sent two Computes different versions of a piece; nothing in the sums tells that apart.
    """

    computes: int = 3
    threshold: int = 2
    cheating: int = 0

    def __post_init__(self) -> None:
        check_computes(self.computes)
        check_threshold(self.threshold, self.computes)
        check_cheating(self.cheating, self.threshold)
        if (number := comb(self.computes, self.threshold - 1)) > MOST_PIECES:
            raise invalid(
                "threshold", f"one that makes at most {MOST_PIECES} pieces of a vector",
                f"{self.threshold} of {self.computes} Computes, which makes {number}", "use the scheme 'shamir'",
            )  # fmt: skip

    def shard(self, words: Words, client: str, randomness: Randomness) -> tuple[Share, ...]:
        """M shares in the order of the Computes; which piece is the long one follows from the client's name."""
        return self.shard_at(words, long_share_at(client, comb(self.computes, self.threshold - 1)), randomness)

    def shard_at(self, words: Words, long_at: int, randomness: Randomness) -> tuple[Share, ...]:
        """The same with a given piece as the long one."""
        generator = generator_for(words.size)
        bodies = fresh_seeds(comb(self.computes, self.threshold - 1) - 1, generator, randomness)
        rest = words.copy()
        for seed in bodies:
            rest -= expand_seed(seed, words.size, generator)
        bodies.insert(long_at, rest.astype("<u8", copy=False).tobytes())
        shares = []
        for held in held_by(self.computes, self.threshold):
            form = _Form(GENERATORS.index(generator), held.index(long_at) if long_at in held else None)
            shares.append(Share(form.number, words.size, b"".join(bodies[piece] for piece in held)))
        return tuple(shares)

    def forms(self, dimension: int) -> Mapping[int, int]:
        """Seeds only, or one long piece among them: for each place of it, and for both ways to expand seeds."""
        pieces = self._pieces_held
        return {
            _Form(generator, long).number: SEED_BYTES * pieces + (0 if long is None else 8 * dimension - SEED_BYTES)
            for generator in range(len(GENERATORS))
            for long in (None, *range(pieces))
        }

    def empty(self, dimension: int) -> Words:
        """A sum for each piece that a Compute holds, one behind the other."""
        return np.zeros(self._pieces_held * dimension, dtype=np.uint64)

    def accumulate(self, total: Words, share: Share) -> None:
        """Add each piece to its own sum."""
        form, start = _Form.of(share.form), 0
        for place, piece in enumerate(total.reshape(self._pieces_held, share.dimension)):
            end = start + (8 * share.dimension if place == form.long else SEED_BYTES)
            body, start = share.body[start:end], end
            if place == form.long:
                piece += np.frombuffer(body, dtype="<u8")
            else:
                piece += expand_seed(body, share.dimension, GENERATORS[form.generator])

    @property
    def quorum(self) -> int:
        """So many that two such sets share an honest Compute, and at least t."""
        return quorum_of(self.threshold, self.computes, self.cheating)

    def enough(self, computes: Collection[int]) -> bool:
        """Any t of them."""
        return are_enough(computes, self.threshold, self.computes)

    def unshard(self, sums: Mapping[int, Words]) -> Words:
        """Add up the pieces; CannotCombine where sums are too few, or a piece is not the same in all that have it."""
        check_sums(sums, self.threshold)
        found = list(self._versions(sums))
        if any(len(set(versions.values())) > 1 for versions in found):
            raise sums_differ(self._wrong(found, len(sums)), len(sums))
        pieces = [np.frombuffer(next(iter(versions.values())), dtype=np.uint64) for versions in found]
        total: Words = np.stack(pieces).sum(axis=0, dtype=np.uint64)
        return total

    def _versions(self, sums: Mapping[int, Words]) -> Iterator[dict[int, bytes]]:
        """For each piece what the Computes that hold it say it is, by Compute."""
        table = held_by(self.computes, self.threshold)
        parts = {compute: words.reshape(self._pieces_held, -1) for compute, words in sums.items()}
        for piece in range(comb(self.computes, self.threshold - 1)):
            yield {k: part[table[k].index(piece)].tobytes() for k, part in parts.items() if piece in table[k]}

    def _wrong(self, found: Collection[Mapping[int, bytes]], sums: int) -> set[int]:
        """The Computes that are outvoted on a piece; nobody where so many lie that a majority may."""
        wrong: set[int] = set()
        for versions in found:
            version, votes = Counter(versions.values()).most_common(1)[0]
            if 2 * votes <= len(versions):
                return set()
            wrong |= {compute for compute, other in versions.items() if other != version}
        return wrong if len(wrong) <= most_named(sums, self.threshold) else set()

    def trust(self) -> Trust:
        """At most t - 1 may conspire."""
        return threshold_trust(self.threshold, self.computes, self.quorum)

    def tally(self, dimension: int, randomness: Randomness) -> Tally:
        """Pieces of many clients at once, in blocks that stay in the cache."""
        return ReplicatedTally(self.computes, self.threshold, dimension, randomness)

    def describe(self) -> dict[str, object]:
        """Name, Computes, threshold, and how many may cheat where that is not none; for the study."""
        return threshold_described("replicated", self.computes, self.threshold, self.cheating)

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        return cls(description["computes"], description["threshold"], description.get("cheating", 0))

    @property
    def _pieces_held(self) -> int:
        return comb(self.computes - 1, self.threshold - 1)


class ReplicatedTally(Tally):
    """Every client's pieces are drawn and subtracted, and all Computes that are sent a piece add it up.

    Since they would all add up the same words, that is done once for the clients of a block.
    """

    def __init__(self, computes: int, threshold: int, dimension: int, randomness: Randomness) -> None:
        self.randomness = randomness
        self._pieces = AdditiveTally(comb(computes, threshold - 1), dimension, randomness)
        self._held = np.array(held_by(computes, threshold))
        self.sums = np.zeros((computes, self._held.shape[1] * dimension), dtype=np.uint64)

    def blocks(self, clients: int) -> Iterator[Block]:
        """Those of additive sharing."""
        return self._pieces.blocks(clients)

    def add(self, words: Words, columns: slice) -> None:
        """Share out some clients' words of these columns; consumes (overwrites) the array."""
        pieces = self._pieces.sums[:, columns]
        pieces[:] = 0
        self._pieces.randomness = self.randomness
        self._pieces.add(words, columns)
        self.sums.reshape(*self._held.shape, -1)[:, :, columns] += pieces[self._held]


@lru_cache(maxsize=64)
def held_by(computes: int, threshold: int) -> tuple[tuple[int, ...], ...]:
    """For each Compute the numbers of the pieces that it holds.

    Pieces are numbered as `itertools.combinations` lists the sets of t - 1 Computes, in the order of a dictionary.
    """
    sets = list(combinations(range(computes), threshold - 1))
    return tuple(tuple(number for number, one in enumerate(sets) if k not in one) for k in range(computes))
