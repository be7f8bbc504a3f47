"""Durations and times in lifespans.

Durations are parsed like Poolboy's (pytimeparse: `30m`, `1h30m`, `2 days`, `1:24:11`; a bare number is invalid). They
are written as `1d2h3m4s` on handles, and in one unit in the claim's status, whose schema accepts nothing else. Times
are RFC 3339, written in UTC with whole seconds.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from pytimeparse.timeparse import timeparse

from domain.resource import parse_timestamp

# The latest time that the API server and Python can both represent.
FOREVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
EARLIEST = datetime(1, 1, 1, tzinfo=UTC)

# Real durations have fewer than 40 characters; the parser's time grows with the square of the length.
LONGEST_TEXT = 100
_ONE_UNIT = re.compile(r"[0-9]+[smhd]")
_UNITS = (("d", timedelta(days=1)), ("h", timedelta(hours=1)), ("m", timedelta(minutes=1)), ("s", timedelta(seconds=1)))


class _Unreadable(ValueError):  # noqa: N818 - says what the text is
    kind: ClassVar[str]

    def __init__(self, what: str, text: str) -> None:
        shown = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
        super().__init__(f"{what} is {shown!r}, which is not a {self.kind}")
        self.what = what
        self.text = text


class UnreadableDuration(_Unreadable):
    kind = "duration such as 30m, 1h30m or 2 days"


class UnreadableMoment(_Unreadable):
    kind = "time such as 2025-01-31T12:00:00Z"


def parse_duration(text: str, what: str = "duration") -> timedelta:
    """Raises UnreadableDuration; `what` names the field in the message."""
    seconds = timeparse(text) if len(text) <= LONGEST_TEXT else None
    if seconds is None:
        raise UnreadableDuration(what, text)
    try:
        return timedelta(seconds=seconds)
    except OverflowError as error:
        raise UnreadableDuration(what, text) from error


def format_duration(duration: timedelta) -> str:
    sign, rest = ("-", -duration) if duration < timedelta(0) else ("", duration)
    parts = []
    for letter, unit in _UNITS:
        count, rest = divmod(rest, unit)
        if count:
            parts.append(f"{count}{letter}")
    return sign + "".join(parts) if parts else "0s"


def in_one_unit(text: str, what: str = "duration") -> str:
    """The duration in one unit (`90m`). Raises UnreadableDuration if the text is negative or not a duration."""
    if _ONE_UNIT.fullmatch(text):
        return text
    duration = parse_duration(text, what)
    if duration < timedelta(0):
        raise UnreadableDuration(what, text)
    whole = timedelta(days=duration.days, seconds=duration.seconds)
    letter, unit = next(((letter, unit) for letter, unit in _UNITS if whole and not whole % unit), _UNITS[-1])
    return f"{whole // unit}{letter}"


def parse_moment(text: str, what: str = "moment") -> datetime:
    """The time in UTC and whole seconds. Raises UnreadableMoment; `what` names the field in the message."""
    try:
        moment = parse_timestamp(text.strip().upper())
        if moment is not None:
            return moment.astimezone(UTC).replace(microsecond=0)
    except OverflowError:
        pass  # its offset moves the time out of the calendar
    raise UnreadableMoment(what, text)


def after(moment: datetime, duration: timedelta) -> datetime:
    """The moment plus the duration, cut to the calendar's range: people write 9999999d for an unlimited maximum."""
    try:
        return min(moment + duration, FOREVER)
    except OverflowError:
        return FOREVER if duration > timedelta(0) else EARLIEST


def whole_seconds(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(microsecond=0)
