"""The time-related names in templates: `datetime`, `timedelta`, `timezone`, `now` and `timestamp`.

`now`, `timestamp` and `datetime.now()` use one `Clock`: the start of the pass plus the elapsed monotonic time. As in
Poolboy, a timestamp prints seconds with a `Z`, parses only one format, and compares only with timestamps. Unlike in
Poolboy, seconds can be added, a parsed offset is converted to UTC before printing, and `timedelta("10m")` works.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone

from pytimeparse.timeparse import timeparse as parse

FORMAT = "%Y-%m-%dT%H:%M:%S%z"
LONGEST_INTERVAL_TEXT = 200


class Clock:
    __slots__ = ("_began", "_instant")

    def __init__(self, instant: datetime) -> None:
        self._instant = instant.astimezone(UTC)
        self._began = time.monotonic()  # noqa: TID251 - elapsed time, not the time of day

    def instant(self) -> datetime:
        return self._instant + timedelta(seconds=time.monotonic() - self._began)  # noqa: TID251 - elapsed time

    def now(self, utc: bool = False, fmt: str | None = None) -> datetime | str:
        """The current time: naive in the process's time zone or, with `utc`, aware in UTC. With `fmt`, it is a text."""
        moment = self.instant() if utc else self._local()
        return moment.strftime(fmt) if fmt else moment

    def _local(self) -> datetime:
        return self.instant().astimezone().replace(tzinfo=None)

    def way(self, kind: type[date], name: str) -> Callable[..., date]:
        def now(tz: timezone | None = None) -> datetime:
            return self.instant().astimezone(tz) if tz else self._local()

        def utcnow() -> datetime:
            return self.instant().replace(tzinfo=None)

        def today() -> date:
            return self._local() if issubclass(kind, datetime) else self._local().date()

        return {"now": now, "utcnow": utcnow, "today": today}[name]


def interval(value: object) -> timedelta:
    """The interval of "30m", "1h30m", "2 days", "1:24:11", a number of seconds, or a timedelta; raises TypeError."""
    if isinstance(value, timedelta):
        return value
    if isinstance(value, (int, float)):
        return timedelta(seconds=value)
    text = str(value)
    seconds = parse(text) if len(text) <= LONGEST_INTERVAL_TEXT else None
    if seconds is None:
        raise TypeError(f"not a time interval: {text[:LONGEST_INTERVAL_TEXT]!r}")
    return timedelta(seconds=seconds)


class Timedelta(timedelta):
    def __new__(cls, *args: float | str, **units: float) -> timedelta:  # type: ignore[misc]
        if args and isinstance(args[0], str):
            return interval(args[0])
        return timedelta(*args, **units)  # type: ignore[arg-type]


class Timestamp:
    __slots__ = ("_clock", "_moment")

    def __init__(self, clock: Clock, moment: datetime | None = None) -> None:
        self._clock = clock
        self._moment = moment or clock.instant()

    def __call__(self, moment: str | datetime | Timestamp | None = None) -> Timestamp:
        """The timestamp of a text or a datetime (in UTC if it has no zone); None means now. Raises ValueError if a text
        is not like `2021-05-01T12:30:00Z`.
        """
        if isinstance(moment, Timestamp):
            return Timestamp(self._clock, moment._moment)
        if isinstance(moment, str):
            moment = datetime.strptime(moment, FORMAT).astimezone(UTC)
        if moment is not None and moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return Timestamp(self._clock, moment.astimezone(UTC) if moment is not None else None)

    @property
    def utcnow(self) -> Timestamp:
        return Timestamp(self._clock)

    @property
    def datetime(self) -> datetime:
        return self._moment

    def add(self, value: object) -> Timestamp:
        return Timestamp(self._clock, self._moment + interval(value))

    def __add__(self, value: object) -> Timestamp:
        return self.add(value)

    def __sub__(self, other: object) -> Timestamp | timedelta:
        if isinstance(other, Timestamp):
            return self._moment - other._moment
        return Timestamp(self._clock, self._moment - interval(other))

    def __eq__(self, other: object) -> bool:
        return self._moment == other._moment if isinstance(other, Timestamp) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self._moment < other._moment if isinstance(other, Timestamp) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self._moment <= other._moment if isinstance(other, Timestamp) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._moment)

    def __str__(self) -> str:
        return self._moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def names(clock: Clock) -> dict[str, object]:
    return {
        "datetime": datetime,
        "timedelta": Timedelta,
        "timezone": timezone,
        "now": clock.now,
        "timestamp": Timestamp(clock),
    }
