"""Under which field manager handles write what they manage."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from claim_domain import NAMES

from activities.claims.cache import ClaimCache
from activities.claims.managed_resources import Managed
from domain.claims.constants import RESOURCE_FIELD_MANAGER
from domain.claims.evaluator_interface import Operations
from engine.kube import KubeApi
from engine.kube.api import FIELD_MANAGER
from engine.kube.discovery import Discovery

ACCOUNT = {
    "apiVersion": "aws.managed.openshift.io/v1alpha1",
    "kind": "AccountClaim",
    "metadata": {"name": "a", "namespace": "users", "resourceVersion": "1"},
}
HANDLE: dict[str, Any] = {"metadata": {"name": "guid-b7k2q"}}


class Cluster:
    """Notes who is said to write."""

    names = NAMES

    def __init__(self) -> None:
        self.writers: list[str] = []

    async def served(self, *_: object) -> object:
        return SimpleNamespace(kind=None)

    async def create(self, kind: object, obj: Any, namespace: str, *, field_manager: str = FIELD_MANAGER) -> Any:
        self.writers.append(field_manager)
        return obj

    async def json_patch(self, *_: object, field_manager: str = FIELD_MANAGER, **__: object) -> Any:
        self.writers.append(field_manager)
        return ACCOUNT


async def test_writes_for_handles_differ_from_writes_of_the_objects_own_lifecycle() -> None:
    cluster = Cluster()
    managed = Managed(cast(KubeApi, cluster), cast(Discovery, cluster), cast(ClaimCache, cluster))
    await managed.create(HANDLE, cast(Any, ACCOUNT))
    await managed.update(cast(Any, ACCOUNT), Operations(index=0, patch=({"op": "add", "path": "/spec", "value": {}},)))
    assert cluster.writers == [RESOURCE_FIELD_MANAGER] * 2
    assert RESOURCE_FIELD_MANAGER != FIELD_MANAGER
