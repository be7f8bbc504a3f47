"""A certificate authority for one deployment's servers and clients.

Its key is not stored: if a certificate is missing or expires soon, a new authority issues all certificates.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LIFETIME = timedelta(days=3650)
RENEW_BEFORE = timedelta(days=30)


class Certificate(NamedTuple):
    """A certificate to issue; `names` is None for a client certificate."""

    name: str
    subject: x509.Name
    usage: Sequence[x509.ObjectIdentifier]
    names: x509.SubjectAlternativeName | None = None


@dataclass(frozen=True)
class CertificateFiles:
    directory: Path

    @property
    def authority(self) -> Path:
        return self.directory / "ca.crt"

    def certificate(self, name: str) -> Path:
        return self.directory / f"{name}.crt"

    def key(self, name: str) -> Path:
        return self.directory / f"{name}.key"

    def are_usable(self, *names: str) -> bool:
        files = [self.authority, *map(self.certificate, names), *map(self.key, names)]
        if not all(file.is_file() for file in files):
            return False
        found = x509.load_pem_x509_certificate(self.certificate(names[0]).read_bytes())
        return found.not_valid_after_utc - RENEW_BEFORE > datetime.now(UTC)

    def issue(self, authority_name: str, *certificates: Certificate) -> None:
        authority = Authority(authority_name)
        for each in certificates:
            key = ec.generate_private_key(ec.SECP256R1())
            write_private(self.key(each.name), pem(key))
            write_private(self.certificate(each.name), authority.sign(key.public_key(), each))
        # Written last: its presence shows that all other files are complete.
        write_private(self.authority, authority.pem())


class Authority:
    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = subject(name)
        self._certificate = (
            self._builder(self._key.public_key(), self._name)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def sign(self, key: ec.EllipticCurvePublicKey, wanted: Certificate) -> bytes:
        builder = (
            self._builder(key, wanted.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(wanted.usage), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if wanted.names is not None:
            builder = builder.add_extension(wanted.names, critical=False)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _builder(self, key: ec.EllipticCurvePublicKey, of: x509.Name) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(of)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))  # valid even if a clock is a little behind
            .not_valid_after(now + LIFETIME)
        )


def subject(common_name: str, organization: str | None = None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization is not None:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def write_private(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
