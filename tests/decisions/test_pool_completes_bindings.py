"""A binding that was left half made is completed, though the Account has said claimed meanwhile and none is free."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import pytest
from account_objects import DATA, claim, pool, ready_account
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from activities.accounts.handover import HandOver
from activities.accounts.pool import PoolActivities
from activities.accounts.reading import Reader
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.observations import PassPool, PoolKnown, PoolWorld
from domain.identity import Kind
from domain.resource import CustomResource
from engine.errors import Absent
from engine.kube import KubeApi
from engine.kube.api import Listing
from engine.settings import Settings

ENTITY = claim().spec.legal_entity.model_dump()
HOLDER = {"claimLink": "claim", "claimLinkNamespace": "tenant", "legalEntity": ENTITY}
LINKED = ready_account(spec=HOLDER, status={"claimed": True})
POOL = pool(size=0)
GIFT = f"bind {LINKED.metadata.name} to claim tenant/claim"


class Kube:
    """Reading a few custom resources; how often claims were listed."""

    def __init__(self, *objects: tuple[Kind, CustomResource]) -> None:
        self._objects = [(kind.name, found.model_dump(mode="json", by_alias=True)) for kind, found in objects]
        self.claims_listed = 0

    async def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
        for each, found in self._objects:
            if (each, found["metadata"]["name"]) == (kind.name, name):
                return found
        if kind.name == "ConfigMap":
            return {"data": DATA}
        raise Absent(name)

    async def list(self, kind: Kind, namespace: str = "") -> Listing:
        self.claims_listed += kind is ACCOUNT_CLAIM
        return Listing([found for name, found in self._objects if name == kind.name], "1")


class Temporal:
    """The organization's workflow, which has measured nothing."""

    def get_workflow_handle(self, id_: str) -> Temporal:
        return self

    async def query(self, name: str, **more: Any) -> None:
        return None


async def passed(kube: Kube, known: PoolKnown, *, attempt: int = 1) -> PoolWorld:
    """A pass that observes only."""
    reader = Reader(cast("KubeApi", kube), Settings(mode="observe"))
    passes = PoolActivities(reader, cast("HandOver", None), cast("Client", Temporal()))
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, attempt=attempt)
    return await environment.run(passes.pass_pool, PassPool(key=POOL.key, memory=known))


@pytest.mark.parametrize(
    ("known", "attempt"),
    [
        pytest.param(PoolKnown(), 1, id="first pass of a run"),
        pytest.param(PoolKnown(bonds_seen=True), 2, id="the attempt before died"),
    ],
)
async def test_a_claim_whose_account_says_claimed_already_gets_its_link(known: PoolKnown, attempt: int) -> None:
    kube = Kube((ACCOUNT, LINKED), (ACCOUNT_CLAIM, claim(status={"state": "Pending"})), (ACCOUNT_POOL, POOL))
    found = await passed(kube, known, attempt=attempt)
    assert GIFT in found.decision.planned
    assert not found.known.bonds_seen, "nothing was written: the next pass looks again"


async def test_claims_are_not_read_again_at_each_pass_over_accounts_that_are_all_claimed() -> None:
    kube = Kube((ACCOUNT, LINKED), (ACCOUNT_CLAIM, claim(spec={"accountLink": "a"})), (ACCOUNT_POOL, POOL))
    await passed(kube, PoolKnown())
    assert kube.claims_listed == 1
    await passed(kube, PoolKnown(bonds_seen=True))
    assert kube.claims_listed == 1
