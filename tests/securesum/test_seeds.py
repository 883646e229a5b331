"""Seeds expand to the documented streams, whichever library call makes them."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from hubbub.randomness import Randomness
from hubbub.securesum.seeds import GENERATORS, SHORT, expand_seed, expand_seeds, fresh_seeds, generator_for


def ctr(seed: bytes, dimension: int) -> np.ndarray:
    encryptor = Cipher(algorithms.AES128(seed[:16]), modes.CTR(seed[16:])).encryptor()
    return np.frombuffer(encryptor.update(bytes(8 * dimension)), dtype="<u8")


@pytest.mark.parametrize("dimension", [1, 2, 3, 65, 1000, 40_000])
@pytest.mark.parametrize("ending", [b"\0\0\0\2", b"\0\0\0\0", b"\xff\xff\xff\xff"])
def test_aes_is_the_plain_counter_mode_stream(dimension: int, ending: bytes):
    """Also where GCM makes it, and where the counter block is not the one that GCM starts from."""
    seed = bytes(range(28)) + ending
    assert (expand_seed(seed, dimension, "AES-128-CTR") == ctr(seed, dimension)).all()


@pytest.mark.parametrize("dimension", [1, 10, 64])
def test_shake_is_the_hash_of_the_seed(dimension: int):
    seed = bytes(range(32))
    expected = np.frombuffer(hashlib.shake_128(seed).digest(8 * dimension), dtype="<u8")
    assert (expand_seed(seed, dimension, "SHAKE-128") == expected).all()


@pytest.mark.parametrize("generator", GENERATORS)
def test_fresh_seeds_differ_in_every_word(generator):
    seeds = fresh_seeds(50, generator, Randomness.system())
    assert len(set(seeds)) == 50
    assert {len(seed) for seed in seeds} == {32}
    words = expand_seeds(seeds, 20, generator)
    assert np.unique(words).size == words.size
    assert (words[7] == expand_seed(seeds[7], 20, generator)).all()


def test_generator_goes_by_length():
    assert (generator_for(SHORT), generator_for(SHORT + 1)) == ("SHAKE-128", "AES-128-CTR")
