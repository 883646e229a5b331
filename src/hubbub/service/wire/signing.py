"""Ed25519 signatures over labelled, length-prefixed parts: a signature for one purpose is none for another."""

from __future__ import annotations

from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from hubbub.errors import invalid
from hubbub.securesum import pack

KEY_BYTES, SIGNATURE_BYTES = 32, 64


@dataclass(frozen=True)
class SigningKey:
    """An Ed25519 private key. Unprintable."""

    data: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.data) != KEY_BYTES:
            raise invalid("signing key", f"{KEY_BYTES} bytes long", f"{len(self.data)} bytes", "copy it whole")

    @classmethod
    def generate(cls) -> SigningKey:
        """A fresh key from the operating system's generator."""
        return cls(Ed25519PrivateKey.generate().private_bytes_raw())

    def public(self) -> bytes:
        """The 32 bytes that others verify with."""
        return Ed25519PrivateKey.from_private_bytes(self.data).public_key().public_bytes_raw()

    def sign(self, label: bytes, *parts: bytes) -> bytes:
        """64 bytes over the label and the parts."""
        return Ed25519PrivateKey.from_private_bytes(self.data).sign(pack(label, *parts))


def verified(key: bytes, signature: bytes, label: bytes, *parts: bytes) -> bool:
    """True where the key signed exactly this label and these parts."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, pack(label, *parts))
    except (InvalidSignature, ValueError):
        return False
    return True
