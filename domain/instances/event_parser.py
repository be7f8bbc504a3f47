"""Parses an SQS message into canonical events, or into the named reason why it holds none. Never raises.

The parser is strict about everything that decides which instance is touched and how: ids, states, transitions,
accounts. Unknown fields are ignored, and missing ones filled in from the SQS message (`event_envelope.py`). The ARN in
a Spot warning's `resources` is never read: it has a zone in place of the region, and no account.

Parts of a message are handled one by one. If a part is invalid, the whole message goes to the dead letters after the
other parts are handled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from domain.instances import constants as c
from domain.instances.auto_scaling_parser import activity_result, direct_header, is_test, lifecycle_action
from domain.instances.event_envelope import Fields, Header, InvalidError, clean, instance_id, known_text
from domain.instances.events import EventKind, InstanceEvent, InstanceState
from domain.instances.health_parser import health_notices
from domain.instances.message_unwrapping import (
    Ignored,
    Invalid,
    Message,
    NotJsonError,
    Part,
    Unwrapped,
    decoded,
    unwrap,
)
from domain.model import Model

_ACTIONS = ("terminate", "stop", "hibernate")


class Events(Model):
    """The events of a message. `ignored` and `invalid` say why other parts of the message gave no event."""

    events: tuple[InstanceEvent, ...]
    ignored: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()


Parsed = Events | Ignored | Invalid


def parse(message: Message) -> Parsed:
    read = [each for part in unwrap(message) for each in _read(part, message)]
    events = {each.key: each for each in read if isinstance(each, InstanceEvent)}
    ignored = [each for each in read if isinstance(each, Ignored)]
    invalid = [each for each in read if isinstance(each, Invalid)]
    if events:
        ignored_for, invalid_for = (tuple(each.reason for each in found) for found in (ignored, invalid))
        return Events(events=tuple(events.values()), ignored=ignored_for, invalid=invalid_for)
    if invalid:
        return invalid[0]
    return ignored[0] if ignored else Invalid(reason="it is empty")


def _read(part: Unwrapped, message: Message) -> Sequence[InstanceEvent | Ignored | Invalid]:
    if not isinstance(part, Part):
        return (part,)
    try:
        return _envelope(part, message)
    except InvalidError as error:
        return (Invalid(reason=str(error)),)


def _envelope(part: Part, message: Message) -> Read:
    fields = part.content
    if is_test(fields):
        return (Ignored(reason="autoscaling-test"),)
    if "LifecycleTransition" in fields and "source" not in fields:
        header = direct_header(fields, part, message)
        return _foreign(header, message) or lifecycle_action(fields, header)
    if "instance-id" in fields and "state" in fields and "source" not in fields and "detail-type" not in fields:
        return _state(fields, Header(fields={}, part=part, message=message, bare=True))
    source, type_ = known_text(fields, "source"), known_text(fields, "detail-type")
    reader = _READERS.get((source, type_))
    if reader is None:
        return (Ignored(reason=_unknown(source), what=clean(f"{source}: {type_}")),)
    detail = _detail(fields)
    if is_test(detail):
        return (Ignored(reason="autoscaling-test"),)
    header = Header(fields=fields, part=part, message=message)
    return _foreign(header, message) or reader(detail, header)


def _foreign(header: Header, message: Message) -> tuple[Ignored, ...]:
    if header.account == message.account or header.account in message.others:
        return ()
    return (Ignored(reason="foreign", what=f"account {header.account} is not the queue's account"),)


def _unknown(source: str) -> str:
    """The reason why an event is ignored. As a metric's label, the reason must not include the untrusted `source`."""
    return "unknown-type" if source in (c.EC2_SOURCE, c.AUTO_SCALING_SOURCE, c.HEALTH_SOURCE) else "unknown-source"


def _detail(fields: Fields) -> Fields:
    detail = fields.get("detail")
    if isinstance(detail, str):
        try:
            detail = decoded(detail)
        except NotJsonError:
            detail = None
    if not isinstance(detail, dict):
        raise InvalidError("detail is not an object")
    return detail


# --- EC2 ---


def _state(detail: Fields, header: Header) -> Read:
    state = known_text(detail, "state").lower()
    if state not in set(InstanceState):
        raise InvalidError("state is not one of EC2's six")
    return (header.event(EventKind.STATE, instance_id=instance_id(detail, "instance-id"), state=InstanceState(state)),)


def _interruption(kind: EventKind, detail: Fields, header: Header) -> Read:
    action = known_text(detail, "instance-action").lower()
    if action not in _ACTIONS:
        raise InvalidError("instance-action is unknown")
    return (header.event(kind, instance_id=instance_id(detail, "instance-id"), action=action),)


def _rebalance(detail: Fields, header: Header) -> Read:
    return (header.event(EventKind.REBALANCE, instance_id=instance_id(detail, "instance-id")),)


Read = tuple[InstanceEvent | Ignored, ...]
Reader = Callable[[Fields, Header], Read]

_READERS: dict[tuple[str, str], Reader] = {
    (c.EC2_SOURCE, c.STATE_CHANGE): _state,
    (c.EC2_SOURCE, c.SPOT_WARNING): partial(_interruption, EventKind.SPOT),
    (c.EC2_SOURCE, c.REBALANCE): _rebalance,
    (c.EC2_SOURCE, c.CAPACITY_WARNING): partial(_interruption, EventKind.CAPACITY_RESERVATION),
    (c.AUTO_SCALING_SOURCE, c.LAUNCH_ACTION): lifecycle_action,
    (c.AUTO_SCALING_SOURCE, c.TERMINATE_ACTION): lifecycle_action,
    (c.AUTO_SCALING_SOURCE, c.LAUNCH_OK): partial(activity_result, EventKind.LAUNCH_OK),
    (c.AUTO_SCALING_SOURCE, c.LAUNCH_FAILED): partial(activity_result, EventKind.LAUNCH_FAILED),
    (c.AUTO_SCALING_SOURCE, c.TERMINATE_OK): partial(activity_result, EventKind.TERMINATE_OK),
    (c.AUTO_SCALING_SOURCE, c.TERMINATE_FAILED): partial(activity_result, EventKind.TERMINATE_FAILED),
    (c.HEALTH_SOURCE, c.HEALTH_EVENT): health_notices,
}
