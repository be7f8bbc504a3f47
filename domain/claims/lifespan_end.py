"""The end of a lifespan: computed at the start, and again at first readiness and when requests or limits change.

    created for a pool --unclaimed--> deleted
    bound or created for a claim: end = requested, else default --first ready: default counts again--> end --> deleted

Providers, pools and handles have terms: a default, a maximum counted from first readiness (until then, from the start),
and a relative maximum: how far ahead of now the end may lie. Handles store the maxima as templates, claims show the
result. A computation uses one `now`, in whole seconds, because clients subtract the times. Only a requested end is cut
to the maxima; a requested end in the past means immediate expiry. If a requested end lies beyond the relative maximum,
the handle's end moves towards it in steps. A step is made when less than half of that maximum is left, or when the
request or the terms have changed. A caller computes the end before it checks whether the end has passed: the end may
have to move after a long outage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from pydantic import JsonValue

from domain.claims.durations import (
    UnreadableDuration,
    after,
    format_duration,
    in_one_unit,
    parse_duration,
    whole_seconds,
)
from domain.claims.json_objects import JsonObject, present, text_at
from domain.model import Model
from domain.resource import timestamp

TERMS = ("default", "maximum", "relativeMaximum")


class Setting(Model):
    raw: str
    rendered: str

    def duration(self, what: str) -> timedelta:
        """Raises UnreadableDuration if the rendered text is not a duration."""
        return parse_duration(self.rendered, what)


class Terms(Model):
    default: Setting | None = None
    maximum: Setting | None = None
    relative_maximum: Setting | None = None

    @property
    def default_duration(self) -> timedelta | None:
        return self.default.duration("lifespan.default") if self.default else None

    @property
    def maximum_duration(self) -> timedelta | None:
        return self.maximum.duration("lifespan.maximum") if self.maximum else None

    @property
    def relative_maximum_duration(self) -> timedelta | None:
        return self.relative_maximum.duration("lifespan.relativeMaximum") if self.relative_maximum else None


class RequestedEnd(Model):
    """An end that a claim has requested, and how far ahead of the present it was allowed to lie."""

    end: datetime
    relative_maximum: timedelta | None = None


class SettledEnd(Model):
    """`news`: the end is earlier than requested, and this is unreported. `moves_at`: when to compute the end again."""

    end: datetime
    wish: RequestedEnd
    news: bool = False
    moves_at: datetime | None = None


def terms_of(lifespan: JsonValue, rendered: Mapping[str, JsonValue]) -> Terms:
    settings: dict[str, Setting | None] = {}
    for name, field in (("default", "default"), ("maximum", "maximum"), ("relative_maximum", "relativeMaximum")):
        raw, own = text_at(lifespan, field), rendered.get(field)
        settings[name] = Setting(raw=raw, rendered=str(own)) if raw and own is not None else None
    return Terms.model_validate(settings)


def least(terms: Iterable[Terms]) -> Terms:
    """The shortest default, maximum and relative maximum in `terms`, with their raw text. Raises UnreadableDuration."""
    several = tuple(terms)
    return Terms(
        default=_shortest((each.default for each in several), "lifespan.default"),
        maximum=_shortest((each.maximum for each in several), "lifespan.maximum"),
        relative_maximum=_shortest((each.relative_maximum for each in several), "lifespan.relativeMaximum"),
    )


def for_claim(terms: Terms, requested_end: datetime | None, now: datetime) -> JsonObject:
    """Raises UnreadableDuration."""
    default, maximum, relative = terms.default_duration, terms.maximum_duration, terms.relative_maximum_duration
    granted = maximum if relative is None else relative
    otherwise = None if granted is None else after(whole_seconds(now), granted)
    end = end_at_binding(terms, current=otherwise, requested_end=requested_end, now=now)
    return present(
        default=None if default is None else format_duration(default),
        end=timestamp(end) if end else None,
        maximum=terms.maximum.raw if terms.maximum else None,
        relativeMaximum=terms.relative_maximum.raw if terms.relative_maximum else None,
    )


def for_pool_handle(pool: JsonValue, provider: JsonValue, created: datetime) -> JsonObject:
    """The lifespan of a pool's new handle, from the `spec.lifespan` of the pool, else of its provider.

    The end counts from `created`, when the creation is requested. Raises UnreadableDuration.
    """
    lifespan = pool if isinstance(pool, dict) else provider
    unclaimed = text_at(lifespan, "unclaimed")
    end = after(whole_seconds(created), parse_duration(unclaimed, "lifespan.unclaimed")) if unclaimed else None
    terms = {field: text for field in TERMS if (text := text_at(lifespan, field))}
    return {**terms, **present(end=timestamp(end) if end else None)}


def end_at_binding(
    terms: Terms, *, current: datetime | None, requested_end: datetime | None, now: datetime
) -> datetime | None:
    """The handle's end after binding: the requested end, else the end by the default, else `current`, the free handle's
    end. `terms` are the handle's. Raises UnreadableDuration.
    """
    now = whole_seconds(now)
    if requested_end is not None:
        return settled_end(terms, requested_end=requested_end, current=None, base=now, now=now).end
    default = terms.default_duration
    return current if default is None else after(now, default)


def bound_status(end: datetime | None, *, ready: bool, now: datetime) -> JsonObject:
    start = timestamp(now)
    return present(start=start, end=timestamp(end) if end else None, firstReady=start if ready else None)


def shown(setting: Setting | None) -> str | None:
    try:
        return in_one_unit(setting.rendered) if setting else None
    except UnreadableDuration:
        return None


def settled_end(
    terms: Terms,
    *,
    requested_end: datetime,
    current: datetime | None,
    base: datetime,
    now: datetime,
    honoured: RequestedEnd | None = None,
) -> SettledEnd:
    """The end that the handle's terms allow for a request. Raises UnreadableDuration.

    `base` is when the maximum begins to count: first readiness, else the start. `honoured` is the `wish` that the
    previous call returned; if it is None (unknown), the end is computed again.
    """
    now, requested = whole_seconds(now), whole_seconds(requested_end)
    maximum, relative = terms.maximum_duration, terms.relative_maximum_duration
    wish = RequestedEnd(end=requested, relative_maximum=relative)
    allowed = requested if maximum is None else min(requested, after(base, maximum))
    horizon = None if relative is None else after(now, relative)
    if relative is None or horizon is None or horizon >= allowed:
        return _settled(allowed, wish, honoured)
    half = timedelta(seconds=int(relative.total_seconds()) // 2)
    if current is not None and wish == honoured and after(now, half) < current <= horizon:
        return _settled(whole_seconds(current), wish, honoured, moves_at=whole_seconds(current) - half)
    return _settled(horizon, wish, honoured, moves_at=horizon - half if horizon > now else None)


def restarted_end(
    terms: Terms, *, requested_end: datetime | None, start: datetime, first_ready: datetime
) -> datetime | None:
    """The default end, counted again from first readiness; None if there is no default, or another end is requested.

    The caller calls `settled_end` with this end, and with `first_ready` as `base`. Raises UnreadableDuration.
    """
    default = terms.default_duration
    if default is None:
        return None
    by_default = requested_end is None or whole_seconds(requested_end) - whole_seconds(start) == default
    return after(whole_seconds(first_ready), default) if by_default else None


def _shortest(settings: Iterable[Setting | None], what: str) -> Setting | None:
    present = [setting for setting in settings if setting is not None]
    return min(present, key=lambda setting: setting.duration(what)) if present else None


def _settled(
    end: datetime, wish: RequestedEnd, honoured: RequestedEnd | None, *, moves_at: datetime | None = None
) -> SettledEnd:
    return SettledEnd(end=end, wish=wish, news=end < wish.end and wish != honoured, moves_at=moves_at)
