"""Where every random bit comes from: AES-128 in counter mode, keyed by the operating system.

Noise and shares protect people, so there is one generator for both and it is a cipher. A *seeded*
stream is for simulations and tests; its `source` says so, and every release repeats it.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import threading
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hubbub.arrays import Floats, Words
from hubbub.errors import whole

SYSTEM = "operating system (AES-128 in counter mode keyed from os.urandom)"
_ZEROS = bytes(1 << 18)
_ZEROS_VIEW = memoryview(_ZEROS)
_BULK = 1 << 15  # bytes from which on AES-GCM's counter mode is drawn from: 1.5 times as fast as a CTR context
_TAG = 16
_PAIRS = 8192  # pairs of normal draws made at a time: 128 KB, inside the second-level cache


class _Stream(Protocol):
    def update_into(self, data: bytes | memoryview, buf: memoryview) -> int: ...


def keystream(key: bytes, nonce: bytes) -> _Stream:
    """The AES-128-CTR encryptor whose encryption of zeros is the random stream."""
    return Cipher(algorithms.AES128(key), modes.CTR(nonce)).encryptor()


def fill(stream: _Stream, out: Words) -> None:
    """Overwrite a contiguous array of words with the stream's next bytes."""
    target = memoryview(out.data).cast("B")
    body = max(len(target) - 16, 0)  # pyca asks for 15 spare bytes behind what it writes
    for start in range(0, body, len(_ZEROS)):
        size = min(len(_ZEROS), body - start)
        stream.update_into(memoryview(_ZEROS)[:size], target[start:])
    tail = bytearray(31)
    size = len(target) - body
    stream.update_into(_ZEROS[:size], memoryview(tail))
    target[body:] = tail[:size]


def _box_muller(words: Words, deviation: float = 1.0) -> Floats:
    """As many normal draws of mean 0 as words (an even number), made in place.

    With t = tan(phi/2) the cosine and sine of a uniform angle phi are 2/(1+t^2) - 1 and 2t/(1+t^2):
    numpy evaluates tan and log with vector instructions, sin and cos it does not.
    The radius has 63 bits, so no draw exceeds 9.35 (a true normal does with probability 1e-20).
    """
    half = words.size // 2
    words[:half] |= np.uint64(1)  # never zero, so that the logarithm is finite
    uniform = words.view(np.float64)
    np.copyto(uniform, words.view(np.int64), casting="unsafe")
    radius, t = uniform[:half], uniform[half:]
    np.abs(radius, out=radius)
    radius *= 2.0**-63
    np.log(radius, out=radius)
    radius *= -2.0 * deviation**2
    np.sqrt(radius, out=radius)
    t *= np.pi / 2 * 2.0**-63
    np.tan(t, out=t)
    share = t * t
    share += 1.0
    np.divide(radius, share, out=share)
    share *= 2.0
    t *= share
    np.subtract(share, radius, out=radius)
    return uniform


class Randomness:
    """A stream of uniform words and standard normal draws; never shows its key."""

    __slots__ = ("_bulk", "_drawn", "_key", "_lock", "_pid", "_stream", "source")

    def __init__(self, key: bytes | None, source: str) -> None:
        self.source = source
        self._key = key
        self._start()

    def _start(self) -> None:
        self._lock = threading.RLock()  # threads share a stream, never a draw
        self._pid = os.getpid()
        key = os.urandom(32) if self._key is None else self._key
        self._stream = keystream(key[:16], key[16:])
        self._bulk = AESGCM(hashlib.sha256(b"hubbub bulk stream" + key).digest()[:16])
        self._drawn = 0  # how often the bulk cipher was used: its nonce

    @classmethod
    def system(cls) -> Randomness:
        """Keyed by the operating system: the only choice where people are protected."""
        return cls(None, SYSTEM)

    @classmethod
    def simulation(cls, seed: int) -> Randomness:
        """Reproducible from a seed: for simulations and tests, and named as such in every report."""
        seed = whole("seed", seed, 0, "give for example 0, or leave it out")
        digest = hashlib.sha256(b"hubbub simulation seed %d" % seed).digest()
        return cls(digest, f"SIMULATION (seed {seed}): reproducible, protects nobody")

    @classmethod
    def of(cls, seed: int | None) -> Randomness:
        """The operating system's stream, or a simulation's where a seed is given."""
        return cls.system() if seed is None else cls.simulation(seed)

    @property
    def secure(self) -> bool:
        """True where the key came from the operating system."""
        return self._key is None

    def words(self, count: int) -> Words:
        """`count` uniform words of Z/2^64."""
        out = np.empty(count, dtype=np.uint64)
        self.fill_words(out)
        return out

    def fill_words(self, out: Words) -> None:
        """Overwrite `out` with uniform words."""
        self._renew_after_fork()
        with self._lock:
            if out.nbytes < _BULK:
                fill(self._stream, out)
                return
            target = out.data.cast("B")
            for start in range(0, len(target) - _TAG, len(_ZEROS)):
                size = min(len(_ZEROS), len(target) - _TAG - start)
                self._drawn += 1
                part = target[start : start + size + _TAG]  # GCM puts its tag behind; the next part covers it
                self._bulk.encrypt_into(self._drawn.to_bytes(12, "big"), _ZEROS_VIEW[:size], None, part)
            fill(self._stream, out.reshape(-1)[-2:])

    def _renew_after_fork(self) -> None:
        """A forked child must not repeat its parent's stream, nor wait for a lock that no thread of its own holds."""
        if self._pid != os.getpid():
            if self._key is None:
                self._start()
            else:
                self._lock, self._pid = threading.RLock(), os.getpid()

    def bytes(self, count: int) -> bytes:
        """`count` uniform bytes."""
        return self.words(-(-count // 8)).tobytes()[:count]

    def normals(self, shape: tuple[int, ...]) -> Floats:
        """Standard normal draws."""
        out = np.empty(shape)
        self.fill_normals(out)
        return out

    def fill_normals(self, out: Floats, deviation: float = 1.0) -> None:
        """Overwrite a contiguous `out` with normal draws of mean 0, a cache-sized block at a time, in place."""
        flat = out.reshape(-1)
        even = flat.size // 2 * 2
        words = flat[:even].view(np.uint64)
        for start in range(0, even, 2 * _PAIRS):
            block = words[start : start + 2 * _PAIRS]
            self.fill_words(block)
            _box_muller(block, deviation)
        if flat.size > even:
            flat[even:] = _box_muller(self.words(2), deviation)[:1]

    def child_key(self) -> builtins.bytes | None:
        """Of a stream of its own: None (the operating system's) or, in a simulation, drawn from this one."""
        return None if self.secure else self.bytes(32)

    def __deepcopy__(self, _: dict[int, object]) -> Randomness:
        return self  # a copy would draw the same noise twice

    def __reduce__(self) -> tuple[type[Randomness], tuple[object, str]]:
        # another process gets a stream of its own, never the same one
        return Randomness, (self.child_key(), self.source)

    def __repr__(self) -> str:
        return f"Randomness({self.source})"
