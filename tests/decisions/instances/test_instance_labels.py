"""Names, labels and annotations of machines and pools, and which fields of their objects are read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import botocore
import pytest
from instance_scenes import (
    ACCOUNT,
    GROUP,
    ID,
    KEY,
    REGION,
    at,
    event,
    hook,
    machine,
    owner,
    record,
    scheduled,
    spot,
    state,
)

from domain.instances import EXTERNAL_KINDS
from domain.instances.arns import dns_suffix_of, parse_arn, partition_of
from domain.instances.constants import EVENTS_ANNOTATION, GROUP_STATE_LABEL, INTERRUPTION_LABEL, STATE_LABEL
from domain.instances.event_record import Drain, cordoned, opened
from domain.instances.events import EventKind, InstanceEvent, InstanceState
from domain.instances.machine_labels import Story, interruption_label, label_patch, recalled, story_of
from domain.instances.machine_pool_labels import (
    GroupRecord,
    GroupState,
    GroupStory,
    fold_result,
    group_differs,
    group_state,
    group_story,
    pool_patch,
    word_of,
)
from domain.instances.provider_ids import group_of_arn, instance_of_provider_id
from domain.instances.resources import AWSMachine, AWSMachinePool
from domain.instances.scheduled_event_types import Effect, effect_of
from domain.instances.workflow_ids import GroupKey, InstanceKey
from domain.resource import ObjectMeta
from domain.writes import merge

LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def labelled(of: AWSMachine, patch: dict[str, Any]) -> AWSMachine:
    return AWSMachine.model_validate(merge(of.model_dump(mode="json"), patch))


# --- names ---


@pytest.mark.parametrize(
    ("provider_id", "instance"),
    [
        (f"aws:///eu-central-1a/{ID}", ID),
        (f"aws:////{ID}", ID),
        ("aws:///eu-central-1a/", ""),
        ("", ""),
        (ID, ""),
        ("openstack:///7e9c", "7e9c"),
    ],
)
def test_an_instance_is_found_in_a_provider_id(provider_id: str, instance: str) -> None:
    assert instance_of_provider_id(provider_id) == instance


def test_a_machine_is_known_by_its_instance_id_or_its_provider_id() -> None:
    assert machine().instance_id == ID
    assert AWSMachine.model_validate({"spec": {"instanceID": "i-1"}}).instance_id == "i-1"
    assert AWSMachine().instance_id == ""


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov", "aws-iso-b"])
def test_arns_of_all_partitions_are_read(partition: str) -> None:
    arn = parse_arn(f"arn:{partition}:ec2:{REGION}:{ACCOUNT}:instance/{ID}")
    assert arn is not None
    assert (arn.partition, arn.resource_type, arn.resource_id) == (partition, "instance", ID)
    assert parse_arn("not:an:arn") is None


@pytest.mark.parametrize(
    ("region", "partition"),
    [
        ("eu-central-1", "aws"),
        ("cn-north-1", "aws-cn"),
        ("us-gov-west-1", "aws-us-gov"),
        ("us-iso-east-1", "aws-iso"),
        ("us-isob-east-1", "aws-iso-b"),
        ("eu-isoe-west-1", "aws-iso-e"),
        ("us-isof-south-1", "aws-iso-f"),
        ("eusc-de-east-1", "aws-eusc"),
    ],
)
def test_a_region_says_its_partition(region: str, partition: str) -> None:
    assert partition_of(region) == partition


def test_hosts_of_a_region_end_as_aws_says() -> None:
    read = json.loads((Path(botocore.__file__).parent / "data" / "partitions.json").read_text())
    suffixes = {
        region: each["outputs"]["dnsSuffix"]
        for each in read["partitions"]
        for region in each["regions"]
        if not region.endswith("-global")
    }
    assert len(suffixes) > 30
    assert {region: dns_suffix_of(region) for region in suffixes} == suffixes


def test_a_pool_is_known_by_its_groups_arn() -> None:
    arn = f"arn:aws:autoscaling:{REGION}:{ACCOUNT}:autoScalingGroup:26e7:autoScalingGroupName/a/b"
    assert group_of_arn(arn) == GroupKey(account=ACCOUNT, region=REGION, group="a/b")
    assert group_of_arn(f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{ID}") is None
    spec = {"providerID": arn, "providerIDList": [f"aws:///eu-central-1a/{ID}", ""]}
    pool = AWSMachinePool.model_validate({"spec": spec})
    assert (pool.group, pool.instance_ids) == (group_of_arn(arn), (ID,))


def test_workflows_are_told_apart_by_account_and_region() -> None:
    keys = [KEY, KEY.model_copy(update={"account": "999999999999"}), KEY.model_copy(update={"region": "us-east-1"})]
    assert len({key.workflow_id for key in keys}) == 3
    assert KEY.workflow_id == f"Ec2Instance/{ACCOUNT}/{REGION}/{ID}"
    assert InstanceKey.model_validate_json(KEY.model_dump_json()) == KEY


# --- objects ---


def test_the_kinds_belong_to_others() -> None:
    assert [(kind.group, kind.plural, kind.lifecycle) for kind in EXTERNAL_KINDS] == [
        ("infrastructure.cluster.x-k8s.io", "awsmachines", False),
        ("infrastructure.cluster.x-k8s.io", "awsmachinepools", False),
        ("cluster.x-k8s.io", "machines", False),
        ("", "nodes", False),
    ]


def test_a_machine_names_its_machine_and_its_cluster() -> None:
    named = machine(labels={"cluster.x-k8s.io/cluster-name": "c1"})
    assert (named.machine, named.cluster, named.paused) == ("m-0", "c1", False)
    assert (owner().node, owner(node="").node, owner().control_plane) == ("node-0", "", False)


def test_a_pause_of_cluster_api_is_the_annotations_presence() -> None:
    assert machine(annotations={"cluster.x-k8s.io/paused": ""}).paused


# --- labels ---


def test_every_value_is_one_that_kubernetes_takes() -> None:
    values = [*InstanceState, *GroupState, *Effect]
    assert all(LABEL_VALUE.fullmatch(value) for value in values)


@pytest.mark.parametrize(
    ("reported", "label"),
    [
        (spot(1), "spot-terminate"),
        (spot(1, "stop"), "spot-stop"),
        (spot(1, "hibernate"), "spot-hibernate"),
        (event(EventKind.REBALANCE, 1), "rebalance"),
        (event(EventKind.CAPACITY_RESERVATION, 1, action="stop"), "capacity-reservation"),
        (scheduled(1, at(9000)), "scheduled-stop"),
        (scheduled(1, at(9000), "INSTANCE_RETIREMENT_SCHEDULED"), "scheduled-retirement"),
        (scheduled(1, at(9000), "INSTANCE_TERMINATION_SCHEDULED"), "scheduled-termination"),
        (scheduled(1, at(9000), "SYSTEM_REBOOT_MAINTENANCE_SCHEDULED"), "scheduled-reboot"),
        (scheduled(1, at(9000), "INSTANCE_NETWORK_MAINTENANCE_SCHEDULED"), "scheduled-maintenance"),
        (scheduled(1, at(9000), "SOMETHING_NEW_SCHEDULED"), ""),
        (event(EventKind.HEALTH_OTHER, 1), ""),
    ],
)
def test_each_interruption_has_its_label(reported: InstanceEvent, label: str) -> None:
    assert interruption_label(record(reported), at(2)) == label


@pytest.mark.parametrize(
    ("code", "effect"),
    [
        ("AWS_EC2_INSTANCE_RETIREMENT_EXPEDITED", Effect.RETIREMENT),
        ("AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED", Effect.RETIREMENT),
        ("AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_EXPEDITED", Effect.RETIREMENT),
        ("AWS_EC2_DEDICATED_HOST_ACCESSREVOKED_RETIREMENT_SCHEDULED", Effect.RETIREMENT),
        ("AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED", Effect.REBOOT),
        ("AWS_EC2_INSTANCE_REBOOT_FLEXIBLE_MAINTENANCE_SCHEDULED", Effect.REBOOT),
        ("AWS_EC2_PERSISTENT_INSTANCE_POWER_MAINTENANCE_SCHEDULED", Effect.MAINTENANCE),
        ("AWS_EC2_DEDICATED_HOST_NETWORK_MAINTENANCE_SCHEDULED", Effect.MAINTENANCE),
        ("AWS_EC2_OPERATIONAL_ISSUE", None),
        ("AWS_RDS_INSTANCE_RETIREMENT_SCHEDULED", None),
        ("", None),
    ],
)
def test_event_types_say_what_they_do(code: str, effect: Effect | None) -> None:
    assert effect_of(code) is effect


def test_a_label_that_somebody_changed_is_put_right() -> None:
    wrong = machine(labels={STATE_LABEL: "terminated", INTERRUPTION_LABEL: "rebalance"})
    patch: Any = label_patch(wrong, record(), at(5))
    assert patch["metadata"]["labels"] == {STATE_LABEL: "running", INTERRUPTION_LABEL: None}


def test_the_annotation_outlives_the_workflow() -> None:
    known = cordoned(record(spot(4)), spot(4).key, "node-0")
    written_object = labelled(machine(), label_patch(machine(), known, at(5)))
    story = json.loads(written_object.metadata.annotations[EVENTS_ANNOTATION])
    assert story["last"]["kind"] == "ec2.spot"
    assert story["deadline"] == "2026-05-04T10:02:04Z"
    again = recalled(opened(KEY, at(20)), written_object.metadata)
    assert again.interruptions == known.interruptions
    assert again.drain == Drain(cause=spot(4).key, node="node-0", recalled=True)


def test_an_annotation_that_somebody_edited_confirms_no_hook() -> None:
    known = record(hook(5))
    written = label_patch(machine(), known, at(6))["metadata"]["annotations"][EVENTS_ANNOTATION]  # type: ignore[index]
    story = json.loads(str(written))
    assert "confirmed" not in story["hooks"]["t-1"]
    story["hooks"]["t-1"]["confirmed"] = True
    edited = machine(annotations={EVENTS_ANNOTATION: json.dumps(story)})
    assert not recalled(record(), edited.metadata).hooks["t-1"].confirmed


@pytest.mark.parametrize("text", ["", "{", "[]", '{"interruptions": 7}', "null"])
def test_an_annotation_that_somebody_broke_is_nothing(text: str) -> None:
    meta = ObjectMeta(annotations={EVENTS_ANNOTATION: text})
    assert recalled(record(), meta) == record()
    assert story_of(meta).worth_writing == story_of(ObjectMeta()).worth_writing


def test_a_node_that_was_cordoned_is_written_down_though_no_label_changes() -> None:
    known = record(spot(4))
    written_object = labelled(machine(), label_patch(machine(), known, at(5)))
    patch: Any = label_patch(written_object, cordoned(known, spot(4).key, "node-0"), at(6))
    assert set(patch["metadata"]) == {"uid", "annotations"}


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2026-05-04T10:00:00"])
def test_a_time_in_the_annotation_that_cannot_be_reckoned_with_makes_it_no_story(time: str) -> None:
    notice = {"key": "e/i", "action": "terminate", "time": time, "received_at": "2026-05-04T10:00:00Z"}
    meta = ObjectMeta(annotations={EVENTS_ANNOTATION: json.dumps({"interruptions": {"ec2.spot": notice}})})
    assert story_of(meta) == Story()
    known = recalled(record(), meta)
    assert label_patch(machine(annotations=meta.annotations), known, at(5))["metadata"]["annotations"]


def test_a_further_event_without_a_change_writes_nothing() -> None:
    written_object = labelled(machine(), label_patch(machine(), record(), at(5)))
    assert label_patch(written_object, record(state("running", 9)), at(10)) == {}


@pytest.mark.parametrize("count", [10, 16, 40])
def test_of_too_many_lifecycle_actions_the_latest_are_kept_and_written_once(
    count: int,
) -> None:
    hooks = [hook(each, token=f"{each:036d}", name="h" * 255) for each in range(count)]
    known = record(*hooks)
    patched = labelled(machine(), label_patch(machine(), known, at(60)))
    assert label_patch(patched, known, at(61)) == {}
    assert len(patched.metadata.annotations[EVENTS_ANNOTATION].encode()) <= 4096
    retained = list(story_of(patched.metadata).hooks)
    assert retained == [each.hook.token for each in hooks if each.hook][-len(retained) :]
    assert retained


# --- groups ---


@pytest.mark.parametrize(
    ("lifecycle_state", "word"),
    [
        ("Pending", GroupState.LAUNCHING),
        ("Pending:Wait", GroupState.PENDING_WAIT),
        ("Pending:Proceed", GroupState.LAUNCHING),
        ("InService", GroupState.IN_SERVICE),
        ("Terminating", GroupState.TERMINATING),
        ("Terminating:Wait", GroupState.TERMINATING_WAIT),
        ("Terminating:Proceed", GroupState.TERMINATING),
        ("Terminated", GroupState.TERMINATING),
        ("Warmed:Stopped", GroupState.WARM),
        ("Warmed:Pending:Wait", GroupState.WARM),
        ("Standby", None),
        ("Detached", None),
    ],
)
def test_each_lifecycle_state_has_a_word(lifecycle_state: str, word: GroupState | None) -> None:
    assert word_of(lifecycle_state) is word


def result(kind: EventKind, seconds: float) -> InstanceEvent:
    return event(kind, seconds, group=GROUP, detail="no capacity")


@pytest.mark.parametrize(
    ("states", "events", "expected"),
    [
        ((), (), None),
        (("InService", "Terminating:Wait", "Pending"), (), GroupState.TERMINATING_WAIT),
        (("InService", "Warmed:Stopped"), (), GroupState.IN_SERVICE),
        (("Warmed:Stopped",), (), GroupState.WARM),
        (("InService",), ((EventKind.LAUNCH_FAILED, 1),), GroupState.LAUNCH_FAILED),
        (("InService",), ((EventKind.LAUNCH_FAILED, 1), (EventKind.LAUNCH_OK, 2)), GroupState.IN_SERVICE),
        (("InService",), ((EventKind.LAUNCH_OK, 2), (EventKind.LAUNCH_FAILED, 1)), GroupState.IN_SERVICE),
        ((), ((EventKind.LAUNCH_FAILED, 1), (EventKind.TERMINATE_FAILED, 1)), GroupState.TERMINATE_FAILED),
        ((), ((EventKind.TERMINATE_FAILED, 1), (EventKind.TERMINATE_OK, 1)), GroupState.TERMINATE_FAILED),
    ],
)
def test_a_group_stands_as_its_worst_instance(
    states: tuple[str, ...], events: tuple[tuple[EventKind, int], ...], expected: GroupState | None
) -> None:
    known = GroupRecord()
    for kind, seconds in events:
        known = fold_result(known, result(kind, seconds))
    assert group_state(states, known) is expected


def test_a_pool_is_labelled_once() -> None:
    pool = AWSMachinePool.model_validate({"metadata": {"name": GROUP, "uid": "u-p"}})
    story = group_story({"i-1": "Pending"}, GroupRecord())
    patch: Any = pool_patch(pool, GroupState.LAUNCHING, story)
    assert (patch["metadata"]["uid"], patch["metadata"]["labels"]) == ("u-p", {GROUP_STATE_LABEL: "launching"})
    written_object = written(pool, patch)
    assert pool_patch(written_object, GroupState.LAUNCHING, story) == {}
    emptied: Any = pool_patch(written_object, None, GroupStory())
    assert emptied["metadata"]["labels"] == {GROUP_STATE_LABEL: None}


def test_a_look_in_bulk_finds_a_pool_that_tells_otherwise_than_its_groups_instances() -> None:
    """What it tells of a failure is no reason: the list of groups does not tell of those."""
    failed = fold_result(GroupRecord(), result(EventKind.LAUNCH_FAILED, 3))
    states = {"i-1": "InService", "i-2": "Pending"}
    pool = AWSMachinePool.model_validate({"metadata": {"name": GROUP, "uid": "u-p"}})
    assert group_differs(pool, states)
    assert not group_differs(pool, {})
    written_object = written(pool, pool_patch(pool, GroupState.LAUNCH_FAILED, group_story(states, failed)))
    assert not group_differs(written_object, states)
    assert group_differs(written_object, {"i-1": "InService"})
    served = written(pool, pool_patch(pool, GroupState.IN_SERVICE, group_story({"i-1": "InService"}, GroupRecord())))
    assert not group_differs(served, {"i-1": "InService", "i-2": "InService"})
    assert group_differs(served, {})


def written(pool: AWSMachinePool, patch: Any) -> AWSMachinePool:
    return AWSMachinePool.model_validate(merge(pool.model_dump(mode="json"), patch))


def annotated_story(patch: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(patch["metadata"]["annotations"][EVENTS_ANNOTATION])
    return found


def test_a_pools_annotation_says_how_each_instance_stands_that_is_not_in_service() -> None:
    states = {"i-1": "InService", "i-2": "Terminating:Wait", "i-3": "Standby", "i-4": "InService", "i-5": "Pending"}
    known = fold_result(GroupRecord(), result(EventKind.LAUNCH_FAILED, 3))
    patch = pool_patch(AWSMachinePool(), GroupState.LAUNCH_FAILED, group_story(states, known))
    assert annotated_story(patch)["in_service"] == 2
    assert annotated_story(patch)["instances"] == {"i-2": "terminating-wait", "i-3": "standby", "i-5": "launching"}
    assert annotated_story(patch)["failed"]["launch"]["detail"] == "no capacity"


def test_a_pools_annotation_is_rewritten_when_another_instance_changes() -> None:
    one = group_story({"i-1": "Pending", "i-2": "InService"}, GroupRecord())
    both = group_story({"i-1": "Pending", "i-2": "Pending"}, GroupRecord())
    written_object = written(AWSMachinePool(), pool_patch(AWSMachinePool(), GroupState.LAUNCHING, one))
    patch: Any = pool_patch(written_object, GroupState.LAUNCHING, both)
    assert set(patch["metadata"]) == {"annotations"}
    more = group_story({"i-1": "Pending", "i-2": "InService", "i-3": "InService"}, GroupRecord())
    assert pool_patch(written_object, GroupState.LAUNCHING, more) == {}


def test_a_pools_annotation_stays_small_however_many_instances_there_are() -> None:
    patch: Any = pool_patch(
        AWSMachinePool(), None, group_story({f"i-{n:017}": "Terminating:Wait" for n in range(500)}, GroupRecord())
    )
    assert len(patch["metadata"]["annotations"][EVENTS_ANNOTATION].encode()) <= 4096
    assert len(annotated_story(patch)["instances"]) + annotated_story(patch)["more"] == 500


def test_a_pools_annotation_that_somebody_broke_is_put_right() -> None:
    story = group_story({"i-1": "Pending"}, GroupRecord())
    broken = AWSMachinePool.model_validate({"metadata": {"annotations": {EVENTS_ANNOTATION: "[{"}}})
    assert annotated_story(pool_patch(broken, None, story))["instances"] == {"i-1": "launching"}
    assert fold_result(GroupRecord(), spot(1)) == GroupRecord()
