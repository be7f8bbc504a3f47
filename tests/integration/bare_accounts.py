"""Accounts that no pool made, in any state."""

from __future__ import annotations

from contextlib import suppress

from domain.accounts import ACCOUNT
from engine.errors import Absent
from engine.kube import KubeApi


async def make_account(
    kube: KubeApi, namespace: str, name: str, state: str, account_id: str, **metadata: object
) -> str:
    """Returns NAMESPACE/NAME; without `state` it has no status."""
    spec = {"awsAccountID": account_id, "iamUserSecret": f"{name}-secret"}
    await kube.create(ACCOUNT, {"metadata": {"name": name, **metadata}, "spec": spec}, namespace)
    if state:
        status = {"state": state, "conditions": []}
        await kube.patch(ACCOUNT, namespace, name, {"status": status}, subresource="status")
    return f"{namespace}/{name}"


async def remove_account(kube: KubeApi, namespace: str, name: str) -> None:
    """Without its finalizers, if it is there."""
    with suppress(Absent):
        await kube.patch(ACCOUNT, namespace, name, {"metadata": {"finalizers": None}})
        await kube.delete(ACCOUNT, namespace, name)
