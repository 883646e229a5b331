"""Keys for what a Compute stores of a round: a file each, apart from the database, erased when the round ends.

A database keeps what was deleted: SQLite in its log, PostgreSQL in its tables and its log, both in backups. So a
report is encrypted once more before it is stored, under a key of its round. Whoever gets hold of the database after
that key is erased can open no report, even with the Compute's long-term keys. The key cannot be in the database, where
it would stay, too (docs/decisions/0014).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from hubbub.errors import HubbubError
from hubbub.service.node import faults

Place = tuple[str, int]
"""A study and the number of its round."""
_KEY, _NONCE, _PLACE, _BLOCK = 32, 12, 4, 16
_HEAD = _NONCE + _PLACE
_HALF_MADE = ".new"


class KeyLost(HubbubError):
    """There is no key for this round, so nothing of it can be stored or read."""


class Vault:
    """The keys of the rounds that have not ended. Without a folder they are in memory, and end with the process."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self._keys: dict[Place, bytes] = {}
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._read(folder)

    def make(self, place: Place) -> None:
        """A key for this round, on disk when this returns; the one that it has already, where it has one."""
        with self._lock:
            if place not in self._keys:
                key = os.urandom(_KEY)
                if self._folder is not None:
                    _write(self._folder, _name(place), key)
                self._keys[place] = key
        faults.point("after:key-made")

    def lock(self, place: Place, messages: Sequence[bytes | bytearray]) -> list[bytearray]:
        """Each message as it is stored: where its key stream begins (a nonce and a number of bytes), then ciphertext.

        One call of the cipher serves all of them: they follow one another in one stream of AES-256 in counter mode. The
        nonce is random, so that a message that is stored again after a crash is covered by another stream (2^32 calls
        repeat a nonce with probability 2^-33). That a message was altered is noticed when its own seal is opened.
        """
        nonce = os.urandom(_NONCE)
        covered = _stream(self._key(place), nonce + bytes(_PLACE)).update(b"".join(messages))
        ends = list(accumulate(map(len, messages)))
        starts = [0, *ends[:-1]]
        return [
            bytearray(nonce + start.to_bytes(_PLACE, "big") + covered[start:end])
            for start, end in zip(starts, ends, strict=True)
        ]

    def unlock(self, place: Place, stored: bytes) -> bytes:
        """The message that was locked; of what was altered since, something else, which its seal will show."""
        nonce, start = stored[:_NONCE], int.from_bytes(stored[_NONCE:_HEAD], "big")
        block, passed = divmod(start, _BLOCK)
        stream = _stream(self._key(place), nonce + block.to_bytes(_PLACE, "big"))
        stream.update(bytes(passed))
        return stream.update(stored[_HEAD:])

    def erase(self, place: Place) -> None:
        """Overwrite the key with zeros, then delete it; asked again, nothing happens."""
        with self._lock:
            if self._folder is not None:
                _erase(self._folder / _name(place))
            self._keys.pop(place, None)

    def places(self) -> set[Place]:
        """The rounds that have a key."""
        with self._lock:
            return set(self._keys)

    def _key(self, place: Place) -> bytes:
        key = self._keys.get(place)
        if key is None:
            raise KeyLost(f"round {place[1]} must have its key in the folder of round keys, got none there")
        return key

    def _read(self, folder: Path) -> None:
        """Take up what a process before this one left; what it left half-made or half-erased goes."""
        for path in folder.iterdir():
            study, _, number = path.name.partition("-")
            if path.suffix == _HALF_MADE:
                _erase(path)
            elif number.isascii() and number.isdigit():
                key = path.read_bytes()
                if not any(key):
                    _erase(path)
                elif len(key) == _KEY:
                    self._keys[study, int(number)] = key


def _stream(key: bytes, start: bytes) -> CipherContext:
    """AES-256 in counter mode from this block on, which is its own inverse."""
    return Cipher(algorithms.AES256(key), modes.CTR(start)).encryptor()


def _name(place: Place) -> str:
    return f"{place[0]}-{place[1]}"


def _write(folder: Path, name: str, key: bytes) -> None:
    """Under another name first: a file with the right name is always whole."""
    path = folder / (name + _HALF_MADE)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, key)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    path.rename(folder / name)
    settle(folder)


def _erase(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY)
    except FileNotFoundError:
        return
    try:
        os.write(descriptor, bytes(max(_KEY, os.fstat(descriptor).st_size)))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    faults.point("after:key-zeroed")
    path.unlink()
    settle(path.parent)


def settle(folder: Path) -> None:
    """The names in a folder are on disk when this returns."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
