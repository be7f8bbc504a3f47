"""Durations and moments as lifespans write them.

Durations are read as Poolboy reads them (pytimeparse: `30m`, `1h30m`, `2 days`, `1:24:11`; a bare number is none).
They are written in two ways: `1d2h3m4s` on handles, and in one single unit in the claim's status, whose schema takes
nothing else: a maximum of `1h30m` once made every write of that status fail. Moments are RFC 3339; fractions of a
second and offsets are read kindly, and everything is written in UTC with whole seconds, as Kubernetes does.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from pytimeparse.timeparse import timeparse

from domain.resource import parse_timestamp

# Later than any date-time that the API server and Python can both write.
FOREVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
EARLIEST = datetime(1, 1, 1, tzinfo=UTC)

# Real durations have below 40 characters; the parser's expressions slow down with the square of the length.
LONGEST_TEXT = 100
_ONE_UNIT = re.compile(r"[0-9]+[smhd]")
_UNITS = (("d", timedelta(days=1)), ("h", timedelta(hours=1)), ("m", timedelta(minutes=1)), ("s", timedelta(seconds=1)))


class UnreadableDuration(ValueError):  # noqa: N818 - says what the text is
    """The text is no duration; the message quotes it and names what it was meant to be."""

    def __init__(self, what: str, text: str) -> None:
        shown = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
        super().__init__(f"{what} is {shown!r}, which is not a duration such as 30m, 1h30m or 2 days")
        self.what = what
        self.text = text


class UnreadableMoment(ValueError):  # noqa: N818 - says what the text is
    """The text is no moment; the message quotes it and names what it was meant to be."""

    def __init__(self, what: str, text: str) -> None:
        shown = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
        super().__init__(f"{what} is {shown!r}, which is not a time such as 2025-01-31T12:00:00Z")
        self.what = what
        self.text = text


def parse_duration(text: str, what: str = "duration") -> timedelta:
    """The duration that the text says; `what` names it in the error.

    Raises:
        UnreadableDuration: the text is no duration, or one beyond what can be counted.
    """
    seconds = timeparse(text) if len(text) <= LONGEST_TEXT else None
    if seconds is None:
        raise UnreadableDuration(what, text)
    try:
        return timedelta(seconds=seconds)
    except OverflowError as error:
        raise UnreadableDuration(what, text) from error


def format_duration(duration: timedelta) -> str:
    """The duration as `1d2h3m4s`, units of zero left out; fractions of a second are dropped.

    Reading the result again gives the same whole seconds.
    """
    sign, rest = ("-", -duration) if duration < timedelta(0) else ("", duration)
    parts = []
    for letter, unit in _UNITS:
        count, rest = divmod(rest, unit)
        if count:
            parts.append(f"{count}{letter}")
    return sign + "".join(parts) if parts else "0s"


def in_one_unit(text: str, what: str = "duration") -> str:
    """The duration as the claim's status takes it: a count and one of s, m, h, d; a text that is so already stays.

    Raises:
        UnreadableDuration: the text is no duration, or a negative one, which the schema cannot say.
    """
    if _ONE_UNIT.fullmatch(text):
        return text
    duration = parse_duration(text, what)
    if duration < timedelta(0):
        raise UnreadableDuration(what, text)
    whole = timedelta(days=duration.days, seconds=duration.seconds)
    letter, unit = next(((letter, unit) for letter, unit in _UNITS if whole and not whole % unit), _UNITS[-1])
    return f"{whole // unit}{letter}"


def parse_moment(text: str, what: str = "moment") -> datetime:
    """The moment that the text says, in UTC and whole seconds; `what` names it in the error.

    Raises:
        UnreadableMoment: the text is no RFC 3339 moment.
    """
    try:
        moment = parse_timestamp(text.strip().upper())
        if moment is not None:
            return moment.astimezone(UTC).replace(microsecond=0)
    except OverflowError:
        pass  # an offset leads out of the calendar
    raise UnreadableMoment(what, text)


def after(moment: datetime, duration: timedelta) -> datetime:
    """The moment so much later, kept within the calendar: a maximum of 9999999d means for ever."""
    try:
        return min(moment + duration, FOREVER)
    except OverflowError:
        return FOREVER if duration > timedelta(0) else EARLIEST


def whole_seconds(moment: datetime) -> datetime:
    """The moment in UTC as it reads after it was written and read again."""
    return moment.astimezone(UTC).replace(microsecond=0)
