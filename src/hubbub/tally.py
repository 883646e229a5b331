"""The sums of all Computes while many clients share out their vectors, for any secure sum: one client at a time.

A scheme that can do it for many clients at once brings a tally of its own (`securesum/additive`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from hubbub.arrays import Words
from hubbub.randomness import Randomness

if TYPE_CHECKING:
    from hubbub.protocols import SecureSum

_AT_ONCE = 256


class OneByOne:
    """Every client's words are sharded, and each share is added to the sum of its Compute."""

    def __init__(self, scheme: SecureSum, dimension: int, randomness: Randomness) -> None:
        self._scheme, self._clients = scheme, 0
        self.randomness = randomness
        self.sums = np.stack([scheme.empty(dimension) for _ in range(scheme.computes)])

    def blocks(self, clients: int) -> Iterator[tuple[slice, slice]]:
        """Some clients at a time, with all their words."""
        for start in range(0, clients, _AT_ONCE):
            yield slice(start, min(start + _AT_ONCE, clients)), slice(None)

    def add(self, words: Words, columns: slice) -> None:
        """Shard each row, and let each Compute add the share that it gets."""
        for row in words:
            self._clients += 1
            client = f"client-{self._clients}"
            shares = self._scheme.shard(np.ascontiguousarray(row), client, self.randomness)
            for compute, share in zip(self._scheme.recipients(client), shares, strict=True):
                self._scheme.accumulate(self.sums[compute], share)
