"""`perdure bench instances`, row i: everything that AWS does to instances, at once, in four clusters and two accounts.

    storm-a  the payer's account      spot, ending: delete-machine, two of a node group at once; stopped: cordon
    storm-b  the payer's account      spot: drain; ending: cordon, any number at once; stopped: label
    storm-c  another account          spot: cordon; ending: delete-machine, one of a node group at once
    storm-d  the payer's account      Nodes without Cluster API; spot: drain; ending: terminate-instance

EventBridge doubles, delays and swaps a part of the events. Forged messages tell the same about instances that stay
untouched. The benchmark acts as Cluster API: it deletes Machines whose instances have stopped or ended, ends the
instance of a deleted Machine, and makes another one, with a ready Node.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3

from domain.built_in_kinds import NAMESPACE
from domain.identity import Kind
from domain.instances import AWS_CLUSTER, AWS_CLUSTER_ROLE_IDENTITY, AWS_MACHINE, INTERRUPTION_POLICY, MACHINE
from domain.instances import constants as c
from domain.instances.event_topology import topology
from engine.errors import Absent, ApiError
from engine.kube import NODE, POD, SECRET
from engine.kube.json import JsonObject, at, mapping, text
from localcloud import environment
from localcloud.aws.contract import PAYER_ACCOUNT_ID
from localcloud.aws.events_contract import EventFaultKind
from localcloud.bench.claims_telling import step, told
from localcloud.bench.figures import Figure, Found, percentile
from localcloud.bench.instances_things import Labels, now
from localcloud.bench.laboratory import PATIENCE_SECONDS, Laboratory, laboratory
from localcloud.instance_groups import image_of, make_hooked_group
from localcloud.services import INSTANCES_QUEUES, REGION
from localcloud.state import Cloud

_SERVICE_ACCOUNT = Kind(name="ServiceAccount", group="", version="v1", plural="serviceaccounts", area="")
_ROLE = "OrganizationAccountAccessRole"
_EXPECTED = "expected"
_UNHEALTHY_SECONDS = 10
_GROUPS = ("md-0", "md-1")
_HOOK_SECONDS = 120
_SPOT_LEAD_SECONDS = 120.0
# Of 200 instances; the others stay, and a part of them is told lies about.
_SHARES = {"spot": 0.24, "ending": 0.12, "stopped": 0.15, "ended": 0.1, "rebalance": 0.1}
_HOOKS = 2  # in each cluster
_FORGED = 0.25
_POLICIES: dict[str, JsonObject] = {
    "storm-a": {
        "reactions": {
            "spot": "delete-machine",
            "ending": "delete-machine",
            "stopped": "cordon",
            "terminatingHook": "drain",
        },
        "maxUnavailable": 2,
    },
    "storm-b": {
        "reactions": {"spot": "drain", "ending": "cordon", "stopped": "label", "terminatingHook": "drain"},
        "maxUnavailable": 100,
    },
    "storm-c": {
        "reactions": {"spot": "cordon", "ending": "delete-machine", "stopped": "label", "terminatingHook": "drain"},
        "maxUnavailable": 1,
    },
    "storm-d": {
        "reactions": {"spot": "drain", "ending": "terminate-instance", "stopped": "label", "terminatingHook": "drain"},
        "maxUnavailable": 2,
    },
}
# The cluster without Cluster API: its Nodes have this label.
_OF_NODES = "storm-d"
_CLUSTER = "bench/cluster"
# What each reaction leaves behind: the Machine deleted, the Node cordoned, the Pod gone (None: by Cluster API).
_LEFT: dict[str, tuple[bool, bool, bool | None]] = {
    "delete-machine": (True, False, None),
    "cordon": (False, True, False),
    "drain": (False, True, True),
    "terminate-instance": (False, True, True),
    "label": (False, False, False),
}


@dataclass
class Member:
    instance: str
    cluster: str
    account: str
    group: str
    spot: bool = False
    hooked: str = ""  # its Auto Scaling group
    cause: str = ""
    told_at: float = 0.0

    @property
    def reaction(self) -> str:
        if self.cause == "hook":
            return "drain"
        reactions: dict[str, str] = _POLICIES[self.cluster]["reactions"]  # type: ignore[assignment]
        return reactions.get(self.cause, "label")


class Seen:
    def __init__(self, lab: Laboratory, labels: Labels) -> None:
        self._lab = lab
        self._labels = labels
        self.cordoned: dict[str, list[float]] = defaultdict(list)
        self.deleted: dict[str, float] = {}
        self.gone: dict[str, float] = {}
        self._unschedulable: dict[str, bool] = {}

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
        name, off = text(obj, "metadata", "name"), at(obj, "spec", "unschedulable") is True
        if off and not self._unschedulable.get(name):
            self.cordoned[name].append(time.time())
        self._unschedulable[name] = off and type_ != "DELETED"
        if _CLUSTER in mapping(obj, "metadata", "labels"):
            self._labels.see(name, obj)

    def machine(self, type_: str, obj: JsonObject) -> None:
        name = text(obj, "metadata", "name")
        if text(obj, "metadata", "deletionTimestamp"):
            self.deleted.setdefault(name, time.time())
        if type_ == "DELETED":
            self.gone.setdefault(name, time.time())


@dataclass
class Storm:
    lab: Laboratory
    labels: Labels
    seen: Seen
    accounts: dict[str, str]  # by cluster
    members: dict[str, Member] = field(default_factory=dict)
    emptied: dict[str, bool] = field(default_factory=dict)  # of replaced ones, before Cluster API drained them
    replaced: int = 0

    # AWS.

    def client(self, service: str, account: str) -> Any:
        env = self.lab.deployment.env()
        keys = (env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"])
        where = {"region_name": REGION, "endpoint_url": env["AWS_ENDPOINT_URL"]}
        session: Any = boto3.Session(*keys)
        if account != PAYER_ACCOUNT_ID:
            arn = f"arn:aws:iam::{account}:role/{_ROLE}"
            answer = session.client("sts", **where).assume_role(RoleArn=arn, RoleSessionName="bench")["Credentials"]
            session = boto3.Session(answer["AccessKeyId"], answer["SecretAccessKey"], answer["SessionToken"])
        return session.client(service, **where)

    def heard(self, account: str) -> bool:
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
        ec2 = self.client("ec2", account)
        market: dict[str, Any] = {"InstanceMarketOptions": {"MarketType": "spot"}} if spot else {}
        answer = ec2.run_instances(
            ImageId=image_of(ec2), InstanceType="t3.micro", MinCount=count, MaxCount=count, **market
        )
        return [str(each["InstanceId"]) for each in answer["Instances"]]

    # Kubernetes.

    async def adopt(self, member: Member) -> None:
        """Node and a Pod of an instance, and its Machine and AWSMachine where there is Cluster API."""
        name, kube = member.instance, self.lab.kube
        provider_id = f"aws:///{REGION}a/{name}"
        labels: JsonObject = {c.CLUSTER_LABEL: member.cluster, c.DEPLOYMENT_LABEL: member.group}
        ready = [
            {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastHeartbeatTime": None}
        ]
        own = {_CLUSTER: member.cluster, c.NODE_GROUP_LABELS[0]: member.group} if member.cluster == _OF_NODES else {}
        await kube.create(NODE, {"metadata": {"name": name, "labels": own}, "spec": {"providerID": provider_id}})
        await self.lab.patch(NODE, "", name, {"status": {"conditions": ready}}, subresource="status")
        pod = {"nodeName": name, "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "none"}]}
        await kube.create(POD, {"metadata": {"name": name}, "spec": pod}, member.cluster)
        self.members[name] = member
        if not own:
            await self._machine(member, labels, provider_id)

    async def _machine(self, member: Member, labels: JsonObject, provider_id: str) -> None:
        name, kube = member.instance, self.lab.kube
        meta: JsonObject = {"name": name, "labels": labels, "finalizers": ["machine.cluster.x-k8s.io"]}
        spec: JsonObject = {"clusterName": member.cluster, "providerID": provider_id}
        machine = await kube.create(MACHINE, {"metadata": meta, "spec": spec}, member.cluster)
        status: JsonObject = {"status": {"nodeRef": {"kind": "Node", "name": name}, "phase": "Running"}}
        await self.lab.patch(MACHINE, member.cluster, name, status, subresource="status")
        uid = text(machine, "metadata", "uid")
        owner = {"apiVersion": MACHINE.api_version, "kind": MACHINE.name, "name": name, "uid": uid}
        await kube.create(
            AWS_MACHINE,
            {
                "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
                "spec": {"providerID": provider_id, "instanceID": name},
            },
            member.cluster,
        )

    async def replace(self) -> None:
        begun: set[str] = set()
        failed: set[str] = set()
        async with asyncio.TaskGroup() as group:
            while True:
                for name in self.seen.deleted.keys() - begun:
                    begun.add(name)
                    group.create_task(self._replace(self.members[name]))
                for name in self.members.keys() - begun - failed:
                    # A label is corrected by EC2's answer half a minute later: forged events end no instance.
                    unhealthy = self.labels.value(name, c.STATE_LABEL) in ("stopped", "terminated")
                    if self.members[name].cause and unhealthy:
                        failed.add(name)
                        group.create_task(self._remedy(self.members[name]))
                await asyncio.sleep(0.2)

    async def _remedy(self, member: Member) -> None:
        """As a MachineHealthCheck does, after a while; a Node without a Machine is replaced by its Auto Scaling group.

        Until it is, its node group has no room for others.
        """
        await asyncio.sleep(_UNHEALTHY_SECONDS)
        if member.cluster == _OF_NODES:
            await self._replace(member)
            return
        with suppress(Absent):
            await self.lab.kube.delete(MACHINE, member.cluster, member.instance)

    async def _replace(self, member: Member) -> None:
        kube, name = self.lab.kube, member.instance
        self.emptied[name] = not await self.exists(POD, member.cluster, name)
        await asyncio.sleep(2)  # drained by Cluster API
        with suppress(Absent):
            await kube.delete(POD, member.cluster, name)
        await asyncio.to_thread(self.client("ec2", member.account).terminate_instances, InstanceIds=[name])
        (instance,) = await asyncio.to_thread(self.launch, member.account, 1, spot=False)
        await self.adopt(Member(instance, member.cluster, member.account, member.group))
        self.replaced += 1
        with suppress(Absent):
            await kube.delete(NODE, "", name)
        for kind in (AWS_MACHINE, MACHINE):
            with suppress(Absent):
                await self.lab.patch(kind, member.cluster, name, {"metadata": {"finalizers": None}})
                await kube.delete(kind, member.cluster, name)

    async def exists(self, kind: Kind, namespace: str, name: str) -> bool:
        try:
            found = await self.lab.kube.get(kind, namespace, name)
        except Absent:
            return False
        return not text(found, "metadata", "deletionTimestamp")

    async def until(self, holds: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with suppress(Exception):  # a queue that is not there yet
                if await asyncio.to_thread(holds):
                    return True
            await asyncio.sleep(0.5)
        return False


async def hour(instances: int, minutes: float) -> Found:
    dice = random.Random(7)  # noqa: S311 - repeatable on purpose
    async with _storm() as on:
        step(f"{instances} instances in four clusters and two accounts")
        # An instance runs before it has its AWSMachine here: while one is expected, events wait for it.
        await on.lab.kube.create(AWS_MACHINE, {"metadata": {"name": _EXPECTED}, "spec": {}}, "storm-a")
        await _fleet(on, instances)
        running = await on.until(lambda: all(_state(on, each) == "running" for each in on.members))
        odd = [f"{each.cluster}/{name}: {_state(on, name) or 'none'}" for name, each in on.members.items()]
        assert running, f"not all instances were labelled running: {', '.join(x for x in odd if 'running' not in x)}"
        await on.lab.quiet()
        told_of, lies = _shuffled(on, dice)
        step(f"{len(told_of)} happenings and {len(lies)} forged messages within {minutes:g} min")
        _disturb(on)
        on.labels.forget()
        mark = on.lab.audit_mark()
        async with asyncio.TaskGroup() as group:
            replacing = group.create_task(on.replace())
            await _blow(on, [*told_of, *lies], 60 * minutes, dice)
            on.lab.emulator.clear()
            settled = await on.until(lambda: _settled(on, told_of) and not _mislabelled(on, lies), 300)
            await on.lab.kube.delete(AWS_MACHINE, "storm-a", _EXPECTED)
            empty = await on.until(lambda: all(on.left(each) == 0 for each in set(on.accounts.values())), 120)
            await asyncio.sleep(5)  # what is done too often would be done now
            replacing.cancel()
        if not (settled and empty):
            step("it has not settled: " + ", ".join(_unsettled(on, told_of)[:10]))
        return told(Found(figures=tuple(await _figures(on, told_of, lies, mark))))


@asynccontextmanager
async def _storm() -> AsyncIterator[Storm]:
    with environment.kept():
        os.environ.update({INSTANCES_QUEUES: "clusters", "PERDURE_INSTANCES_NODES": "true"})
        async with laboratory((Cloud.AWS,), spot_lead_seconds=_SPOT_LEAD_SECONDS) as lab:
            labels = Labels(lab.kube)
            seen = Seen(lab, labels)
            on = Storm(lab, labels, seen, {})
            await _clusters(on)
            async with asyncio.TaskGroup() as group:
                following = [
                    group.create_task(labels.follow()),
                    group.create_task(seen.follow(NODE, seen.node)),
                    group.create_task(seen.follow(MACHINE, seen.machine)),
                ]
                try:
                    yield on
                finally:
                    for each in following:
                        each.cancel()


async def _clusters(on: Storm) -> None:
    """The clusters, of which one is in an account of its own; Perdure finds their queues by those of Cluster API."""
    other = await asyncio.to_thread(_account, on)
    on.accounts = dict(zip(_POLICIES, (PAYER_ACCOUNT_ID, PAYER_ACCOUNT_ID, other, PAYER_ACCOUNT_ID), strict=True))
    kubeconfig = await asyncio.to_thread(_kubeconfig, on)
    role = f"arn:aws:iam::{other}:role/{_ROLE}"
    identity = {"metadata": {"name": "other"}, "spec": {"roleARN": role}}
    await on.lab.kube.create(AWS_CLUSTER_ROLE_IDENTITY, identity)
    for name, account in on.accounts.items():
        await on.lab.kube.create(NAMESPACE, {"metadata": {"name": name}})
        await on.lab.kube.create(_SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, name)
        selector = {"labels": {_CLUSTER: name}} if name == _OF_NODES else {"clusters": [name]}
        policy = {"metadata": {"name": name}, "spec": {"selector": selector, **_POLICIES[name]}}
        await on.lab.kube.create(INTERRUPTION_POLICY, policy)
        if name == _OF_NODES:
            continue
        secret = {"metadata": {"name": f"{name}-kubeconfig"}, "data": {"value": kubeconfig}}
        await on.lab.kube.create(SECRET, secret, name)
        spec: JsonObject = {"region": REGION}
        if account != PAYER_ACCOUNT_ID:
            spec = {**spec, "identityRef": {"kind": AWS_CLUSTER_ROLE_IDENTITY.name, "name": "other"}}
        await on.lab.kube.create(AWS_CLUSTER, {"metadata": {"name": name}, "spec": spec}, name)
    for account in (PAYER_ACCOUNT_ID, other):
        assert await on.until(lambda account=account: on.heard(account)), f"account {account} has no queue"  # type: ignore[misc]
        step(f"account {account} has its queue and rules, found by its clusters")


def _kubeconfig(on: Storm) -> str:
    return base64.b64encode(Path(on.lab.deployment.env()["KUBECONFIG"]).read_bytes()).decode()


def _account(on: Storm) -> str:
    organizations = on.client("organizations", PAYER_ACCOUNT_ID)
    asked = organizations.create_account(Email="storm@example.com", AccountName="storm")["CreateAccountStatus"]["Id"]
    while True:
        status = organizations.describe_create_account_status(CreateAccountRequestId=asked)["CreateAccountStatus"]
        if status["State"] == "SUCCEEDED":
            return str(status["AccountId"])
        assert status["State"] == "IN_PROGRESS", status
        time.sleep(0.5)


async def _fleet(on: Storm, count: int) -> None:
    permits, waiting = asyncio.Semaphore(8), list[Member]()
    for number, (cluster, account) in enumerate(on.accounts.items()):
        wanted = count // len(on.accounts) + (number < count % len(on.accounts)) - _HOOKS
        spot = round(wanted * _SHARES["spot"])
        for asked, is_spot in ((spot, True), (wanted - spot, False)):
            made = await asyncio.to_thread(on.launch, account, asked, spot=is_spot)
            waiting += [
                Member(each, cluster, account, _GROUPS[place % len(_GROUPS)], spot=is_spot)
                for place, each in enumerate(made)
            ]
        for place in range(_HOOKS):
            waiting.append(await asyncio.to_thread(_hooked, on, cluster, account, f"{cluster}-{place}"))

    async def adopted(member: Member) -> None:
        async with permits:
            await on.adopt(member)

    await asyncio.gather(*map(adopted, waiting))


def _hooked(on: Storm, cluster: str, account: str, name: str) -> Member:
    group = make_hooked_group(
        lambda service: on.client(service, account),
        name,
        zone=f"{REGION}a",
        instance_type="t3.micro",
        hook_seconds=_HOOK_SECONDS,
        default_result="ABANDON",
    )
    return Member(str(group["Instances"][0]["InstanceId"]), cluster, account, "pool", hooked=name)


# The storm.


def _shuffled(on: Storm, dice: random.Random) -> tuple[list[Member], list[Member]]:
    told_of, untouched = list[Member](), list[Member]()
    for cluster in _POLICIES:
        own = [each for each in on.members.values() if each.cluster == cluster]
        plain = [each for each in own if not each.spot and not each.hooked]
        dice.shuffle(plain)
        for each in own:
            each.cause = "spot" if each.spot else "hook" if each.hooked else ""
        for cause in ("ending", "stopped", "ended", "rebalance"):
            for _ in range(round(len(own) * _SHARES[cause])):
                plain.pop().cause = cause
        told_of += [each for each in own if each.cause]
        untouched += plain
    dice.shuffle(told_of)
    # Only a Spot instance hears of a rebalance here: EC2's emulator knows no other.
    lies = dice.sample(untouched, min(len(untouched), round(len(on.members) * _FORGED)))
    return told_of, lies


def _disturb(on: Storm) -> None:
    """EventBridge doubles a fifth, delays a tenth, and swaps a tenth."""
    for kind, share in ((EventFaultKind.DOUBLE, 0.2), (EventFaultKind.DELAY, 0.1), (EventFaultKind.REORDER, 0.1)):
        on.lab.emulator.event_fault(kind, probability=share, delay_seconds=3.0)


async def _blow(on: Storm, order: Sequence[Member], seconds: float, dice: random.Random) -> None:
    began, shuffled = time.monotonic(), list(order)
    dice.shuffle(shuffled)
    for number, member in enumerate(shuffled):
        await asyncio.sleep(max(0.0, began + seconds * number / len(shuffled) - time.monotonic()))
        member.told_at = time.time()
        await asyncio.to_thread(_happen, on, member, dice)


def _happen(on: Storm, member: Member, dice: random.Random) -> None:
    announce, instance = on.lab.emulator.announce, member.instance
    where = (member.account, REGION, instance)
    match member.cause:
        case "spot":
            announce("spot", *where)
        case "ending":
            announce("health", *where, start=time.time() + 3600)
        case "rebalance":
            # By hand, as the emulator recommends it for Spot instances only.
            on.send(member.account, _message(member, c.REBALANCE, {"instance-id": instance}))
        case "stopped":
            on.client("ec2", member.account).stop_instances(InstanceIds=[instance])
        case "ended":
            on.client("ec2", member.account).terminate_instances(InstanceIds=[instance])
        case "hook":
            scaling = on.client("autoscaling", member.account)
            scaling.set_desired_capacity(AutoScalingGroupName=member.hooked, DesiredCapacity=0)
        case _:
            for body in _lies(member, dice):
                on.send(member.account, body)


def _lies(member: Member, dice: random.Random) -> Iterable[str]:
    """Forged: one of them true in form, of its own account; one in another's name."""
    spot: JsonObject = {"instance-id": member.instance, "instance-action": "terminate"}
    ended: JsonObject = {"instance-id": member.instance, "state": "terminated"}
    kind, detail = dice.choice([(c.SPOT_WARNING, spot), (c.STATE_CHANGE, ended)])
    yield _message(member, kind, detail)
    yield _message(member, kind, detail, account="999999999999")


def _message(member: Member, kind: str, detail: JsonObject, account: str = "") -> str:
    account = account or member.account
    envelope = {
        "version": "0",
        "id": str(uuid4()),
        "detail-type": kind,
        "source": c.EC2_SOURCE,
        "account": account,
        "time": f"{now():%Y-%m-%dT%H:%M:%SZ}",
        "region": REGION,
        "resources": [f"arn:aws:ec2:{REGION}:{account}:instance/{member.instance}"],
        "detail": detail,
    }
    return json.dumps(envelope)


# What came of it.


def _state(on: Storm, instance: str) -> str:
    return on.labels.value(instance, c.STATE_LABEL)


def _settled(on: Storm, told_of: Sequence[Member]) -> bool:
    return not _unsettled(on, told_of)


def _mislabelled(on: Storm, lies: Sequence[Member]) -> list[str]:
    """Until EC2 is asked, half a minute later, a forged change of state stands in the label."""
    return [each.instance for each in lies if _state(on, each.instance) != "running"]


def _unsettled(on: Storm, told_of: Sequence[Member]) -> list[str]:
    found = []
    for each in told_of:
        deleted, cordoned, _ = _LEFT[each.reaction]
        missing = [
            *(["deletion"] if deleted and each.instance not in on.seen.gone else []),
            *(["cordon"] if cordoned and each.instance not in on.seen.cordoned else []),
            *(["label"] if not _first_label(on, each) else []),
            *(["end"] if each.reaction == "terminate-instance" and _state(on, each.instance) != "terminated" else []),
        ]
        found += [f"{each.cluster}/{each.instance} ({each.cause}): no {what}" for what in missing]
    return found


def _first_label(on: Storm, member: Member) -> float | None:
    match member.cause:
        case "spot":
            return on.labels.first(member.instance, c.INTERRUPTION_LABEL, "spot-terminate")
        case "ending":
            return on.labels.first(member.instance, c.INTERRUPTION_LABEL, "scheduled-retirement")
        case "rebalance":
            return on.labels.first(member.instance, c.INTERRUPTION_LABEL, "rebalance")
        case "stopped":
            return on.labels.first(member.instance, c.STATE_LABEL, "stopped")
        case _:
            return on.labels.first(member.instance, c.STATE_LABEL, "terminated")


async def _figures(on: Storm, told_of: Sequence[Member], lies: Sequence[Member], mark: int) -> list[Figure]:
    requests = _requests_by_name(on.lab, mark)
    wrong = await _wrong(on, told_of, requests)
    hurt = [each for each in lies if await _touched(on, each)]
    corrected = sum(on.labels.first(each.instance, c.STATE_LABEL, "terminated") is not None for each in lies)
    hooks = [each for each in told_of if each.cause == "hook"]
    ledger = on.lab.emulator.ledger()
    completions = ledger.calls("autoscaling", "CompleteLifecycleAction")
    held = [
        ended - each.told_at
        for each in hooks
        if (ended := on.labels.first(each.instance, c.STATE_LABEL, "terminated")) is not None
    ]
    quick = ("spot", "ending", "rebalance")
    label = [seen - each.told_at for each in told_of if each.cause in quick and (seen := _first_label(on, each))]
    cordon = [
        on.seen.cordoned[each.instance][0] - each.told_at
        for each in told_of
        if each.reaction in ("cordon", "drain") and each.cause != "hook" and each.instance in on.seen.cordoned
    ]
    most = {cluster: _most_at_once(on, told_of, cluster) for cluster in ("storm-a", "storm-c")}
    causes = ", ".join(f"{cause} {number}" for cause, number in Counter(each.cause for each in told_of).most_common())
    return [
        Figure(
            row="i",
            what=f"{len(told_of)} happenings: reactions as their policies say, each once",
            measured=f"{len(told_of) - len(wrong)} of {len(told_of)}",
            goal="all",
            note="; ".join([causes, *wrong[:5]]),
        ),
        Figure(
            row="i",
            what="machines of one node group that scheduled events took at once, at most: storm-a, storm-c",
            measured=f"{most['storm-a']}, {most['storm-c']}",
            goal="≤ 2, ≤ 1",
            note=f"{on.replaced} machines replaced",
        ),
        Figure(
            row="i",
            what=f"{len(hooks)} terminating hooks of {_HOOK_SECONDS} s: completed, the longest after",
            measured=f"{completions}, {max(held, default=0.0):.1f} s",
            goal=f"{len(hooks)}, < {_HOOK_SECONDS} s",
        ),
        Figure(
            row="i",
            what=f"{len(lies)} instances that forged events told of: cordoned, drained, deleted, or labelled for good",
            measured=len(hurt),
            goal="0",
            note=", ".join([f"{corrected} labels corrected by EC2's answer", *(each.instance for each in hurt[:3])]),
        ),
        Figure(
            row="i",
            what="from the happening to the label, p50",
            measured=round(percentile(label, 0.5), 3),
            unit="s",
            goal="≤ 0.1",
            note=f"p95 {percentile(label, 0.95):.2f} s of {len(label)}",
        ),
        Figure(
            row="i",
            what="from the happening to the cordon, p50",
            measured=round(percentile(cordon, 0.5), 3),
            unit="s",
            goal="≤ 0.5",
            note=f"p95 {percentile(cordon, 0.95):.2f} s of {len(cordon)}",
        ),
    ]


async def _wrong(on: Storm, told_of: Sequence[Member], requests: Counter[tuple[str, str, str]]) -> list[str]:
    found = []
    for each in told_of:
        deleted, cordoned, emptied = _LEFT[each.reaction]
        name = each.instance
        was_emptied = on.emptied.get(name, not await on.exists(POD, each.cluster, name))
        seen = {
            "deletions": (requests["delete", "machines", name], int(deleted)),
            "cordons": (len(on.seen.cordoned.get(name, ())), int(cordoned)),
            "Pods gone": (int(was_emptied), int(was_emptied if emptied is None else emptied)),
        }
        found += [
            f"{each.cluster}/{name} ({each.cause}): {what} {there} instead of {wanted}"
            for what, (there, wanted) in seen.items()
            if there != wanted
        ]
    return found


async def _touched(on: Storm, member: Member) -> bool:
    name = member.instance
    return (
        name in on.seen.cordoned
        or name in on.seen.deleted
        or not await on.exists(POD, member.cluster, name)
        or _state(on, name) != "running"
        or bool(on.labels.value(name, c.INTERRUPTION_LABEL))
    )


def _most_at_once(on: Storm, told_of: Sequence[Member], cluster: str) -> int:
    """The most machines of a node group that a scheduled event had deleted, and that were not yet gone."""
    most = 0
    for group in _GROUPS:
        own = [m.instance for m in told_of if (m.cluster, m.group, m.cause) == (cluster, group, "ending")]
        spans = [
            (on.seen.deleted[name], on.seen.gone.get(name, time.time())) for name in own if name in on.seen.deleted
        ]
        most = max([most, *(sum(begin <= moment < end for begin, end in spans) for moment, _ in spans)])
    return most


def _requests_by_name(lab: Laboratory, mark: int) -> Counter[tuple[str, str, str]]:
    found: Counter[tuple[str, str, str]] = Counter()
    with lab.deployment.log("audit").open("rb") as log:
        log.seek(mark)
        for line in log:
            with suppress(ValueError):
                entry = json.loads(line)
                if text(entry, "userAgent").startswith("perdure/") and "(bench)" not in text(entry, "userAgent"):
                    reference = mapping(entry, "objectRef")
                    found[text(entry, "verb"), text(reference, "resource"), text(reference, "name")] += 1
    return found
