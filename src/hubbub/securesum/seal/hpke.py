"""Sealing a share to one Compute with HPKE (RFC 9180) from pyca/cryptography.

The context (study, round, client, Compute) goes into HPKE's info, so a sealed share opens only where,
when and for whom it was made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import (
    AEAD,
    KDF,
    KEM,
    MLKEM768X25519PrivateKey,
    MLKEM768X25519PublicKey,
    Suite,
)

from hubbub.errors import CannotOpen, invalid
from hubbub.securesum.wire.codec import pack

SuiteName = Literal["X25519", "MLKEM768-X25519"]

_KEMS = {"X25519": KEM.X25519, "MLKEM768-X25519": KEM.MLKEM768_X25519}
_MLKEM_PUBLIC, _MLKEM_SEED, _X25519 = 1184, 64, 32
_LABEL = b"hubbub share v1"


class Context(NamedTuple):
    """What a sealed share is bound to."""

    study: bytes
    round: int
    client: str
    compute: int

    def info(self) -> bytes:
        """Unambiguous bytes: every part with its length before it."""
        return info_head(self.study, self.round) + pack(self.client.encode(), self.compute.to_bytes(2, "big"))


def info_head(study: bytes, number: int) -> bytes:
    """What the context's bytes begin with for everybody in a round; the client's name comes next."""
    return pack(_LABEL, study, number.to_bytes(4, "big"))


@dataclass(frozen=True)
class PublicKey:
    """A Compute's key to seal to."""

    suite: SuiteName
    data: bytes

    def __post_init__(self) -> None:
        size = _X25519 if check_suite(self.suite) == "X25519" else _MLKEM_PUBLIC + _X25519
        if len(self.data) != size:
            raise invalid(
                "public key",
                f"{size} bytes long for {self.suite}",
                f"{len(self.data)} bytes",
                "copy it whole",
            )

    @lru_cache(maxsize=64)  # noqa: B019  # keys are few, and equal ones share their entry
    def _key(self) -> Any:
        if self.suite == "X25519":
            return X25519PublicKey.from_public_bytes(self.data)
        mlkem = MLKEM768PublicKey.from_public_bytes(self.data[:_MLKEM_PUBLIC])
        return MLKEM768X25519PublicKey(mlkem, X25519PublicKey.from_public_bytes(self.data[_MLKEM_PUBLIC:]))


@dataclass(frozen=True)
class PrivateKey:
    """A Compute's secret key. Unprintable."""

    suite: SuiteName
    data: bytes = field(repr=False)

    @classmethod
    def generate(cls, suite: SuiteName = "X25519") -> PrivateKey:
        """A fresh key from the operating system's generator."""
        x25519 = X25519PrivateKey.generate().private_bytes_raw()
        if check_suite(suite) == "X25519":
            return cls(suite, x25519)
        return cls(suite, MLKEM768PrivateKey.generate().private_bytes_raw() + x25519)

    def public(self) -> PublicKey:
        """The key that clients seal to."""
        x25519 = X25519PrivateKey.from_private_bytes(self.data[-_X25519:]).public_key().public_bytes_raw()
        if self.suite == "X25519":
            return PublicKey(self.suite, x25519)
        mlkem = MLKEM768PrivateKey.from_seed_bytes(self.data[:_MLKEM_SEED]).public_key().public_bytes_raw()
        return PublicKey(self.suite, mlkem + x25519)

    @lru_cache(maxsize=64)  # noqa: B019  # loading derives the public key: a third of what opening a share takes
    def _key(self) -> Any:
        x25519 = X25519PrivateKey.from_private_bytes(self.data[-_X25519:])
        if self.suite == "X25519":
            return x25519
        return MLKEM768X25519PrivateKey(MLKEM768PrivateKey.from_seed_bytes(self.data[:_MLKEM_SEED]), x25519)


def seal(plaintext: bytes, key: PublicKey, context: Context) -> bytes:
    """Encrypt to the Compute's key, bound to the context."""
    return seal_bytes(plaintext, key, context.info())


def open_sealed(ciphertext: bytes, key: PrivateKey, context: Context) -> bytes:
    """Decrypt, or raise CannotOpen: one error for every failure."""
    return open_bytes(ciphertext, key, context.info())


def seal_bytes(plaintext: bytes, key: PublicKey, info: bytes) -> bytes:
    """HPKE to this key; the ciphertext opens only where the same info is given."""
    try:
        return _suite(key.suite).encrypt(plaintext, key._key(), info=info)
    except ValueError:
        raise invalid("public key", f"a valid {key.suite} key", "one that is not", "ask its Compute again") from None


def open_bytes(ciphertext: bytes, key: PrivateKey, info: bytes) -> bytes:
    """The inverse of `seal_bytes`, or CannotOpen."""
    try:
        return _suite(key.suite).decrypt(ciphertext, key._key(), info=info)
    except (InvalidTag, ValueError):
        raise CannotOpen from None


def check_suite(suite: str) -> str:
    """A known suite, or one line that names those there are."""
    if suite not in _KEMS:
        raise invalid("suite", f"one of {', '.join(_KEMS)}", repr(suite), "use X25519")
    return suite


def _suite(name: SuiteName) -> Suite:
    return Suite(_KEMS[name], KDF.HKDF_SHA256, AEAD.AES_128_GCM)
