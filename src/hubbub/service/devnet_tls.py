"""A development authority: certificates for Computes on one machine. Not for use between real parties."""

from __future__ import annotations

import datetime
import ipaddress
import os
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAYS = 30


@dataclass(frozen=True)
class Authority:
    """Signs certificates; its own one is in `certificate`, its key stays in memory."""

    certificate: Path
    _key: ec.EllipticCurvePrivateKey = field(repr=False)
    _name: x509.Name = field(repr=False)

    @classmethod
    def create(cls, folder: Path) -> Authority:
        """A new authority, whose certificate is written to ca.pem."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hubbub development authority")])
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
            data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        builder = _builder(name, name, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(usage, critical=True)
        identity = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        certificate = builder.add_extension(identity, critical=False).sign(key, hashes.SHA256())
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "ca.pem"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return cls(path.resolve(), key, name)

    def issue(self, folder: Path, address: str) -> None:
        """server.pem and server.key for a Compute at this IP address."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, address)])
        builder = _builder(name, self._name, key.public_key())
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        builder = builder.add_extension(names, critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(usage, critical=False).add_extension(issuer, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        (folder / "server.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        descriptor = os.open(folder / "server.key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secret)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(minutes=5))
    return builder.not_valid_after(now + datetime.timedelta(days=_DAYS))
