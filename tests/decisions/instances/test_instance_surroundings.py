"""What surrounds an instance's decisions: the policy's spelling, regions, kubeconfigs, drains, what a sweep tells."""

from __future__ import annotations

import base64
import re
from typing import Any, cast

import pytest
import yaml
from instance_scenes import ACCOUNT, GROUP, ID, REGION, at, event, facts, hook, observed, record, spot, state

from domain.decision import Action, Outcome
from domain.identity import Key
from domain.instances import AWS_MACHINE, AWS_MACHINE_POOL, INTERRUPTION_POLICY, MACHINE, MACHINE_DEPLOYMENT, THE_SWEEP
from domain.instances.actions import AskInstance, BeatHook, CordonNode, EmptyNode, EndHook, FindNode, Taking
from domain.instances.constants import (
    EVENTS_ANNOTATION,
    GROUP_STATE_LABEL,
    INTERRUPTION_LABEL,
    PAUSED_ANNOTATION,
    STATE_LABEL,
)
from domain.instances.disruption_budget import Turn
from domain.instances.drained_pods import Pod
from domain.instances.event_record import cordoned, heartbeat_sent, hooks_confirmed, opened
from domain.instances.event_verification import ScheduledEvent
from domain.instances.events import EventKind, InstanceState
from domain.instances.hook_timeouts import HookTiming
from domain.instances.instance_lifecycle import decide_instance, work_for_instance
from domain.instances.interruption_policy import Reaction, ReactionPolicy
from domain.instances.machine_labels import Story, recalled
from domain.instances.observed import ON_NODE, InstanceMemory, InstanceWorld, KnownNode
from domain.instances.periodic_resync import differs
from domain.instances.provider_ids import region_of_provider_id
from domain.instances.resources import AWSMachine, AWSMachinePool, Machine
from domain.instances.workflow_ids import GroupKey, InstanceKey
from domain.refusal import UNUSABLE_KUBECONFIG, ErrorType, Refusal
from domain.writes import merge
from engine.errors import Invalid
from engine.kube.json import JsonObject
from engine.kube.workload_clusters import kubeconfig
from engine.settings import Settings
from starters.cli.output import CommandError
from starters.cli.processes import execute
from starters.watch.instance_metrics import instance_gauges
from starters.watch.instances import watched_for
from starters.watch.projection import Projection
from starters.watch.projection_index import Index
from starters.watch.watched_kinds import Watched

KEY = InstanceKey(account=ACCOUNT, region=REGION, instance_id=ID)


def machine(labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **spec: Any) -> JsonObject:
    meta = {"name": "m", "namespace": "c", "uid": "1", "resourceVersion": "5"}
    given = {"instanceID": ID, "providerID": f"aws:///{REGION}a/{ID}"} | spec
    owners = [{"kind": "Machine", "name": "m", "apiVersion": MACHINE.api_version, "uid": "2"}]
    whole = {**meta, "labels": labels or {}, "annotations": annotations or {}, "ownerReferences": owners}
    return {"metadata": whole, "spec": given}


def aws_machine(**labels: str) -> AWSMachine:
    named = {STATE_LABEL: labels.get("state", ""), INTERRUPTION_LABEL: labels.get("interruption", "")}
    return AWSMachine.model_validate(machine({name: value for name, value in named.items() if value}))


# --- settings ---


def test_a_policy_is_spelt_as_causes_and_reactions() -> None:
    policy = ReactionPolicy.of(["spot=delete-machine", "terminating-hook=drain", "launching-hook=true"])
    assert policy == ReactionPolicy(spot=Reaction.DELETE_MACHINE, terminating_hook=Reaction.DRAIN, launching_hook=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sopt=drain", "'sopt' is no cause; give CAUSE=REACTION"),
        ("spot", "spot=: that is not one of label, taint, cordon, drain, terminate-instance, delete-machine"),
        ("rebalance=delete-machine", "rebalance=delete-machine: EC2 has no call that confirms this event"),
        ("capacity-reservation=drain", "capacity-reservation=drain: EC2 has no call that confirms this event"),
        ("spot=explode", "spot=explode: that is not one of label"),
        ("launching-hook=perhaps", "launching_hook=perhaps: that is not allowed"),
        ("hook-margin=soon", "hook_margin=soon"),
        ("launch-timeout=PT0S", "launch_timeout=PT0S: that is not allowed"),
        ("most=3", "'most' is no cause; give CAUSE=REACTION"),
    ],
)
def test_a_policy_that_nobody_can_mean_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        ReactionPolicy.of([text])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("queues", "nonsense", "is not of the form ACCOUNT/REGION"),
        ("reactions", "sopt=drain", "is no cause; give CAUSE=REACTION"),
    ],
)
def test_a_process_names_a_setting_of_instances_that_is_none_before_it_connects(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, message: str
) -> None:
    monkeypatch.setattr("engine.settings.settings", lambda: Settings(**{f"instances_{name}": (text,)}))

    async def process(_: Settings) -> None:
        pytest.fail("it was begun")

    with pytest.raises(CommandError, match=f"PERDURE_INSTANCES_{name.upper()}: .*{message}"):
        execute("events", process)


@pytest.mark.parametrize(
    ("provider_id", "region"),
    [
        ("aws:///eu-central-1a/i-1", "eu-central-1"),
        ("aws:///us-west-2-lax-1a/i-1", "us-west-2"),
        ("aws:///us-gov-west-1b/i-1", "us-gov-west-1"),
        ("aws:///eusc-de-east-1a/i-1", "eusc-de-east-1"),
        ("aws:///i-1", ""),
        ("", ""),
    ],
)
def test_the_region_stands_in_the_provider_id(provider_id: str, region: str) -> None:
    assert region_of_provider_id(provider_id) == region


# --- what a look in bulk tells ---


def test_an_instance_is_told_of_what_its_labels_do_not_tell() -> None:
    planned = {"scheduled": (ScheduledEvent(id="s", code="instance-stop"),)}
    assert not differs(aws_machine(state="running"), facts(0))
    assert differs(aws_machine(), facts(0))
    assert differs(aws_machine(state="running"), facts(0, "stopped"))
    assert differs(aws_machine(state="running"), facts(0, found=False))
    assert not differs(aws_machine(state="terminated"), facts(0, found=False))
    assert differs(aws_machine(state="running"), facts(0, **planned))
    assert not differs(aws_machine(state="running", interruption="scheduled-stop"), facts(0, **planned))
    assert differs(aws_machine(state="running", interruption="scheduled-stop"), facts(0))
    assert not differs(aws_machine(state="running", interruption="spot-terminate"), facts(0))


@pytest.mark.parametrize(
    ("label", "code", "told_otherwise"),
    [
        ("rebalance", "system-maintenance", True),
        ("scheduled-maintenance", "instance-retirement", True),
        ("scheduled-maintenance", "system-reboot", False),  # Health's word for it
        ("scheduled-termination", "instance-stop", False),
        ("scheduled-stop", "instance-retirement", False),
        ("spot-terminate", "instance-retirement", False),
        ("spot-terminate", "something-new", False),
    ],
)
def test_a_label_hides_no_scheduled_event_that_is_more_severe(label: str, code: str, told_otherwise: bool) -> None:
    planned = (ScheduledEvent(id="s", code=code),)
    assert differs(aws_machine(state="running", interruption=label), facts(0, scheduled=planned)) == told_otherwise


def test_a_scheduled_event_that_has_moved_is_told() -> None:
    reported = aws_machine(state="running", interruption="scheduled-stop")
    reported.metadata.annotations[EVENTS_ANNOTATION] = Story(deadline=at(90_000)).model_dump_json()
    for seconds, moved in ((90_060, False), (180_000, True)):
        planned = (ScheduledEvent(id="s", code="instance-stop", not_before=at(seconds)),)
        assert differs(reported, facts(0, scheduled=planned)) == moved


@pytest.mark.parametrize(
    ("label", "received", "retained"),
    [
        ("terminated", state("running", 3), InstanceState.TERMINATED),
        ("stopped", state("running", 3), InstanceState.STOPPED),
        ("stopped", state("running", 9), InstanceState.RUNNING),
        ("running", state("terminated", 3), InstanceState.TERMINATED),
        ("nonsense", state("running", 3), InstanceState.RUNNING),
    ],
)
def test_a_new_record_begins_where_the_labels_left_off(label: str, received: Any, retained: InstanceState) -> None:
    story = '{"last": {"key": "k", "kind": "ec2.state", "time": "2026-05-04T10:00:05Z"}}'
    meta = AWSMachine.model_validate(machine({STATE_LABEL: label}, {EVENTS_ANNOTATION: story})).metadata
    assert recalled(record(received, live_at=None), meta).state is retained


# --- drains ---


def test_a_node_is_cordoned_before_it_is_emptied_and_that_is_remembered() -> None:
    notice = spot(4)
    marked = facts(6, spot=True, spot_code="marked-for-termination")
    world = observed(record(notice), facts=marked, policy=ReactionPolicy(spot=Reaction.DRAIN))
    (first,) = work_for_instance(world, at(7)).steps
    assert isinstance(first, CordonNode)
    (second,) = work_for_instance(first.fold(world, Taking(turn=Turn(at=at(7)))), at(8)).steps
    assert isinstance(second, EmptyNode)
    other = world.with_record(cordoned(record(notice), "another", "node-0"))
    assert isinstance(work_for_instance(other, at(8)).steps[0], CordonNode)


@pytest.mark.parametrize(
    ("pod", "evicted"),
    [
        ({"status": {"phase": "Running"}}, True),
        ({"status": {"phase": "Succeeded"}}, False),
        ({"metadata": {"ownerReferences": [{"kind": "DaemonSet"}]}}, False),
        ({"metadata": {"ownerReferences": [{"kind": "ReplicaSet"}]}}, True),
        ({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}, False),
    ],
)
def test_a_drain_evicts_what_kubectl_does(pod: JsonObject, evicted: bool) -> None:
    assert Pod.model_validate(pod).evictable is evicted


def secret(content: object) -> JsonObject:
    return {"data": {"value": base64.b64encode(yaml.safe_dump(content).encode()).decode()}}


def test_a_kubeconfig_that_holds_everything_is_taken() -> None:
    user = {"name": "u", "user": {"client-certificate-data": "eA==", "client-key-data": "eA=="}}
    content = {"users": [user], "clusters": [{"cluster": {"certificate-authority-data": "eA=="}}]}
    assert kubeconfig(secret(content), "s") == content


@pytest.mark.parametrize(
    "content",
    [
        {"users": [{"user": {"exec": {"command": "sh"}}}]},
        {"users": [{"user": {"tokenFile": "/etc/passwd"}}]},
        {"users": [{"user": {"auth-provider": {}}}]},
        {"clusters": [{"cluster": {"certificate-authority": "/etc/passwd"}}]},
        "text",
    ],
)
def test_a_kubeconfig_that_would_run_or_read_something_here_is_refused(content: object) -> None:
    with pytest.raises(Invalid):
        kubeconfig(secret(content), "s")


def test_a_secret_without_a_kubeconfig_is_told() -> None:
    with pytest.raises(Invalid, match="has no kubeconfig"):
        kubeconfig({"data": {"value": "%%%"}}, "s")


# --- the decision as the loop takes it ---


def test_a_stranger_is_waited_for_and_then_given_up() -> None:
    stranger = InstanceWorld(key=KEY.lifecycle, known=InstanceMemory(record=opened(KEY, at(0))))
    assert decide_instance(stranger, at(5)).actions == ()
    assert decide_instance(stranger, at(601)).outcome is Outcome.GONE


# --- a Node that no Machine names ---

HOOKS = ReactionPolicy(terminating_hook=Reaction.DRAIN, launching_hook=True)


def of_a_pool(seconds: float, transition: str = "terminating", **changes: Any) -> InstanceWorld:
    """An instance of a group without Machines that a hook holds, `seconds` after that began."""
    pool = AWSMachinePool.model_validate({"metadata": {"name": GROUP, "namespace": "c", "uid": "3"}})
    held = heartbeat_sent(record(hook(0, transition)), "t-1", at(seconds))
    waiting = facts(
        seconds - 1, group=GROUP, lifecycle="Pending:Wait" if transition == "launching" else "Terminating:Wait"
    )
    known = InstanceMemory(
        record=hooks_confirmed(held, waiting), facts=waiting, timings={"drain": HookTiming()}, recalled=True
    )
    return InstanceWorld(key=KEY.lifecycle, known=known, pool=pool, policy=HOOKS, **changes)


def not_found(type_: ErrorType, seconds: float) -> dict[str, Refusal]:
    return {FindNode.activity: Refusal(type=type_, message="the workload cluster says no", at=at(seconds))}


def wanted(world: InstanceWorld, seconds: float) -> list[type[Action]]:
    return [type(action) for action in decide_instance(world, at(seconds)).actions]


def test_a_node_search_keeps_its_hook_with_heartbeats_until_the_limit() -> None:
    assert wanted(of_a_pool(10), 11) == [FindNode]
    assert wanted(of_a_pool(10), 310) == [FindNode, AskInstance, BeatHook]
    away = of_a_pool(10, refusals=not_found(ErrorType.UNAVAILABLE, 9))
    assert wanted(away, 11) == [FindNode], "an outage passes, and nothing would be drained before it has"
    limit = 48 * 3600 - 60
    assert EndHook not in wanted(of_a_pool(limit - 2), limit - 1)
    assert EndHook in wanted(of_a_pool(limit - 2), limit)


def test_a_launch_whose_node_cannot_be_looked_up_goes_on_in_time() -> None:
    assert wanted(of_a_pool(890, "launching"), 899) == [FindNode]
    assert wanted(of_a_pool(890, "launching"), 900) == [FindNode, EndHook]


@pytest.mark.parametrize("type_", [ErrorType.INVALID, ErrorType.DENIED])
def test_a_search_that_the_workload_cluster_refuses_holds_up_no_hook(type_: ErrorType) -> None:
    assert wanted(of_a_pool(10, refusals=not_found(type_, 9)), 11) == [FindNode, EndHook]


@pytest.mark.parametrize("type_", [ErrorType.INVALID, ErrorType.DENIED])
def test_a_refusal_of_before_a_hook_says_nothing_about_its_node(type_: ErrorType) -> None:
    """For example of months ago; the kubeconfig was corrected since, and the search is under way."""
    assert wanted(of_a_pool(10, refusals=not_found(type_, -9)), 11) == [FindNode]


@pytest.mark.parametrize(
    ("code", "seconds", "ends"),
    [(UNUSABLE_KUBECONFIG, 9, True), (UNUSABLE_KUBECONFIG, -9, False), ("Invalid", 9, False)],
    ids=["the kubeconfig", "before the hook", "something else"],
)
def test_a_kubeconfig_that_cannot_be_used_holds_up_no_hook_of_a_machine(
    *, code: str, seconds: float, ends: bool
) -> None:
    refusal = Refusal(type=ErrorType.INVALID, code=code, message="it runs a program", at=at(seconds))
    pooled = of_a_pool(10)
    world = observed(pooled.record, policy=HOOKS, facts=pooled.known.facts, timings=pooled.known.timings)
    refused = world.model_copy(update={"refusals": {ON_NODE: refusal}})
    assert CordonNode in wanted(world, 11)
    assert (EndHook in wanted(refused, 11)) == ends


@pytest.mark.parametrize(("served", "again"), [(True, at(40)), (False, None)])
def test_a_node_is_searched_again_only_while_our_launch_hook_waits(served: bool, again: Any) -> None:
    world = of_a_pool(10, "launching")
    known = world.known.model_copy(update={"node": KnownNode(at=at(10))})
    policy = HOOKS.model_copy(update={"launching_hook": served})
    decision = decide_instance(world.model_copy(update={"known": known, "policy": policy}), at(11))
    assert decision.deadline == (again or at(48 * 3600))
    assert FindNode not in wanted(world.model_copy(update={"known": known, "policy": policy}), 39)


def test_events_that_need_no_node_cause_no_further_search_during_a_launch() -> None:
    world = of_a_pool(10, "launching")
    searched = world.learn(node=KnownNode(at=at(10)))
    running, _ = searched.with_events([state("pending", 11), state("running", 12)], at(12))
    assert FindNode not in wanted(running, 13)
    assert FindNode in wanted(running, 40)


def test_a_node_that_joined_after_a_search_is_searched_for_before_a_hook_ends() -> None:
    """Another program's hook of the launch came before the Node did."""
    world = of_a_pool(10, "launching")
    known = world.known.model_copy(update={"node": KnownNode(at=at(10))})
    policy = ReactionPolicy(terminating_hook=Reaction.DRAIN)
    joined, _ = world.model_copy(update={"known": known, "policy": policy}).with_events(
        [event(EventKind.LAUNCH_OK, 60), hook(9000, token="t-2")], at(9000)
    )
    confirmed = joined.with_answer(facts(9001, group=GROUP, lifecycle="Terminating:Wait"), {"drain": HookTiming()})
    assert wanted(confirmed, 9002) == [FindNode]


def test_a_node_that_joined_after_a_search_is_searched_for_when_ec2_reports_a_stop() -> None:
    policy = ReactionPolicy(stopped=Reaction.CORDON)
    known = InstanceMemory(record=record(spot(0)), node=KnownNode(at=at(1)))
    seen = observed(record(), owner=None, policy=policy).model_copy(update={"known": known})
    assert FindNode not in wanted(seen, 9000)
    assert FindNode in wanted(seen.with_answer(facts(9000, "stopped"), {}), 9001)


def test_a_hook_of_a_paused_instance_waits_for_no_node() -> None:
    world = of_a_pool(10)
    assert world.pool is not None
    meta = world.pool.metadata.model_copy(update={"annotations": {"cluster.x-k8s.io/paused": "true"}})
    held = world.model_copy(update={"pool": world.pool.model_copy(update={"metadata": meta})})
    assert wanted(held, 11) == [FindNode, EndHook]


def test_an_outage_of_a_workload_cluster_is_told_of_in_time() -> None:
    (search,) = decide_instance(of_a_pool(10), at(11)).actions
    assert search.most_attempts > 0


# --- whom the watcher wakes ---

SERVED = Settings(instances_queues=(f"{ACCOUNT}/{REGION}",))
TWO = Settings(instances_queues=(f"{ACCOUNT}/{REGION}", f"999999999999/{REGION}@arn:aws:iam::999999999999:role/r"))


def entry(kind: str, settings: Settings) -> Watched:
    return next(each for each in watched_for(settings) if each.kind.name == kind)


def seen(
    obj: JsonObject, kind: str = AWS_MACHINE.name, by: str = "capa", cluster: str = "", settings: Settings = SERVED
) -> Projection:
    manager = [{"manager": by, "operation": "Update", "time": "2026-05-04T10:00:00Z", "fieldsV1": {"f": str(obj)}}]
    whole = {**obj, "metadata": {**obj["metadata"], "managedFields": manager}}  # type: ignore[dict-item]
    return entry(kind, settings).project(cluster, whole)


def woken(
    before: Projection | None, after: Projection | None, index: Index | None = None, settings: Settings = SERVED
) -> set[Key]:
    known = after or before
    assert known is not None
    return entry(known.key.kind, settings).relatives(before, after, index or Index())


def test_an_awsmachine_wakes_its_instance_on_its_id_and_on_label_edits() -> None:
    bare = seen(machine(instanceID="", providerID=""))
    named, edited = seen(machine()), seen(machine({STATE_LABEL: "stopped"}))
    assert woken(None, bare) == {THE_SWEEP}
    assert woken(bare, named) == {KEY.lifecycle}
    assert woken(named, edited) == {KEY.lifecycle}
    assert woken(named, seen(machine())) == set()
    assert woken(edited, None) == {KEY.lifecycle}


@pytest.mark.parametrize(
    ("account", "wakes"), [(ACCOUNT, [KEY]), ("111111111111", []), ("", [])], ids=["its own", "not served", "none"]
)
def test_of_several_accounts_in_a_region_the_one_in_the_annotation_is_woken(
    account: str, wakes: list[InstanceKey]
) -> None:
    annotations = {EVENTS_ANNOTATION: Story(account=account).model_dump_json()}
    before, held = machine(annotations=annotations), machine(annotations={**annotations, PAUSED_ANNOTATION: ""})
    found = woken(seen(before, settings=TWO), seen(held, settings=TWO), settings=TWO)
    assert found == {each.lifecycle for each in wakes}


def test_an_instance_and_a_group_run_on_workers_of_the_cluster_with_their_objects() -> None:
    arn = f"arn:aws:autoscaling:{REGION}:{ACCOUNT}:autoScalingGroup:1:autoScalingGroupName/g"
    bare, named = seen(machine(instanceID="", providerID=""), cluster="west"), seen(machine(), cluster="west")
    pool: JsonObject = {"metadata": {"name": "p", "namespace": "c"}, "spec": {"providerID": arn}}
    group = GroupKey(account=ACCOUNT, region=REGION, group="g")
    woken_keys = woken(bare, named)
    woken_keys |= woken(seen(pool, AWS_MACHINE_POOL.name, cluster="west"), None)
    assert woken_keys == {KEY.lifecycle_in("west"), group.lifecycle_in("west")}


def test_our_own_label_wakes_nobody() -> None:
    ours = seen(machine({STATE_LABEL: "running"}), by="perdure")
    before = seen(machine(), by="perdure")
    assert woken(before, ours) == set()


def test_an_instance_of_which_the_account_is_not_known_is_not_woken() -> None:
    assert woken(None, seen(machine(), settings=TWO), settings=TWO) == {THE_SWEEP}


def test_a_machine_wakes_the_instance_that_it_owns_when_its_node_is_ready() -> None:
    index = Index()
    index.of(AWS_MACHINE.name)["c", "m"] = seen(machine())
    meta: JsonObject = {"name": "m", "namespace": "c", "uid": "2"}
    ready = {"nodeRef": {"name": "n"}, "conditions": [{"type": "NodeHealthy", "status": "True"}]}
    before = seen({"metadata": meta, "status": {"phase": "Provisioned"}}, MACHINE.name)
    running = seen({"metadata": meta, "status": {"phase": "Running"}}, MACHINE.name)
    after = seen({"metadata": meta, "status": ready}, MACHINE.name)
    assert woken(before, running, index) == set()
    assert woken(before, after, index) == {KEY.lifecycle}
    assert Machine.model_validate({"status": ready}).node_ready


@pytest.mark.parametrize("status", ["True", "False"])
def test_an_object_whose_whole_cluster_is_paused_is_held_and_that_is_news(status: str) -> None:
    held = {"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Paused", "status": status}]}}
    obj = {**machine(), **held}
    paused = AWSMachine.model_validate(obj)
    assert paused.paused is Machine.model_validate(held).paused is (status == "True")
    assert AWSMachine.model_validate(paused.model_dump(mode="json")) == paused
    assert [each.type for each in paused.status.conditions] == ["Paused"]
    woken_keys = woken(seen(machine()), seen(obj))
    assert woken_keys == ({KEY.lifecycle} if status == "True" else set())


def test_a_pool_wakes_its_group() -> None:
    arn = f"arn:aws:autoscaling:{REGION}:{ACCOUNT}:autoScalingGroup:1:autoScalingGroupName/g"
    pool = seen({"metadata": {"name": "p", "namespace": "c"}, "spec": {"providerID": arn}}, AWS_MACHINE_POOL.name)
    group = GroupKey(account=ACCOUNT, region=REGION, group="g")
    assert woken(None, pool) == {group.lifecycle, THE_SWEEP}
    assert woken(pool, None) == {group.lifecycle}


@pytest.mark.parametrize(("account", "region"), [("999999999999", REGION), (ACCOUNT, "us-east-1")])
def test_a_pool_wakes_no_group_of_an_account_or_region_that_is_not_served(account: str, region: str) -> None:
    arn = f"arn:aws:autoscaling:{region}:{account}:autoScalingGroup:1:autoScalingGroupName/g"
    body: Any = {"metadata": {"name": "p", "namespace": "c"}, "spec": {"providerID": arn}}
    paused = merge(body, {"metadata": {"annotations": {PAUSED_ANNOTATION: ""}}})
    before, after = seen(body, AWS_MACHINE_POOL.name), seen(cast(Any, paused), AWS_MACHINE_POOL.name)
    assert woken(before, after) == set()


@pytest.mark.parametrize(
    "held",
    [
        {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}},
        {"metadata": {"annotations": {"perdure.dev/paused": "true"}}},
        {"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Paused", "status": "True"}]}},
    ],
)
def test_a_pool_that_is_paused_holds_its_instances_which_hear_of_it(held: dict[str, Any]) -> None:
    arn = f"arn:aws:autoscaling:{REGION}:{ACCOUNT}:autoScalingGroup:1:autoScalingGroupName/g"
    listed = [f"aws:///{REGION}a/{KEY.instance_id}", f"aws:///{REGION}b/i-2", "none"]
    body: Any = {"metadata": {"name": "p", "namespace": "c"}, "spec": {"providerID": arn, "providerIDList": listed}}
    paused: Any = merge(body, held)
    woken_keys = woken(seen(body, AWS_MACHINE_POOL.name), seen(paused, AWS_MACHINE_POOL.name))
    group = GroupKey(account=ACCOUNT, region=REGION, group="g")
    other = InstanceKey(account=ACCOUNT, region=REGION, instance_id="i-2")
    assert woken_keys == {group.lifecycle, KEY.lifecycle, other.lifecycle}
    pool = AWSMachinePool.model_validate(paused)
    assert InstanceWorld(key=KEY.lifecycle, pool=pool).blocker == "AWSMachinePool p is paused"
    assert InstanceWorld(key=KEY.lifecycle, pool=AWSMachinePool.model_validate(body)).blocker == ""


def test_nothing_is_watched_where_no_instances_are_served() -> None:
    assert watched_for(Settings()) == ()
    assert [entry.kind for entry in watched_for(SERVED)] == [
        AWS_MACHINE,
        AWS_MACHINE_POOL,
        MACHINE,
        MACHINE_DEPLOYMENT,
        INTERRUPTION_POLICY,
    ]


# --- what the watcher tells ---


def test_machines_and_pools_are_counted_by_what_their_labels_tell() -> None:
    index = Index()
    reported = ({STATE_LABEL: "running"}, {STATE_LABEL: "running", INTERRUPTION_LABEL: "rebalance"}, {})
    for number, labels in enumerate(reported):
        index.of(AWS_MACHINE.name)["c", f"m{number}"] = seen(machine(labels))
    pool = {"metadata": {"name": "p", "namespace": "c", "labels": {GROUP_STATE_LABEL: "in-service"}}}
    index.of(AWS_MACHINE_POOL.name)["c", "p"] = seen(pool, AWS_MACHINE_POOL.name)
    machines, _, pools = instance_gauges(index)
    assert {tuple(each.labels.values()): each.value for each in machines.samples} == {
        ("running", ""): 1,
        ("running", "rebalance"): 1,
        ("", ""): 1,
    }
    assert [(each.labels["state"], each.value) for each in pools.samples] == [("in-service", 1)]
