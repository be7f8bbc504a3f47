"""A hand-over that hangs, or that Temporal does not answer, is left to the claim's own lifecycle: it is no bug, and
holds up nobody else."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from account_objects import account, claim
from temporalio.client import Client, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError, RPCStatusCode

import activities.accounts.pool
from activities.accounts.cache import Reader
from activities.accounts.handover import HandOver
from activities.accounts.pool import PoolActivities
from activities.aws.session import Sessions
from domain.accounts.config import OperatorConfig
from domain.accounts.organization import ORGANIZATION
from domain.accounts.passes import UnitRequest
from domain.accounts.pool import PoolView
from domain.refusal import ErrorType
from engine.errors import Unavailable, to_application_error

NO_ANSWER = [WorkflowUpdateRPCTimeoutOrCancelledError(), RPCError("no", RPCStatusCode.UNAVAILABLE, b"")]


class Temporal:
    """The client: wakes are written down, updates end as the test says."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.woken: list[str] = []

    async def start_workflow(self, kind: str, carry: Any, **more: Any) -> None:
        self.woken.append(carry.key.kind)

    async def execute_update_with_start_workflow(self, name: str, *arguments: Any, **more: Any) -> str:
        assert self.error is not None
        raise self.error


def reader() -> Reader:
    settings = SimpleNamespace(accounts_protected=(), cluster="")
    found = SimpleNamespace(settings=settings, kube=None, organization=ORGANIZATION, key=lambda resource: resource.key)
    return cast("Reader", found)


class Hanging:
    """A hand-over that never ends."""

    async def carry_on(self, world: Any) -> None:
        await asyncio.Event().wait()


async def test_a_hand_over_that_hangs_is_left_to_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activities.accounts.pool, "HAND_OVER_SECONDS", 0.05)
    temporal = Temporal()
    pool = PoolActivities(reader(), cast("HandOver", Hanging()), cast("Client", temporal))
    view = cast("PoolView", SimpleNamespace(config=OperatorConfig(present=False)))
    async with asyncio.timeout(5):
        await pool._hand_over_now(claim(), account(), view)
    assert sorted(temporal.woken) == ["Account", "AccountClaim"]


@pytest.mark.parametrize("error", NO_ANSWER)
async def test_a_question_for_an_ou_that_nobody_answers_is_tried_again(error: Exception) -> None:
    hand_over = HandOver(reader(), cast("Sessions", None), cast("Client", Temporal(error)))
    with pytest.raises(Unavailable, match="gave no answer"):
        await hand_over.unit_of(UnitRequest(base="ou-base", legal_entity="entity"))


@pytest.mark.parametrize("error", NO_ANSWER)
def test_temporal_being_away_is_no_bug(error: Exception) -> None:
    failure = to_application_error(error)
    assert (failure.type, failure.non_retryable) == (ErrorType.UNAVAILABLE.value, False)
