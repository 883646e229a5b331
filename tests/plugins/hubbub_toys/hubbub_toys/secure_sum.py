"""Every piece of the words is held by two neighbours on a ring of Computes, so that one of them may be missing."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from hubbub.protocols import Description, Randomness, SecureSum, Share, Trust, Words, whole


@dataclass(frozen=True)
class ToyRing(SecureSum):
    """M pieces add up to the words; Compute k holds pieces k and k + 1 (the last one holds the first piece, too)."""

    computes: int = 3

    def __post_init__(self) -> None:
        whole("computes", self.computes, 3, "of two, each would hold all pieces", most=1000)

    def shard(self, words: Words, client: str, randomness: Randomness) -> tuple[Share, ...]:
        masks = randomness.words((self.computes - 1) * words.size).reshape(self.computes - 1, words.size)
        pieces = [*masks, words - masks.sum(axis=0, dtype=np.uint64)]
        held = (np.concatenate([pieces[k], pieces[self._next(k)]]) for k in range(self.computes))
        return tuple(Share(1, words.size, both.astype("<u8").tobytes()) for both in held)

    def forms(self, dimension: int) -> Mapping[int, int]:
        return {1: 16 * dimension}

    def empty(self, dimension: int) -> Words:
        return np.zeros(2 * dimension, dtype=np.uint64)

    def accumulate(self, total: Words, share: Share) -> None:
        total += np.frombuffer(share.body, dtype="<u8")

    def enough(self, computes: Collection[int]) -> bool:
        return {*computes, *map(self._next, computes)} == set(range(self.computes))

    def unshard(self, sums: Mapping[int, Words]) -> Words:
        pieces = {}
        for k, both in sums.items():
            pieces[k], pieces[self._next(k)] = np.split(both, 2)
        return np.stack([*pieces.values()]).sum(axis=0, dtype=np.uint64)

    def trust(self) -> Trust:
        most = (self.computes + 1) // 2 - 1  # one more could be every second Compute, who hold all pieces
        return Trust(self.computes, most, f"at most {most} of the {self.computes} Computes show others what they hold")

    def describe(self) -> dict[str, object]:
        return {"scheme": "toy-ring", "package": "hubbub-toys", "computes": self.computes}

    @classmethod
    def of(cls, description: Description) -> "ToyRing":
        return cls(description["computes"])

    def _next(self, compute: int) -> int:
        return (compute + 1) % self.computes
