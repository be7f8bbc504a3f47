"""The canonical event: the part of an AWS event that workflows see, at most two kilobytes.

`key` identifies an event: a second delivery with the same key has no effect. The key includes the instance. The key
of a Health event has the communication id, which pages and backup copies share, in place of the event's id. It also has
the dates, and whether the event is over, so that a moved date is a new event.

Times are AWS's, in whole seconds. `degraded` names fields that were missing or wrong in the message. They were filled
in from the transport (`id`, `time`, `account`, `region`, `envelope`) or left empty (`start`, `end`, `updated`).
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator

from domain.model import Model
from domain.resource import reckonable


def _reckonable(moment: datetime) -> datetime:
    if not reckonable(moment):
        raise ValueError("has no time zone, or is too close to the first or last date that can be represented")
    return moment


# The type of times in annotations, which people can edit.
Reckonable = Annotated[datetime, AfterValidator(_reckonable)]


class InstanceState(StrEnum):
    """EC2's instance states, in the order in which an instance passes through them."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    SHUTTING_DOWN = "shutting-down"
    TERMINATED = "terminated"

    @property
    def rank(self) -> int:
        """The place among the states, from 0. Of two states within one second, that with the higher rank is later."""
        return list(InstanceState).index(self)

    @property
    def final(self) -> bool:
        return self in (InstanceState.SHUTTING_DOWN, InstanceState.TERMINATED)

    @property
    def up(self) -> bool:
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
        return self in (EventKind.LAUNCHING, EventKind.TERMINATING)


class HookAction(Model):
    name: str
    token: str
    transition: str
    origin: str = ""
    destination: str = ""
    metadata: str = ""

    @property
    def returns_to_warm_pool(self) -> bool:
        return self.destination == "WarmPool"


class HealthNotice(Model):
    """AWS Health's notice for one instance. `code` is the event type's code; times are UTC."""

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
    def short_text(self) -> str:
        """The notice's dates, and whether it is over. The text is the same in each copy of the notice."""
        start = f"{self.start:%Y%m%dT%H%M%S}" if self.start else "undated"
        end = f"-{self.end:%Y%m%dT%H%M%S}" if self.end else ""
        return f"{start}{end}{'-over' if self.over else ''}"


class InstanceEvent(Model):
    """One thing that happened to one instance (or to a dedicated host, or to a group whose launch failed)."""

    event_id: str  # AWS's id of the event, or a substitute
    kind: EventKind
    account: str  # the instance's account, 12 digits
    region: str
    instance_id: str = ""  # empty for an event of a group or a host
    host: str = ""
    group: str = ""
    time: datetime
    received_at: datetime  # when SQS took the message
    state: InstanceState | None = None
    action: str = ""  # what AWS will do to a Spot or reserved instance: terminate, stop or hibernate; empty otherwise
    detail: str = ""  # why an Auto Scaling activity failed
    hook: HookAction | None = None
    health: HealthNotice | None = None
    message_id: str = ""
    topic: str = ""  # the SNS topic, empty if there is none
    degraded: tuple[str, ...] = ()  # fields that were filled in or left out, sorted

    @property
    def key(self) -> str:
        subject = self.instance_id or self.host or self.group
        if self.health is not None and self.health.communication:
            return f"health/{self.account}/{self.health.communication}/{subject}/{self.health.short_text}"
        return f"{self.event_id}/{subject}"

    @property
    def timely(self) -> bool:
        """Whether `time` is AWS's time of the event, so that it can order events. Else it is the message's time."""
        return "time" not in self.degraded

    @property
    def urgent(self) -> bool:
        """Whether the event is handled before others, because it soon loses its value."""
        ending = self.state is not None and self.state.final
        return ending or self.kind.hook or self.kind in (EventKind.SPOT, EventKind.CAPACITY_RESERVATION)
