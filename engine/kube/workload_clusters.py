"""Workload clusters of Cluster API, accessed with the kubeconfig in the Secret `<cluster>-kubeconfig`, key `value`.

The kubeconfig is read each time, because it is rotated; it is never disclosed. Entries that would run a program or read
a file of this machine are refused: otherwise anyone with write access to the Secret could do so.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import yaml
from kubernetes.aio.config import ConfigException

from domain.built_in_kinds import SECRET
from domain.refusal import UNUSABLE_KUBECONFIG
from engine.errors import Invalid
from engine.kube.api import KubeApi
from engine.kube.connection import Connection
from engine.kube.json import JsonObject, mapping, sequence, text

# A kubeconfig may only contain certificates and tokens inline; these fields refer to programs and files.
_FOREIGN = ("exec", "auth-provider", "tokenFile", "client-certificate", "client-key")
_CONNECTIONS = 4


@asynccontextmanager
async def workload(kube: KubeApi, namespace: str, cluster: str) -> AsyncIterator[KubeApi]:
    """The cluster's API; without a namespace, `kube` itself. Raises Absent if there is no kubeconfig, Invalid if it
    cannot be used.
    """
    if not namespace:
        yield kube
        return
    name = f"{cluster}-kubeconfig"
    secret = await kube.get(SECRET, namespace, name)
    where = f"Secret {namespace}/{name}"
    connection = Connection(content=kubeconfig(secret, where))
    try:
        await connection.load()
    except ConfigException as error:
        raise Invalid(f"{where}: {error}", code="Kubeconfig") from error
    async with kube.beside(connection, connections=_CONNECTIONS) as api:
        yield api


def kubeconfig(secret: JsonObject, where: str) -> JsonObject:
    """The Secret's kubeconfig; raises Invalid if there is none, or if it refers to programs or files."""
    try:
        content = yaml.safe_load(base64.b64decode(text(secret, "data", "value"), validate=True))
    except (binascii.Error, yaml.YAMLError, UnicodeDecodeError) as error:
        raise Invalid(f"{where} has no kubeconfig under `value`", code=UNUSABLE_KUBECONFIG) from error
    if not isinstance(content, dict):
        raise Invalid(f"{where} has no kubeconfig under `value`", code=UNUSABLE_KUBECONFIG)
    users = [mapping(each, "user") for each in sequence(content, "users")]
    clusters = [mapping(each, "cluster") for each in sequence(content, "clusters")]
    foreign = {name for user in users for name in _FOREIGN if name in user}
    foreign |= {name for cluster in clusters for name in ("certificate-authority",) if name in cluster}
    if foreign:
        raise Invalid(
            f"{where}: its kubeconfig may not refer to programs or files, but has {', '.join(sorted(foreign))}",
            code=UNUSABLE_KUBECONFIG,
        )
    return content
