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
from collections.abc import Callable

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
    plain,
)
from domain.instances.events import EventKind, HealthNotice, HookAction, InstanceEvent, InstanceState
from domain.instances.health_events import affected, moment
from domain.instances.message_unwrapping import Fault, Message, Notice, NotJsonError, Part, Unwrapped, decoded, unwrap
from domain.instances.scheduled_maintenance import scheduled
from domain.model import Model

_ACTIONS = ("terminate", "stop", "hibernate")
_TRANSITIONS = {
    "autoscaling:EC2_INSTANCE_LAUNCHING": EventKind.LAUNCHING,
    "autoscaling:EC2_INSTANCE_TERMINATING": EventKind.TERMINATING,
}
_TEST = "autoscaling:TEST_NOTIFICATION"
_RESULTS = {
    c.LAUNCH_OK: EventKind.LAUNCH_OK,
    c.LAUNCH_FAILED: EventKind.LAUNCH_FAILED,
    c.TERMINATE_OK: EventKind.TERMINATE_OK,
    c.TERMINATE_FAILED: EventKind.TERMINATE_FAILED,
}


class Events(Model):
    """The events of a message. `ignored` and `invalid` say why other parts of the message gave no event."""

    events: tuple[InstanceEvent, ...]
    ignored: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()


class Ignored(Model):
    """A message that is deleted without an effect. `reason` is one of a few words, because it is a metric's label;
    `what` is for logs.
    """

    reason: str
    what: str = ""


class Invalid(Model):
    reason: str


Parsed = Events | Ignored | Invalid


def parse(message: Message) -> Parsed:
    events: list[InstanceEvent] = []
    ignored: list[Ignored] = []
    invalid: list[str] = []
    for part in unwrap(message):
        found = _read(part, message)
        if isinstance(found, Invalid):
            invalid.append(found.reason)
            continue
        for each in found:
            if isinstance(each, Ignored):
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


def _read(part: Unwrapped, message: Message) -> Read | Invalid:
    if isinstance(part, Fault):
        return Invalid(reason=part.reason)
    if isinstance(part, Notice):
        return (Ignored(reason=part.reason),)
    try:
        return _envelope(part, message)
    except InvalidError as error:
        return Invalid(reason=str(error))


def _envelope(part: Part, message: Message) -> Read:
    fields = part.content
    if _is_test(fields):
        return (Ignored(reason="autoscaling-test"),)
    if "LifecycleTransition" in fields and "source" not in fields:
        return _direct_hook(fields, part, message)
    if "instance-id" in fields and "state" in fields and "source" not in fields and "detail-type" not in fields:
        return (_state(fields, Header(fields={}, part=part, message=message, bare=True)),)
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


def _state(detail: Fields, header: Header) -> InstanceEvent:
    state = known_text(detail, "state").lower()
    if state not in set(InstanceState):
        raise InvalidError("state is not one of EC2's six")
    return header.event(EventKind.STATE, instance_id=instance_id(detail, "instance-id"), state=InstanceState(state))


def _state_change(detail: Fields, header: Header) -> tuple[InstanceEvent, ...]:
    return (_state(detail, header),)


def _spot(detail: Fields, header: Header) -> tuple[InstanceEvent, ...]:
    return (_interruption(EventKind.SPOT, detail, header),)


def _capacity(detail: Fields, header: Header) -> tuple[InstanceEvent, ...]:
    return (_interruption(EventKind.CAPACITY_RESERVATION, detail, header),)


def _interruption(kind: EventKind, detail: Fields, header: Header) -> InstanceEvent:
    action = known_text(detail, "instance-action").lower()
    if action not in _ACTIONS:
        raise InvalidError("instance-action is unknown")
    return header.event(kind, instance_id=instance_id(detail, "instance-id"), action=action)


def _rebalance(detail: Fields, header: Header) -> tuple[InstanceEvent, ...]:
    return (header.event(EventKind.REBALANCE, instance_id=instance_id(detail, "instance-id")),)


# --- Auto Scaling ---


def _hook(detail: Fields, header: Header) -> tuple[InstanceEvent, ...]:
    return (_action(detail, header),)


def _direct_hook(fields: Fields, part: Part, message: Message) -> Read:
    request, token = fields.get("RequestId"), fields.get("LifecycleActionToken")
    id_ = f"{request}.{token}" if isinstance(request, str) and request and isinstance(token, str) else token
    # The group's region is missing: it is the queue's, since Auto Scaling sends only to queues of its region.
    envelope = {"id": id_, "time": fields.get("Time"), "account": fields.get("AccountId"), "region": message.region}
    header = Header(fields=envelope, part=part, message=message)
    return _foreign(header, message) or (_action(fields, header),)


def _action(detail: Fields, header: Header) -> InstanceEvent:
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
    return header.event(kind, instance_id=instance_id(detail, "EC2InstanceId"), group=group, hook=hook)


def _result(kind: EventKind) -> Reader:
    def read(detail: Fields, header: Header) -> Read:
        # A launch that failed early has no instance.
        instance = "" if detail.get("EC2InstanceId") in (None, "") else instance_id(detail, "EC2InstanceId")
        message = clean(detail.get("StatusMessage"))
        return (
            header.event(
                kind, instance_id=instance, group=name_of(detail, "AutoScalingGroupName", 512), detail=message
            ),
        )

    return read


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
    entities = affected(detail.get("affectedEntities"), header.fields.get("resources"))
    if not (entities.instances or entities.hosts):
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
    subjects = [
        *(({"instance_id": name}, how) for name, how in entities.instances.items()),
        *(({"host": name}, how) for name, how in entities.hosts.items()),
    ]
    found: list[InstanceEvent | Ignored] = [Ignored(reason="other-entity")] * entities.others
    for subject, how in subjects:
        reported = notice.model_copy(update={"entity_status": clean(how.status, 32)})
        account = {"account": how.account} if ACCOUNT.fullmatch(how.account) else {}
        found.append(header.event(kind, health=reported, **subject, **account))
    return tuple(found)


def _notice(detail: Fields, code: str, header: Header) -> HealthNotice:
    dates = {name: moment(detail.get(field)) for name, field in (("start", "startTime"), ("end", "endTime"))}
    if dates["start"] is None:
        header.degraded.add("start")
    if dates["end"] is None and detail.get("endTime") not in (None, ""):
        header.degraded.add("end")
    updated = moment(detail.get("lastUpdatedTime"))
    if updated is not None and updated > header.latest:
        # It would take precedence over all later notices of the event.
        updated = None
        header.degraded.add("updated")
    communication = clean(detail.get("communicationId"), 128)
    return HealthNotice(
        code=clean(code, 128),
        arn=clean(detail.get("eventArn")),
        communication=re.sub(r"-[0-9]+$", "", communication) if plain(communication) else "",
        start=dates["start"],
        end=dates["end"],
        updated=updated,
        status=clean(detail.get("statusCode"), 32),
    )


Read = tuple[InstanceEvent | Ignored, ...]
Reader = Callable[[Fields, Header], Read]

_READERS: dict[tuple[str, str], Reader] = {
    (c.EC2_SOURCE, c.STATE_CHANGE): _state_change,
    (c.EC2_SOURCE, c.SPOT_WARNING): _spot,
    (c.EC2_SOURCE, c.REBALANCE): _rebalance,
    (c.EC2_SOURCE, c.CAPACITY_WARNING): _capacity,
    (c.AUTO_SCALING_SOURCE, c.LAUNCH_ACTION): _hook,
    (c.AUTO_SCALING_SOURCE, c.TERMINATE_ACTION): _hook,
    **{(c.AUTO_SCALING_SOURCE, type_): _result(kind) for type_, kind in _RESULTS.items()},
    (c.HEALTH_SOURCE, c.HEALTH_EVENT): _health,
}
