"""Microseconds to expand a 32-byte seed to d words, by generator: `python benchmarks/seeds.py`."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

SEED, TIMES, REPEATS = os.urandom(32), 500, 7


def best(action: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        for _ in range(TIMES):
            action()
        times.append(time.perf_counter() - started)
    return min(times) / TIMES * 1e6


def generators(d: int) -> list[Callable[[], object]]:
    zeros, out = bytes(8 * d), bytearray(8 * d + 16)
    return [
        lambda: Cipher(algorithms.AES128(SEED[:16]), modes.CTR(SEED[16:])).encryptor().update_into(zeros, out),
        lambda: AESGCM(SEED[:16]).encrypt_into(SEED[16:28], zeros, None, out),
        lambda: hashlib.shake_128(SEED).digest(8 * d),
        lambda: ChaCha20Poly1305(SEED).encrypt(SEED[:12], zeros, None),
    ]


def main() -> None:
    print("| d | AES-128-CTR context | AES-GCM | SHAKE-128 | ChaCha20-Poly1305 |\n|---|---|---|---|---|")
    for d in (1, 10, 32, 64, 100, 1000, 10_000):
        print(f"| {d} |", " | ".join(f"{best(generator):.2f}" for generator in generators(d)), "|")


if __name__ == "__main__":
    main()
