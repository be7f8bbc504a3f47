"""The shapes of the control API for what the cloud's services tell, and for what happens to instances unasked.

Like `contract`, free of moto.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from localcloud.faults import Disturbance


class EventFaultKind(StrEnum):
    """What becomes of an event that a fault takes."""

    DROP = "drop"  # nobody receives it
    DOUBLE = "double"  # delivered twice with one id, the second time after the delay
    DELAY = "delay"  # delivered after the delay
    REORDER = "reorder"  # delivered after the next event of its account and region, or after the delay


class EventFault(Disturbance):
    """A disturbance of some of the events that services tell; those of PutEvents are left alone."""

    kind: EventFaultKind
    source: str = Field(default="*", description="aws.ec2, aws.autoscaling, aws.health, or a pattern")
    detail_type: str = Field(default="*", description="a name, or a pattern with * and ?")
    account: str | None = None
    region: str | None = None
    containing: str | None = Field(default=None, description="text the detail has to contain, such as an instance's id")
    delay_seconds: float = Field(default=5.0, ge=0, description="by the emulator's clock")


class EventRecord(BaseModel):
    """An event that was delivered, or dropped: its envelope, how many queues took it, and the fault that took it."""

    model_config = ConfigDict(frozen=True)

    event: dict[str, JsonValue]
    queues: int
    fault: str = ""


class Notice(BaseModel):
    """What AWS announces of instances of one account and region.

    Attributes:
        kind: `spot` (the instance is taken after `spot_lead_seconds`), `rebalance`, `capacity-reservation`, `health`.
        action: what Spot or the reservation does: terminate, stop, hibernate.
        code: the type of a Health event.
        event: the Health event it is of, as the first answer named it; empty for a new one. Given again it moves or
            ends that one, by a communication of its own.
        start: when it takes place, seconds since the epoch.
        end: when it is over.
        status: upcoming, open or closed.
        entity_status: of every instance.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["spot", "rebalance", "capacity-reservation", "health"]
    account: str
    region: str
    instances: tuple[str, ...] = Field(min_length=1)
    action: Literal["terminate", "stop", "hibernate"] = "terminate"
    code: str = "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED"
    event: str = ""
    start: float | None = None
    end: float | None = None
    status: Literal["upcoming", "open", "closed"] = "upcoming"
    entity_status: Literal["IMPAIRED", "UNIMPAIRED", "PENDING", "RESOLVED", "UNKNOWN"] = "PENDING"


class Told(BaseModel):
    """The ids of the events by which something was announced, and the name of a Health event."""

    model_config = ConfigDict(frozen=True)

    events: tuple[str, ...]
    event: str = ""
