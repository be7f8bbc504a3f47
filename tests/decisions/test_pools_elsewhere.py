"""An AccountPool outside of the operator's namespace, where Accounts would be deleted again at once; one taken over."""

from __future__ import annotations

from typing import cast

import pytest
from account_objects import CONFIG, NOW, POOL, pool
from memory_kube import MemoryKube
from temporalio.client import Client

from activities.accounts.handover import HandOver
from activities.accounts.pool import PoolActivities
from activities.accounts.reading import Reader
from domain.accounts import ACCOUNT, ACCOUNT_POOL
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.accounts.observations import PassPool, PoolKnown
from domain.accounts.pool import PoolView, decide
from domain.accounts.resources import AccountPool
from domain.decision import Outcome
from engine.settings import Settings


async def test_a_pool_of_another_namespace_is_told_and_neither_filled_nor_counted() -> None:
    kube = MemoryKube()
    made = await kube.create(ACCOUNT_POOL, pool(size=3).model_dump(mode="json", exclude_none=True), "tenant")
    key = pool().key.model_copy(update={"namespace": "tenant", "uid": made["metadata"]["uid"]})
    reader = Reader(kube, Settings())  # type: ignore[arg-type]
    activities = PoolActivities(reader, cast("HandOver", None), cast("Client", None))
    found = await activities.pass_pool(PassPool(key=key, memory=PoolKnown()))
    assert found.decision.outcome is Outcome.WAITING
    assert OPERATOR_NAMESPACE in found.decision.why
    assert (await kube.list(ACCOUNT, OPERATOR_NAMESPACE)).items == []
    assert await kube.get(ACCOUNT_POOL, "tenant", POOL) == made


@pytest.mark.parametrize("lacking", ["", "accountsPending", "awsLimitDelta"])
async def test_a_status_that_lacks_a_number_is_completed_and_a_whole_one_left_alone(lacking: str) -> None:
    whole = PoolView(pool=pool(size=0), accounts=(), claims=(), config=CONFIG, room=None)
    numbers = decide(whole, NOW).status.model_dump(mode="json", exclude={"conditions"})
    status = {name: number for name, number in numbers.items() if name != lacking}
    kube = MemoryKube()
    body = {**pool(size=0).model_dump(mode="json", exclude_none=True), "status": status}
    made = await kube.create(ACCOUNT_POOL, body, OPERATOR_NAMESPACE)
    view = whole.model_copy(update={"pool": AccountPool.model_validate(made)})
    activities = PoolActivities(Reader(kube, Settings()), cast("HandOver", None), cast("Client", None))  # type: ignore[arg-type]
    assert await activities._act(view, decide(view, NOW)) == 0
    after = await kube.get(ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL)
    assert after["status"] == numbers
    assert (after == made) is (lacking == "")
