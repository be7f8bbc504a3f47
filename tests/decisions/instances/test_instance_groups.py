"""What a look at an Auto Scaling group makes of what Auto Scaling lists and of what events have told before it does."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from activities.aws.instances import GroupFound
from activities.instances import auto_scaling_groups
from activities.instances.auto_scaling_groups import GroupActivities
from activities.instances.aws_queries import ServedPlaces
from activities.instances.cache import InstanceCache
from domain.decision import Outcome
from domain.instances.constants import EVENTS_ANNOTATION, GROUP_STATE_LABEL
from domain.instances.events import EventKind, InstanceEvent
from domain.instances.machine_pool_labels import GroupRecord, LastResult, fold_result
from domain.instances.passes import GroupWorld, LookAtGroup
from domain.instances.resources import AWSMachinePool
from domain.instances.workflow_ids import GroupKey
from domain.writes import merge
from engine.kube import KubeApi

ACCOUNT, REGION, GROUP = "123456789012", "eu-central-1", "c1-mp-0"
KEY = GroupKey(account=ACCOUNT, region=REGION, group=GROUP).lifecycle
NOW = datetime(2026, 5, 4, 10, 11, 12, tzinfo=UTC)
ARN = f"arn:aws:autoscaling:{REGION}:{ACCOUNT}:autoScalingGroup:26e7:autoScalingGroupName/{GROUP}"


class World:
    """One AWSMachinePool, and what Auto Scaling lists of its group."""

    def __init__(self) -> None:
        body = {"metadata": {"namespace": "ns", "name": GROUP, "uid": "u"}, "spec": {"providerID": ARN}}
        self.pool = AWSMachinePool.model_validate(body)
        self.served = {(ACCOUNT, REGION)}
        self.listed: GroupFound | None = GroupFound(instances={"i-1": "InService"})
        self.looks = GroupActivities(
            cast(KubeApi, self), cast(InstanceCache, self), cast(ServedPlaces, self), observing=False
        )

    async def ready(self) -> None:
        pass

    def pools_of(self, group: GroupKey) -> tuple[AWSMachinePool, ...]:
        return (self.pool,)

    def learn(self, kind: object, answer: Any) -> None:
        self.pool = AWSMachinePool.model_validate(answer)

    def serves(self, account: str, region: str) -> bool:
        return (account, region) in self.served

    def caller(self, account: str, region: str) -> None:
        return None

    async def patch(self, kind: object, namespace: str, name: str, patch: Any) -> Any:
        return merge(self.pool.model_dump(mode="json"), patch)

    async def labelled_after(self, record: GroupRecord) -> tuple[str, str]:
        """The label after a look, and what the annotation says of a launch that failed."""
        await self.looks.look_at_group(LookAtGroup(key=KEY, memory=record))
        story = json.loads(self.pool.metadata.annotations[EVENTS_ANNOTATION])
        return self.pool.metadata.labels.get(GROUP_STATE_LABEL, ""), story.get("failed", {}).get("launch", {}).get(
            "detail", ""
        )


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(auto_scaling_groups, "describe_group", lambda *_: made.listed)
    return made


def event(kind: EventKind, seconds: int) -> InstanceEvent:
    at = NOW + timedelta(seconds=seconds)
    return InstanceEvent(
        event_id=f"e{seconds}",
        kind=kind,
        account=ACCOUNT,
        region=REGION,
        group=GROUP,
        time=at,
        received_at=at,
        detail="no capacity",
    )


def listing(seconds: int, *, failed: bool) -> GroupFound:
    """What Auto Scaling lists: when the last launch ended, and whether it failed."""
    last = LastResult(time=NOW + timedelta(seconds=seconds), failed=failed, detail="as listed")
    return GroupFound(instances={"i-1": "InService"}, record=GroupRecord(results={"launch": last}))


async def test_a_failure_from_an_event_holds_until_a_later_success(world: World) -> None:
    record = fold_result(GroupRecord(), event(EventKind.LAUNCH_FAILED, 3))
    assert await world.labelled_after(record) == ("launch-failed", "no capacity")  # not listed yet
    world.listed = listing(1, failed=False)
    assert await world.labelled_after(record) == ("launch-failed", "no capacity")  # an older one is
    world.listed = listing(4, failed=True)
    assert await world.labelled_after(record) == ("launch-failed", "as listed")
    world.listed = listing(5, failed=False)
    assert await world.labelled_after(record) == ("in-service", "")
    world.listed = listing(4, failed=True)
    assert await world.labelled_after(fold_result(record, event(EventKind.LAUNCH_OK, 6))) == ("in-service", "")


async def test_the_lifecycle_of_a_group_ends_where_its_account_and_region_are_not_served(world: World) -> None:
    world.served.clear()
    seen = await world.looks.look_at_group(LookAtGroup(key=KEY))
    assert (seen.exists, seen.decision.outcome) == (False, Outcome.GONE)
    assert f"{ACCOUNT}/{REGION}" in seen.decision.why


async def test_of_a_group_that_is_gone_no_failure_is_told(world: World) -> None:
    record = fold_result(GroupRecord(), event(EventKind.LAUNCH_FAILED, 3))
    await world.labelled_after(record)
    world.listed = None
    assert await world.labelled_after(record) == ("", "")


def test_what_events_tell_stays_over_looks() -> None:
    record = fold_result(GroupRecord(), event(EventKind.TERMINATE_FAILED, 3))
    seen = GroupWorld(key=KEY).recall(GroupWorld(key=KEY).with_record(record))
    assert seen.known == record
    later = fold_result(GroupRecord(), event(EventKind.LAUNCH_FAILED, 4))
    assert set(seen.with_record(later).known.results) == {"launch", "terminate"}
