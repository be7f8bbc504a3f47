"""The canonical event: the part of an AWS event that workflows see, at most two kilobytes.

An SQS message may hold none, one or many. `key` is the update id by which an event is handed over, so a second delivery
has no effect. It includes the instance, because one Health event names many. Pages and backup copies of a Health event
share a communication id, which stands in the key in place of the event's id, together with dates and withdrawal, so
that a moved date is a new event.

Times are AWS's, in whole seconds. `degraded` names fields that were missing or wrong in the message: they were filled
in from the transport (`id`, `time`, `account`, `region`, `envelope`) or left empty (`start`, `end`, `updated`).
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from domain.model import Model

# A lead, or a longest time, is added to any time and taken from it: what is nearer to an end of time is no time at all.
_YEARS = range(1970, 9001)


def reckonable(moment: datetime) -> bool:
    """True for a time that can be reckoned with: it has a zone, and its year may be one of AWS."""
    return moment.tzinfo is not None and moment.year in _YEARS


class InstanceState(StrEnum):
    """EC2's six states; their order is the one an instance passes them in between two starts."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    SHUTTING_DOWN = "shutting-down"
    TERMINATED = "terminated"

    @property
    def rank(self) -> int:
        """Which of two states of one second came later."""
        return list(InstanceState).index(self)

    @property
    def final(self) -> bool:
        """True for states that no instance returns from."""
        return self in (InstanceState.SHUTTING_DOWN, InstanceState.TERMINATED)

    @property
    def up(self) -> bool:
        """True for an instance that has just been started."""
        return self in (InstanceState.PENDING, InstanceState.RUNNING)


class EventKind(StrEnum):
    STATE = "ec2.state"
    SPOT = "ec2.spot"
    REBALANCE = "ec2.rebalance"
    CAPACITY_RESERVATION = "ec2.capacity_reservation"
    LAUNCHING = "asg.launching"
    TERMINATING = "asg.terminating"
    LAUNCH_OK = "asg.launch_ok"
    LAUNCH_FAILED = "asg.launch_failed"
    TERMINATE_OK = "asg.terminate_ok"
    TERMINATE_FAILED = "asg.terminate_failed"
    HEALTH_SCHEDULED = "health.scheduled"
    HEALTH_OTHER = "health.other"

    @property
    def interrupts(self) -> bool:
        return self in (EventKind.SPOT, EventKind.REBALANCE, EventKind.CAPACITY_RESERVATION)

    @property
    def hook(self) -> bool:
        """True for lifecycle actions, which hold an instance until they are completed."""
        return self in (EventKind.LAUNCHING, EventKind.TERMINATING)


class HookAction(Model):
    """A lifecycle action that waits to be completed. `transition` is launching or terminating."""

    name: str
    token: str
    transition: str
    origin: str = ""
    destination: str = ""
    metadata: str = ""

    @property
    def warms(self) -> bool:
        """True when the instance goes back to the warm pool instead of being terminated."""
        return self.destination == "WarmPool"


class HealthNotice(Model):
    """What AWS Health says of one instance. `code` is the event type's; times are UTC."""

    code: str
    arn: str = ""
    communication: str = ""
    start: datetime | None = None
    end: datetime | None = None
    updated: datetime | None = None
    status: str = ""
    entity_status: str = ""

    @property
    def over(self) -> bool:
        return self.status == "closed" or self.entity_status == "RESOLVED"

    @property
    def said(self) -> str:
        """What it says of the instance, in a short text: the same in each copy of it."""
        start = f"{self.start:%Y%m%dT%H%M%S}" if self.start else "undated"
        end = f"-{self.end:%Y%m%dT%H%M%S}" if self.end else ""
        return f"{start}{end}{'-over' if self.over else ''}"


class InstanceEvent(Model):
    """One thing that happened to one instance (or to a dedicated host, or to a group whose launch failed).

    Attributes:
        event_id: AWS's id of the event, or a substitute.
        account: the instance's, 12 digits.
        instance_id: empty for an event of a group or a host.
        host: the dedicated host.
        group: the Auto Scaling group.
        time: when it happened.
        received_at: when SQS took the message.
        action: of Spot or a capacity reservation: terminate, stop, hibernate.
        detail: the failure of an Auto Scaling activity.
        topic: the SNS topic, empty if there is none.
        degraded: fields that were filled in or left out, sorted.
    """

    event_id: str
    kind: EventKind
    account: str
    region: str
    instance_id: str = ""
    host: str = ""
    group: str = ""
    time: datetime
    received_at: datetime
    state: InstanceState | None = None
    action: str = ""
    detail: str = ""
    hook: HookAction | None = None
    health: HealthNotice | None = None
    message_id: str = ""
    topic: str = ""
    degraded: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What makes a second delivery of it recognisable."""
        subject = self.instance_id or self.host or self.group
        if self.health is not None and self.health.communication:
            return f"health/{self.account}/{self.health.communication}/{subject}/{self.health.said}"
        return f"{self.event_id}/{subject}"

    @property
    def timely(self) -> bool:
        """True if `time` is AWS's own, so that it may order events."""
        return "time" not in self.degraded

    @property
    def urgent(self) -> bool:
        """True for events that soon lose their value: handled first, and kept while the AWSMachine is unknown."""
        ending = self.state is not None and self.state.final
        return ending or self.kind.hook or self.kind in (EventKind.SPOT, EventKind.CAPACITY_RESERVATION)
