"""An event's envelope: its id, account, region and time.

A missing id, time, account or region is filled in from the SQS message, and named in `degraded`. An invalid account or
region makes the event invalid; an invalid id or time is replaced.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from domain.instances.events import EventKind, InstanceEvent
from domain.instances.message_unwrapping import Message, Part

Fields = Mapping[str, object]

ACCOUNT = re.compile(r"[0-9]{12}", re.ASCII)
REGION = re.compile(r"[a-z0-9-]{1,32}", re.ASCII)
# An event is not older than SQS's longest retention, and not further in the future than clocks differ.
_OLDEST_EVENT = timedelta(days=14)
_CLOCKS_DIFFER = timedelta(minutes=5)
_LONGEST_TEXT = 256
_LONGEST_ID = 64


class InvalidError(ValueError):
    pass


class Header:
    def __init__(self, fields: Fields, part: Part, message: Message, *, bare: bool = False) -> None:
        self._message = message
        self._part = part
        self.fields = fields
        self.degraded = {"envelope"} if bare else set()
        self.event_id = self._event_id(fields.get("id"))
        self.account = self._filled("account", fields.get("account"), message.account, ACCOUNT)
        self.region = self._filled("region", fields.get("region"), message.region, REGION)
        self.time = self._time(fields.get("time"))

    @property
    def latest(self) -> datetime:
        return max(self._message.taken_at, self._message.received_at) + _CLOCKS_DIFFER

    def event(self, kind: EventKind, **facts: object) -> InstanceEvent:
        common: dict[str, object] = {
            "event_id": self.event_id,
            "kind": kind,
            "account": self.account,
            "region": self.region,
            "time": self.time,
            "received_at": self._message.taken_at,
            "message_id": clean(self._message.message_id, 128),
            "topic": clean(self._part.topic, 128),
            "degraded": tuple(sorted(self.degraded)),
        }
        return InstanceEvent.model_validate(common | facts)

    def _event_id(self, text: object) -> str:
        if isinstance(text, str) and 0 < len(text) <= 128 and text.isascii() and text.isprintable() and " " not in text:
            return text
        self.degraded.add("id")
        if isinstance(text, str) and text:
            return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
        fallback = clean(self._message.fallback_id, 128)
        return f"{fallback}.{self._part.place}" if self._part.place else fallback

    def _filled(self, name: str, value: object, fallback: str, shape: re.Pattern[str]) -> str:
        if value is None or value == "":
            self.degraded.add(name)
            return fallback
        if not isinstance(value, str) or not shape.fullmatch(value):
            raise InvalidError(f"{name} is not valid")
        return value

    def _time(self, text: object) -> datetime:
        """The event's time. If it is implausible, the message's time replaces it: a time in the future would make later
        events look old.
        """
        taken = self._message.taken_at
        time = _instant(text)
        if time is not None and taken - _OLDEST_EVENT <= time <= self.latest:
            return time
        self.degraded.add("time")
        return taken.replace(microsecond=0)


def _instant(text: object) -> datetime | None:
    if not isinstance(text, str) or len(text) > 64:
        return None
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError):
        return None


def known_text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidError(f"{name} is missing")
    return value


def usable_id(text: object, longest: int = _LONGEST_ID) -> bool:
    """Whether the text is short, printable ASCII without space or slash: slashes separate the parts of workflow ids. No
    other form is required, because emulators have ids of their own form.
    """
    return (
        isinstance(text, str)
        and 0 < len(text) <= longest
        and text.isascii()
        and text.isprintable()
        and not set(text) & set(" /")
    )


def instance_id(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not usable_id(value):
        raise InvalidError(f"{name} is not an instance id")
    return value


def name_of(fields: Fields, name: str, longest: int = _LONGEST_TEXT) -> str:
    """The field as a name for calls to AWS, such as a group's name. Any printable characters are allowed. Raises
    InvalidError if the field is missing, unprintable or longer than `longest` bytes.
    """
    value = known_text(fields, name)
    if not value.isprintable() or len(value.encode()) > longest:
        raise InvalidError(f"{name} is not a valid name")
    return value


def clean(value: object, longest: int = _LONGEST_TEXT) -> str:
    """The value as printable text of at most `longest` bytes; empty if the value is no string."""
    if not isinstance(value, str):
        return ""
    if value.isascii() and value.isprintable():
        return value[:longest]
    shown = "".join(each if each.isprintable() else "?" for each in value[:longest])
    return shown.encode()[:longest].decode(errors="ignore")
