"""The command lines of etcd, the API server and the controller manager.

There are no nodes and pods, so only the garbage collector and the namespace and token controllers run.
"""

from __future__ import annotations

from pathlib import Path

from localcloud.kubernetes.certificates import SERVICE_RANGE, Certificates
from localcloud.state import LOOPBACK, Binaries, StateDirectory

CONTROLLERS = "garbage-collector-controller,namespace-controller,serviceaccount-token-controller"
AUDIT_POLICY = Path(__file__).with_name("audit-policy.yaml")
ISSUER = "https://kubernetes.default.svc"


def etcd(binaries: Binaries, state: StateDirectory, port: int, peer_port: int, *, fsync: bool = True) -> list[str]:
    """The command line of etcd; with `fsync` not even a power failure loses an object."""
    client, peer = f"http://{LOOPBACK}:{port}", f"http://{LOOPBACK}:{peer_port}"
    return [
        str(binaries.etcd),
        "--name=perdure",
        f"--data-dir={state.data('etcd')}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=perdure={peer}",
        # The peer address may change between runs of `up`: etcd's single member is looked up by no other member, and is
        # identified by the data directory.
        "--log-level=warn",
        *(() if fsync else ("--unsafe-no-fsync",)),
    ]


def api_server(binaries: Binaries, state: StateDirectory, port: int, etcd_port: int) -> list[str]:
    certificates = Certificates(state.certificates)
    return [
        str(binaries.kube_apiserver),
        f"--etcd-servers=http://{LOOPBACK}:{etcd_port}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        "--endpoint-reconciler-type=none",
        "--external-hostname=localhost",  # otherwise the server announces some network card's address
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        f"--client-ca-file={certificates.authority}",
        f"--tls-cert-file={certificates.certificate('server')}",
        f"--tls-private-key-file={certificates.key('server')}",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={certificates.service_account_key}",
        f"--service-account-signing-key-file={certificates.service_account_key}",
        "--authorization-mode=RBAC",
        "--profiling=false",
        f"--audit-policy-file={AUDIT_POLICY}",
        f"--audit-log-path={state.log('audit')}",
        "--audit-log-maxsize=100",
        "--audit-log-maxbackup=2",
    ]


def controller_manager(binaries: Binaries, state: StateDirectory, port: int) -> list[str]:
    certificates = Certificates(state.certificates)
    kubeconfig = state.certificates / "controller-manager.kubeconfig"
    return [
        str(binaries.kube_controller_manager),
        f"--controllers={CONTROLLERS}",
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--authentication-skip-lookup=true",
        "--leader-elect=false",
        # Each controller has its own account and bootstrap role; the manager's own account may not delete objects.
        "--use-service-account-credentials=true",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--tls-cert-file={certificates.certificate('server')}",
        f"--tls-private-key-file={certificates.key('server')}",
        f"--root-ca-file={certificates.authority}",
        f"--service-account-private-key-file={certificates.service_account_key}",
        "--profiling=false",
    ]
