"""How long claims and handles live: when they begin, when they end, and when that end moves.

    made for a pool --unclaimed--> gone
    bound or made for a claim: end = asked for, else default --first ready: the default begins anew--> end --> gone

Providers, pools and handles give terms: a default, a maximum counted from first ready (before that from the start),
and a relative maximum, the farthest that the end may lie ahead at any time. Terms may be templates: they come in here
as the text that stands there and the text it was rendered to, afresh for each use. Handles keep the former, claims show
the latter.

Everything of one step is taken from one `now`, cut to whole seconds as it will be written: clients compare differences
(end - start, end - firstReady) to the second. Only an end that a claim asks for is cut to the maxima; the default is
not, and an end in the past is allowed: it means now.

A relative maximum below the wish makes the end creep forward as long as the wish lies ahead. Poolboy moved it at every
poll; here it moves when less than half of the relative maximum is left, or when the wish or the term has changed, which
is known by comparing with the `Wish` that was honoured last. So an outage of less than half a relative maximum ends
nothing, and whoever looks after a longer one must settle the end before asking whether it has passed.
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
from domain.claims.objects import JsonObject, present, text_at
from domain.model import Model
from domain.resource import timestamp


class Setting(Model):
    """One duration of the terms: the text that stands there, and what it says now."""

    raw: str
    rendered: str

    def duration(self, what: str) -> timedelta:
        """What it says now.

        Raises:
            UnreadableDuration: it says no duration.
        """
        return parse_duration(self.rendered, what)


class Terms(Model):
    """What a provider, a pool or a handle says about lifespans; None where it says nothing."""

    default: Setting | None = None
    maximum: Setting | None = None
    relative_maximum: Setting | None = None

    @property
    def default_duration(self) -> timedelta | None:
        """The lifespan of who asks for no end."""
        return self.default.duration("lifespan.default") if self.default else None

    @property
    def maximum_duration(self) -> timedelta | None:
        """The longest lifespan from first ready on."""
        return self.maximum.duration("lifespan.maximum") if self.maximum else None

    @property
    def relative_maximum_duration(self) -> timedelta | None:
        """The farthest that the end may lie ahead."""
        return self.relative_maximum.duration("lifespan.relativeMaximum") if self.relative_maximum else None


class HandleLifespan(Model):
    """A handle's `spec.lifespan` as it is made."""

    default: str = ""
    end: datetime | None = None
    maximum: str = ""
    relative_maximum: str = ""

    def as_json(self) -> JsonObject:
        """The object without empty members; `{}` when there is nothing to say."""
        return present(
            default=self.default or None,
            end=timestamp(self.end) if self.end else None,
            maximum=self.maximum or None,
            relativeMaximum=self.relative_maximum or None,
        )


class Wish(Model):
    """An end that was asked for, and the relative maximum under which it was settled."""

    end: datetime
    relative_maximum: timedelta | None = None


class SettledEnd(Model):
    """The end of a bound handle whose claim asks for one.

    `cut` is true when the terms allow less than asked for, `news` when that has not been said for this wish. At
    `moves_at` the end has to be settled again, to be moved.
    """

    end: datetime
    wish: Wish
    cut: bool = False
    news: bool = False
    moves_at: datetime | None = None


class FirstReady(Model):
    """What is written when a claim's handle is ready for the first time: `requested_end` into the claim's spec."""

    first_ready: datetime
    requested_end: datetime | None = None


# --- terms ---


def terms_of(lifespan: JsonValue, rendered: Mapping[str, JsonValue]) -> Terms:
    """The terms that stand in a `lifespan`, with what its texts were rendered to by field; null means nothing."""
    settings: dict[str, Setting | None] = {}
    for name, field in (("default", "default"), ("maximum", "maximum"), ("relative_maximum", "relativeMaximum")):
        raw, said = text_at(lifespan, field), rendered.get(field)
        settings[name] = Setting(raw=raw, rendered=str(said)) if raw and said is not None else None
    return Terms.model_validate(settings)


def least(terms: Iterable[Terms]) -> Terms:
    """Of several providers' terms the shortest of each kind, with its own text; the first of equals.

    Raises:
        UnreadableDuration: one of them is no duration.
    """
    several = tuple(terms)
    return Terms(
        default=_shortest((each.default for each in several), "lifespan.default"),
        maximum=_shortest((each.maximum for each in several), "lifespan.maximum"),
        relative_maximum=_shortest((each.relative_maximum for each in several), "lifespan.relativeMaximum"),
    )


# --- creation and binding ---


def for_claim(terms: Terms, requested_end: datetime | None, now: datetime) -> HandleLifespan:
    """The lifespan of a handle that is made for a claim, now: the end asked for (cut at once), else the terms' own.

    Raises:
        UnreadableDuration: a term is no duration.
    """
    now = whole_seconds(now)
    default, maximum, relative = terms.default_duration, terms.maximum_duration, terms.relative_maximum_duration
    granted = next((duration for duration in (default, relative, maximum) if duration is not None), None)
    if requested_end is not None:
        end: datetime | None = settled_end(terms, requested_end=requested_end, current=None, base=now, now=now).end
    else:
        end = None if granted is None else after(now, granted)
    return HandleLifespan(
        default="" if default is None else format_duration(default),
        end=end,
        maximum=terms.maximum.raw if terms.maximum else "",
        relative_maximum=terms.relative_maximum.raw if terms.relative_maximum else "",
    )


def for_pool_handle(pool: JsonValue, provider: JsonValue, created: datetime) -> HandleLifespan:
    """The lifespan of a handle that is made for a pool, which gives it its own terms or else its provider's.

    `pool` and `provider` are the `spec.lifespan` of each, None where there is none. The end is counted from `created`:
    call it with `now` for the object that is sent, and again with the `creationTimestamp` that came back; where the
    ends differ the handle's is corrected.

    Raises:
        UnreadableDuration: `unclaimed` is no duration.
    """
    lifespan = pool if isinstance(pool, dict) else provider
    unclaimed = text_at(lifespan, "unclaimed")
    end = after(whole_seconds(created), parse_duration(unclaimed, "lifespan.unclaimed")) if unclaimed else None
    return HandleLifespan(
        default=text_at(lifespan, "default"),
        end=end,
        maximum=text_at(lifespan, "maximum"),
        relative_maximum=text_at(lifespan, "relativeMaximum"),
    )


def end_at_binding(
    terms: Terms, *, current: datetime | None, requested_end: datetime | None, now: datetime
) -> datetime | None:
    """The end of a free handle from the moment that a claim takes it; `terms` are the handle's, `current` its end.

    Without a default and a wish the handle keeps its unclaimed end, and the claim inherits it.

    Raises:
        UnreadableDuration: a term that counts is no duration.
    """
    now = whole_seconds(now)
    if requested_end is not None:
        return settled_end(terms, requested_end=requested_end, current=None, base=now, now=now).end
    default = terms.default_duration
    return current if default is None else after(now, default)


def bound_status(terms: Terms, end: datetime | None, *, ready: bool, now: datetime) -> JsonObject:
    """The claim's `status.lifespan` when it gets its handle, whose terms and end these are."""
    start = timestamp(now)
    return present(
        start=start,
        end=timestamp(end) if end else None,
        maximum=shown(terms.maximum),
        relativeMaximum=shown(terms.relative_maximum),
        firstReady=start if ready else None,
    )


def shown(setting: Setting | None) -> str | None:
    """A term as the claim's status can show it; None for one that it cannot, whose fault is told elsewhere."""
    try:
        return in_one_unit(setting.rendered) if setting else None
    except UnreadableDuration:
        return None


# --- while bound ---


def settled_end(
    terms: Terms,
    *,
    requested_end: datetime,
    current: datetime | None,
    base: datetime,
    now: datetime,
    honoured: Wish | None = None,
) -> SettledEnd:
    """The end of a handle whose claim asks for one, cut to the handle's terms.

    Args:
        terms: the handle's.
        requested_end: the claim's `spec.lifespan.end`.
        current: the handle's end as it is.
        base: from when the maximum counts, see `moments.base_of`.
        now: the step's one clock reading.
        honoured: the `wish` that this gave last time; None if not known, then the end is settled anew.

    Raises:
        UnreadableDuration: a maximum is no duration.
    """
    now, asked = whole_seconds(now), whole_seconds(requested_end)
    maximum, relative = terms.maximum_duration, terms.relative_maximum_duration
    wish = Wish(end=asked, relative_maximum=relative)
    allowed = asked if maximum is None else min(asked, after(base, maximum))
    horizon = None if relative is None else after(now, relative)
    if relative is None or horizon is None or horizon >= allowed:
        return _settled(allowed, wish, honoured)
    half = timedelta(seconds=int(relative.total_seconds()) // 2)
    if current is not None and wish == honoured and after(now, half) < current <= horizon:
        return _settled(whole_seconds(current), wish, honoured, moves_at=whole_seconds(current) - half)
    return _settled(horizon, wish, honoured, moves_at=horizon - half if horizon > now else None)


def first_ready(terms: Terms, *, requested_end: datetime | None, start: datetime, now: datetime) -> FirstReady:
    """What changes when the handle is ready and `firstReady` is unset: the default begins anew unless another end is
    asked for.

    The caller settles the end with this `requested_end` and `base=first_ready`.

    Raises:
        UnreadableDuration: the default is no duration.
    """
    now = whole_seconds(now)
    default = terms.default_duration
    if default is None:
        return FirstReady(first_ready=now)
    by_default = requested_end is None or whole_seconds(requested_end) - whole_seconds(start) == default
    return FirstReady(first_ready=now, requested_end=after(now, default) if by_default else None)


# --- steps of the above ---


def _shortest(settings: Iterable[Setting | None], what: str) -> Setting | None:
    said = [setting for setting in settings if setting is not None]
    return min(said, key=lambda setting: setting.duration(what)) if said else None


def _settled(end: datetime, wish: Wish, honoured: Wish | None, *, moves_at: datetime | None = None) -> SettledEnd:
    cut = end < wish.end
    return SettledEnd(end=end, wish=wish, cut=cut, news=cut and wish != honoured, moves_at=moves_at)
