"""Session keys: one HPKE exchange per client, Compute and study, then AES-128-GCM for every round.

HPKE costs a key agreement per message. A session seals a secret of 32 bytes once (the *opening*) and derives from it,
by HKDF-Expand, a fresh key and nonce for every message: they depend on study, round, client, Compute and 16 random
bytes sent along, so none is ever used twice, not even where a client seals another message for the same round.

The opening travels with every report. A Compute opens it once and remembers it; whichever message is lost or comes
first, each can be read on its own. Where both sides have agreed on the session before, its digest travels instead.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from hubbub.errors import CannotOpen
from hubbub.securesum.codec import pack
from hubbub.securesum.sealing import Context, PrivateKey, PublicKey, SuiteName, open_bytes, seal_bytes

_OPENING, _MESSAGE = b"hubbub session v1", b"hubbub session message v1"
_SECRET, _SALT, _KEY, _NONCE = 32, 16, 16, 12
OPENING_BYTES: dict[SuiteName, int] = {"X25519": 80, "MLKEM768-X25519": 1168}
"""Length of a session's opening."""


@dataclass(frozen=True)
class Session:
    """What one client and one Compute share during one study. Its secret is unprintable."""

    opening: bytes = field(repr=False)
    secret: bytes = field(repr=False)

    def seal(self, plaintext: bytes, context: Context) -> bytes:
        """16 random bytes, then the ciphertext, bound to the context."""
        salt = os.urandom(_SALT)
        key, nonce = self._derive(context, salt)
        return salt + AESGCM(key).encrypt(nonce, plaintext, None)

    def open(self, sealed: bytes, context: Context) -> bytes:
        """Decrypt, or raise CannotOpen: one error for every failure."""
        salt, ciphertext = sealed[:_SALT], sealed[_SALT:]
        key, nonce = self._derive(context, salt)
        try:
            return AESGCM(key).decrypt(nonce, ciphertext, None)
        except (InvalidTag, ValueError):
            raise CannotOpen from None

    def short(self) -> Session:
        """The same session, called by the digest of its opening: for two sides that know it already."""
        return Session(hashlib.sha256(self.opening).digest(), self.secret)

    def _derive(self, context: Context, salt: bytes) -> tuple[bytes, bytes]:
        info = pack(_MESSAGE, context.info(), salt)
        material = HKDFExpand(SHA256(), _KEY + _NONCE, info).derive(self.secret)
        return material[:_KEY], material[_KEY:]


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
