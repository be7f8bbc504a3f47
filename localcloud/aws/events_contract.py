"""The control API's shapes for services' events and for changes of instances that AWS initiates; imports no moto."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from localcloud.faults import Disturbance


class EventFaultKind(StrEnum):
    DROP = "drop"  # the event is not delivered
    DOUBLE = "double"  # it is delivered twice with the same id, the second time after the delay
    DELAY = "delay"  # it is delivered after the delay
    REORDER = "reorder"  # it is delivered after the next event of its account and region, or after the delay


class EventFault(Disturbance):
    """A fault in the delivery of events, except events sent with PutEvents."""

    kind: EventFaultKind
    source: str = Field(default="*", description="aws.ec2, aws.autoscaling, aws.health, or a pattern")
    detail_type: str = Field(default="*", description="a name, or a pattern with * and ?")
    account: str | None = None
    region: str | None = None
    containing: str | None = Field(
        default=None, description="text that the detail has to contain, such as an instance's id"
    )
    delay_seconds: float = Field(default=5.0, ge=0, description="by the emulator's clock")


class EventRecord(BaseModel):
    model_config = ConfigDict(frozen=True)

    event: dict[str, JsonValue]
    queues: int
    fault: str = ""


class Notice(BaseModel):
    """AWS's announcement about instances of one account and region. `start` and `end` are seconds since the epoch."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # After a `spot` notice the instances are reclaimed `spot_lead_seconds` later.
    kind: Literal["spot", "rebalance", "capacity-reservation", "health"]
    account: str
    region: str
    instances: tuple[str, ...] = Field(min_length=1)
    action: Literal["terminate", "stop", "hibernate"] = "terminate"
    # The type of a Health event; `event` is the id of the event to update, empty for a new event.
    code: str = "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED"
    event: str = ""
    start: float | None = None
    end: float | None = None
    status: Literal["upcoming", "open", "closed"] = "upcoming"
    # The status of every instance in a Health event.
    entity_status: Literal["IMPAIRED", "UNIMPAIRED", "PENDING", "RESOLVED", "UNKNOWN"] = "PENDING"


class Published(BaseModel):
    model_config = ConfigDict(frozen=True)

    events: tuple[str, ...]
    event: str = ""
