"""An AccountPool outside of the operator's namespace: Accounts made for it would be deleted again at once."""

from __future__ import annotations

from typing import cast

from account_objects import POOL, pool
from memory_kube import MemoryKube
from temporalio.client import Client

from activities.accounts.handover import HandOver
from activities.accounts.pool import PoolActivities
from activities.accounts.reading import Reader
from domain.accounts import ACCOUNT, ACCOUNT_POOL
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.accounts.observations import PassPool, PoolKnown
from domain.decision import Outcome
from engine.settings import Settings


async def test_a_pool_of_another_namespace_is_told_and_neither_filled_nor_counted() -> None:
    kube = MemoryKube()
    made = await kube.create(ACCOUNT_POOL, pool(size=3).model_dump(mode="json", exclude_none=True), "tenant")
    key = pool().key.model_copy(update={"namespace": "tenant", "uid": made["metadata"]["uid"]})
    reader = Reader(kube, Settings())  # type: ignore[arg-type]
    activities = PoolActivities(reader, cast("HandOver", None), cast("Client", None))
    found = await activities.pass_pool(PassPool(key=key, known=PoolKnown()))
    assert found.decision.outcome is Outcome.WAITING
    assert OPERATOR_NAMESPACE in found.decision.why
    assert (await kube.list(ACCOUNT, OPERATOR_NAMESPACE)).items == []
    assert await kube.get(ACCOUNT_POOL, "tenant", POOL) == made
