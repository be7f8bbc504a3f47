"""The content of AWS Health's events: dates, and the instances that are affected.

Dates have the form of RFC 1123, with a day of one or two digits and often the wrong weekday, or of ISO 8601. An absent
date may be an empty string. An affected entity is an instance's id, an instance's ARN, a dedicated host, or something
else (a volume, a subnet) that affects no machine.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from domain.instances.events import reckonable
from domain.instances.names import parse_arn, usable_id
from domain.model import Model


def moment(text: object) -> datetime | None:
    """A date from AWS Health, in UTC; None if the text is no date or the year is implausible."""
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


class Affected(Model):
    """An entity of a Health event. `account` is set only if the event names it, as in an organization's view."""

    status: str = ""
    account: str = ""


class Entities(Model):
    instances: dict[str, Affected] = {}
    hosts: dict[str, Affected] = {}
    others: int = 0


def affected(entities: object, resources: object) -> Entities:
    """The entities that the event lists. If the event lists none, the entities in the envelope's `resources`."""
    found = Entities()
    for entity in entities if isinstance(entities, list) else []:
        fields = entity if isinstance(entity, dict) else {}
        status, account = fields.get("status") or fields.get("statusCode"), fields.get("awsAccountId")
        how = Affected(
            status=status if isinstance(status, str) else "", account=account if isinstance(account, str) else ""
        )
        found = _with(found, fields.get("entityValue"), how)
    if not (found.instances or found.hosts or found.others):
        for resource in resources if isinstance(resources, list) else []:
            found = _with(found, resource, Affected())
    return found


def _with(found: Entities, value: object, how: Affected) -> Entities:
    kind, name = _entity(value)
    # An entity that is listed twice keeps its first status.
    if kind == "instance":
        found.instances.setdefault(name, how)
    elif kind == "host":
        found.hosts.setdefault(name, how)
    else:
        return found.model_copy(update={"others": found.others + 1})
    return found


def _entity(value: object) -> tuple[str, str]:
    text = value if isinstance(value, str) else ""
    arn = parse_arn(text)
    name = arn.resource_id if arn else text
    if not usable_id(name):
        return "", ""
    if arn is not None:
        return {"instance": "instance", "dedicated-host": "host"}.get(arn.resource_type, ""), name
    return {"i-": "instance", "h-": "host"}.get(name[:2], ""), name
