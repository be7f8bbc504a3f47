"""Accounts outside the operator's namespace have a lifecycle, and no pool counts or gives them."""

from __future__ import annotations

from typing import Any, cast

import pytest
from account_objects import DATA, claim, pool, ready_account
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment

from activities.accounts.handover import HandOver
from activities.accounts.pool import PoolActivities
from activities.accounts.reading import Reader
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.accounts.observations import PassPool, PoolKnown
from domain.identity import Kind
from domain.resource import CustomResource
from engine.errors import Absent
from engine.kube.api import KubeApi, Listing
from engine.settings import Settings
from starters.watch.accounts import WATCHED


class Kube:
    """An API server with these objects and the operator's ConfigMap."""

    def __init__(self, *objects: tuple[Kind, CustomResource]) -> None:
        self._objects = [(kind.name, found.model_dump(mode="json", by_alias=True)) for kind, found in objects]

    async def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
        for each, found in self._objects:
            if (each, found["metadata"]["namespace"], found["metadata"]["name"]) == (kind.name, namespace, name):
                return found
        if kind.name == "ConfigMap" and name == "aws-account-operator-configmap":
            return {"data": DATA}
        raise Absent(name)

    async def list(self, kind: Kind, namespace: str = "") -> Listing:
        found = [each for name, each in self._objects if name == kind.name]
        return Listing([each for each in found if namespace in ("", each["metadata"]["namespace"])], "1")


class Temporal:
    """A client to whom the organization's workflow does not answer."""

    def get_workflow_handle(self, id_: str) -> Temporal:
        return self

    async def query(self, name: str, **more: Any) -> None:
        raise RPCError("no", RPCStatusCode.UNAVAILABLE, b"")


@pytest.mark.parametrize(("namespace", "given"), [(OPERATOR_NAMESPACE, True), ("elsewhere", False)])
async def test_a_pool_neither_counts_nor_gives_accounts_outside_the_operators_namespace(
    namespace: str, given: bool
) -> None:
    free = ready_account(meta={"namespace": namespace})
    waiting = claim(status={"state": "Pending"})
    filled = pool(size=1)
    kube = Kube((ACCOUNT, free), (ACCOUNT_CLAIM, waiting), (ACCOUNT_POOL, filled))
    reader = Reader(cast("KubeApi", kube), Settings())
    passes = PoolActivities(reader, cast("HandOver", None), cast("Client", Temporal()))
    found = await ActivityEnvironment().run(
        passes.pass_pool, PassPool(key=filled.key, memory=PoolKnown(), dry_run=True)
    )
    assert found.decision is not None
    gift = f"bind {free.metadata.name} to claim tenant/claim"
    assert (gift in found.decision.planned) is given, found.decision


def test_accounts_of_every_namespace_are_watched() -> None:
    (watched,) = (each for each in WATCHED if each.kind is ACCOUNT)
    assert (watched.namespace, watched.has_workflow) == ("", True)
