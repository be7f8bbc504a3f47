"""Temporal's certificates, and the key that encrypts payloads, made at the first `up` of a state directory.

One authority signs the servers' certificate and Perdure's client certificate.
"""

from __future__ import annotations

import base64
import ipaddress
import secrets
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from engine.encryption.keys import KEY_BYTES
from localcloud.authority import Certificate, CertificateFiles, subject, write_private
from localcloud.state import LOOPBACK

SERVER_NAME = "localhost"


class Certificates(CertificateFiles):
    @property
    def server(self) -> tuple[Path, Path]:
        return self.certificate("server"), self.key("server")

    @property
    def client(self) -> tuple[Path, Path]:
        return self.certificate("client"), self.key("client")

    @property
    def payload_keys(self) -> Path:
        return self.directory / "payload-keys"

    def ensure(self) -> None:
        self.payload_keys.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not any(self.payload_keys.iterdir()):
            key = base64.b64encode(secrets.token_bytes(KEY_BYTES))
            write_private(self.payload_keys / f"{datetime.now(UTC):%Y-%m-%d}", key)
        if self.are_usable("server", "client"):
            return
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        names = x509.SubjectAlternativeName([x509.DNSName(SERVER_NAME), x509.IPAddress(ipaddress.ip_address(LOOPBACK))])
        self.issue(
            "perdure-local-temporal",
            Certificate("server", subject("temporal"), both, names),
            Certificate("client", subject("perdure"), [ExtendedKeyUsageOID.CLIENT_AUTH]),
        )
