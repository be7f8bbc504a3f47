"""Row i of `perdure bench instances`: all that AWS does to instances, at once, in four clusters and two accounts."""

from __future__ import annotations

import asyncio
import base64
import os
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from domain.built_in_kinds import NAMESPACE
from domain.identity import Kind
from domain.instances import (
    AWS_CLUSTER,
    AWS_CLUSTER_ROLE_IDENTITY,
    AWS_MACHINE,
    INTERRUPTION_POLICY,
    MACHINE,
    MACHINE_DEPLOYMENT,
)
from domain.instances.constants import REBALANCE
from engine.kube import NODE, SECRET
from engine.kube.json import JsonObject
from localcloud import environment
from localcloud.aws.contract import PAYER_ACCOUNT_ID
from localcloud.aws.events_contract import EventFaultKind
from localcloud.bench.claims_telling import step, told
from localcloud.bench.figures import Found
from localcloud.bench.instances_storm_cluster_api import ClusterApi
from localcloud.bench.instances_storm_figures import figures, mislabelled, spans, unsettled
from localcloud.bench.instances_storm_fleet import (
    CLUSTER,
    CONTROL_PLANE,
    GROUPS,
    HOOK_SECONDS,
    MEMBERS_OF_CONTROL_PLANE,
    OF_NODES,
    POLICIES,
    POOL,
    RETURNS,
    ROLE,
    WITHOUT_CONTROL_PLANE,
    Member,
    Seen,
    Storm,
)
from localcloud.bench.instances_storm_forged import Forged, forgeries
from localcloud.bench.instances_things import Labels
from localcloud.bench.laboratory import laboratory
from localcloud.instance_groups import make_hooked_group
from localcloud.services import INSTANCES_QUEUES, REGION
from localcloud.state import Cloud

_SERVICE_ACCOUNT = Kind(name="ServiceAccount", group="", version="v1", plural="serviceaccounts", area="")
_EXPECTED = "expected"
_SPOT_LEAD_SECONDS = 120.0
_HOUR = 3600.0
# The share of Spot instances among the workers, and of each cause among the rest. One announcement retires several
# instances. Instances without a cause appear in forged messages only.
_SPOT = 0.2
_SHARES = {"stopped": 0.12, "ended": 0.06, "rebalance": 0.05, "capacity": 0.05, "reboot": 0.08, "maintenance": 0.08}
_RETIRED = 0.18
_BUNCH = 4
_SPOT_ACTIONS = ("spot", "spot", "spot-stop", "spot-hibernate")
_HOOKS = 2  # in each cluster, of each transition
_CODES = {
    "ending": "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
    "reboot": "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED",
    "maintenance": "AWS_EC2_INSTANCE_NETWORK_MAINTENANCE_SCHEDULED",
}
# Forged messages of each kind in each cluster: in the whole hour, and in a shorter storm.
_FORGED, _FORGED_IN_SHORT, _SHORT_MINUTES = 3, 1, 30.0
# The part of the storm in which forged messages are sent. It ends early, because the label of a forged scheduled event
# may stay for 26 minutes.
_FORGED_UNTIL = 0.55
_JOINS_SECONDS = 5.0
# By how many seconds a cause's event is delayed: less than the two minutes of a Spot notice or of a hook.
_LATE = {"spot": (60, 80), "spot-stop": (60, 80), "hook": (60, 75), "launch": (60, 75)}
_LATE_BY_MINUTES = (120, 240)
_DISTURBED = ((EventFaultKind.DELAY, 0.12), (EventFaultKind.DOUBLE, 0.2), (EventFaultKind.REORDER, 0.1))
_DOUBLED_SECONDS = 90.0
_SWAPPED_SECONDS = 30.0
_SETTLE_SECONDS = 480.0
_UNDISTURBED_SECONDS = 60.0


async def hour(instances: int, minutes: float) -> Found:
    dice = random.Random(7)  # noqa: S311 - repeatable on purpose
    async with _storm() as on:
        step(f"{instances} instances in four clusters and two accounts")
        # Instances run here before their AWSMachines exist. Events wait only while some AWSMachine has no instance.
        await on.lab.kube.create(AWS_MACHINE, {"metadata": {"name": _EXPECTED}, "spec": {}}, "storm-a")
        await _fleet(on, instances)
        running = await on.until(lambda: all(on.state(each) == "running" for each in on.members))
        odd = [f"{each.name}: {on.state(name) or 'none'}" for name, each in on.members.items()]
        assert running, f"not all instances were labelled running: {', '.join(x for x in odd if 'running' not in x)}"
        await on.lab.quiet()
        await _empty_groups(on)
        bunches, untouched = _bunches(on, dice)
        forged = list(forgeries(untouched, _FORGED if minutes > _SHORT_MINUTES else _FORGED_IN_SHORT, dice))
        affected = [each for bunch in bunches for each in bunch]
        messages = sum(len(each.bodies) for each in forged)
        step(f"{len(affected)} happenings and {messages} forged messages within {minutes:g} min")
        replicas = dict(on.seen.replicas)
        on.labels.forget()
        on.lab.emulator.config(recent_calls=200_000)
        on.lab.emulator.reset_ledger()
        mark = on.lab.audit_mark()
        async with asyncio.TaskGroup() as group:
            others = group.create_task(ClusterApi(on).run())
            await _blow(on, _order(bunches, forged, dice), 60 * minutes, dice, group)
            on.lab.emulator.clear()
            step("the storm is over")
            settled = await on.until(
                lambda: not unsettled(on, affected) and not mislabelled(on, forged), _SETTLE_SECONDS
            )
            await on.lab.kube.delete(AWS_MACHINE, "storm-a", _EXPECTED)
            empty = await on.until(lambda: all(on.left(each) == 0 for each in set(on.accounts.values())), 120)
            await asyncio.sleep(5)  # a repeated reaction would happen now
            others.cancel()
        if not (settled and empty):
            step("it has not settled: " + ", ".join([*unsettled(on, affected), *mislabelled(on, forged)][:10]))
        return told(Found(figures=tuple(await figures(on, affected, forged, mark, replicas))))


@asynccontextmanager
async def _storm() -> AsyncIterator[Storm]:
    with environment.restored():
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
                    group.create_task(seen.follow(MACHINE_DEPLOYMENT, seen.deployment)),
                ]
                try:
                    yield on
                finally:
                    for each in following:
                        each.cancel()


async def _clusters(on: Storm) -> None:
    other = await asyncio.to_thread(_account, on)
    on.accounts = dict(zip(POLICIES, (PAYER_ACCOUNT_ID, PAYER_ACCOUNT_ID, other, PAYER_ACCOUNT_ID), strict=True))
    kubeconfig = await asyncio.to_thread(_kubeconfig, on)
    role = f"arn:aws:iam::{other}:role/{ROLE}"
    identity = {"metadata": {"name": "other"}, "spec": {"roleARN": role}}
    await on.lab.kube.create(AWS_CLUSTER_ROLE_IDENTITY, identity)
    for name, account in on.accounts.items():
        await on.lab.kube.create(NAMESPACE, {"metadata": {"name": name}})
        await on.lab.kube.create(_SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, name)
        selector = {"labels": {CLUSTER: name}} if name == OF_NODES else {"clusters": [name]}
        policy = {"metadata": {"name": name}, "spec": {"selector": selector, **POLICIES[name]}}
        await on.lab.kube.create(INTERRUPTION_POLICY, policy)
        if name == OF_NODES:
            continue
        secret = {"metadata": {"name": f"{name}-kubeconfig"}, "data": {"value": kubeconfig}}
        await on.lab.kube.create(SECRET, secret, name)
        spec: JsonObject = {"region": REGION}
        if account != PAYER_ACCOUNT_ID:
            spec = {**spec, "identityRef": {"kind": AWS_CLUSTER_ROLE_IDENTITY.name, "name": "other"}}
        await on.lab.kube.create(AWS_CLUSTER, {"metadata": {"name": name}, "spec": spec}, name)
    for account in (PAYER_ACCOUNT_ID, other):
        assert await on.until(partial(on.has_rules, account)), f"account {account} has no queue"
        step(f"account {account} has its queue and rules, found by its clusters")


def _kubeconfig(on: Storm) -> str:
    return base64.b64encode(Path(on.lab.deployment.env()["KUBECONFIG"]).read_bytes()).decode()


def _account(on: Storm) -> str:
    organizations = on.client("organizations", PAYER_ACCOUNT_ID)
    creation_id = organizations.create_account(Email="storm@example.com", AccountName="storm")["CreateAccountStatus"][
        "Id"
    ]
    while True:
        status = organizations.describe_create_account_status(CreateAccountRequestId=creation_id)["CreateAccountStatus"]
        if status["State"] == "SUCCEEDED":
            return str(status["AccountId"])
        assert status["State"] == "IN_PROGRESS", status
        time.sleep(0.5)


# The fleet.


async def _fleet(on: Storm, count: int) -> None:
    permits, waiting = asyncio.Semaphore(8), list[Member]()
    for number, (cluster, account) in enumerate(on.accounts.items()):
        wanted = count // len(on.accounts) + (number < count % len(on.accounts)) - _HOOKS
        if cluster != WITHOUT_CONTROL_PLANE:
            made = await asyncio.to_thread(on.launch, account, MEMBERS_OF_CONTROL_PLANE, spot=False)
            waiting += [Member(each, cluster, account, CONTROL_PLANE) for each in made]
            wanted -= len(made)
        for place in range(_HOOKS):
            waiting.append(await asyncio.to_thread(_hooked, on, cluster, account, f"{cluster}-{place}"))
        waiting += await _workers(on, cluster, account, wanted)

    async def adopted(member: Member) -> None:
        async with permits:
            await on.adopt(member)

    await asyncio.gather(*map(adopted, waiting))


async def _workers(on: Storm, cluster: str, account: str, count: int) -> list[Member]:
    spot = round(count * _SPOT)
    plain = await asyncio.to_thread(on.launch, account, count - spot, spot=False)
    taken = await asyncio.to_thread(on.launch, account, spot, spot=True)
    made = [(each, False) for each in plain] + [(each, True) for each in taken]
    found = [
        Member(each, cluster, account, GROUPS[place % len(GROUPS)], spot=is_spot)
        for place, (each, is_spot) in enumerate(made)
    ]
    if cluster != OF_NODES:
        for name in GROUPS:
            await on.deployment(cluster, name, sum(each.group == name for each in found))
    return found


def _hooked(on: Storm, cluster: str, account: str, name: str) -> Member:
    group = make_hooked_group(
        partial(_of_account, on, account),
        name,
        zone=f"{REGION}a",
        instance_type="t3.micro",
        hook_seconds=HOOK_SECONDS,
        default_result="ABANDON",
    )
    return Member(str(group["Instances"][0]["InstanceId"]), cluster, account, POOL, hooked=name)


def _of_account(on: Storm, account: str, service: str) -> object:
    return on.client(service, account)


async def _empty_groups(on: Storm) -> None:
    for cluster, account in on.accounts.items():
        for place in range(_HOOKS):
            await asyncio.to_thread(
                make_hooked_group,
                partial(_of_account, on, account),
                f"{cluster}-launch-{place}",
                zone=f"{REGION}a",
                instance_type="t3.micro",
                hook_seconds=HOOK_SECONDS,
                default_result="ABANDON",
                launching=True,
            )


# The storm.


def _bunches(on: Storm, dice: random.Random) -> tuple[list[list[Member]], list[Member]]:
    """Choose what happens to the members. Returns the affected members, grouped by announcement, and the others."""
    bunches, untouched = list[list[Member]](), list[Member]()
    for cluster, account in on.accounts.items():
        own = [each for each in on.members.values() if each.cluster == cluster]
        spot = [each for each in own if each.spot]
        for place, each in enumerate(spot):
            each.cause = _SPOT_ACTIONS[place % len(_SPOT_ACTIONS)]
        hooked = [each for each in own if each.hooked]
        for each in hooked:
            each.cause = "hook"
        bunches += [[each] for each in (*spot, *hooked)]
        control = [each for each in own if each.group == CONTROL_PLANE]
        retired = [control] if control else []
        plain = [each for each in own if each.group in GROUPS and not each.spot]
        count = len(plain)
        dice.shuffle(plain)
        for number in range(max(1, round(count * _RETIRED / _BUNCH))):
            bunch = [each for each in plain if each.group == GROUPS[number % len(GROUPS)]][:_BUNCH]
            retired.append(bunch)
            plain = [each for each in plain if each not in bunch]
        for bunch in retired:
            for each in bunch:
                each.cause = "ending"
        bunches += retired
        for cause, share in _SHARES.items():
            for _ in range(max(1, round(count * share))):
                plain[-1].cause = cause
                bunches.append([plain.pop()])
        for place in range(_HOOKS):
            name = f"{cluster}-launch-{place}"
            bunches.append([Member("", cluster, account, POOL, hooked=name, cause="launch")])
        untouched += plain
    return bunches, untouched


def _order(
    bunches: Sequence[list[Member]], forged: Sequence[Forged], dice: random.Random
) -> list[list[Member] | Forged]:
    placed = [(dice.random(), each) for each in bunches]
    placed += [(dice.random() * _FORGED_UNTIL, each) for each in forged]  # type: ignore[misc]
    return [each for _, each in sorted(placed, key=lambda one: one[0])]


async def _blow(
    on: Storm, order: Sequence[list[Member] | Forged], seconds: float, dice: random.Random, group: asyncio.TaskGroup
) -> None:
    began = time.monotonic()
    for number, each in enumerate(order):
        await asyncio.sleep(max(0.0, began + seconds * number / len(order) - time.monotonic()))
        if isinstance(each, Forged):
            each.sent_at = time.time()
            for body in each.bodies:
                await asyncio.to_thread(on.send, each.member.account, body)
            continue
        if each[0].limited and len(each) > 1:
            await _undisturbed(on, each)
        for member in each:
            _disturb(on, member, each, dice)
            member.since = time.time()
        await asyncio.to_thread(_happen, on, each)
        if each[0].cause == "launch":
            group.create_task(_launched(on, each[0]))


async def _undisturbed(on: Storm, bunch: Sequence[Member]) -> None:
    where = (bunch[0].cluster, bunch[0].group)
    deadline = time.monotonic() + _UNDISTURBED_SECONDS
    while time.monotonic() < deadline:
        now = time.time()
        own = [each for each in on.members.values() if (each.cluster, each.group) == where]
        if not any(end > now for _, end in spans(on, own)) and all(_well(on, each) for each in own):
            return
        await asyncio.sleep(0.5)


def _well(on: Storm, member: Member) -> bool:
    return member.instance in on.seen.well or member.instance in on.seen.gone


def _disturb(on: Storm, member: Member, bunch: Sequence[Member], dice: random.Random) -> None:
    if member is not bunch[0]:
        member.late = bunch[0].late
        return
    drawn = dice.random()
    for kind, share in _DISTURBED:  # noqa: B007 - used after the loop
        if drawn < share:
            break
        drawn -= share
    else:
        return
    seconds = _DOUBLED_SECONDS if kind is EventFaultKind.DOUBLE else _SWAPPED_SECONDS
    if kind is EventFaultKind.DELAY:
        if member.cause == "spot-hibernate":
            # The instance stops at once, and its Machine is replaced before the notice arrives.
            return
        seconds = member.late = dice.uniform(*_LATE.get(member.cause, _LATE_BY_MINUTES))
    # A change of state sends two events; both are late.
    count = 2 if kind is EventFaultKind.DELAY and member.cause in ("stopped", "ended") else 1
    on.lab.emulator.event_fault(kind, containing=member.instance or member.hooked, count=count, delay_seconds=seconds)


def _happen(on: Storm, bunch: Sequence[Member]) -> None:
    member = bunch[0]
    account, instance = member.account, member.instance
    announce, where = on.lab.emulator.announce, (account, REGION, *(each.instance for each in bunch))
    match member.cause:
        case "spot" | "spot-stop" | "spot-hibernate":
            _, _, action = member.cause.partition("-")
            announce("spot", *where, action=action or "terminate")
        case "ending" | "reboot" | "maintenance":
            code, start = _CODES[member.cause], time.time() + _HOUR
            event = announce("health", *where, code=code, start=start).event
            if member.cause in RETURNS:
                on.planned[instance] = (code, event, start)
        case "rebalance":
            # Published as an event, since the emulator announces recommendations for Spot instances only.
            on.lab.emulator.publish(account, REGION, "aws.ec2", REBALANCE, {"instance-id": instance})
        case "capacity":
            announce("capacity-reservation", *where)
        case "stopped":
            on.client("ec2", account).stop_instances(InstanceIds=[instance])
        case "ended":
            on.client("ec2", account).terminate_instances(InstanceIds=[instance])
        case "hook" | "launch":
            scaling, size = on.client("autoscaling", account), int(member.cause == "launch")
            scaling.set_desired_capacity(AutoScalingGroupName=member.hooked, DesiredCapacity=size)


async def _launched(on: Storm, member: Member) -> None:
    (found,) = await asyncio.to_thread(on.group, member)
    member.instance = str(found["InstanceId"])
    await asyncio.sleep(_JOINS_SECONDS)
    await on.joins(member)
