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
from typing import Literal, get_args

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hubbub.arrays import Words
from hubbub.randomness import Randomness, fill, keystream

Generator = Literal["AES-128-CTR", "SHAKE-128"]
GENERATORS: tuple[Generator, ...] = get_args(Generator)
SEED_BYTES = 32
SHORT = 64
"""Up to this many words SHAKE-128 is the faster one (docs/performance.md)."""

SPARE_WORDS = 2
"""Scratch behind every row: GCM puts its tag there."""

_KEY, _NONCE = slice(0, 16), slice(16, 28)
_GCM_START = (2).to_bytes(4, "big")
_MOST_GCM_BYTES = 1 << 30


def generator_for(dimension: int) -> Generator:
    """The faster generator for vectors of this length."""
    return "SHAKE-128" if dimension <= SHORT else "AES-128-CTR"


def fresh_seeds(count: int, generator: Generator, randomness: Randomness) -> list[bytes]:
    """New seeds: 32 random bytes, or 28 and the counter for AES."""
    raw = randomness.bytes(SEED_BYTES * count)
    seeds = [raw[start : start + SEED_BYTES] for start in range(0, len(raw), SEED_BYTES)]
    return seeds if generator == "SHAKE-128" else [seed[:28] + _GCM_START for seed in seeds]


def expand_seed(seed: bytes, dimension: int, generator: Generator = "AES-128-CTR") -> Words:
    """`dimension` uniform words from one seed."""
    words: Words = expand_seeds([seed], dimension, generator)[0]
    return words


def expand_seeds(seeds: Sequence[bytes], dimension: int, generator: Generator, scratch: Words | None = None) -> Words:
    """(seeds, dimension) uniform words: a row for each seed.

    `scratch`, seeds x (dimension + SPARE_WORDS) words, is room that may be used for them.
    """
    if generator == "SHAKE-128":
        stream = b"".join([hashlib.shake_128(seed).digest(8 * dimension) for seed in seeds])
        words = np.frombuffer(stream, dtype="<u8").reshape(len(seeds), dimension)
    else:
        width = dimension + SPARE_WORDS
        room = np.empty(len(seeds) * width, dtype=np.uint64) if scratch is None else scratch
        zeros, view = bytes(8 * dimension), room.data.cast("B")
        for i, seed in enumerate(seeds):
            _aes_stream(seed, zeros, view[8 * i * width : 8 * (i + 1) * width])
        words = room.view("<u8").reshape(len(seeds), width)[:, :dimension]
    return words.astype(np.uint64, copy=False)


def _aes_stream(seed: bytes, zeros: bytes, out: memoryview) -> None:
    """Overwrite `out` but for its last 16 bytes with the seed's stream; those are scratch."""
    if seed[28:] == _GCM_START and len(zeros) <= _MOST_GCM_BYTES:
        AESGCM(seed[_KEY]).encrypt_into(seed[_NONCE], zeros, None, out)
    else:
        fill(keystream(seed[:16], seed[16:]), np.frombuffer(out, dtype=np.uint64)[:-SPARE_WORDS])
