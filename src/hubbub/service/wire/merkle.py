"""A list of clients under one hash, and short proofs that somebody is on it (RFC 6962: a Merkle tree).

Leaves and inner nodes are hashed under different first bytes, so that no inner node can pass for a client.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hubbub.errors import InvalidInput, whole
from hubbub.securesum import pack
from hubbub.service.wire.canonical import Content, hexed

HASH_BYTES = 32
_LEAF, _INNER = b"\x00", b"\x01"
_MOST_HASHES = 64


@dataclass(frozen=True)
class Proof:
    """That a client is on a list: its place among the sorted names, and a hash for each level of the tree."""

    place: int
    hashes: tuple[bytes, ...]

    def content(self) -> dict[str, object]:
        """Plain JSON values."""
        return {"place": self.place, "hashes": [each.hex() for each in self.hashes]}

    @classmethod
    def of(cls, content: Content) -> Proof:
        """The proof, or InvalidInput."""
        try:
            hashes = list(content["hashes"])
            place = whole("place", content["place"], 0, "count the names from 0")
        except (KeyError, TypeError):
            raise InvalidInput("proof must have the fields place and hashes, got others; ask another Compute") from None
        whole("hashes", len(hashes), 0, "ask another Compute", most=_MOST_HASHES)
        return cls(place, tuple(hexed("hashes", each, HASH_BYTES) for each in hashes))


@dataclass(frozen=True)
class Tree:
    """The tree over all clients of a list."""

    names: tuple[str, ...]
    """Sorted."""
    levels: tuple[tuple[bytes, ...], ...]
    """From the leaves to the root."""

    @classmethod
    def over(cls, samples: Mapping[str, int]) -> Tree:
        """The tree over these clients, given how many samples each of them holds."""
        whole("clients", len(samples), 1, "invite clients before the draw")
        names = tuple(sorted(samples))
        levels = [tuple(leaf(name, samples[name]) for name in names)]
        while len(levels[-1]) > 1:
            levels.append(_above(levels[-1]))
        return cls(names, tuple(levels))

    @property
    def root(self) -> bytes:
        """The hash that stands for the whole list."""
        return self.levels[-1][0]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def proof(self, name: str) -> Proof | None:
        """That this client is on the list, or None where it is not."""
        if (place := self._places.get(name)) is None:
            return None
        steps = ((level, (place >> height) ^ 1) for height, level in enumerate(self.levels))
        return Proof(place, tuple(level[other] for level, other in steps if other < len(level)))


def leaf(name: str, samples: int) -> bytes:
    """The hash of one client and its number of samples."""
    return hashlib.sha256(_LEAF + pack(name.encode(), samples.to_bytes(4, "big"))).digest()


def root_from(proof: Proof, clients: int, name: str, samples: int) -> bytes:
    """The root of the tree over so many clients in which the proof puts this one; or InvalidInput."""
    found, place, width, left = leaf(name, samples), proof.place, clients, list(proof.hashes)
    if place >= clients:
        raise _wrong()
    while width > 1:
        if place ^ 1 < width:
            if not left:
                raise _wrong()
            other = left.pop(0)
            found = _inner(other, found) if place & 1 else _inner(found, other)
        place, width = place >> 1, (width + 1) >> 1
    if left:
        raise _wrong()
    return found


def _above(level: Sequence[bytes]) -> tuple[bytes, ...]:
    """The next level: pairs are hashed, and a last one without a partner moves up as it is."""
    pairs = tuple(_inner(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2))
    return pairs if len(level) % 2 == 0 else (*pairs, level[-1])


def _inner(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(_INNER + left + right).digest()


def _wrong() -> InvalidInput:
    return InvalidInput("proof must have a hash for each level of the list's tree, got another; ask another Compute")
