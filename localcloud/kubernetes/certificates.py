"""The cluster's authority, keys and kubeconfigs, created at a state directory's first `up`.

Clients are the administrator in `system:masters` and the controller manager under RBAC's bootstrap name. Files are
private; after ten years, or if one is missing, all are recreated, which only invalidates old tokens.
"""

from __future__ import annotations

import ipaddress
import os
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from localcloud.state import LOOPBACK, replace_file

LIFETIME = timedelta(days=3650)
RENEW_BEFORE = timedelta(days=30)
SERVICE_RANGE = "10.96.0.0/24"
FIRST_SERVICE_ADDRESS = "10.96.0.1"  # the `kubernetes` service takes the range's first address


@dataclass(frozen=True)
class Certificates:
    directory: Path

    @property
    def authority(self) -> Path:
        return self.directory / "ca.crt"

    @property
    def service_account_key(self) -> Path:
        return self.directory / "service-account.key"

    def certificate(self, name: str) -> Path:
        """The certificate of `server`, `admin` or `controller-manager`."""
        return self.directory / f"{name}.crt"

    def key(self, name: str) -> Path:
        return self.directory / f"{name}.key"

    def ensure(self) -> None:
        """Create what is missing or about to expire."""
        if self._is_usable():
            return
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        authority = _Authority()
        _write(self.service_account_key, _pem(ec.generate_private_key(ec.SECP256R1())))
        for name, subject, usage, names in (
            ("server", _subject("kube-apiserver"), ExtendedKeyUsageOID.SERVER_AUTH, _server_names()),
            ("admin", _subject("perdure-admin", "system:masters"), ExtendedKeyUsageOID.CLIENT_AUTH, None),
            (
                "controller-manager",
                _subject("system:kube-controller-manager"),
                ExtendedKeyUsageOID.CLIENT_AUTH,
                None,
            ),
        ):
            key = ec.generate_private_key(ec.SECP256R1())
            _write(self.key(name), _pem(key))
            _write(self.certificate(name), authority.sign(key.public_key(), subject, usage, names))
        # Written last: its presence marks the others as complete.
        _write(self.authority, authority.pem())

    def write_kubeconfig(self, path: Path, client: str, server_port: int) -> None:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "perdure",
            "clusters": [
                {
                    "name": "perdure",
                    "cluster": {
                        "server": f"https://{LOOPBACK}:{server_port}",
                        "certificate-authority-data": _embedded(self.authority),
                    },
                }
            ],
            "users": [
                {
                    "name": client,
                    "user": {
                        "client-certificate-data": _embedded(self.certificate(client)),
                        "client-key-data": _embedded(self.key(client)),
                    },
                }
            ],
            "contexts": [{"name": "perdure", "context": {"cluster": "perdure", "user": client}}],
        }
        path.unlink(missing_ok=True)  # it may be a link to a user's kubeconfig
        replace_file(path, yaml.safe_dump(config, sort_keys=False))

    def _is_usable(self) -> bool:
        names = ("server", "admin", "controller-manager")
        files = [self.authority, self.service_account_key, *map(self.certificate, names), *map(self.key, names)]
        if not all(file.is_file() for file in files):
            return False
        certificate = x509.load_pem_x509_certificate(self.certificate("server").read_bytes())
        return certificate.not_valid_after_utc - RENEW_BEFORE > datetime.now(UTC)


class _Authority:
    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject("perdure-local-ca")
        self._certificate = (
            self._builder(self._key.public_key(), self._name)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def sign(
        self,
        key: ec.EllipticCurvePublicKey,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None,
    ) -> bytes:
        builder = (
            self._builder(key, subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _builder(self, key: ec.EllipticCurvePublicKey, subject: x509.Name) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))  # tolerates a clock that was set back a little
            .not_valid_after(now + LIFETIME)
        )


def _subject(common_name: str, organization: str | None = None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization is not None:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


def _server_names() -> x509.SubjectAlternativeName:
    names = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
    addresses = (LOOPBACK, "::1", FIRST_SERVICE_ADDRESS)
    return x509.SubjectAlternativeName(
        [
            *(x509.DNSName(name) for name in names),
            *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses),
        ]
    )


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


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _embedded(path: Path) -> str:
    return b64encode(path.read_bytes()).decode()
