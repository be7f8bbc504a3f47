"""The user data of a machine, rendered when its server is requested, and never stored in a history, log or error.

It contains the token of the machine's ServiceAccount. kube-controller-manager adds the token to the machine's Secret a
moment after ServiceAccount and Secret are created.
"""

from __future__ import annotations

import base64
import binascii
import time
from datetime import timedelta

from domain.loadbalancers.machine.api_access import SECRET_GONE, Credentials, is_token_of, kubeconfig
from domain.loadbalancers.machine.user_data import MachineSettings, user_data
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine
from engine.errors import Absent, Invalid, Pending
from engine.kube import SECRET, BlockingKube
from engine.kube.json import text
from engine.settings import Settings

NO_TOKEN = "NoToken"  # noqa: S105 - an error code
NO_API_ENDPOINT = "NoApiEndpoint"
FOREIGN_SECRET = "ForeignSecret"  # noqa: S105 - an error code
# The token usually appears within milliseconds. Waiting is cheaper than another pass, which observes the cloud again.
_TOKEN_PAUSES = (0.1, 0.2, 0.4, 0.8)
_TOKEN_DELAY = timedelta(seconds=2)


def birth(
    kube: BlockingKube,
    settings: Settings,
    machine: LoadBalancerMachine,
    balancer: LoadBalancer,
    virtual_address: str,
) -> str:
    """Render the user data.

    Raises:
        Absent: the machine's Secret is gone.
        Pending: the Secret has no token yet.
        Invalid: API_ENDPOINT is not set, or the Secret belongs to another object.
    """
    if not settings.loadbalancers_api_endpoint:
        raise Invalid("machines need the address of the Kubernetes API: set API_ENDPOINT", code=NO_API_ENDPOINT)
    meta, interval = machine.metadata, settings.loadbalancers_agent_interval
    credentials = _credentials(kube, meta.namespace, meta.name)
    return user_data(
        machine,
        balancer,
        virtual_address=virtual_address,
        kubeconfig=kubeconfig(settings.loadbalancers_api_endpoint, meta.namespace, credentials),
        settings=MachineSettings(
            ntp_pools=settings.loadbalancers_ntp_pools,
            ntp_servers=settings.loadbalancers_ntp_servers,
            requeue_time=interval or None,
        ),
    )


def _credentials(kube: BlockingKube, namespace: str, name: str) -> Credentials:
    for pause in (*_TOKEN_PAUSES, 0):
        try:
            secret = kube.get(SECRET, namespace, name)
        except Absent as error:
            raise Absent(error.message, code=SECRET_GONE) from error
        if not is_token_of(secret, name):
            raise Invalid(
                f"Secret {namespace}/{name} is not the token of the machine's ServiceAccount and is not used. "
                "Delete the Secret; or delete the machine, and its set creates another one.",
                code=FOREIGN_SECRET,
            )
        token, certificates = _decoded(secret, "token"), _decoded(secret, "ca.crt")
        if token and certificates:
            return Credentials(token=token.decode(), ca=certificates)
        time.sleep(pause)
    raise Pending(
        f"Secret {namespace}/{name} has no token yet: kube-controller-manager adds it",
        code=NO_TOKEN,
        delay=_TOKEN_DELAY,
    )


def _decoded(secret: object, entry: str) -> bytes:
    try:
        return base64.b64decode(text(secret, "data", entry), validate=True)
    except binascii.Error:
        return b""
