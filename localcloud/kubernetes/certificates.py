"""The cluster's authority, keys and kubeconfigs, created at a state directory's first `up`.

Files are private. All files are recreated after ten years, or if one is missing; this only invalidates old tokens.
"""

from __future__ import annotations

import ipaddress
from base64 import b64encode
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from localcloud.authority import Certificate, CertificateFiles, pem, subject, write_private
from localcloud.state import LOOPBACK, replace_file

SERVICE_RANGE = "10.96.0.0/24"
FIRST_SERVICE_ADDRESS = "10.96.0.1"  # the `kubernetes` service takes the range's first address


CLIENTS = ("admin", "controller-manager")


class Certificates(CertificateFiles):
    @property
    def service_account_key(self) -> Path:
        return self.directory / "service-account.key"

    def ensure(self) -> None:
        if self.service_account_key.is_file() and self.are_usable("server", *CLIENTS):
            return
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(self.service_account_key, pem(ec.generate_private_key(ec.SECP256R1())))
        admin, controller_manager = CLIENTS
        client = [ExtendedKeyUsageOID.CLIENT_AUTH]
        self.issue(
            "perdure-local-ca",
            Certificate("server", subject("kube-apiserver"), [ExtendedKeyUsageOID.SERVER_AUTH], _server_names()),
            Certificate(admin, subject("perdure-admin", "system:masters"), client),
            Certificate(controller_manager, subject("system:kube-controller-manager"), client),
        )

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


def _server_names() -> x509.SubjectAlternativeName:
    names = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
    addresses = (LOOPBACK, "::1", FIRST_SERVICE_ADDRESS)
    return x509.SubjectAlternativeName(
        [
            *(x509.DNSName(name) for name in names),
            *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses),
        ]
    )


def _embedded(path: Path) -> str:
    return b64encode(path.read_bytes()).decode()
