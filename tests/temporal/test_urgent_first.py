"""Work that a person waits for has a higher priority in Temporal's queues than a mere change."""

from __future__ import annotations

from datetime import timedelta

import pytest
from claim_domain import BINDER
from passing import Passes, new_key, working
from temporal_server import TemporalServer, pointing_at
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from waiting import eventually

from domain.accounts.passes import PassPool, PoolWorld
from domain.decision import Decision, Outcome
from domain.identity import Key
from engine.clock import now
from engine.temporal import connect, described, wake


class PassesWithADeadline(Passes):
    """Each asks for the next one in a moment."""

    @activity.defn(name=PassPool.activity)
    async def one(self, look: PassPool) -> PoolWorld:
        self.made.append(look.key)
        deadline = now() + timedelta(seconds=0.1)
        decision = Decision(phase="Waiting", outcome=Outcome.WAITING, why="a test", deadline=deadline)
        return PoolWorld(key=look.key, decision=decision)


async def test_a_pass_at_a_deadline_goes_before_one_after_a_change(
    temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await connect(pointing_at(temporal, monkeypatch), "tests")
    key = new_key()
    async with working(client, PassesWithADeadline()):
        await wake(client, key)
        given = await eventually(lambda: priorities(client, key), "two passes were asked for")
        await client.get_workflow_handle(key.workflow_id).terminate("the test is over")
    assert given[:2] == [0, 1]


async def test_the_binder_goes_before_the_lifecycles_of_single_claims(
    temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await connect(pointing_at(temporal, monkeypatch), "tests")
    key = new_key()
    for each in (BINDER, key):
        await wake(client, each)
    given = []
    for each in (BINDER, key):
        found = await described(client, each)
        assert found is not None
        given.append(found.raw_description.workflow_execution_info.priority.priority_key)
        await client.get_workflow_handle(each.workflow_id).terminate("the test is over")
    assert given == [1, 0]


async def priorities(client: Client, key: Key) -> list[int] | None:
    """Of its activities, in order; None before there are two."""
    events = (await client.get_workflow_handle(key.workflow_id).fetch_history()).events
    scheduled = [each for each in events if each.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED]
    found = [each.activity_task_scheduled_event_attributes.priority.priority_key for each in scheduled]
    return found if len(found) > 1 else None
