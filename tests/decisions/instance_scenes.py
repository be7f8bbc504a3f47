"""Messages, events and machines for the tests of instances: our own examples of what AWS documents."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import settings

from domain.instances.ec2_answers import answered
from domain.instances.event_record import InstanceRecord, fold, opened
from domain.instances.event_verification import Facts, Question
from domain.instances.events import EventKind, HealthNotice, HookAction, InstanceEvent, InstanceState
from domain.instances.interruption_policy import Reaction, ReactionPolicy
from domain.instances.message_unwrapping import Message
from domain.instances.observed import InstanceMemory, InstanceWorld, KnownNode
from domain.instances.resources import AWSMachine, Machine, Node
from domain.instances.workflow_ids import InstanceKey

ACCOUNT, REGION, ID = "123456789012", "eu-central-1", "i-0a1b2c3d4e5f60718"
T0 = datetime(2026, 5, 4, 10, 0, 0, tzinfo=UTC)
KEY = InstanceKey(account=ACCOUNT, region=REGION, instance_id=ID)
EVERYTHING = tuple(Question)
GROUP = "c1-mp-0"
# A busy machine may take its time over any example.
EXAMPLES = settings(max_examples=200)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


# --- messages ---


def envelope(source: str, type_: str, inner: Any, **changes: Any) -> dict[str, Any]:
    whole = {
        "version": "0",
        "id": "0f0e6d1c-8a9b-4a53-9d55-6b6a3a1d0001",
        "detail-type": type_,
        "source": source,
        "account": ACCOUNT,
        "time": "2026-05-04T10:00:00Z",
        "region": REGION,
        "resources": [f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{ID}"],
        "detail": inner,
    }
    return {name: value for name, value in {**whole, **changes}.items() if value is not ...}


def state_change(state: Any = "running", instance: Any = ID, **changes: Any) -> dict[str, Any]:
    detail = {"instance-id": instance, "state": state}
    return envelope("aws.ec2", "EC2 Instance State-change Notification", detail, **changes)


def hook_detail(transition: str = "TERMINATING", **changes: Any) -> dict[str, Any]:
    whole = {
        "LifecycleActionToken": "0befcbdb-6ecd-498a-9ff7-ae9b54447cd6",
        "AutoScalingGroupName": GROUP,
        "LifecycleHookName": "drain",
        "EC2InstanceId": ID,
        "LifecycleTransition": f"autoscaling:EC2_INSTANCE_{transition}",
        "NotificationMetadata": "x",
        "Origin": "AutoScalingGroup",
        "Destination": "EC2",
    }
    return {name: value for name, value in {**whole, **changes}.items() if value is not ...}


def health_detail(**changes: Any) -> dict[str, Any]:
    whole = {
        "eventArn": f"arn:aws:health:{REGION}::event/EC2/AWS_EC2_INSTANCE_STOP_SCHEDULED/x_abc",
        "service": "EC2",
        "eventTypeCode": "AWS_EC2_INSTANCE_STOP_SCHEDULED",
        "eventTypeCategory": "scheduledChange",
        "eventScopeCode": "ACCOUNT_SPECIFIC",
        "communicationId": "01b0aaf09a-1",
        "startTime": "Mon, 18 May 2026 12:00:00 GMT",
        "lastUpdatedTime": "Mon, 4 May 2026 06:00:00 GMT",
        "statusCode": "upcoming",
        "eventRegion": REGION,
        "affectedEntities": [
            {"entityValue": f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{ID}", "status": "PENDING"},
        ],
        "affectedAccount": ACCOUNT,
        "page": "1",
        "totalPages": "1",
        "backupEvent": "false",
    }
    return {name: value for name, value in {**whole, **changes}.items() if value is not ...}


def health(**changes: Any) -> dict[str, Any]:
    return envelope("aws.health", "AWS Health Event", health_detail(**changes))


def message(body: Any, **changes: Any) -> Message:
    text = body if isinstance(body, str) else json.dumps(body)
    whole = {"message_id": "m-1", "sent_at": at(3), "received_at": at(5), "account": ACCOUNT, "region": REGION}
    return Message(body=text, **(whole | changes))


# --- canonical events ---


def event(kind: EventKind, seconds: float, id_: str = "", **facts: Any) -> InstanceEvent:
    name = id_ or f"{kind}-{seconds}-{facts.get('state', '')}"
    common = {"account": ACCOUNT, "region": REGION, "instance_id": ID, "time": at(seconds), "received_at": at(seconds)}
    return InstanceEvent(event_id=name, kind=kind, **(common | facts))


def state(value: InstanceState | str, seconds: float, **facts: Any) -> InstanceEvent:
    return event(EventKind.STATE, seconds, state=InstanceState(value), **facts)


def spot(seconds: float, action: str = "terminate", **facts: Any) -> InstanceEvent:
    return event(EventKind.SPOT, seconds, action=action, **facts)


def hook(
    seconds: float, transition: str = "terminating", token: str = "t-1", name: str = "drain", **facts: Any
) -> InstanceEvent:
    kind = EventKind.TERMINATING if transition == "terminating" else EventKind.LAUNCHING
    action = HookAction(name=name, token=token, transition=transition, destination=facts.pop("destination", "EC2"))
    return event(kind, seconds, f"hook-{seconds}-{token}", group=GROUP, hook=action, **facts)


def scheduled(
    seconds: float, start: datetime | None, code: str = "INSTANCE_STOP_SCHEDULED", **notice: Any
) -> InstanceEvent:
    reported = {"arn": "arn:h", "communication": f"c{seconds}", "start": start, "updated": at(seconds)}
    facts = HealthNotice(code=f"AWS_EC2_{code}", **(reported | notice))
    return event(EventKind.HEALTH_SCHEDULED, seconds, health=facts)


# --- observed ---


def record(*events: InstanceEvent, live_at: float | None = 0) -> InstanceRecord:
    """The record of an instance that EC2 said to run, and what was heard since."""
    known = opened(KEY, at(0))
    if live_at is not None:
        known = answered(known, facts(live_at))
    for each in events:
        known = fold(known, each)
    return known


def facts(seconds: float, value: str = "running", **changes: Any) -> Facts:
    whole = {"at": at(seconds), "asked": EVERYTHING, "state": InstanceState(value)}
    return Facts(**(whole | changes))


def machine(**metadata: Any) -> AWSMachine:
    owner = {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "name": "m-0", "uid": "u-m"}
    meta = {"name": "am-0", "namespace": "clusters", "uid": "u-am", "ownerReferences": [owner]} | metadata
    return AWSMachine.model_validate({"metadata": meta, "spec": {"providerID": f"aws:///eu-central-1a/{ID}"}})


def node(name: str = "node-0", *, ready: bool = True, **metadata: Any) -> Node:
    """A Node of the own cluster."""
    meta = {"name": name, "uid": "u-n"} | metadata
    conditions = [{"type": "Ready", "status": str(ready)}]
    spec = {"providerID": f"aws:///eu-central-1a/{ID}"}
    return Node.model_validate({"metadata": meta, "spec": spec, "status": {"conditions": conditions}})


def owner(node: str = "node-0", *, ready: bool = False, **metadata: Any) -> Machine:
    meta = {"name": "m-0", "namespace": "clusters", "uid": "u-m"} | metadata
    status = {"nodeRef": {"name": node}} if node else {}
    conditions = [{"type": "NodeReady", "status": "True"}] if ready else []
    whole = {"metadata": meta, "spec": {"clusterName": "c1"}, "status": {**status, "conditions": conditions}}
    return Machine.model_validate(whole)


def deleting_all(**changes: Any) -> ReactionPolicy:
    """A policy that deletes the Machine whatever happens."""
    names = ("terminated", "spot", "capacity_reservation", "rebalance", "ending", "reboot", "maintenance")
    return ReactionPolicy(**(dict.fromkeys(names, Reaction.DELETE_MACHINE) | changes))


def observed(known: InstanceRecord, joined: str = "", **changes: Any) -> InstanceWorld:
    """The world of an instance; `joined` where no Machine names its Node."""
    named = KnownNode(at=T0, name=joined) if joined else None
    memory = {name: changes.pop(name) for name in ("facts", "timings", "turn") if name in changes}
    whole = {"key": KEY.lifecycle, "machine": machine(), "owner": owner()} | changes
    return InstanceWorld(known=InstanceMemory(record=known, node=named, **memory), **whole)
