"""Instances of a cluster without Cluster API: a Node with the provider id takes the AWSMachine's place."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from instance_scenes import (
    ACCOUNT,
    EVERYTHING,
    GROUP,
    ID,
    KEY,
    REGION,
    at,
    facts,
    hook,
    machine,
    node,
    observed,
    record,
    spot,
    state,
)
from memory_kube import MemoryKube
from prometheus_client import REGISTRY
from temporalio.testing import ActivityEnvironment

from activities.instances.aws_queries import AskActivities, ServedPlaces
from activities.instances.cache import InstanceCache
from activities.instances.disruption_budget import Disruptions
from activities.instances.node_drain import NodeActivities
from activities.instances.observation import LookActivities
from activities.instances.state_verification import Checks
from activities.instances.terminations import TerminationActivities
from domain import built_in_kinds
from domain.built_in_kinds import POD
from domain.identity import Key
from domain.instances import AWS_MACHINE, AWS_MACHINE_POOL, NODE, THE_SWEEP
from domain.instances.actions import (
    AskInstance,
    CordonNode,
    CountRefuted,
    Done,
    Emptied,
    EmptyNode,
    EndHook,
    LookAtInstance,
    ReleaseNode,
    Taking,
    TellImpossible,
    TerminateInstance,
)
from domain.instances.constants import (
    CORDONED_ANNOTATION,
    EVENTS_ANNOTATION,
    INTERRUPTION_LABEL,
    NODE_CONTROL_PLANE_LABEL,
    STATE_LABEL,
)
from domain.instances.disruption_budget import Disruption, Limit, Turn, node_group, waits_for
from domain.instances.event_record import InstanceRecord, cordoned, opened
from domain.instances.events import InstanceEvent, InstanceState
from domain.instances.instance_lifecycle import InstancePhase, decide_instance, patch_for, work_for_instance
from domain.instances.interruption_policy import Reaction, ReactionPolicy, Taint, TaintEffect
from domain.instances.notices import about, about_node
from domain.instances.observed import InstanceWorld
from domain.instances.policy_selection import choose, selected
from domain.instances.resources import InterruptionPolicy, Node
from domain.instances.workflow_ids import InstanceKey
from engine.errors import Absent, Invalid
from engine.kube import KubeApi
from engine.kube.json import JsonObject, mapping
from engine.kube.reflector import Followed
from engine.settings import Settings
from starters.events.machine_index import Holder, Index
from starters.events.machine_index import node as read_node
from starters.watch.instance_metrics import instance_gauges
from starters.watch.instances import watched_for
from starters.watch.projection_index import Index as Watch
from starters.watch.watched_kinds import Watched

EKS = "eks.amazonaws.com/nodegroup"
DRAINS = ReactionPolicy(name="p", spot=Reaction.DRAIN, terminating_hook=Reaction.DRAIN, terminated=Reaction.DRAIN)
TAKEN = {"spot": True, "spot_code": "marked-for-termination"}
PAUSED = {"perdure.dev/paused": "true"}
GOING: dict[str, Any] = {"deletionTimestamp": "2026-05-04T10:00:00Z", "finalizers": ["x"]}
THE_NODE = about_node("node-0")


def alone(known: InstanceRecord, found: Node | None = None, **changes: Any) -> InstanceWorld:
    """The world of an instance that has a Node alone."""
    return observed(known, machine=None, owner=None, **({"own_node": found or node()} | changes))


# --- what is decided ---


def test_a_node_has_the_labels_and_the_annotation_of_an_awsmachine() -> None:
    world = alone(record(spot(4)), facts=facts(5, **TAKEN))
    done = work_for_instance(world, at(6))
    assert done.phase is InstancePhase.INTERRUPTING
    metadata: Any = done.patch["metadata"]
    assert metadata["uid"] == "u-n"
    assert metadata["labels"] == {STATE_LABEL: "running", INTERRUPTION_LABEL: "spot-terminate"}
    assert EVENTS_ANNOTATION in metadata["annotations"]


def test_a_node_tells_what_its_workflow_forgot() -> None:
    before = alone(record(spot(4)))
    story: Any = patch_for(before, at(5))["metadata"]
    again = alone(opened(KEY, at(60)), node(annotations=story["annotations"], labels=story["labels"]))
    known = again.recall(observed(opened(KEY, at(60)), machine=None, owner=None))
    assert known.record.interruptions == before.record.interruptions


def test_a_confirmed_spot_notice_cordons_and_then_drains_the_node_in_its_own_cluster() -> None:
    world = alone(record(spot(4)), policy=DRAINS, facts=facts(5, **TAKEN))
    (first,) = work_for_instance(world, at(6)).steps
    assert isinstance(first, CordonNode)
    assert (first.namespace, first.cluster, first.node, first.machine) == ("", "", "node-0", "")
    assert (first.taken, first.about) == (True, (THE_NODE,))
    (second,) = work_for_instance(first.fold(world, Taking(turn=Turn(at=at(6)))), at(7)).steps
    assert isinstance(second, EmptyNode)
    assert (second.namespace, second.node, second.about) == ("", "node-0", (THE_NODE,))


def test_a_notice_that_aws_does_not_confirm_touches_no_node_and_is_told_on_it() -> None:
    world = alone(record(spot(4)), policy=DRAINS, facts=facts(5, spot=False))
    (step,) = work_for_instance(world, at(6)).steps
    assert step == CountRefuted(key=KEY.lifecycle, cause=spot(4).key, about=(THE_NODE,))
    (notice,) = step.fold(world, None).news
    assert (notice.reason, notice.about) == ("EventRefuted", THE_NODE)


def test_a_node_that_is_used_again_is_released_in_its_own_cluster() -> None:
    drained = cordoned(record(), "gone", "node-0", at(1))
    (step,) = work_for_instance(alone(drained, policy=DRAINS, facts=facts(2)), at(3)).steps
    assert isinstance(step, ReleaseNode)
    assert (step.namespace, step.node) == ("", "node-0")


def test_a_deletion_of_a_machine_is_not_possible_and_told_on_the_node() -> None:
    policy = ReactionPolicy(name="p", spot=Reaction.DELETE_MACHINE)
    (step,) = work_for_instance(alone(record(spot(4)), policy=policy, facts=facts(5, **TAKEN)), at(6)).steps
    assert isinstance(step, TellImpossible)
    (notice,) = step.notices
    assert (step.cause, notice.reason, notice.about) == (spot(4).key, "NoMachine", THE_NODE)
    assert "InterruptionPolicy p asks for delete-machine; for instances without a Machine use drain" in notice.message


@pytest.mark.parametrize(
    ("metadata", "why"),
    [({"annotations": PAUSED}, "Node node-0 is paused"), (GOING, "Node node-0 is being deleted")],
)
def test_a_node_that_is_paused_or_deleted_by_somebody_else_is_not_touched(metadata: dict[str, Any], why: str) -> None:
    world = alone(record(spot(4)), node(**metadata), policy=DRAINS, facts=facts(5, **TAKEN))
    done = work_for_instance(world, at(6))
    assert (done.why, done.steps) == (why, ())


def test_absence_in_an_account_that_never_knew_the_instance_proves_no_end() -> None:
    """A Node does not say its account; a forged event may name any that is served."""
    forged = record(state("terminated", 4), live_at=None)
    denied = facts(5, found=False)
    world = alone(forged, policy=DRAINS).with_answer(denied, {})
    assert not world.absence_counts
    assert work_for_instance(world, at(6)).steps == ()
    found = alone(record(state("terminated", 4)), policy=DRAINS).with_answer(denied, {})
    assert found.absence_counts


def test_the_lifecycle_is_shown_with_the_node() -> None:
    assert decide_instance(alone(record()), at(1)).owner == "Node/-/node-0"


# --- the instance is terminated ---

ENDS = ReactionPolicy(name="p", spot=Reaction.TERMINATE_INSTANCE, terminating_hook=Reaction.TERMINATE_INSTANCE)


def drained(at_second: float, **changes: Any) -> InstanceRecord:
    known = cordoned(record(spot(4)), spot(4).key, "node-0", at(at_second))
    assert known.drain is not None
    return known.model_copy(update={"drain": known.drain.model_copy(update=changes)})


def test_an_instance_is_terminated_after_its_node_is_cordoned_and_drained() -> None:
    world = alone(record(spot(4)), policy=ENDS, facts=facts(5, **TAKEN))
    (first,) = work_for_instance(world, at(6)).steps
    assert isinstance(first, CordonNode)
    assert first.reaction is Reaction.DRAIN
    world = first.fold(world, Taking(turn=Turn(at=at(6))))
    (second,) = work_for_instance(world, at(7)).steps
    assert isinstance(second, EmptyNode)
    world = second.fold(world, Emptied(at=at(8)))
    (third,) = work_for_instance(world, at(9)).steps
    assert isinstance(third, TerminateInstance)
    assert (third.node, third.uid, third.cause, third.about) == ("node-0", "u-n", spot(4).key, (THE_NODE,))
    # EC2 is asked how it goes on, and it is terminated once.
    world = third.fold(world, Done(at=at(10)))
    (requested,) = work_for_instance(world, at(11)).steps
    assert isinstance(requested, AskInstance)
    assert work_for_instance(world.with_answer(facts(11, **TAKEN), {}), at(12)).steps == ()


def test_aws_confirms_the_cause_anew_before_the_instance_is_terminated() -> None:
    """A drain takes its time, and the notice may be withdrawn meanwhile."""
    late = alone(drained(300), policy=ENDS, facts=facts(5, **TAKEN))
    assert [type(each) for each in work_for_instance(late, at(301)).steps] == [AskInstance]
    confirmed = late.with_answer(facts(302, **TAKEN), {})
    assert [type(each) for each in work_for_instance(confirmed, at(303)).steps] == [TerminateInstance]
    refuted = late.with_answer(facts(302, spot=False), {})
    assert not [each for each in work_for_instance(refuted, at(303)).steps if isinstance(each, TerminateInstance)]


@pytest.mark.parametrize(
    ("changes", "first"),
    [
        ({}, TerminateInstance),
        ({"recalled": True}, CordonNode),
        ({"done_at": None}, EmptyNode),
        ({"reaction": Reaction.CORDON}, CordonNode),
        ({"reaction": Reaction.TERMINATE_INSTANCE}, None),
    ],
)
def test_only_a_drain_that_this_lifecycle_has_made_lets_an_instance_be_terminated(
    changes: dict[str, Any], first: type | None
) -> None:
    """The annotation that says so can be written by all who may edit the Node."""
    world = alone(drained(5, **changes), policy=ENDS, facts=facts(6, **TAKEN))
    assert [type(each) for each in work_for_instance(world, at(7)).steps] == ([first] if first else [])


@pytest.mark.parametrize("state", [InstanceState.SHUTTING_DOWN, InstanceState.TERMINATED])
def test_an_instance_that_ends_by_itself_is_not_terminated(state: InstanceState) -> None:
    world = alone(drained(5), policy=ENDS, facts=facts(6, **TAKEN)).with_answer(facts(7, state.value, **TAKEN), {})
    assert work_for_instance(world, at(8)).steps == ()


def test_an_instance_of_cluster_api_is_not_terminated_and_that_is_told_once() -> None:
    world = observed(record(spot(4)), policy=ENDS, facts=facts(5, **TAKEN))
    (step,) = work_for_instance(world, at(6)).steps
    assert isinstance(step, TellImpossible)
    (notice,) = step.notices
    assert (step.cause, notice.reason, notice.about) == (spot(4).key, "NotTerminated", about(machine()))
    assert "InterruptionPolicy p asks for terminate-instance" in notice.message
    after = work_for_instance(step.fold(world, None), at(7))
    assert after.steps == ()
    not_done = "Cluster API manages the instance, so Perdure does not terminate it"
    assert after.why == f"{not_done} in reaction to {spot(4).key}: nothing is done"


def test_a_hook_drains_and_is_completed_where_termination_is_asked_for() -> None:
    """Its completion terminates the instance."""
    world = alone(record(hook(4)), policy=ENDS, facts=waiting(5))
    (first,) = work_for_instance(world, at(6)).steps
    assert isinstance(first, CordonNode)
    drained = world.with_record(cordoned(world.record, hook(4).key, "node-0", at(9)))
    assert [type(each) for each in work_for_instance(drained, at(10)).steps] == [EndHook]


@pytest.mark.parametrize("cause", [hook(4).key, "another"])
def test_a_drain_that_only_the_annotation_reports_completes_no_hook(cause: str) -> None:
    """People can edit the annotation, so the Node is cordoned and looked at before the hook is completed."""
    result = cordoned(record(hook(4)), cause, "node-0", at(3))
    edited = result.model_copy(update={"drain": result.drain and result.drain.model_copy(update={"recalled": True})})
    world = alone(edited, policy=DRAINS, facts=waiting(5))
    (first,) = work_for_instance(world, at(6)).steps
    assert isinstance(first, CordonNode)
    world = first.fold(world, Taking(turn=Turn(at=at(6))))
    (second,) = work_for_instance(world, at(7)).steps
    assert isinstance(second, EmptyNode)
    world = second.fold(world, Emptied(at=at(8)))
    assert [type(each) for each in work_for_instance(world, at(9)).steps] == [EndHook]


NODE_TO_END: dict[str, Any] = {
    "metadata": {"name": "node-0"},
    "spec": {"providerID": f"aws:///{REGION}a/{ID}", "unschedulable": True},
}


class Ec2:
    """EC2 with one instance."""

    def __init__(self, **changes: Any) -> None:
        self.terminated: list[str] = []
        self.found: dict[str, Any] = {"id": ID, "owner": ACCOUNT, "zone": f"{REGION}a", "state": "running", **changes}

    def describe_instances(self, **_: object) -> Any:
        each = self.found
        placed = {"Placement": {"AvailabilityZone": each["zone"]}, "State": {"Name": each["state"]}}
        return {"Reservations": [{"OwnerId": each["owner"], "Instances": [{"InstanceId": each["id"], **placed}]}]}

    def terminate_instances(self, *, InstanceIds: list[str]) -> Any:  # noqa: N803
        self.terminated += InstanceIds
        return {}

    # As the place with its AWS clients.

    def caller(self, *_: str) -> Any:
        return self

    def client(self, *_: str) -> Any:
        return self


async def terminated(kube: MemoryKube, ec2: Ec2, uid: str = "") -> Done:
    uid = uid or str((await kube.get(NODE, "", "node-0"))["metadata"]["uid"])
    action = TerminateInstance(
        key=KEY.lifecycle, namespace="", cluster="", node="node-0", uid=uid, cause="c", about=(THE_NODE,)
    )
    activities = TerminationActivities(cast("KubeApi", kube), cast("ServedPlaces", ec2))
    done: Done = await ActivityEnvironment().run(activities.terminate, action)
    return done


async def test_the_instance_of_the_node_is_terminated_and_told_of_on_it() -> None:
    kube = MemoryKube()
    await kube.create(NODE, NODE_TO_END)
    ec2 = Ec2()
    (notice,) = (await terminated(kube, ec2)).notices
    assert (ec2.terminated, notice.reason, notice.about) == ([ID], "InstanceTerminated", THE_NODE)


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ({"spec": {"providerID": f"aws:///{REGION}a/i-0000000000000dead"}}, "another Node of this name, or"),
        ({"spec": {"providerID": f"aws:///us-east-1a/{ID}"}}, "another region"),
        ({"spec": {"unschedulable": None}}, "has been uncordoned"),
        ({"metadata": {"annotations": PAUSED}}, "paused"),
        ({"metadata": GOING}, "being deleted"),
    ],
)
async def test_an_instance_is_left_alone_if_its_node_has_changed(node: dict[str, Any], why: str) -> None:
    kube, ec2 = MemoryKube(), Ec2()
    await kube.create(NODE, NODE_TO_END)
    await kube.patch(NODE, "", "node-0", node)
    with pytest.raises(Invalid, match=why):
        await terminated(kube, ec2)
    assert ec2.terminated == []


async def test_an_instance_is_left_alone_if_another_node_has_the_name_or_none() -> None:
    kube, ec2 = MemoryKube(), Ec2()
    with pytest.raises(Absent):
        await terminated(kube, ec2, "u-n")
    await kube.create(NODE, NODE_TO_END)
    with pytest.raises(Invalid, match="another Node of this name, or belongs to another instance"):
        await terminated(kube, ec2, "u-n")
    assert ec2.terminated == []


@pytest.mark.parametrize("elsewhere", [{"owner": "999999999999"}, {"zone": "us-east-1a"}])
async def test_an_instance_of_another_account_or_region_is_left_alone(elsewhere: dict[str, str]) -> None:
    kube, ec2 = MemoryKube(), Ec2(**elsewhere)
    await kube.create(NODE, NODE_TO_END)
    with pytest.raises(Invalid, match="it is not terminated"):
        await terminated(kube, ec2)
    assert ec2.terminated == []


async def test_a_refused_termination_is_counted() -> None:
    kube, ec2 = MemoryKube(), Ec2(owner="999999999999")
    await kube.create(NODE, NODE_TO_END)
    before = ended("terminate-instance", "refused")
    with pytest.raises(Invalid):
        await terminated(kube, ec2)
    assert ended("terminate-instance", "refused") == before + 1


@pytest.mark.parametrize("found", [{"state": "shutting-down"}, {"state": "terminated"}, {"id": "i-other"}])
async def test_an_instance_that_ends_or_is_gone_is_not_terminated_again(found: dict[str, str]) -> None:
    kube, ec2 = MemoryKube(), Ec2(**found)
    await kube.create(NODE, NODE_TO_END)
    assert (await terminated(kube, ec2)).notices == ()
    assert ec2.terminated == []


# --- lifecycle hooks ---


def ended(reaction: str, outcome: str) -> float:
    labels = {"reaction": reaction, "cause": "", "outcome": outcome}
    return REGISTRY.get_sample_value("perdure_instances_reactions_total", labels) or 0


class Scaling(Ec2):
    """Auto Scaling with a hook that it waits for, or does no more."""

    def __init__(self, *, waits: bool) -> None:
        super().__init__()
        self.waits = waits

    def complete_lifecycle_action(self, **_: str) -> Any:
        if not self.waits:
            raise Invalid("No active Lifecycle Action found with token t", code="ValidationError")
        return {}


@pytest.mark.parametrize(("waits", "attempts", "outcome"), [(True, 1, "done"), (False, 1, "late"), (False, 2, "")])
async def test_a_completed_hook_is_counted_as_late_if_auto_scaling_waits_no_more(
    waits: bool, attempts: int, outcome: str
) -> None:
    """In a later attempt the earlier one may have completed it."""
    activities = AskActivities(cast("ServedPlaces", Scaling(waits=waits)))
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=attempts)
    before = {each: ended("complete-hook", each) for each in ("done", "late")}
    end = EndHook(key=KEY.lifecycle, group="g", hook="h", token="t", outcome="CONTINUE")
    await environment.run(activities.complete, end)
    assert {each: ended("complete-hook", each) - had for each, had in before.items()} == {
        each: int(each == outcome) for each in before
    }


def waiting(seconds: float) -> Any:
    return facts(seconds, asked=EVERYTHING, group="c1-mp-0", lifecycle="Terminating:Wait")


def test_a_hook_waits_for_the_drain_and_is_completed_after_it() -> None:
    world = alone(record(hook(4)), policy=DRAINS, facts=waiting(5))
    steps = work_for_instance(world, at(6)).steps
    assert [type(each) for each in steps] == [CordonNode]
    drained = world.with_record(cordoned(world.record, hook(4).key, "node-0", at(9)))
    (end,) = work_for_instance(drained, at(10)).steps
    assert isinstance(end, EndHook)
    assert end.outcome == "CONTINUE"


def test_a_launch_is_completed_once_the_node_is_ready() -> None:
    launching, policy = record(hook(4, "launching")), ReactionPolicy(launching_hook=True)
    held = facts(5, group="c1-mp-0", lifecycle="Pending:Wait")
    assert not any(
        isinstance(each, EndHook)
        for each in work_for_instance(alone(launching, node(ready=False), policy=policy, facts=held), at(6)).steps
    )
    (end,) = work_for_instance(alone(launching, node(ready=True), policy=policy, facts=held), at(6)).steps
    assert isinstance(end, EndHook)


def test_the_hook_of_a_node_that_is_deleted_is_completed_by_the_policy_that_it_had() -> None:
    """Nobody would complete it otherwise, and Auto Scaling would wait for its time-out."""
    before = alone(record(hook(4)), policy=DRAINS, facts=waiting(5))
    gone = observed(before.record, machine=None, owner=None).recall(before)
    (end,) = work_for_instance(gone, at(7)).steps
    assert isinstance(end, EndHook)
    # The workflow carries what it knows into its next run; the world is observed again.
    later = observed(gone.record, machine=None, owner=None)
    later = later.recall(InstanceWorld(key=KEY.lifecycle, known=gone.known))
    assert [type(each) for each in work_for_instance(later, at(8)).steps] == [EndHook]
    assert gone.managed
    assert not end.fold(gone, Done(at=at(9))).managed


def test_a_node_that_is_gone_without_a_hook_is_nobodys() -> None:
    before = alone(record(), policy=DRAINS)
    gone = observed(before.record, machine=None, owner=None).recall(before)
    assert not gone.managed
    assert work_for_instance(gone, at(5)).why == "no object names this instance yet"


# --- which policy ---


@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        ({}, True),
        ({"labels": {"team": "web"}}, True),
        ({"labels": {"team": "db"}}, False),
        ({"pools": ["ng-1"]}, True),
        ({"pools": ["ng-2"]}, False),
        ({"clusters": ["prod"]}, False),
        ({"namespaces": ["default"]}, False),
    ],
)
def test_a_policy_selects_nodes_by_their_labels_and_groups(selector: dict[str, Any], fits: bool) -> None:
    spec = {"selector": selector, "reactions": {"spot": "drain"}}
    policy = InterruptionPolicy.model_validate({"metadata": {"name": "p"}, "spec": spec})
    whom = selected(None, None, None, {}, node(labels={"team": "web", EKS: "ng-1"}))
    assert bool(choose([policy], whom, ReactionPolicy()).policy.name) is fits


# --- how many at once ---


def one(name: str, labels: dict[str, str], *, ready: bool = True, **metadata: Any) -> Node:
    return node(name, ready=ready, uid=f"uid-{name}", labels=labels, **metadata)


def begun(name: str, seconds: float = 0) -> Disruption:
    return Disruption(instance=f"i-{name}", name=name, uid=f"uid-{name}", at=at(seconds), size=3)


MANAGED = {EKS: "ng-1"}
CONTROL_PLANE = {NODE_CONTROL_PLANE_LABEL: ""}


@pytest.mark.parametrize(
    ("labels", "group"),
    [
        (MANAGED, "node group ng-1"),
        ({"karpenter.sh/nodepool": "spot", "alpha.eksctl.io/nodegroup-name": "x"}, "node pool spot"),
        ({"kops.k8s.io/instancegroup": "nodes-a"}, "instance group nodes-a"),
        ({"alpha.eksctl.io/nodegroup-name": "ng-2"}, "node group ng-2"),
        ({}, "Nodes without a group"),
        ({**MANAGED, **CONTROL_PLANE}, "control plane"),
    ],
)
def test_a_node_is_of_the_group_that_its_labels_tell(labels: dict[str, str], group: str) -> None:
    assert node_group(one("a", labels)) == group


@pytest.mark.parametrize(
    ("labels", "others", "under_way", "taken", "waits"),
    [
        (MANAGED, [one("b", MANAGED)], [], False, ""),
        (MANAGED, [one("b", MANAGED)], [begun("b")], False, "node group ng-1: Node b is cordoned or drained"),
        (MANAGED, [one("b", MANAGED)], [begun("b")], True, ""),
        (MANAGED, [one("b", MANAGED, **GOING)], [], False, "node group ng-1: Node b is being deleted"),
        (MANAGED, [], [begun("b")], False, "node group ng-1: the replacement of Node b is not ready"),
        (MANAGED, [], [begun("b", -3600)], False, ""),
        ({}, [one("b", {})], [begun("b")], False, "Nodes without a group: Node b is cordoned or drained"),
        (CONTROL_PLANE, [one("b", CONTROL_PLANE)], [], True, ""),
        (CONTROL_PLANE, [one("b", CONTROL_PLANE, ready=False)], [], True, "control plane: Node b is not ready"),
        (CONTROL_PLANE, [one("b", CONTROL_PLANE)], [begun("b")], True, "control plane: Node b is cordoned or drained"),
    ],
)
def test_a_node_waits_for_its_group(
    labels: dict[str, str], others: list[Node], under_way: list[Disruption], taken: bool, waits: str
) -> None:
    first = one("a", labels)
    why = waits_for(first, [first, *others], under_way, Limit(most=1), at(0), taken=taken)
    assert why.partition(";")[0] == waits


class Selecting(MemoryKube):
    """An API server that takes label selectors seriously, and answers so late that others get in between."""

    async def list(self, kind: Any, namespace: str = "", **how: Any) -> Any:
        found = await super().list(kind, namespace)
        await asyncio.sleep(0.01)
        for term in filter(None, how.get("label_selector", "").split(",")):
            name, equals, value = term.removeprefix("!").partition("=")
            labels = [mapping(each, "metadata", "labels") for each in found.items]
            fits = [
                (each.get(name) == value if equals else (name in each) is not term.startswith("!")) for each in labels
            ]
            found.items[:] = [each for each, fit in zip(found.items, fits, strict=True) if fit]
        return found


async def test_a_node_waits_for_no_namesake_of_its_group() -> None:
    kube = Selecting()
    groups = {"a": {EKS: "default"}, "b": {EKS: "default"}, "c": {"karpenter.sh/nodepool": "default"}}
    for name, found in groups.items():
        meta, spec = {"name": name, "labels": found, "uid": name}, {"providerID": f"aws:///{REGION}a/i-{name}"}
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        await kube.create(NODE, {"metadata": meta, "spec": spec, "status": ready})
    for name in "ac":
        first = Node.model_validate(await kube.get(NODE, "", name))
        turn = await _begin_turn(Disruptions(cast("KubeApi", kube), "perdure", 1), first, taken=False)
        assert not turn.why


@pytest.mark.parametrize("labels", [MANAGED, {}, CONTROL_PLANE], ids=["a node group", "none", "a control plane"])
async def test_of_three_nodes_of_a_group_one_is_cordoned_at_a_time(labels: dict[str, str]) -> None:
    kube = Selecting()
    api = cast("KubeApi", kube)
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    others = {"x": {EKS: "another"}, "y": {}, "z": {"karpenter.sh/nodepool": "p"}}
    names = ("a", "b", "c")
    for name, found in {**dict.fromkeys(names, labels), **others}.items():
        spec = {"providerID": f"aws:///{REGION}a/i-{name}"}
        await kube.create(NODE, {"metadata": {"name": name, "labels": found}, "spec": spec, "status": ready})

    async def cordon(name: str) -> Turn:
        activities = NodeActivities(api, Disruptions(api, "perdure", 1))
        key = InstanceKey(account=ACCOUNT, region=REGION, instance_id=f"i-{name}").lifecycle
        taking: Taking = await ActivityEnvironment().run(
            activities.cordon, CordonNode(key=key, namespace="", cluster="", node=name, cause="c")
        )
        return taking.turn

    turns = await asyncio.gather(*(cordon(name) for name in names))
    listed = (await kube.list(NODE)).items
    marked = [each["metadata"]["name"] for each in listed if mapping(each, "spec").get("unschedulable")]
    assert len(marked) == 1
    assert sum(marked[0] in turn.why for turn in turns) == 2
    assert not (await cordon("x")).why or not labels.get(EKS)


@pytest.mark.parametrize(("effect", "marked"), [(TaintEffect.NO_EXECUTE, 1), (TaintEffect.NO_SCHEDULE, 3)])
async def test_a_taint_that_evicts_is_set_on_one_node_of_a_group_at_a_time(effect: TaintEffect, marked: int) -> None:
    kube = Selecting()
    activities = NodeActivities(cast("KubeApi", kube), Disruptions(cast("KubeApi", kube), "perdure", 1))
    for name in "abc":
        spec = {"providerID": f"aws:///{REGION}a/i-{name}"}
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        await kube.create(NODE, {"metadata": {"name": name, "labels": MANAGED}, "spec": spec, "status": ready})
    for name in "abc":
        key = InstanceKey(account=ACCOUNT, region=REGION, instance_id=f"i-{name}").lifecycle
        how = {"reaction": Reaction.TAINT, "taint": Taint(key="k", effect=effect), "cause": "c"}
        marking = CordonNode.model_validate({"key": key, "namespace": "", "cluster": "", "node": name, **how})
        await ActivityEnvironment().run(activities.cordon, marking)
    listed = (await kube.list(NODE)).items
    assert len([each for each in listed if mapping(each, "spec").get("taints")]) == marked


@pytest.mark.parametrize("ready", ["True", "False", None])
async def test_a_control_plane_node_waits_for_the_etcd_members_of_the_others(ready: str | None) -> None:
    kube = Selecting()
    conditions = {"conditions": [{"type": "Ready", "status": "True"}]}
    for name in "ab":
        spec = {"providerID": f"aws:///{REGION}a/i-{name}"}
        await kube.create(
            NODE, {"metadata": {"name": name, "labels": CONTROL_PLANE}, "spec": spec, "status": conditions}
        )
        if name == "b" and ready is None:
            continue  # its static Pod is gone
        etcd = {"conditions": [{"type": "Ready", "status": ready if name == "b" else "False"}]}
        meta = {"name": f"etcd-{name}", "labels": {"component": "etcd"}}
        await kube.create(POD, {"metadata": meta, "spec": {"nodeName": name}, "status": etcd}, "kube-system")
    first = Node.model_validate(await kube.get(NODE, "", "a"))
    turn = await _begin_turn(Disruptions(cast("KubeApi", kube), "perdure", 1), first)
    assert turn.why == ("" if ready == "True" else "control plane: Node b has an unhealthy etcd member")


async def _begin_turn(disruptions: Disruptions, first: Node, *, taken: bool = True) -> Turn:
    async def begin() -> Turn:
        return await disruptions.begin(first, first.instance_id, taken=taken)

    turn: Turn = await ActivityEnvironment().run(begin)
    return turn


# --- what is done ---


def looks(kube: MemoryKube, *, nodes: bool = True, policy: ReactionPolicy = DRAINS) -> LookActivities:
    known = InstanceCache(kube, kube, nodes=nodes)  # type: ignore[arg-type]
    checks = Checks(ServedPlaces((), kube), kube, timedelta(hours=1))  # type: ignore[arg-type]
    return LookActivities(kube, known, checks, policy, observing=False)  # type: ignore[arg-type]


async def joined(kube: MemoryKube, name: str = "node-0", provider_id: str = f"aws:///{REGION}a/{ID}") -> None:
    await kube.create(NODE, {"metadata": {"name": name}, "spec": {"providerID": provider_id}})


async def seen(activities: LookActivities, *events: InstanceEvent) -> InstanceWorld:
    look = LookAtInstance(key=KEY.lifecycle, at=at(9), record=record(*events))
    world: InstanceWorld = await ActivityEnvironment().run(activities.look, look)
    return world


async def labels_of(kube: MemoryKube, name: str = "node-0") -> dict[str, object]:
    return dict(mapping(await kube.get(NODE, "", name), "metadata", "labels"))


async def test_an_observation_labels_the_node_and_tells_of_the_interruption_on_it() -> None:
    kube = MemoryKube()
    activities = looks(kube)
    await joined(kube)
    world = await seen(activities, spot(4))
    assert world.own_node is not None
    assert world.own_node.metadata.labels[STATE_LABEL] == "running"
    assert (await labels_of(kube))[INTERRUPTION_LABEL] == "spot-terminate"
    known = world.with_record(record(spot(4)))
    (notice,) = decide_instance(known, at(5)).notices
    assert (notice.reason, notice.about) == ("InstanceInterruption", THE_NODE)
    assert decide_instance(known.model_copy(update={"observing": True}), at(5)).notices == ()


async def test_nodes_are_left_alone_unless_they_are_served() -> None:
    kube = MemoryKube()
    await joined(kube)
    world = await seen(looks(kube, nodes=False), spot(4))
    assert not world.managed
    assert await labels_of(kube) == {}


@pytest.mark.parametrize("kind", [AWS_MACHINE, AWS_MACHINE_POOL])
async def test_an_instance_of_cluster_api_goes_by_its_objects_also_where_nodes_are_served(kind: Any) -> None:
    kube = MemoryKube()
    activities = looks(kube)
    await joined(kube)
    provider_id = f"aws:///{REGION}a/{ID}"
    spec = {"providerID": provider_id} if kind is AWS_MACHINE else {"providerIDList": [provider_id]}
    await kube.create(kind, {"metadata": {"name": "m"}, "spec": spec}, "c")
    world = await seen(activities, spot(4))
    assert world.own_node is None
    assert world.managed
    assert await labels_of(kube) == {}


@pytest.mark.parametrize("kind", [AWS_MACHINE, NODE])
async def test_a_forged_hook_does_not_count_an_instance_to_the_pool_that_it_names(kind: Any) -> None:
    """Otherwise the pool's policy and pause would apply to the instance."""
    kube = MemoryKube()
    activities = looks(kube)
    spec = {"providerID": f"aws:///{REGION}a/{ID}"}
    await kube.create(kind, {"metadata": {"name": "m"}, "spec": spec}, "c" if kind is AWS_MACHINE else "")
    arn = f"arn:aws:autoscaling:{REGION}:{ACCOUNT}:autoScalingGroup:1:autoScalingGroupName/{GROUP}"
    pool = {"metadata": {"name": GROUP, "annotations": PAUSED}, "spec": {"providerID": arn}}
    await kube.create(AWS_MACHINE_POOL, pool, "other")
    world = await seen(activities, hook(4))
    assert world.pool is None
    assert (world.labelled is not None, world.blocker) == (True, "")


@pytest.mark.parametrize(
    "provider_id",
    [f"aws:///us-east-1a/{ID}", f"gce:///{REGION}a/{ID}", f"aws:///{REGION}a/i-0000000000000dead", "", ID],
    ids=["another region", "another cloud", "another instance", "none", "no provider id"],
)
async def test_a_node_of_another_instance_is_not_taken_for_it(provider_id: str) -> None:
    kube = MemoryKube()
    activities = looks(kube)
    await joined(kube, provider_id=provider_id)
    assert not (await seen(activities)).managed
    assert await labels_of(kube) == {}


async def test_of_two_nodes_with_one_provider_id_the_newer_one_counts() -> None:
    """A machine that is installed anew may join under another name."""
    kube = MemoryKube()
    activities = looks(kube)
    for name, made in (("old", "2026-05-04T09:00:00Z"), ("new", "2026-05-04T10:00:00Z")):
        await joined(kube, name)
        await kube.patch(NODE, "", name, {"metadata": {"creationTimestamp": made}})
    world = await seen(activities)
    assert world.node_name == "new"
    assert await labels_of(kube, "old") == {}


async def test_the_sweep_compares_nodes_that_nothing_else_names() -> None:
    kube = MemoryKube()
    known = InstanceCache(kube, kube, nodes=True)  # type: ignore[arg-type]
    await joined(kube)
    await joined(kube, "of-a-machine", f"aws:///{REGION}a/i-m")
    await joined(kube, "of-fargate", f"aws:///{REGION}a/0a1b2c3d4e-5f60718/fargate-ip-10-0-0-1")
    await kube.create(AWS_MACHINE, {"metadata": {"name": "m"}, "spec": {"instanceID": "i-m"}}, "c")
    assert {each: type(found).__name__ for each, found in known.instances().items()} == {
        ID: "Node",
        "i-m": "AWSMachine",
    }


async def test_a_node_of_our_own_cluster_is_drained_and_released_without_a_kubeconfig() -> None:
    kube = _Evicting()
    api = cast("KubeApi", kube)
    activities = NodeActivities(api, Disruptions(api, "perdure", 1))
    await joined(kube)
    await kube.create(POD, {"metadata": {"name": "web"}, "spec": {"nodeName": "node-0"}}, "n")
    which: Any = {"key": KEY.lifecycle, "namespace": "", "cluster": "", "node": "node-0", "about": (THE_NODE,)}
    marked = await ActivityEnvironment().run(activities.cordon, CordonNode(cause="c", **which))
    assert mapping(await kube.get(NODE, "", "node-0"), "metadata", "annotations")[CORDONED_ANNOTATION] == "c"
    emptied = await ActivityEnvironment().run(activities.drain, EmptyNode(cause="c", **which))
    assert (await kube.list(POD)).items == []
    del which["about"]
    await ActivityEnvironment().run(activities.uncordon, ReleaseNode(**which))
    assert "unschedulable" not in mapping(await kube.get(NODE, "", "node-0"), "spec")
    notice = [(each.reason, each.about) for each in (*marked.notices, *emptied.notices)]
    assert notice == [("NodeCordoned", THE_NODE), ("NodeDrained", THE_NODE)]


class _Evicting(MemoryKube):
    """An API server that evicts at once."""

    async def create_under(self, kind: Any, namespace: str, name: str, what: str, body: JsonObject) -> JsonObject:
        return await self.delete(kind, namespace, name)


# --- what events and changes reach ---


def test_the_consumer_knows_the_instances_of_nodes() -> None:
    index = Index()

    def holder(provider_id: str) -> Holder:
        meta = {"name": "node-0", "resourceVersion": "1"}
        return read_node({"metadata": meta, "spec": {"providerID": provider_id}})

    found = holder(f"aws:///{REGION}a/{ID}")
    index.nodes[found.name] = found
    index.changed(None, found)
    assert index.knows(state("stopped", 1))
    assert not index.knows(state("stopped", 1, region="us-east-1"))
    assert len(index) == 1
    del index.nodes[found.name]
    index.changed(found, None)
    assert not index.knows(state("stopped", 1))
    assert index.remembers(ID)
    fargate = f"aws:///{REGION}a/0a1b2c3d4e-5f60718/fargate-ip-10-0-0-1.{REGION}.compute.internal"
    for other in ("", "gce:///z/i-1", fargate):
        assert holder(other).instances == ()
        assert not holder(other).expectant


def watched(kind: str, *, nodes: bool = True) -> Watched:
    settings = Settings(instances_queues=(f"{ACCOUNT}/{REGION}",), instances_nodes=nodes)
    return next(each for each in watched_for(settings) if each.kind.plural == kind)


def woken(before: JsonObject | None, after: JsonObject | None) -> set[Key]:
    entry = watched("nodes")
    was, is_now = (entry.project("", each) if each else None for each in (before, after))
    return entry.relatives(was, is_now, Watch())


def a_node(version: str = "1", *, ready: str = "False", beat: str = "1", **metadata: Any) -> JsonObject:
    condition = {"type": "Ready", "status": ready, "lastHeartbeatTime": f"2026-05-04T10:00:0{beat}Z"}
    pressure = {"type": "MemoryPressure", "status": "False", "lastHeartbeatTime": f"2026-05-04T10:00:0{beat}Z"}
    meta = {"name": "node-0", "uid": "u", "resourceVersion": version} | metadata
    spec = {"providerID": f"aws:///{REGION}a/{ID}"}
    return {"metadata": meta, "spec": spec, "status": {"conditions": [condition, pressure]}}


@pytest.mark.parametrize(
    ("change", "wakes"),
    [
        ({"ready": "True"}, True),
        ({"labels": {STATE_LABEL: "stopped"}}, True),
        ({"annotations": PAUSED}, True),
        (GOING, True),
        ({"beat": "9"}, False),
        ({"labels": {"team": "web"}}, False),
    ],
)
def test_a_change_of_a_node_wakes_its_instance_and_a_heartbeat_does_not(change: dict[str, Any], wakes: bool) -> None:
    assert woken(a_node(), a_node("2", **change)) == ({KEY.lifecycle} if wakes else set())


def test_a_node_that_comes_wakes_its_instance_and_the_sweep() -> None:
    assert woken(None, a_node()) == {KEY.lifecycle, THE_SWEEP}
    assert woken(a_node(), None) == {KEY.lifecycle}


@pytest.mark.parametrize(
    ("selector", "wakes"), [({}, True), ({"labels": {"a": "b"}}, True), ({"clusters": ["c"]}, False)]
)
def test_a_change_of_a_policy_wakes_the_nodes_that_it_may_select(selector: JsonObject, wakes: bool) -> None:
    index, nodes = Watch(), watched("nodes")
    index.of(nodes.name)["", "node-0"] = nodes.project("", a_node())
    policies = watched("interruptionpolicies")

    def policy(**reactions: str) -> Any:
        spec = {"selector": selector, "reactions": reactions}
        return policies.project("", {"metadata": {"name": "p", "uid": "u"}, "spec": spec})

    found = policies.relatives(policy(), policy(spot="drain"), index)
    assert found == ({KEY.lifecycle} if wakes else set())


def test_nodes_are_not_watched_unless_they_are_served() -> None:
    with pytest.raises(StopIteration):
        watched("nodes", nodes=False)


def test_nodes_are_counted_by_what_their_labels_tell_if_they_are_of_ec2() -> None:
    index, nodes = Watch(), watched("nodes")
    elsewhere = {"metadata": {"name": "b", "labels": {STATE_LABEL: "running"}}, "spec": {"providerID": "gce:///z/i-1"}}
    for obj in (a_node(labels={STATE_LABEL: "running"}), elsewhere):
        index.of(nodes.name)["", obj["metadata"]["name"]] = nodes.project("", obj)
    (family,) = (each for each in instance_gauges(index) if each.name == "perdure_instances_nodes")
    assert [(each.labels["state"], each.value) for each in family.samples] == [("running", 1)]


def test_nodes_are_watched_apart_from_those_of_load_balancers() -> None:
    """One process may serve both, of different clusters; the watcher's index goes by these names."""
    assert watched("nodes").name != Followed(built_in_kinds.NODE).name
    assert not watched("nodes").kind.served
