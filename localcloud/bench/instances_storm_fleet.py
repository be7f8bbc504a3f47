"""Row i of `perdure bench instances`: the clusters, their policies and instances, and what is observed of them.

Each cluster has two node groups and instances of Auto Scaling groups with hooks; all but storm-b have three
control-plane machines.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import boto3

from domain.identity import Kind
from domain.instances import AWS_MACHINE, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from domain.instances import constants as c
from domain.instances.event_topology import topology
from domain.instances.interruption_policy import Reaction
from domain.instances.replacements import REPLACED
from engine.errors import Absent, ApiError
from engine.kube import NODE, POD
from engine.kube.json import JsonObject, at, mapping, sequence, text
from localcloud.aws.contract import PAYER_ACCOUNT_ID
from localcloud.bench.instances_things import Labels
from localcloud.bench.laboratory import PATIENCE_SECONDS, Laboratory
from localcloud.instance_groups import image_of
from localcloud.services import REGION

ROLE = "OrganizationAccountAccessRole"
GROUPS = ("md-0", "md-1")
CONTROL_PLANE = "control-plane"
POOL = "pool"
MEMBERS_OF_CONTROL_PLANE = 3
READY_SECONDS = 3.0
HOOK_SECONDS = 120
# The cluster without Cluster API: its Nodes have this label.
OF_NODES = "storm-d"
WITHOUT_CONTROL_PLANE = "storm-b"
CLUSTER = "bench/cluster"
# The machines of a node group that scheduled events may take at once.
LIMITS = {"storm-a": 2, "storm-c": 1, "storm-d": 2}
REPLACED_FIRST = "storm-c"
_HOOKS: JsonObject = {"launchingHook": True}
POLICIES: dict[str, JsonObject] = {
    "storm-a": {
        "reactions": {
            "spot": "delete-machine",
            "ending": "delete-machine",
            "reboot": "drain",
            "maintenance": "cordon",
            "stopped": "cordon",
            "terminatingHook": "drain",
        },
        "maxUnavailable": LIMITS["storm-a"],
        **_HOOKS,
    },
    "storm-b": {
        "reactions": {
            "spot": "drain",
            "ending": "cordon",
            "reboot": "cordon",
            "maintenance": "taint",
            "stopped": "label",
            "terminatingHook": "drain",
        },
        "maxUnavailable": 100,
        **_HOOKS,
    },
    "storm-c": {
        "reactions": {
            "spot": "cordon",
            "ending": "delete-machine",
            "reboot": "drain",
            "maintenance": "taint",
            "stopped": "taint",
            "terminatingHook": "drain",
        },
        "replaceFirstSeconds": {"ending": 60},
        "maxUnavailable": LIMITS["storm-c"],
        **_HOOKS,
    },
    "storm-d": {
        "reactions": {
            "spot": "drain",
            "ending": "terminate-instance",
            "reboot": "drain",
            "maintenance": "taint",
            "stopped": "label",
            "terminatingHook": "drain",
        },
        "maxUnavailable": LIMITS["storm-d"],
        **_HOOKS,
    },
}


class Cause(NamedTuple):
    """What happens to an instance: the label that shows it, and the policy's field for the reaction (may be empty)."""

    label: str
    value: str
    reaction: str = ""


CAUSES = {
    "spot": Cause(c.INTERRUPTION_LABEL, "spot-terminate", "spot"),
    "spot-stop": Cause(c.INTERRUPTION_LABEL, "spot-stop", "spot"),
    "spot-hibernate": Cause(c.INTERRUPTION_LABEL, "spot-hibernate"),
    "rebalance": Cause(c.INTERRUPTION_LABEL, "rebalance"),
    "capacity": Cause(c.INTERRUPTION_LABEL, "capacity-reservation"),
    "ending": Cause(c.INTERRUPTION_LABEL, "scheduled-retirement", "ending"),
    "reboot": Cause(c.INTERRUPTION_LABEL, "scheduled-reboot", "reboot"),
    "maintenance": Cause(c.INTERRUPTION_LABEL, "scheduled-maintenance", "maintenance"),
    "stopped": Cause(c.STATE_LABEL, "stopped", "stopped"),
    "ended": Cause(c.STATE_LABEL, "terminated"),
    "hook": Cause(c.STATE_LABEL, "terminated", "terminatingHook"),
    "launch": Cause(c.STATE_LABEL, "running"),
}
# The instance stops afterwards, which has a reaction of its own.
STOPS = ("spot-stop", "spot-hibernate")
# The instance comes back, so its Node is used again.
RETURNS = ("reboot", "maintenance")


class Left(NamedTuple):
    """What a reaction leaves. `emptied`: whether the Pod is gone; None allows both, as Cluster API drains the Node."""

    deleted: bool = False
    cordoned: bool = False
    tainted: bool = False
    emptied: bool | None = False


LEFT = {
    Reaction.LABEL: Left(),
    Reaction.TAINT: Left(tainted=True),
    Reaction.CORDON: Left(cordoned=True),
    Reaction.DRAIN: Left(cordoned=True, emptied=True),
    Reaction.TERMINATE_INSTANCE: Left(cordoned=True, emptied=True),
    Reaction.DELETE_MACHINE: Left(deleted=True, emptied=None),
}


@dataclass
class Member:
    """An instance. Its cause happened at `since`; the cause's event is delayed by `late` seconds."""

    instance: str
    cluster: str
    account: str
    group: str
    spot: bool = False
    hooked: str = ""  # its Auto Scaling group with a hook
    cause: str = ""
    late: float = 0.0
    since: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.cluster}/{self.instance}"

    @property
    def reaction(self) -> Reaction:
        chosen = [CAUSES[self.cause].reaction] if self.cause else []
        if self.cause in STOPS:
            chosen.append("stopped")
        reactions: dict[str, str] = POLICIES[self.cluster]["reactions"]  # type: ignore[assignment]
        found = [Reaction(reactions[each]) for each in chosen if each]
        return max(found, key=lambda each: each.strength, default=Reaction.LABEL)

    @property
    def limited(self) -> bool:
        return self.cause in ("ending", *RETURNS) and self.cluster in LIMITS


class Seen:
    def __init__(self, lab: Laboratory, labels: Labels) -> None:
        self._lab = lab
        self._labels = labels
        self.cordoned: dict[str, list[float]] = defaultdict(list)
        self.tainted: dict[str, list[float]] = defaultdict(list)
        self.released: dict[str, list[float]] = defaultdict(list)
        self.replacing: dict[str, float] = {}
        self.deleted: dict[str, float] = {}
        self.gone: dict[str, float] = {}
        self.well: dict[str, float] = {}
        self.replicas: dict[tuple[str, str], int] = {}
        self._marks: dict[str, tuple[bool, bool]] = {}

    async def follow(self, kind: Kind, see: Callable[[str, JsonObject], None]) -> None:
        while True:
            with suppress(ApiError):
                listing = await self._lab.kube.list(kind)
                for obj in listing.items:
                    see("MODIFIED", obj)
                async for event in self._lab.kube.watch(kind, resource_version=listing.resource_version):
                    if event.type != "BOOKMARK":
                        see(event.type, event.object)
            await asyncio.sleep(0.1)

    def node(self, type_: str, obj: JsonObject) -> None:
        name = text(obj, "metadata", "name")
        off = at(obj, "spec", "unschedulable") is True
        taint = any(text(each, "key") == c.TAINT_KEY for each in sequence(obj, "spec", "taints"))
        before = self._marks.get(name, (False, False))
        if off and not before[0]:
            self.cordoned[name].append(time.time())
        if taint and not before[1]:
            self.tainted[name].append(time.time())
        if any(before) and not (off or taint):
            self.released[name].append(time.time())
        self._marks[name] = (off, taint) if type_ != "DELETED" else (False, False)
        if CLUSTER in mapping(obj, "metadata", "labels"):
            self._labels.see(name, obj)
            self._note(name, type_, obj)

    def machine(self, type_: str, obj: JsonObject) -> None:
        name = text(obj, "metadata", "name")
        if mapping(obj, "metadata", "annotations").get(c.DELETE_FIRST_ANNOTATION) == REPLACED:
            self.replacing.setdefault(name, time.time())
        if text(obj, "metadata", "deletionTimestamp"):
            self.deleted.setdefault(name, time.time())
        self._note(name, type_, obj)

    def deployment(self, _: str, obj: JsonObject) -> None:
        name, wanted = text(obj, "metadata", "name"), at(obj, "spec", "replicas")
        self.replicas[text(obj, "metadata", "namespace"), name] = wanted if isinstance(wanted, int) else 0

    def marked(self, name: str) -> bool:
        return any(self._marks.get(name, (False, False)))

    def _note(self, name: str, type_: str, obj: JsonObject) -> None:
        if type_ == "DELETED":
            self.gone.setdefault(name, time.time())
        conditions = {text(each, "type"): text(each, "status") for each in sequence(obj, "status", "conditions")}
        ready = "True" in (conditions.get("NodeHealthy"), conditions.get("Ready"))
        if ready and conditions.get("EtcdMemberHealthy", "True") == "True":
            self.well.setdefault(name, time.time())


@dataclass
class Storm:
    lab: Laboratory
    labels: Labels
    seen: Seen
    accounts: dict[str, str]  # by cluster
    members: dict[str, Member] = field(default_factory=dict)
    emptied: dict[str, bool] = field(default_factory=dict)  # whether the Pod was gone before Cluster API drained
    owners: dict[tuple[str, str], JsonObject] = field(default_factory=dict)  # MachineSets
    planned: dict[str, tuple[str, str, float]] = field(default_factory=dict)  # code, event and start by instance
    replaced: int = 0

    # AWS.

    def client(self, service: str, account: str) -> Any:
        env = self.lab.deployment.env()
        keys = (env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"])
        where = {"region_name": REGION, "endpoint_url": env["AWS_ENDPOINT_URL"]}
        session: Any = boto3.Session(*keys)
        if account != PAYER_ACCOUNT_ID:
            arn = f"arn:aws:iam::{account}:role/{ROLE}"
            answer = session.client("sts", **where).assume_role(RoleArn=arn, RoleSessionName="bench")["Credentials"]
            session = boto3.Session(answer["AccessKeyId"], answer["SecretAccessKey"], answer["SessionToken"])
        return session.client(service, **where)

    def has_rules(self, account: str) -> bool:
        arn = topology(account, REGION).queue.arn
        rules = self.client("events", account).list_rule_names_by_target(TargetArn=arn)["RuleNames"]
        return len(rules) == len(topology(account, REGION).rules)

    def send(self, account: str, body: str) -> None:
        sqs = self.client("sqs", account)
        sqs.send_message(
            QueueUrl=sqs.get_queue_url(QueueName=topology(account, REGION).queue.name)["QueueUrl"], MessageBody=body
        )

    def left(self, account: str) -> int:
        sqs = self.client("sqs", account)
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        url = sqs.get_queue_url(QueueName=topology(account, REGION).queue.name)["QueueUrl"]
        return sum(
            int(each) for each in sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"].values()
        )

    def launch(self, account: str, count: int, *, spot: bool) -> list[str]:
        if not count:
            return []
        ec2 = self.client("ec2", account)
        market: dict[str, Any] = {"InstanceMarketOptions": {"MarketType": "spot"}} if spot else {}
        answer = ec2.run_instances(
            ImageId=image_of(ec2), InstanceType="t3.micro", MinCount=count, MaxCount=count, **market
        )
        return [str(each["InstanceId"]) for each in answer["Instances"]]

    def group(self, member: Member) -> list[dict[str, Any]]:
        scaling = self.client("autoscaling", member.account)
        answer = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[member.hooked])
        found: list[dict[str, Any]] = answer["AutoScalingGroups"][0]["Instances"]
        return found

    # Kubernetes.

    async def adopt(self, member: Member, *, ready: bool = True) -> None:
        name, kube = member.instance, self.lab.kube
        provider_id = f"aws:///{REGION}a/{name}"
        own = _node_labels(member) if member.cluster == OF_NODES else {}
        self.members[name] = member
        await kube.create(NODE, {"metadata": {"name": name, "labels": own}, "spec": {"providerID": provider_id}})
        pod = {"nodeName": name, "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "none"}]}
        await kube.create(POD, {"metadata": {"name": name}, "spec": pod}, member.cluster)
        if not own:
            await self._machine(member, provider_id)
        await self.becomes(member, ready=ready)

    async def joins(self, member: Member) -> None:
        await self.adopt(member, ready=False)
        await asyncio.sleep(READY_SECONDS)
        await self.becomes(member, ready=True, etcd=False)
        if member.group == CONTROL_PLANE:
            await asyncio.sleep(READY_SECONDS)
            await self.becomes(member, ready=True)

    async def becomes(self, member: Member, *, ready: bool, etcd: bool = True) -> None:
        node: JsonObject = {"status": {"conditions": [_condition("Ready", ready)]}}
        await self.lab.patch(NODE, "", member.instance, node, subresource="status")
        if member.cluster == OF_NODES:
            return
        found = [_condition("NodeHealthy", ready)]
        if member.group == CONTROL_PLANE:
            found.append(_condition("EtcdMemberHealthy", ready and etcd))
        status: JsonObject = {
            "status": {"nodeRef": {"kind": "Node", "name": member.instance}, "phase": "Running", "conditions": found}
        }
        await self.lab.patch(MACHINE, member.cluster, member.instance, status, subresource="status")

    async def deployment(self, cluster: str, name: str, replicas: int) -> None:
        kube, labels = self.lab.kube, {c.CLUSTER_LABEL: cluster}
        meta: JsonObject = {"name": name, "labels": labels}
        made = await kube.create(MACHINE_DEPLOYMENT, {"metadata": meta, "spec": {"replicas": replicas}}, cluster)
        status: JsonObject = {"status": {"replicas": replicas, "updatedReplicas": replicas}}
        await self.lab.patch(MACHINE_DEPLOYMENT, cluster, name, status, subresource="status")
        meta = {**meta, "ownerReferences": [_owner(MACHINE_DEPLOYMENT, made)]}
        self.owners[cluster, name] = await kube.create(MACHINE_SET, {"metadata": meta, "spec": {}}, cluster)

    async def _machine(self, member: Member, provider_id: str) -> None:
        name, kube, cluster = member.instance, self.lab.kube, member.cluster
        labels = {c.CLUSTER_LABEL: cluster, **_group_labels(member)}
        owner = self.owners.get((cluster, member.group))
        meta: JsonObject = {
            "name": name,
            "labels": labels,
            "finalizers": ["machine.cluster.x-k8s.io"],
            "ownerReferences": [_owner(MACHINE_SET, owner)] if owner else [],
        }
        spec: JsonObject = {"clusterName": cluster, "providerID": provider_id}
        machine = await kube.create(MACHINE, {"metadata": meta, "spec": spec}, cluster)
        meta = {"name": name, "labels": labels, "ownerReferences": [_owner(MACHINE, machine)]}
        aws_machine = {"metadata": meta, "spec": {"providerID": provider_id, "instanceID": name}}
        await kube.create(AWS_MACHINE, aws_machine, cluster)

    async def exists(self, kind: Kind, namespace: str, name: str) -> bool:
        try:
            found = await self.lab.kube.get(kind, namespace, name)
        except Absent:
            return False
        return not text(found, "metadata", "deletionTimestamp")

    async def until(self, holds: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with suppress(Exception):  # a queue may not exist yet
                if await asyncio.to_thread(holds):
                    return True
            await asyncio.sleep(0.5)
        return False

    def state(self, instance: str) -> str:
        return self.labels.value(instance, c.STATE_LABEL)

    def first_label(self, member: Member) -> float | None:
        cause = CAUSES[member.cause]
        return self.labels.first(member.instance, cause.label, cause.value)


def _node_labels(member: Member) -> dict[str, str]:
    if member.group == CONTROL_PLANE:
        return {CLUSTER: member.cluster, c.NODE_CONTROL_PLANE_LABEL: ""}
    return {CLUSTER: member.cluster, c.NODE_GROUP_LABELS[0]: member.group}


def _group_labels(member: Member) -> dict[str, str]:
    if member.group == CONTROL_PLANE:
        return {c.CONTROL_PLANE_LABEL: ""}
    return {c.POOL_LABEL if member.group == POOL else c.DEPLOYMENT_LABEL: member.group}


def _owner(kind: Kind, owner: JsonObject) -> JsonObject:
    uid, name = text(owner, "metadata", "uid"), text(owner, "metadata", "name")
    return {"apiVersion": kind.api_version, "kind": kind.name, "name": name, "uid": uid, "controller": True}


def _condition(type_: str, holds: bool) -> JsonObject:
    return {"type": type_, "status": "True" if holds else "False", "reason": "Bench", "message": ""}
