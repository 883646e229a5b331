"""Session keys: one HPKE exchange per client, Compute and study, then AES-256-GCM for every round.

HPKE costs a key agreement per message. A session seals a key of 32 bytes once (the *opening*), and every message under
it, with a random nonce, bound to study, round, client and Compute. A nonce repeats with probability 2^-70 in a study of
10,000 rounds, so a client that crashes has no counter to lose.

The opening travels with every report. A Compute opens it once and remembers it; whichever message is lost or comes
first, each can be read on its own. Where both sides have agreed on the session before, its digest travels instead.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from functools import cached_property

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hubbub.errors import CannotOpen
from hubbub.securesum.seal.hpke import Context, PrivateKey, PublicKey, SuiteName, open_bytes, seal_bytes
from hubbub.securesum.wire.codec import pack

_OPENING = b"hubbub session v2"
_SECRET, NONCE, _TAG = 32, 12, 16
OPENING_BYTES: dict[SuiteName, int] = {"X25519": 80, "MLKEM768-X25519": 1168}
"""Length of a session's opening."""


@dataclass(frozen=True)
class Session:
    """What one client and one Compute share during one study. Its secret is unprintable."""

    opening: bytes = field(repr=False)
    secret: bytes = field(repr=False)

    def seal(self, plaintext: bytes, context: Context) -> bytes:
        """A random nonce, then the ciphertext, bound to the context."""
        nonce = os.urandom(NONCE)
        return nonce + self.cipher.encrypt(nonce, plaintext, context.info())

    def open(self, sealed: bytes, context: Context) -> bytes:
        """Decrypt, or raise CannotOpen: one error for every failure."""
        return self.open_bytes(sealed, context.info())

    def open_bytes(self, sealed: bytes, info: bytes) -> bytes:
        """The same, where the context's bytes are at hand."""
        try:
            return self.cipher.decrypt(sealed[:NONCE], sealed[NONCE:], info)
        except (InvalidTag, ValueError):
            raise CannotOpen from None

    def prepare(self) -> None:
        """Make now what the first message would wait for; it takes longer than opening that."""
        _ = self.cipher, self.name

    @cached_property
    def cipher(self) -> AESGCM:
        """Of this session's key."""
        return AESGCM(self.secret)

    @cached_property
    def name(self) -> bytes:
        """What a report in this session ends with."""
        return pack(self.opening)

    def short(self) -> Session:
        """The same session, called by the digest of its opening: for two sides that know it already."""
        return Session(hashlib.sha256(self.opening).digest(), self.secret)


def mark_of(sealed: bytes | bytearray) -> str:
    """Its tag: which of its client's messages this is."""
    return sealed[-_TAG:].hex()


def start_session(key: PublicKey, study: bytes, client: str, compute: int) -> Session:
    """The client's side: a new secret, sealed to the Compute."""
    secret = os.urandom(_SECRET)
    return Session(seal_bytes(secret, key, _info(study, client, compute)), secret)


def join_session(opening: bytes, key: PrivateKey, study: bytes, client: str, compute: int) -> Session:
    """The Compute's side: the same secret, from the opening; or CannotOpen."""
    secret = open_bytes(opening, key, _info(study, client, compute))
    if len(secret) != _SECRET:
        raise CannotOpen
    return Session(opening, secret)


def _info(study: bytes, client: str, compute: int) -> bytes:
    return pack(_OPENING, study, client.encode(), compute.to_bytes(2, "big"))
