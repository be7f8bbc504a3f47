"""Whose instances there are, as objects come and go."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from domain.instances.events import EventKind, InstanceEvent
from domain.instances.workflow_ids import GroupKey
from engine.kube.json import JsonObject
from starters.events.consumer_benchmark import ACCOUNT, REGION, aws_machine, instance_name
from starters.events.machine_index import Holder, Index, machine, pool

NOW = datetime(2026, 5, 4, 10, 11, 12, tzinfo=UTC)
GROUP = GroupKey(account=ACCOUNT, region=REGION, group="c1-mp-0")
GROUP_ARN = f"arn:aws:autoscaling:{REGION}:{ACCOUNT}:autoScalingGroup:26e7:autoScalingGroupName/c1-mp-0"


def event(instance_id: str = "", group: str = "") -> InstanceEvent:
    return InstanceEvent(
        event_id="e",
        kind=EventKind.REBALANCE,
        account=ACCOUNT,
        region=REGION,
        instance_id=instance_id,
        group=group,
        time=NOW,
        received_at=NOW,
    )


def an_aws_machine(name: str = "m", spec: JsonObject | None = None, **status: object) -> JsonObject:
    metadata = {"namespace": "ns", "name": name, "resourceVersion": "1"}
    return {"metadata": metadata, "spec": spec or {}, "status": status}


def a_pool(*instances: str, arn: str = GROUP_ARN) -> JsonObject:
    listed = [f"aws:///{REGION}a/{each}" for each in instances]
    return {
        "metadata": {"namespace": "ns", "name": "c1-mp-0", "resourceVersion": "1"},
        "spec": {"providerID": arn, "providerIDList": listed},
    }


def filled(*holders: Holder) -> Index:
    index = Index()
    for each in holders:
        remaining = index.pools if each.group else index.machines
        remaining[each.name] = each
    return index


def replace(index: Index, before: Holder, after: Holder | None) -> None:
    """As a reflector does."""
    if after is None:
        del index.machines[before.name]
    else:
        index.machines[before.name] = after
    index.changed(before, after)


@pytest.mark.parametrize(
    "spec",
    [
        {"instanceID": "i-1"},
        {"providerID": "aws:///eu-central-1a/i-1"},
        {"instanceID": "i-1", "providerID": "aws:///eu-central-1a/i-1"},
    ],
)
def test_a_machine_is_found_by_either_of_its_ids(spec: JsonObject) -> None:
    index = filled(machine(an_aws_machine(spec=spec)))
    assert index.knows(event("i-1"))
    assert not index.knows(event("i-2"))
    assert not index.may_appear


def test_an_instance_is_not_matched_by_its_id_alone() -> None:
    """A sender of one region's queue can name the instances of all regions."""
    elsewhere = machine(an_aws_machine(spec={"instanceID": "i-1", "providerID": "aws:///us-east-1a/i-1"}))
    foreign = pool(a_pool("i-2", arn=GROUP_ARN.replace(ACCOUNT, "999999999999")))
    index = filled(elsewhere, foreign)
    assert not index.knows(event("i-1"))
    assert not index.knows(event("i-2"))
    assert index.knows(event("i-1").model_copy(update={"region": "us-east-1"}))
    replace(index, elsewhere, None)
    assert index.remembers("i-1")


def test_an_event_without_an_instance_has_no_owner() -> None:
    index = filled(machine(an_aws_machine(spec={"instanceID": "", "providerID": ""})))
    assert not index.knows(event(""))


def test_an_instance_may_appear_while_a_machine_has_none() -> None:
    waiting = machine(an_aws_machine())
    index = filled(waiting)
    assert index.may_appear
    replace(index, waiting, machine(an_aws_machine(spec={"instanceID": "i-1"})))
    assert not index.may_appear


@pytest.mark.parametrize("failed", [True, False])
def test_a_machine_that_ends_without_an_instance_gets_none(failed: bool) -> None:
    ended = an_aws_machine(failureReason="CreateError") if failed else an_aws_machine()
    if not failed:
        ended["metadata"] = {"namespace": "ns", "name": "m", "deletionTimestamp": "2026-05-04T10:11:12Z"}
    assert not filled(machine(ended)).may_appear


def test_a_pool_has_its_instances_and_its_group() -> None:
    index = filled(pool(a_pool("i-1", "i-2")))
    assert index.knows(event("i-2"))
    assert index.knows(event("i-9", group="c1-mp-0"))
    assert index.has_group(GROUP)
    assert not index.has_group(GROUP.model_copy(update={"account": "999999999999"}))
    assert not index.knows(event("i-9", group="another"))


def test_a_host_has_the_instances_of_its_machines() -> None:
    on_host = [an_aws_machine(name, {"instanceID": f"i-{name}"}, dedicatedHost={"id": "h-1"}) for name in "ba"]
    index = filled(*(machine(each) for each in on_host))
    assert index.on_host("h-1") == ("i-a", "i-b")
    assert index.on_host("h-2") == ()


def test_an_instance_of_a_deleted_machine_is_remembered_until_another_has_it() -> None:
    gone = machine(an_aws_machine(spec={"instanceID": "i-1"}))
    index = filled(gone)
    replace(index, gone, None)
    assert not index.knows(event("i-1"))
    assert index.remembers("i-1")
    again = machine(an_aws_machine("other", {"instanceID": "i-1"}))
    index.machines[again.name] = again
    index.changed(None, again)
    assert index.knows(event("i-1"))
    assert not index.remembers("i-1")


def test_two_machines_of_one_instance_are_both_known_until_both_are_gone() -> None:
    one, two = (machine(an_aws_machine(name, {"instanceID": "i-1"})) for name in ("one", "two"))
    index = filled(one, two)
    assert index.machines.find("instance", "i-1") == [one, two]
    replace(index, one, None)
    assert index.knows(event("i-1"))
    assert not index.remembers("i-1")
    replace(index, two, None)
    assert not index.knows(event("i-1"))


def test_ten_thousand_machines_leave_nothing_behind_when_they_go() -> None:
    holders = [machine(aws_machine(number)) for number in range(10_000)]
    index = filled(*holders)
    assert len(index) == 10_000
    assert index.knows(event(instance_name(9_999)))
    for each in holders:
        replace(index, each, None)
    assert len(index) == 0
    assert list(index.machines.values_of("instance")) == []
    assert index.remembers(instance_name(0))
