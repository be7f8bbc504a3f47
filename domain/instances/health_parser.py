"""AWS Health's messages: an event for each affected instance or dedicated host.

Only scheduled events cause reactions.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from domain.instances.arns import parse_arn
from domain.instances.event_envelope import (
    ACCOUNT,
    REGION,
    Fields,
    Header,
    InvalidError,
    clean,
    known_text,
    name_of,
    usable_id,
)
from domain.instances.events import EventKind, HealthNotice, InstanceEvent
from domain.instances.message_unwrapping import Ignored
from domain.instances.scheduled_event_types import SCHEDULED_CATEGORIES, is_scheduled
from domain.resource import reckonable


def health_notices(detail: Fields, header: Header) -> tuple[InstanceEvent | Ignored, ...]:
    if known_text(detail, "service") != "EC2":
        return (Ignored(reason="other-service", what=clean(detail.get("service"), 64)),)
    code = name_of(detail, "eventTypeCode")
    scheduled = clean(detail.get("eventTypeCategory")) in SCHEDULED_CATEGORIES and is_scheduled(code)
    kind = EventKind.HEALTH_SCHEDULED if scheduled else EventKind.HEALTH_OTHER
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
    """The listed instances and hosts, and the number of other entities. The key of an instance or host is what
    `_entity` returns for it. If `entities` is empty, the envelope's `resources` are read instead.
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
    """The name of InstanceEvent's field for an entity (`instance_id` or `host`), and the entity's id. The name is empty
    for an entity that affects no machine, such as a volume. `value` is an id or ARN.
    """
    text = value if isinstance(value, str) else ""
    arn = parse_arn(text)
    name = arn.resource_id if arn else text.rpartition("/")[2]
    if not usable_id(name):
        return "", ""
    if arn is not None:
        return {"instance": "instance_id", "dedicated-host": "host"}.get(arn.resource_type, ""), name
    return {"i-": "instance_id", "h-": "host"}.get(name[:2], ""), name


def _date(text: object) -> datetime | None:
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
    dates = {name: _date(detail.get(field)) for name, field in (("start", "startTime"), ("end", "endTime"))}
    if dates["start"] is None:
        header.degraded.add("start")
    if dates["end"] is None and detail.get("endTime") not in (None, ""):
        header.degraded.add("end")
    updated = _date(detail.get("lastUpdatedTime"))
    if updated is not None and updated > header.latest:
        # A future update time would take precedence over all later notices of the event.
        updated = None
        header.degraded.add("updated")
    # AWS splits long messages into pages, and sends backup copies. Without the page number at its end, the
    # communication id is the same in all of them, and so is `InstanceEvent.key`.
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
