"""What AWS Health says, and what its event types do to an instance.

Dates come as RFC 1123 with a day of one or two digits and often the wrong weekday, or as ISO 8601; an absent one may be
the empty text. An affected entity is an instance's id, its whole ARN, a dedicated host, or something else (a volume, a
subnet) that no machine is concerned by. Event types are those of AWS's public rule sets; they are matched by how they
end, since each exists for persistent instances and expedited too. One that nobody knows is shown and never acted upon.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum

from domain.instances.events import reckonable
from domain.instances.names import parse_arn, usable_id
from domain.model import Model

_SCHEDULES = ("scheduledChange", "plannedChange")


class Effect(StrEnum):
    """What happens to the instance at the start of a scheduled event, by the value of its label."""

    RETIREMENT = "scheduled-retirement"
    STOP = "scheduled-stop"
    REBOOT = "scheduled-reboot"
    MAINTENANCE = "scheduled-maintenance"
    TERMINATION = "scheduled-termination"

    @property
    def ends(self) -> bool:
        """True if the instance does not come back by itself."""
        return self in (Effect.RETIREMENT, Effect.STOP, Effect.TERMINATION)

    @property
    def codes(self) -> frozenset[str]:
        """The codes of DescribeInstanceStatus's events that bear it out."""
        return _CODES[self]


_RETIRING = frozenset({"instance-retirement", "instance-stop"})
_CODES = {
    Effect.RETIREMENT: _RETIRING,
    Effect.STOP: _RETIRING,
    Effect.REBOOT: frozenset({"instance-reboot", "system-reboot"}),
    Effect.MAINTENANCE: frozenset({"system-maintenance", "system-reboot", "instance-reboot"}),
    # EC2 has no code of its own for it.
    Effect.TERMINATION: _RETIRING,
}

# The first that a code contains says its effect.
_EFFECTS = (
    ("INSTANCE_TERMINATION", Effect.TERMINATION),
    ("INSTANCE_STOP", Effect.STOP),
    ("RETIREMENT", Effect.RETIREMENT),
    ("REBOOT_MAINTENANCE", Effect.REBOOT),
    ("REBOOT_FLEXIBLE_MAINTENANCE", Effect.REBOOT),
    ("NETWORK_MAINTENANCE", Effect.MAINTENANCE),
    ("POWER_MAINTENANCE", Effect.MAINTENANCE),
)


def effect_of(code: str) -> Effect | None:
    """What a scheduled event of this type does; None for types that nobody knows."""
    if not code.startswith("AWS_EC2_") or not schedules(code):
        return None
    return next((effect for piece, effect in _EFFECTS if piece in code), None)


def schedules(code: str) -> bool:
    """True for event types with a date."""
    return code.endswith(("_SCHEDULED", "_EXPEDITED"))


def expedited(code: str) -> bool:
    """True for event types whose date is too near to wait for."""
    return code.endswith("_EXPEDITED")


def scheduled(category: str, code: str) -> bool:
    """True for events that are acted upon, given their category and type."""
    return category in _SCHEDULES and schedules(code)


def moment(text: object) -> datetime | None:
    """A date of Health's, UTC; None for what is none, or cannot be reckoned with."""
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
    """How one entity is affected; its account where the entity says that itself, as in an organization's view."""

    status: str = ""
    account: str = ""


class Entities(Model):
    """What an event affects: instances and dedicated hosts, and how many other things."""

    instances: dict[str, Affected] = {}
    hosts: dict[str, Affected] = {}
    others: int = 0


def affected(entities: object, resources: object) -> Entities:
    """The affected entities; of an event without any, what its envelope names."""
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
    # An entity that is listed twice keeps the status that was given first.
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
