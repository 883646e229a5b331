"""Shamir's sharing over the prime field of p = 2^64 - 2^32 + 1: any t of M Computes are enough, for M up to 255.

A client's words are the values at 0 of polynomials of degree below t, one for each word, that are otherwise uniform;
Compute k gets the values at k + 1. Any t values give the polynomial; any t - 1 values away from 0 are uniform and
independent of the value at 0. Sums of polynomials are polynomials, so the Computes add up values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import comb
from typing import Self

import numpy as np

from hubbub.arrays import Words
from hubbub.errors import whole
from hubbub.protocols import Description, SecureSum, Share, Tally, Trust
from hubbub.randomness import Randomness
from hubbub.securesum.additive import long_share_at
from hubbub.securesum.field import (
    PRIME,
    add_to,
    expand_elements,
    fill_uniform,
    of_signed,
    reduced,
    subtract_from,
    sum_of_rows,
    times,
    to_signed,
    value_at,
    weights,
)
from hubbub.securesum.seeds import GENERATORS, SEED_BYTES, fresh_seeds, generator_for
from hubbub.securesum.tally import BLOCK_WORDS, Block, cached_blocks
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

MOST_COMPUTES = 255
VALUES = 4
"""The form of a share that is a vector of field elements: words below p, little-endian."""
SEEDS = {generator: form for form, generator in enumerate(GENERATORS, VALUES + 1)}
"""The forms of a share that is a seed, by the generator that expands it."""
_GENERATORS = {form: generator for generator, form in SEEDS.items()}
_MOST_SEARCHED = 10_000  # sets of Computes that are tried as those whose sums are wrong


@dataclass(frozen=True)
class Shamir(SecureSum):
    """Any `threshold` of the Computes are enough, and any fewer learn nothing.

    Parameters
    ----------
    computes : M, from 2 to 255: a client multiplies for each Compute and each of t, which takes seconds beyond.
    threshold : t, from 2 to M.
    cheating : f, below t (default 0): how many may sign contradicting statements about one round (two rosters, or a
        roster and a refusal), which sets `quorum`.

    The shares of t - 1 Computes, who they are follows from the client's name, are seeds of 32 bytes that expand to
    uniform field elements; those of the other M - t + 1 follow from these and the words, 8 bytes a word. A client sends
    8 d (M - t + 1) + 32 (t - 1) bytes: 24 d + 64 for 3 of 5.

    A word is read as a signed number v and becomes v modulo p. The total comes back exactly where it lies within
    ±(2^63 - 2^31); the grid of a round keeps it within 2^62. A larger total would be off by a multiple of p, as one in
    Z/2^64 is off by a multiple of 2^64.

    `unshard` notices up to n - t wrong ones among n sums, and names them where they are no more than (n - t)/2 (and few
    enough to be searched for). A wrong sum may also be the work of a client whose shares do not fit together.
    """

    computes: int = 5
    threshold: int = 3
    cheating: int = 0

    def __post_init__(self) -> None:
        whole(
            "computes", self.computes, 2, "more would take a client seconds; use 'subset' for them", most=MOST_COMPUTES
        )
        check_threshold(self.threshold, self.computes)
        check_cheating(self.cheating, self.threshold)

    def shard(self, words: Words, client: str, randomness: Randomness) -> tuple[Share, ...]:
        """M shares in the order of the Computes; which ones are seeds follows from the client's name."""
        return self.shard_at(words, long_share_at(client, self.computes), randomness)

    def shard_at(self, words: Words, first: int, randomness: Randomness) -> tuple[Share, ...]:
        """The same with seeds for the t - 1 Computes from `first` on; behind the last one comes the first one."""
        dimension, generator = words.size, generator_for(words.size)
        short = [(first + place) % self.computes for place in range(self.threshold - 1)]
        seeds = dict(zip(short, fresh_seeds(len(short), generator, randomness), strict=True))
        places = [0, *(compute + 1 for compute in seeds)]
        values = [of_signed(words), *(expand_elements(seed, dimension, generator) for seed in seeds.values())]
        return tuple(
            Share(SEEDS[generator], dimension, seeds[compute])
            if compute in seeds
            else Share(VALUES, dimension, value_at(compute + 1, places, values).astype("<u8", copy=False).tobytes())
            for compute in range(self.computes)
        )

    def forms(self, dimension: int) -> Mapping[int, int]:
        """A vector of eight bytes an element, or a seed."""
        return {VALUES: 8 * dimension} | dict.fromkeys(_GENERATORS, SEED_BYTES)

    def accumulate(self, total: Words, share: Share) -> None:
        """Add the share's elements, expanded from the seed where it is one."""
        add_to(total, elements(share))

    def merge(self, total: Words, part: Words) -> None:
        """Add modulo p."""
        add_to(total, part)

    @property
    def quorum(self) -> int:
        """So many that two such sets share an honest Compute, and at least t."""
        return quorum_of(self.threshold, self.computes, self.cheating)

    def enough(self, computes: Collection[int]) -> bool:
        """Any t of them."""
        return are_enough(computes, self.threshold, self.computes)

    def unshard(self, sums: Mapping[int, Words]) -> Words:
        """The polynomial's value at 0; CannotCombine where the sums are too few, or not values of one polynomial."""
        check_sums(sums, self.threshold)
        found = {compute + 1: reduced(sums[compute]) for compute in sorted(sums)}
        if not self._fit(found):
            raise sums_differ({place - 1 for place in self._wrong(found)}, len(found))
        places = list(found)[: self.threshold]
        return to_signed(value_at(0, places, [found[place] for place in places]))

    def _fit(self, found: Mapping[int, Words]) -> bool:
        """True where these are values of polynomials of degree below t at these places."""
        places = list(found)
        first, values = places[: self.threshold], [found[place] for place in places[: self.threshold]]
        return all((value_at(place, first, values) == found[place]).all() for place in places[self.threshold :])

    def _wrong(self, found: Mapping[int, Words]) -> Collection[int]:
        """The places of the few values without which all others fit; none where there are too few to tell.

        The search looks at one random combination of all coordinates, where a wrong vector is a wrong number (but for a
        chance of 1/p), and what it finds is then checked in all coordinates.
        """
        mixed = _mixed(found)
        for number in range(1, most_named(len(found), self.threshold) + 1):
            if comb(len(found), number) > _MOST_SEARCHED:
                break
            for wrong in combinations(found, number):
                rest = [place for place in found if place not in wrong]
                if self._numbers_fit(rest, mixed) and self._fit({place: found[place] for place in rest}):
                    return wrong
        return ()

    def _numbers_fit(self, places: Sequence[int], numbers: Mapping[int, int]) -> bool:
        """The same as `_fit` for one number at each place."""
        first = tuple(places[: self.threshold])
        return all(
            sum(weight * numbers[one] for weight, one in zip(weights(first, place), first, strict=True)) % PRIME
            == numbers[place]
            for place in places[self.threshold :]
        )

    def trust(self) -> Trust:
        """At most t - 1 may conspire."""
        return threshold_trust(self.threshold, self.computes, self.quorum)

    def tally(self, dimension: int, randomness: Randomness) -> Tally:
        """Polynomials of many clients at once, in blocks that stay in the cache."""
        return ShamirTally(self.computes, self.threshold, dimension, randomness)

    def describe(self) -> dict[str, object]:
        """Name, Computes, threshold, and how many may cheat where that is not none; for the study."""
        return threshold_described("shamir", self.computes, self.threshold, self.cheating)

    @classmethod
    def of(cls, description: Description) -> Self:
        """From its description."""
        return cls(description["computes"], description["threshold"], description.get("cheating", 0))


class ShamirTally(Tally):
    """Each client's polynomials are drawn and evaluated for every Compute, which adds up its own values modulo p.

    A polynomial of degree below t is known by its value at 0 and its first t - 1 (negated) differences there, and these
    are uniform exactly where its coefficients are. From one place to the next every difference is subtracted from the
    one before it: no multiplication.
    """

    def __init__(self, computes: int, threshold: int, dimension: int, randomness: Randomness) -> None:
        self.sums = np.zeros((computes, dimension), dtype=np.uint64)
        self._differences, self.randomness = threshold - 1, randomness
        self._room = np.empty(0, dtype=np.uint64)  # scratch, used again for every block

    def blocks(self, clients: int) -> Iterator[Block]:
        """Parts of a (clients, d) array that fit into the cache together with the differences."""
        size = max(BLOCK_WORDS // (self._differences + 2), 1)
        yield from cached_blocks(clients, self.sums.shape[1], size)

    def add(self, words: Words, columns: slice) -> None:
        """Share out some clients' words of these columns."""
        if self._room.size < (size := self._differences * words.size):
            self._room = np.empty(size, dtype=np.uint64)
        differences = self._room[:size].reshape(self._differences, *words.shape)
        fill_uniform(differences, self.randomness)
        levels = [of_signed(words), *differences]
        for total in self.sums[:, columns]:
            for value, difference in pairwise(levels):
                subtract_from(value, difference)
            add_to(total, sum_of_rows(levels[0]))


def elements(share: Share) -> Words:
    """A share's field elements: as they are, each word modulo p, or expanded from the seed."""
    if share.form == VALUES:
        return reduced(np.frombuffer(share.body, dtype="<u8").astype(np.uint64, copy=False))
    return expand_elements(share.body, share.dimension, _GENERATORS[share.form])


def _mixed(found: Mapping[int, Words]) -> dict[int, int]:
    """One random combination of the coordinates, the same for all places."""
    factors = np.empty(len(next(iter(found.values()))), dtype=np.uint64)
    fill_uniform(factors, Randomness.system())
    return {place: sum(times(values, factors).tolist()) % PRIME for place, values in found.items()}
