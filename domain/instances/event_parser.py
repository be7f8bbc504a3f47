"""Parses an SQS message into canonical events, or into the named reason why it holds none. Never raises.

The parser is strict about everything that decides which instance is touched and how: ids, states, transitions,
accounts. It tolerates the rest: unknown fields are ignored, and missing fields (id, time, account, region) are filled
in from the SQS message and named in `degraded`. The ARN in a Spot warning's `resources` is never read: it has a zone in
place of the region, and no account.

Parts of a message are handled one by one. If a part is invalid, the whole message goes to the dead letters after the
other parts are handled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial

from domain.instances import constants as c
from domain.instances.event_envelope import (
    ACCOUNT,
    REGION,
    Fields,
    Header,
    InvalidError,
    clean,
    instance_id,
    known_text,
    name_of,
)
from domain.instances.events import EventKind, HealthNotice, HookAction, InstanceEvent, InstanceState, reckonable
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
from domain.instances.names import parse_arn, usable_id
from domain.instances.scheduled_maintenance import scheduled
from domain.model import Model

_ACTIONS = ("terminate", "stop", "hibernate")
_TRANSITIONS = {
    "autoscaling:EC2_INSTANCE_LAUNCHING": EventKind.LAUNCHING,
    "autoscaling:EC2_INSTANCE_TERMINATING": EventKind.TERMINATING,
}
_TEST = "autoscaling:TEST_NOTIFICATION"


class Events(Model):
    """The events of a message. `ignored` and `invalid` say why other parts of the message gave no event."""

    events: tuple[InstanceEvent, ...]
    ignored: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()


Parsed = Events | Ignored | Invalid


def parse(message: Message) -> Parsed:
    events: list[InstanceEvent] = []
    ignored: list[Ignored] = []
    invalid: list[str] = []
    for part in unwrap(message):
        for each in _read(part, message):
            if isinstance(each, Invalid):
                invalid.append(each.reason)
            elif isinstance(each, Ignored):
                ignored.append(each)
            else:
                events.append(each)
    if events:
        reasons = tuple(each.reason for each in ignored)
        return Events(
            events=tuple({event.key: event for event in events}.values()), ignored=reasons, invalid=tuple(invalid)
        )
    if invalid:
        return Invalid(reason=invalid[0])
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
    if _is_test(fields):
        return (Ignored(reason="autoscaling-test"),)
    if "LifecycleTransition" in fields and "source" not in fields:
        return _direct_hook(fields, part, message)
    if "instance-id" in fields and "state" in fields and "source" not in fields and "detail-type" not in fields:
        return _state(fields, Header(fields={}, part=part, message=message, bare=True))
    source, type_ = known_text(fields, "source"), known_text(fields, "detail-type")
    reader = _READERS.get((source, type_))
    if reader is None:
        return (Ignored(reason=_unknown(source), what=clean(f"{source}: {type_}")),)
    detail = _detail(fields)
    if _is_test(detail):
        return (Ignored(reason="autoscaling-test"),)
    header = Header(fields=fields, part=part, message=message)
    return _foreign(header, message) or reader(detail, header)


def _foreign(header: Header, message: Message) -> tuple[Ignored, ...]:
    if header.account == message.account or header.account in message.others:
        return ()
    return (Ignored(reason="foreign", what=f"account {header.account} is not the queue's account"),)


def _unknown(source: str) -> str:
    """One of two words, and not `source` itself: the word becomes a metric's label, and `source` is untrusted text."""
    return "unknown-type" if source in (c.EC2_SOURCE, c.AUTO_SCALING_SOURCE, c.HEALTH_SOURCE) else "unknown-source"


def _is_test(fields: Fields) -> bool:
    return fields.get("Event") == _TEST or fields.get("LifecycleTransition") == _TEST


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


# --- Auto Scaling ---


def _direct_hook(fields: Fields, part: Part, message: Message) -> Read:
    request, token = fields.get("RequestId"), fields.get("LifecycleActionToken")
    id_ = f"{request}.{token}" if isinstance(request, str) and request and isinstance(token, str) else token
    # The group's region is missing: it is the queue's, since Auto Scaling sends only to queues of its region.
    envelope = {"id": id_, "time": fields.get("Time"), "account": fields.get("AccountId"), "region": message.region}
    header = Header(fields=envelope, part=part, message=message)
    return _foreign(header, message) or _hook(fields, header)


def _hook(detail: Fields, header: Header) -> Read:
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


def _result(kind: EventKind, detail: Fields, header: Header) -> Read:
    # A launch that failed early has no instance.
    instance = "" if detail.get("EC2InstanceId") in (None, "") else instance_id(detail, "EC2InstanceId")
    group, why = name_of(detail, "AutoScalingGroupName", 512), clean(detail.get("StatusMessage"))
    return (header.event(kind, instance_id=instance, group=group, detail=why),)


# --- Health ---


def _health(detail: Fields, header: Header) -> Read:
    if known_text(detail, "service") != "EC2":
        return (Ignored(reason="other-service", what=clean(detail.get("service"), 64)),)
    code = name_of(detail, "eventTypeCode")
    kind = (
        EventKind.HEALTH_SCHEDULED
        if scheduled(clean(detail.get("eventTypeCategory")), code)
        else EventKind.HEALTH_OTHER
    )
    subjects, others = _affected(detail.get("affectedEntities"), header.fields.get("resources"))
    if not subjects:
        return (Ignored(reason="no-instance", what=clean(code, 128)),)
    # In an organization's view the event is not delivered in the instance's account and region.
    for name, field, shape in (("account", "affectedAccount", ACCOUNT), ("region", "eventRegion", REGION)):
        value = detail.get(field)
        if value not in (None, ""):
            if not isinstance(value, str) or not shape.fullmatch(value):
                raise InvalidError(f"{field} is not valid")
            setattr(header, name, value)
            header.degraded.discard(name)
    notice = _notice(detail, code, header)
    found: list[InstanceEvent | Ignored] = [Ignored(reason="other-entity")] * others
    for (field, name), entity in subjects.items():
        status = clean(entity.get("status") or entity.get("statusCode"), 32)
        account = entity.get("awsAccountId")  # only in an organization's view
        named = {"account": account} if isinstance(account, str) and ACCOUNT.fullmatch(account) else {}
        health = notice.model_copy(update={"entity_status": status})
        found.append(header.event(kind, health=health, **{field: name}, **named))
    return tuple(found)


def _affected(entities: object, resources: object) -> tuple[dict[tuple[str, str], Fields], int]:
    """The listed instances and hosts, each by InstanceEvent's field for it and its id, and the number of others. If
    `entities` is empty, the envelope's `resources` are read instead.
    """
    listed = [each if isinstance(each, dict) else {} for each in (entities if isinstance(entities, list) else [])]
    if not listed:
        listed = [{"entityValue": each} for each in (resources if isinstance(resources, list) else [])]
    found: dict[tuple[str, str], Fields] = {}
    others = 0
    for each in listed:
        field, name = _entity(each.get("entityValue"))
        if field:
            found.setdefault((field, name), each)  # an entity that is listed twice keeps its first status
        else:
            others += 1
    return found, others


def _entity(value: object) -> tuple[str, str]:
    """InstanceEvent's field for an entity (`instance_id` or `host`), and its id. `value` is an id or ARN. The field is
    empty for an entity that affects no machine, such as a volume.
    """
    text = value if isinstance(value, str) else ""
    arn = parse_arn(text)
    name = arn.resource_id if arn else text
    if not usable_id(name):
        return "", ""
    if arn is not None:
        return {"instance": "instance_id", "dedicated-host": "host"}.get(arn.resource_type, ""), name
    return {"i-": "instance_id", "h-": "host"}.get(name[:2], ""), name


def _moment(text: object) -> datetime | None:
    """A date from AWS Health, in UTC; None if the text is no date or the year is implausible.

    Dates have the form of RFC 1123, with a day of one or two digits and often the wrong weekday, or of ISO 8601. An
    absent date may be an empty string.
    """
    if not isinstance(text, str) or not text.strip():
        return None
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            found = read(text.strip())
            found = (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return found if reckonable(found) else None
    return None


def _notice(detail: Fields, code: str, header: Header) -> HealthNotice:
    dates = {name: _moment(detail.get(field)) for name, field in (("start", "startTime"), ("end", "endTime"))}
    if dates["start"] is None:
        header.degraded.add("start")
    if dates["end"] is None and detail.get("endTime") not in (None, ""):
        header.degraded.add("end")
    updated = _moment(detail.get("lastUpdatedTime"))
    if updated is not None and updated > header.latest:
        # It would take precedence over all later notices of the event.
        updated = None
        header.degraded.add("updated")
    communication = clean(detail.get("communicationId"), 128)
    return HealthNotice(
        code=clean(code, 128),
        arn=clean(detail.get("eventArn")),
        communication=re.sub(r"-[0-9]+$", "", communication) if usable_id(communication, 128) else "",
        start=dates["start"],
        end=dates["end"],
        updated=updated,
        status=clean(detail.get("statusCode"), 32),
    )


Read = tuple[InstanceEvent | Ignored, ...]
Reader = Callable[[Fields, Header], Read]

_READERS: dict[tuple[str, str], Reader] = {
    (c.EC2_SOURCE, c.STATE_CHANGE): _state,
    (c.EC2_SOURCE, c.SPOT_WARNING): partial(_interruption, EventKind.SPOT),
    (c.EC2_SOURCE, c.REBALANCE): _rebalance,
    (c.EC2_SOURCE, c.CAPACITY_WARNING): partial(_interruption, EventKind.CAPACITY_RESERVATION),
    (c.AUTO_SCALING_SOURCE, c.LAUNCH_ACTION): _hook,
    (c.AUTO_SCALING_SOURCE, c.TERMINATE_ACTION): _hook,
    (c.AUTO_SCALING_SOURCE, c.LAUNCH_OK): partial(_result, EventKind.LAUNCH_OK),
    (c.AUTO_SCALING_SOURCE, c.LAUNCH_FAILED): partial(_result, EventKind.LAUNCH_FAILED),
    (c.AUTO_SCALING_SOURCE, c.TERMINATE_OK): partial(_result, EventKind.TERMINATE_OK),
    (c.AUTO_SCALING_SOURCE, c.TERMINATE_FAILED): partial(_result, EventKind.TERMINATE_FAILED),
    (c.HEALTH_SOURCE, c.HEALTH_EVENT): _health,
}
