"""The sums of M Computes while many clients share out their vectors at once, for all roles on one machine.

Every client's M-1 masks are really drawn and subtracted from its own vector; each Compute adds up only what
it was sent. The plain vectors are never added.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

import numpy as np

from hubbub.arrays import Words
from hubbub.errors import invalid
from hubbub.protocols import Tally
from hubbub.randomness import Randomness
from hubbub.securesum.seeds import SPARE_WORDS, expand_keys, expand_seeds, fresh_keys, fresh_seeds, generator_for

Masks = Literal["auto", "raw", "seeds"]
"""How masks are made: drawn as words, or expanded from seeds by the client and again by the Compute."""

BLOCK_WORDS = 1 << 16  # 512 KB an array: vector and mask of a block stay in the second-level cache
_WIDE = 2048  # columns of a block where vectors are long
_FOLD, _FEW = 512, 4  # rows shorter than this are added several at a time; so few rows one by one

Block = tuple[slice, slice]


class AdditiveTally(Tally):
    """M running sums. `raw` masks are uniform words from one keyed stream, the same distribution as expanded
    seeds; `auto` is raw, since within one machine no byte is saved by a seed (docs/decisions/0003)."""

    def __init__(self, computes: int, dimension: int, randomness: Randomness, masks: Masks = "auto") -> None:
        self.sums = np.zeros((computes, dimension), dtype=np.uint64)
        self.seeds = check_masks(masks) == "seeds"
        self._generator = generator_for(dimension)
        self.randomness = randomness
        """Where masks and seeds come from; may change between calls."""
        self._mask = np.empty(0, dtype=np.uint64)  # scratch, used again for every block
        self._turn = 0

    def blocks(self, clients: int) -> Iterator[Block]:
        """Parts of a (clients, d) array that fit into the cache; all of it where seeds are expanded, row by row."""
        d = self.sums.shape[1]
        if self.seeds:
            yield slice(0, clients), slice(0, d)
        else:
            yield from cached_blocks(clients, d)

    def add(self, words: Words, columns: slice) -> None:
        """Share out some clients' words of these columns; consumes (overwrites) the array.

        Which Compute gets the masked vectors changes from call to call.
        """
        M = self.sums.shape[0]
        share = self._share_seeds if self.seeds else self._share_masks
        for k in range(1, M):
            share(words, self.sums[(self._turn + k) % M, columns])
        add_rows(words, self.sums[self._turn % M, columns])
        self._turn += 1

    def _share_masks(self, words: Words, total: Words) -> None:
        """The clients draw masks; the Compute adds the masks it was sent."""
        if self._mask.size < words.size:
            self._mask = np.empty(words.size, dtype=np.uint64)
        mask = self._mask[: words.size].reshape(words.shape)
        self.randomness.fill_words(mask)
        words -= mask
        add_rows(mask, total)

    def _share_seeds(self, words: Words, total: Words) -> None:
        """The clients draw seeds and expand them; the Compute expands again what it was sent, and adds."""
        n, d = words.shape
        if self._generator == "SHAKE-128":
            seeds = fresh_seeds(n, self._generator, self.randomness)
            words -= expand_seeds(seeds, d, self._generator)
            add_rows(expand_seeds(seeds, d, self._generator), total)
            return
        keys, size = fresh_keys(n, self.randomness), n * (d + SPARE_WORDS)
        if self._mask.size < size:
            self._mask = np.empty(size, dtype=np.uint64)
        words -= expand_keys(keys, d, self._mask[:size])
        add_rows(expand_keys(keys, d, self._mask[:size]), total)


def cached_blocks(clients: int, dimension: int, size: int = BLOCK_WORDS, wide: int = _WIDE) -> Iterator[Block]:
    """Parts of a (clients, d) array of about `size` words each; rows of up to `wide` words are not cut."""
    if clients * dimension <= size:
        yield slice(0, clients), slice(0, dimension)
        return
    columns = max(min(dimension, wide), size // clients)
    rows = max(1, size // columns)
    for top in range(0, clients, rows):
        for left in range(0, dimension, columns):
            yield slice(top, min(top + rows, clients)), slice(left, min(left + columns, dimension))


def clients_at_once(dimension: int) -> int:
    """How many clients' vectors to make at a time: a block of them, or a few blocks where they are long."""
    return max(1, min(BLOCK_WORDS // min(dimension, _WIDE), 32 * BLOCK_WORDS // dimension))


def add_rows(words: Words, total: Words) -> None:
    """Add every row to the total; short rows are added many at a time, so that NumPy's inner loop is long."""
    n, d = words.shape
    if n <= _FEW:
        for row in words:
            total += row
        return
    fold = min(_FOLD // d, n)
    if fold > 1:
        whole = n // fold * fold
        rest, words = words[whole:], words[:whole].reshape(-1, fold * d).sum(axis=0).reshape(fold, d)
        total += rest.sum(axis=0)
    total += words.sum(axis=0)


def check_masks(masks: str) -> str:
    """A known way of making masks, or one line that names those there are."""
    if masks not in get_args(Masks):
        raise invalid("shares", f"one of {', '.join(get_args(Masks))}", repr(masks), "use auto")
    return masks
