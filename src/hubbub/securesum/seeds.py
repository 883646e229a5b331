"""Seeds of 32 bytes that expand to uniform words: one for each client and Compute.

Two generators, chosen by the length of the vector, since for a short one the set-up is all that counts:

AES-128-CTR   the seed is a key (16 bytes) and the counter block it starts from (16). Seeds made here end in
              the counter 2, where AES-GCM starts to encrypt: its ciphertext of zeros is the same stream, and
              pyca/cryptography sets it up three times faster than a CTR context.
SHAKE-128     for short vectors: the first bytes of SHAKE-128 of the seed, with less set-up still.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hubbub.arrays import Words
from hubbub.randomness import Randomness, fill, keystream

Generator = Literal["AES-128-CTR", "SHAKE-128"]
Key = tuple[bytes, bytes]
"""An AES key and GCM's nonce."""
GENERATORS: tuple[Generator, ...] = get_args(Generator)
SEED_BYTES = 32
SHORT = 64
"""Up to this many words SHAKE-128 is the faster one (docs/performance.md)."""

SPARE_WORDS = 2
"""Scratch behind every row: GCM puts its tag there."""

_KEY_BYTES = 28
_GCM_START = (2).to_bytes(4, "big")
_MOST_GCM_BYTES = 1 << 30


def generator_for(dimension: int) -> Generator:
    """The faster generator for vectors of this length."""
    return "SHAKE-128" if dimension <= SHORT else "AES-128-CTR"


def fresh_seeds(count: int, generator: Generator, randomness: Randomness) -> list[bytes]:
    """New seeds: 32 random bytes, or 28 and the counter for AES."""
    words = randomness.words(SEED_BYTES // 8 * count)
    raw = words.view(np.uint8).reshape(count, SEED_BYTES)
    if generator == "AES-128-CTR":
        raw[:, 28:] = np.frombuffer(_GCM_START, dtype=np.uint8)
    data = raw.tobytes()
    return [data[start : start + SEED_BYTES] for start in range(0, len(data), SEED_BYTES)]


def expand_seed(seed: bytes, dimension: int, generator: Generator = "AES-128-CTR") -> Words:
    """`dimension` uniform words from one seed."""
    words: Words = expand_seeds([seed], dimension, generator)[0]
    return words


def expand_seeds(seeds: Sequence[bytes], dimension: int, generator: Generator) -> Words:
    """(seeds, dimension) uniform words: a row for each seed."""
    if generator == "SHAKE-128":
        stream = b"".join([hashlib.shake_128(seed).digest(8 * dimension) for seed in seeds])
        words = np.frombuffer(stream, dtype="<u8").reshape(len(seeds), dimension)
    elif all(seed.endswith(_GCM_START) for seed in seeds) and 8 * dimension <= _MOST_GCM_BYTES:
        return expand_keys([(seed[:16], seed[16:28]) for seed in seeds], dimension)
    else:
        room = np.empty((len(seeds), dimension), dtype=np.uint64)
        for seed, row in zip(seeds, room, strict=True):
            fill(keystream(seed[:16], seed[16:]), row)
        words = room.view("<u8")
    return words.astype(np.uint64, copy=False)


def fresh_keys(count: int, randomness: Randomness) -> list[Key]:
    """Of new seeds, their keys and nonces."""
    data = randomness.bytes(_KEY_BYTES * count)
    return [(data[i : i + 16], data[i + 16 : i + _KEY_BYTES]) for i in range(0, len(data), _KEY_BYTES)]


def expand_keys(keys: Sequence[Key], dimension: int, scratch: Words | None = None) -> Words:
    """The same for seeds that start from GCM's counter, taken apart already.

    `scratch`, keys x (dimension + SPARE_WORDS) words, is room that may be used for them.
    """
    width, size = dimension + SPARE_WORDS, 8 * (dimension + SPARE_WORDS)
    room = np.empty(len(keys) * width, dtype=np.uint64) if scratch is None else scratch
    zeros, view, start = _zeros(8 * dimension), room.data.cast("B"), 0
    for key, nonce in keys:
        AESGCM(key).encrypt_into(nonce, zeros, None, view[start : start + size])
        start += size
    words = room.view("<u8").reshape(len(keys), width)[:, :dimension]
    return words.astype(np.uint64, copy=False)


@lru_cache(maxsize=4)
def _zeros(size: int) -> bytes:
    return bytes(size)
