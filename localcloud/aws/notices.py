"""AWS's announcements about instances, on request: Spot interruptions, rebalancing, scheduled maintenance.

Announced maintenance does not happen: it is an event on the bus, and DescribeInstanceStatus lists it.
"""

from __future__ import annotations

import time
from uuid import uuid4

from moto.autoscaling.models import autoscaling_backends
from moto.ec2.exceptions import InvalidInstanceIdError
from moto.ec2.models.instances import Instance

from localcloud.aws import bus, happenings, lives, pump, runtime
from localcloud.aws.events_contract import Notice, Published
from localcloud.aws.lives import backend_of, subject_of

_RECLAIM = "reclaim"
_FORTNIGHT = 14 * 86400.0
# EC2's codes of scheduled events, by a part of the Health event's type.
_CODES = (
    ("INSTANCE_STOP", "instance-stop"),
    ("RETIREMENT", "instance-retirement"),
    ("TERMINATION", "instance-retirement"),
    ("SYSTEM_REBOOT", "system-reboot"),
    ("REBOOT", "instance-reboot"),
    ("MAINTENANCE", "system-maintenance"),
)


def install() -> None:
    pump.deed(_RECLAIM, _reclaim)


def announce(notice: Notice) -> Published:
    """Publish the notice and schedule its effects; returns what is published. Requires moto's lock; raises ValueError
    if an instance does not exist, or a Spot or rebalance notice names one that is no Spot instance.
    """
    backend = backend_of(notice.account, notice.region)
    try:
        instances = [backend.get_instance(instance_id) for instance_id in notice.instances]
    except InvalidInstanceIdError as error:
        raise ValueError(f"{notice.account} has no such instance in {notice.region}: {error}") from None
    if notice.kind == "health":
        return _announce_health(notice, instances)
    return Published(events=tuple(_announce(notice, instance) for instance in instances))


def _announce(notice: Notice, instance: Instance) -> str:
    subject = subject_of(instance)
    if notice.kind == "capacity-reservation":
        return bus.publish(happenings.capacity_reservation(subject, notice.action))
    request = backend_of(notice.account, notice.region).spot_request_of(instance.id)
    if request is None:
        raise ValueError(f"{instance.id} is no Spot instance")
    if notice.kind == "rebalance":
        return bus.publish(happenings.rebalance(subject))
    request._status_code = "marked-for-termination" if notice.action == "terminate" else "marked-for-stop"
    published = bus.publish(happenings.spot_interruption(subject, notice.action))
    lead = 0.0 if notice.action == "hibernate" else runtime.config().spot_lead_seconds
    pump.later(notice.account, notice.region, lead, _RECLAIM, instance.id, notice.action)
    return published


def _reclaim(account: str, region: str, instance_id: str, action: str) -> None:
    backend = backend_of(account, region)
    request = backend.spot_request_of(instance_id)
    if request is None or request.instance.state not in ("pending", "running"):
        return
    ended = "terminated" if action == "terminate" else "stopped"
    request._status_code = f"instance-{ended}-no-capacity"
    if action == "terminate":
        request.state = "closed"
        backend.terminate_instances([instance_id])
        _notify_groups(account, region, instance_id)
    else:
        request.state = "disabled"
        backend.stop_instances([instance_id])


def _notify_groups(account: str, region: str, instance_id: str) -> None:
    regional = dict.get(autoscaling_backends, account)
    groups = dict.get(regional, region) if regional is not None else None
    if groups is not None:
        groups.notify_terminate_instances([instance_id])


def _announce_health(notice: Notice, instances: list[Instance]) -> Published:
    now = time.time()
    start = notice.start if notice.start is not None else now + _FORTNIGHT
    event = notice.event or uuid4().hex
    code = next((code for piece, code in _CODES if piece in notice.code), "")
    if code and notice.code.endswith(("_SCHEDULED", "_EXPEDITED")):
        over = notice.status == "closed" or notice.entity_status == "RESOLVED"
        closed = ("Completed" if start <= now else "Canceled") if over else ""
        for instance in instances:
            event_id = f"instance-event-{event[:17]}"
            lives.schedule(instance, event_id, code, start, notice.end, closed)
    happening = happenings.health_event(
        [subject_of(instance) for instance in instances],
        notice.code,
        event,
        uuid4().hex,
        start=start,
        end=notice.end,
        updated=now,
        status=notice.status,
        entity_status=notice.entity_status,
    )
    return Published(events=(bus.publish(happening),), event=event)
