"""A hand-over that hangs, or that Temporal does not answer, is left to the claim's own lifecycle: it is no bug, and
blocks no other claim."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, cast

import pytest
from account_objects import DATA, claim, pool, ready_account
from memory_kube import MemoryKube
from temporalio.client import Client, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment

import activities.accounts.pool
from activities.accounts.cache import Reader
from activities.accounts.handover import HandOver
from activities.accounts.pool import PoolActivities
from activities.aws.session import Sessions
from domain.accounts.constants import CONFIG_MAP as CONFIG_MAP_NAME
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.accounts.passes import PassPool, PoolMemory, UnitRequest
from domain.refusal import ErrorType
from engine.errors import Unavailable, to_application_error
from engine.kube import CONFIG_MAP, KubeApi
from engine.settings import Settings

NO_ANSWER = [WorkflowUpdateRPCTimeoutOrCancelledError(), RPCError("no", RPCStatusCode.UNAVAILABLE, b"")]


class Temporal:
    """The client: wakes are written down, updates end as the test says."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.woken: list[str] = []

    async def start_workflow(self, kind: str, carry: Any, **more: Any) -> None:
        self.woken.append(carry.key.kind)

    def get_workflow_handle(self, id_: str) -> Temporal:
        return self

    async def query(self, name: str, **more: Any) -> None:
        """The organization has measured nothing."""

    async def execute_update_with_start_workflow(self, name: str, *arguments: Any, **more: Any) -> str:
        assert self.error is not None
        raise self.error


def reader(kube: MemoryKube) -> Reader:
    return Reader(cast("KubeApi", kube), Settings())


class Hanging:
    """A hand-over that never ends."""

    def prepare(self, base: str, legal_entities: Iterable[str]) -> None:
        """The OUs are not waited for."""

    async def carry_on(self, world: Any) -> None:
        await asyncio.Event().wait()


async def test_a_hand_over_that_hangs_is_left_to_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activities.accounts.pool, "HAND_OVER_SECONDS", 0.05)
    temporal, kube = Temporal(), MemoryKube()
    await kube.put(pool(), ready_account(), claim(status={"state": "Pending"}))
    await kube.create(CONFIG_MAP, {"metadata": {"name": CONFIG_MAP_NAME}, "data": DATA}, OPERATOR_NAMESPACE)
    passes = PoolActivities(reader(kube), cast("HandOver", Hanging()), cast("Client", temporal))
    look = PassPool(key=pool().key, memory=PoolMemory())
    async with asyncio.timeout(5):
        await ActivityEnvironment().run(passes.pass_pool, look)
    assert sorted(temporal.woken) == ["Account", "AccountClaim"]


@pytest.mark.parametrize("error", NO_ANSWER)
async def test_an_unanswered_question_for_an_ou_is_retried(error: Exception) -> None:
    hand_over = HandOver(reader(MemoryKube()), cast("Sessions", None), cast("Client", Temporal(error)))
    with pytest.raises(Unavailable, match="gave no answer"):
        await hand_over.unit_of(UnitRequest(base="ou-base", legal_entity="entity"))


@pytest.mark.parametrize("error", NO_ANSWER)
def test_temporal_being_away_is_no_bug(error: Exception) -> None:
    failure = to_application_error(error)
    assert (failure.type, failure.non_retryable) == (ErrorType.UNAVAILABLE.value, False)
