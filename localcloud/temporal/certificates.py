"""Temporal's certificates and the key of its payloads, made at the first `up` of a state directory.

One authority signs two certificates: the servers', with which they also reach each other, and Perdure's. Everything
stays in the state directory, readable by its owner only.
"""

from __future__ import annotations

import base64
import ipaddress
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from engine.encryption.keys import KEY_BYTES
from localcloud.authority import Authority, outlasts, pem, subject, write_private
from localcloud.state import LOOPBACK

SERVER_NAME = "localhost"


@dataclass(frozen=True)
class Certificates:
    """The files of one Temporal."""

    directory: Path

    @property
    def authority(self) -> Path:
        """The authority's certificate."""
        return self.directory / "ca.crt"

    @property
    def server(self) -> tuple[Path, Path]:
        """Certificate and key of Temporal's servers."""
        return self.directory / "server.crt", self.directory / "server.key"

    @property
    def client(self) -> tuple[Path, Path]:
        """Certificate and key of Perdure's processes and the web UI."""
        return self.directory / "client.crt", self.directory / "client.key"

    @property
    def payload_keys(self) -> Path:
        """The directory of keys that encrypt payloads (PERDURE_TEMPORAL_KEYS)."""
        return self.directory / "payload-keys"

    def ensure(self) -> None:
        """Make what is missing or about to expire; the payloads' key is never replaced."""
        self.payload_keys.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not any(self.payload_keys.iterdir()):
            key = base64.b64encode(secrets.token_bytes(KEY_BYTES))
            write_private(self.payload_keys / f"{datetime.now(UTC):%Y-%m-%d}", key)
        if self._is_usable():
            return
        authority = Authority("perdure-local-temporal")
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        names = x509.SubjectAlternativeName([x509.DNSName(SERVER_NAME), x509.IPAddress(ipaddress.ip_address(LOOPBACK))])
        for (certificate, key_file), name, usage, alternative in (
            (self.server, "temporal", both, names),
            (self.client, "perdure", both[1:], None),
        ):
            key_pair = ec.generate_private_key(ec.SECP256R1())
            write_private(key_file, pem(key_pair))
            write_private(certificate, authority.sign(key_pair.public_key(), subject(name), usage, alternative))
        # Written last: its presence says that the others are complete.
        write_private(self.authority, authority.pem())

    def _is_usable(self) -> bool:
        files = (self.authority, *self.server, *self.client)
        return all(file.is_file() for file in files) and outlasts(self.server[0])
