"""A machine's access to the API server: a ServiceAccount with a permanent token, a Role, and a kubeconfig.

All objects have the machine's name and namespace, and no labels or owners, as agents and people expect.
kube-controller-manager writes the token to the Secret. An agent may write only its own machine, but read all load
balancers and machines of its namespace. RBAC could restrict list and watch to one name, but would then refuse requests
without a field selector.
"""

from __future__ import annotations

import base64

import yaml
from pydantic import Field

from domain.loadbalancers.constants import GROUP
from domain.loadbalancers.resources import LoadBalancerMachine
from domain.model import Model
from domain.schema import Document
from domain.writes import JsonPatch, difference

TOKEN_TYPE = "kubernetes.io/service-account-token"  # noqa: S105 - a type of Secrets
_ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name"
SECRET_GONE = "SecretGone"  # noqa: S105 - the code of a refusal, and what a machine's memory says afterwards
_RBAC = "rbac.authorization.k8s.io"
# The kinds to delete, in this order; Kubernetes deletes the Secret with its ServiceAccount.
REMOVED = ("ServiceAccount", "RoleBinding", "Role")


class Credentials(Model):
    """A machine's credentials, never logged or stored in a workflow. `ca` is the API server's CA bundle (PEM)."""

    token: str = Field(repr=False)
    ca: bytes


def access_objects(machine: LoadBalancerMachine) -> tuple[Document, ...]:
    name, namespace = machine.metadata.name, machine.metadata.namespace
    meta: Document = {"name": name, "namespace": namespace}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": dict(meta)},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {**meta, "annotations": {_ACCOUNT_ANNOTATION: name}},
            "type": TOKEN_TYPE,
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "Role",
            "metadata": dict(meta),
            "rules": role_rules(machine.spec.load_balancer_ref.name, name),
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": dict(meta),
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
            "subjects": [subject],
        },
    )


def role_rules(load_balancer: str, machine: str) -> list[Document]:
    return [
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
        _rule("loadbalancers", ["list", "watch"]),
        _rule("loadbalancers", ["get"], load_balancer),
        _rule("loadbalancermachines", ["list", "watch"]),
        _rule("loadbalancermachines", ["get", "update", "patch"], machine),
        _rule("loadbalancermachines/status", ["get", "update", "patch"], machine),
    ]


def _rule(resource: str, verbs: list[str], name: str = "") -> Document:
    named: Document = {"resourceNames": [name]} if name else {}
    return {"apiGroups": [GROUP], "resources": [resource], **named, "verbs": verbs}


def is_token_of(secret: Document, account: str) -> bool:
    metadata = secret.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    named = annotations.get(_ACCOUNT_ANNOTATION) if isinstance(annotations, dict) else None
    return secret.get("type") == TOKEN_TYPE and named == account


def access_status(machine: LoadBalancerMachine) -> JsonPatch:
    """The status patch with the names of the access objects; empty if up to date.

    As in yawol, `roleBindingName` is never set.
    """
    path = f"{machine.metadata.namespace}/{machine.metadata.name}"
    names = {"service_account_name": path, "service_account_secret_name": path, "role_name": path}
    change = difference(machine.status, machine.status.model_copy(update=names))
    return {"status": change} if change else {}


def kubeconfig(server: str, namespace: str, credentials: Credentials) -> str:
    """`server` is the API server's address for machines, such as https://api.example.com:443."""
    cluster, user, context = "default-cluster", "user", "context"
    ca = base64.b64encode(credentials.ca).decode()
    document: Document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": server, "certificate-authority-data": ca}}],
        "users": [{"name": user, "user": {"token": credentials.token}}],
        "contexts": [{"name": context, "context": {"cluster": cluster, "user": user, "namespace": namespace}}],
        "current-context": context,
    }
    return yaml.safe_dump(document, sort_keys=False)
