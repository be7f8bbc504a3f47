"""The user data of a machine that is about to be made: read and rendered when the server is asked for.

It holds the token of the machine's own ServiceAccount, which kube-controller-manager puts into the Secret of the
machine's name. User data goes to Nova and nowhere else: no history, no log, no error.
"""

from __future__ import annotations

import base64
import binascii
from datetime import timedelta

from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE
from domain.loadbalancers.actions import CreateServer
from domain.loadbalancers.machine.access import Credentials, kubeconfig
from domain.loadbalancers.machine.user_data import MachineSettings, user_data
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine
from engine.errors import Absent, Invalid, Pending
from engine.kube import SECRET, BlockingKube
from engine.kube.json import text
from engine.settings import Settings

NO_TOKEN = "NoToken"  # noqa: S105 - a code
NO_API_ENDPOINT = "NoApiEndpoint"
REPLACED = "Replaced"
_TOKEN_DELAY = timedelta(seconds=1)


def birth(kube: BlockingKube, settings: Settings, action: CreateServer) -> str:
    """The user data of the action's machine.

    Raises:
        Absent: the machine or its LoadBalancer is gone, or another has taken its name.
        Pending: its token is not there yet.
        Invalid: nobody has said how machines reach the Kubernetes API.
    """
    if not settings.loadbalancers_api_endpoint:
        raise Invalid(
            "machines cannot be told where the Kubernetes API is: set PERDURE_LOADBALANCERS_API_ENDPOINT",
            code=NO_API_ENDPOINT,
        )
    namespace, name = action.machine.namespace, action.machine.name
    machine = LoadBalancerMachine.model_validate(kube.get(LOAD_BALANCER_MACHINE, namespace, name))
    if machine.metadata.uid != action.step.uid:
        raise Absent(f"{action.machine.path} is another one now", code=REPLACED)
    balancer = LoadBalancer.model_validate(kube.get(LOAD_BALANCER, action.balancer.namespace, action.balancer.name))
    interval = settings.loadbalancers_agent_interval
    return user_data(
        machine,
        balancer,
        virtual_address=action.virtual_address,
        kubeconfig=kubeconfig(settings.loadbalancers_api_endpoint, namespace, _credentials(kube, namespace, name)),
        settings=MachineSettings(
            ntp_pools=settings.loadbalancers_ntp_pools,
            ntp_servers=settings.loadbalancers_ntp_servers,
            requeue_time=interval or None,
        ),
    )


def _credentials(kube: BlockingKube, namespace: str, name: str) -> Credentials:
    secret = kube.get(SECRET, namespace, name)
    token, certificates = _decoded(secret, "token"), _decoded(secret, "ca.crt")
    if not token or not certificates:
        raise Pending(
            f"Secret {namespace}/{name} has no token yet: kube-controller-manager puts it there",
            code=NO_TOKEN,
            delay=_TOKEN_DELAY,
        )
    return Credentials(token=token.decode(), ca=certificates)


def _decoded(secret: object, entry: str) -> bytes:
    try:
        return base64.b64decode(text(secret, "data", entry), validate=True)
    except binascii.Error:
        return b""
