"""Auto Scaling's messages: lifecycle actions, results of launches and terminations, and tests, which are ignored.

A lifecycle action may come directly, without EventBridge's envelope. Its `RequestId` and token are then the event's id.
"""

from __future__ import annotations

from domain.instances.event_envelope import Fields, Header, InvalidError, clean, instance_id, known_text, name_of
from domain.instances.events import EventKind, HookAction, InstanceEvent
from domain.instances.message_unwrapping import Message, Part

_TRANSITIONS = {
    "autoscaling:EC2_INSTANCE_LAUNCHING": EventKind.LAUNCHING,
    "autoscaling:EC2_INSTANCE_TERMINATING": EventKind.TERMINATING,
}
_TEST = "autoscaling:TEST_NOTIFICATION"


def is_test(fields: Fields) -> bool:
    return fields.get("Event") == _TEST or fields.get("LifecycleTransition") == _TEST


def direct_header(fields: Fields, part: Part, message: Message) -> Header:
    request, token = fields.get("RequestId"), fields.get("LifecycleActionToken")
    id_ = f"{request}.{token}" if isinstance(request, str) and request and isinstance(token, str) else token
    # The message does not name the region. Auto Scaling sends only to queues of the group's region, so the queue's
    # region is used.
    envelope = {"id": id_, "time": fields.get("Time"), "account": fields.get("AccountId"), "region": message.region}
    return Header(fields=envelope, part=part, message=message)


def lifecycle_action(detail: Fields, header: Header) -> tuple[InstanceEvent]:
    transition = known_text(detail, "LifecycleTransition")
    kind = _TRANSITIONS.get(transition)
    if kind is None:
        raise InvalidError("LifecycleTransition is unknown")
    hook = HookAction(
        name=name_of(detail, "LifecycleHookName"),
        token=name_of(detail, "LifecycleActionToken", 128),
        transition="launching" if kind is EventKind.LAUNCHING else "terminating",
        origin=clean(detail.get("Origin"), 32),
        destination=clean(detail.get("Destination"), 32),
        metadata=clean(detail.get("NotificationMetadata"), 192),
    )
    group = name_of(detail, "AutoScalingGroupName", 512)
    return (header.event(kind, instance_id=instance_id(detail, "EC2InstanceId"), group=group, hook=hook),)


def activity_result(kind: EventKind, detail: Fields, header: Header) -> tuple[InstanceEvent]:
    # A launch that failed early has no instance.
    instance = "" if detail.get("EC2InstanceId") in (None, "") else instance_id(detail, "EC2InstanceId")
    group, why = name_of(detail, "AutoScalingGroupName", 512), clean(detail.get("StatusMessage"))
    return (header.event(kind, instance_id=instance, group=group, detail=why),)
