"""Lifespans: what is granted, when the end moves, and that all times of one step agree to the second."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.claims.delayed_start import start_of
from domain.claims.durations import UnreadableDuration, UnreadableMoment
from domain.claims.json_objects import JsonObject
from domain.claims.lifespan_end import (
    RequestedEnd,
    Setting,
    SettledEnd,
    Terms,
    bound_status,
    end_at_binding,
    for_claim,
    for_pool_handle,
    least,
    restarted_end,
    settled_end,
    shown,
    terms_of,
)
from domain.claims.timestamps import end_of_detached, end_of_handle, passed, requested_end_of
from domain.resource import timestamp

NOW = datetime(2025, 1, 31, 12, 0, 0, 400_000, tzinfo=UTC)  # clocks do not show whole seconds
SECOND = datetime(2025, 1, 31, 12, 0, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def terms(default: str = "", maximum: str = "", relative: str = "") -> Terms:
    def setting(text: str) -> Setting | None:
        return Setting(raw=f"raw {text}", rendered=text) if text else None

    return Terms(default=setting(default), maximum=setting(maximum), relative_maximum=setting(relative))


# --- terms ---


def test_terms_keep_the_raw_text_beside_the_rendered_one() -> None:
    lifespan: JsonObject = {"default": "{{ d }}", "maximum": "{{ m }}", "relativeMaximum": "2h", "end": "x"}
    assert terms_of(lifespan, {"default": "1h", "maximum": None, "relativeMaximum": "2h"}) == Terms(
        default=Setting(raw="{{ d }}", rendered="1h"), relative_maximum=Setting(raw="2h", rendered="2h")
    )
    assert terms_of(None, {}) == Terms()


def test_list_mode_takes_the_shortest_of_each_kind_with_its_own_text() -> None:
    assert least([terms("90m", "2d", "3h"), terms("1h30m", "1 day"), terms(), terms("2h", "1:00:00", "180m")]) == Terms(
        default=Setting(raw="raw 90m", rendered="90m"),
        maximum=Setting(raw="raw 1:00:00", rendered="1:00:00"),
        relative_maximum=Setting(raw="raw 3h", rendered="3h"),
    )
    assert least([]) == Terms()


def test_a_term_that_is_no_duration_is_reported_by_its_name() -> None:
    for bad in (lambda: least([terms(maximum="soon")]), lambda: for_claim(terms("1h", "soon"), None, NOW)):
        with pytest.raises(UnreadableDuration, match=r"lifespan\.maximum is 'soon'"):
            bad()
    with pytest.raises(UnreadableDuration, match=r"lifespan\.relativeMaximum is ''"):
        for_claim(Terms(relative_maximum=Setting(raw="{{ x }}", rendered="")), None, NOW)


# --- creation ---


@pytest.mark.parametrize(
    ("granted", "requested", "end"),
    [
        pytest.param(terms("1h", "2h", "3h"), None, SECOND + HOUR, id="the default"),
        pytest.param(terms("", "2h", "3h"), None, SECOND + 3 * HOUR, id="D3: else the relative maximum, its own"),
        pytest.param(terms("", "2h"), None, SECOND + 2 * HOUR, id="else the maximum"),
        pytest.param(terms(), None, None, id="else none"),
        pytest.param(terms("1h"), SECOND + 5 * HOUR, SECOND + 5 * HOUR, id="the wish before the default"),
        pytest.param(terms("1h", "2h", "3h"), SECOND + 5 * HOUR, SECOND + 2 * HOUR, id="the wish cut at once"),
        pytest.param(terms("1h"), SECOND - HOUR, SECOND - HOUR, id="an end in the past means now"),
        pytest.param(terms("5h", "2h"), None, SECOND + 5 * HOUR, id="the default is not cut"),
    ],
)
def test_the_end_at_creation(granted: Terms, requested: datetime | None, end: datetime | None) -> None:
    assert for_claim(granted, requested, NOW).get("end") == (timestamp(end) if end else None)


def test_a_handle_gets_the_default_formatted_and_the_maxima_unchanged() -> None:
    assert for_claim(terms("26h", "2d", "1h30m"), None, NOW) == {
        "default": "1d2h",
        "end": timestamp(SECOND + 26 * HOUR),
        "maximum": "raw 2d",
        "relativeMaximum": "raw 1h30m",
    }
    assert for_claim(terms(), None, NOW) == {}


POOL: JsonObject = {"default": "{{ d }}", "maximum": "2d", "relativeMaximum": "1d", "unclaimed": "7d"}
PROVIDER: JsonObject = {"default": "3h", "maximum": "5h", "relativeMaximum": "4h"}


def test_a_pools_own_lifespan_hides_the_providers() -> None:
    own = {"default": "{{ d }}", "maximum": "2d", "relativeMaximum": "1d", "end": timestamp(SECOND + 7 * DAY)}
    assert for_pool_handle(POOL, PROVIDER, NOW) == own
    assert for_pool_handle({"unclaimed": "1h"}, PROVIDER, NOW) == {"end": timestamp(SECOND + HOUR)}
    assert for_pool_handle({}, PROVIDER, NOW) == {}


def test_a_pool_without_lifespan_takes_its_providers_each_in_its_place() -> None:
    assert for_pool_handle(None, PROVIDER, NOW) == PROVIDER
    assert for_pool_handle(None, {"relativeMaximum": "4h"}, NOW) == {"relativeMaximum": "4h"}
    assert for_pool_handle(None, None, NOW) == {}


@given(st.integers(0, 10**6), st.integers(0, 3_000))
def test_the_unclaimed_end_is_exact_to_the_creation_timestamp(unclaimed: int, late_ms: int) -> None:
    created = (NOW + timedelta(milliseconds=late_ms)).replace(microsecond=0)
    lifespan = for_pool_handle({"unclaimed": f"{unclaimed}s"}, None, created)
    assert lifespan == {"end": timestamp(created + timedelta(seconds=unclaimed))}


# --- binding ---

UNCLAIMED_END = SECOND + 3 * DAY


@pytest.mark.parametrize(
    ("granted", "requested", "end"),
    [
        pytest.param(terms("1h"), None, SECOND + HOUR, id="the default replaces the unclaimed end"),
        pytest.param(terms("", "2h", "1h"), None, UNCLAIMED_END, id="without default the unclaimed end stays"),
        pytest.param(terms("1h", "4h"), SECOND + 2 * HOUR, SECOND + 2 * HOUR, id="the wish"),
        pytest.param(terms("1h", "4h"), SECOND + 9 * HOUR, SECOND + 4 * HOUR, id="the wish cut"),
        pytest.param(terms(), SECOND + 9 * HOUR, SECOND + 9 * HOUR, id="the wish where there are no terms"),
    ],
)
def test_the_end_at_binding(granted: Terms, requested: datetime | None, end: datetime) -> None:
    assert end_at_binding(granted, current=UNCLAIMED_END, requested_end=requested, now=NOW) == end


def test_a_handle_without_end_stays_so() -> None:
    assert end_at_binding(terms(), current=None, requested_end=None, now=NOW) is None


@given(st.integers(0, 10**7))
def test_the_default_is_exactly_between_start_and_end(seconds: int) -> None:
    granted = terms(f"{seconds}s")
    end = end_at_binding(granted, current=None, requested_end=None, now=NOW)
    assert end is not None
    status = bound_status(end, ready=False, now=NOW)
    start = start_of({"status": {"lifespan": status}})
    assert end_of_handle({"spec": {"lifespan": {"end": status["end"]}}}) == end
    assert end - start == timedelta(seconds=seconds)
    assert for_claim(granted, None, NOW)["end"] == status["end"]


def test_the_claims_status_at_binding_shows_what_its_schema_takes() -> None:
    started = {"start": timestamp(SECOND), "firstReady": timestamp(SECOND)}
    assert bound_status(SECOND + HOUR, ready=True, now=NOW) == {**started, "end": timestamp(SECOND + HOUR)}
    assert bound_status(None, ready=False, now=NOW) == {"start": timestamp(SECOND)}
    granted = terms("", "1h30m", "2 days")
    assert (shown(granted.maximum), shown(granted.relative_maximum)) == ("90m", "2d")
    assert shown(terms(maximum="soon").maximum) is shown(None) is None


# --- an end asked for ---


def settle(granted: Terms, requested: datetime, **fields: object) -> SettledEnd:
    known: dict[str, object] = {"current": None, "base": SECOND, "now": NOW, **fields}
    return settled_end(granted, requested_end=requested, **known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("granted", "requested", "base", "end"),
    [
        pytest.param(terms(), 9 * HOUR, SECOND, 9 * HOUR, id="no limit"),
        pytest.param(terms(maximum="4h"), 9 * HOUR, SECOND, 4 * HOUR, id="the maximum"),
        pytest.param(terms(maximum="4h"), 9 * HOUR, SECOND - HOUR, 3 * HOUR, id="counted from the base"),
        pytest.param(terms(maximum="4h"), 9 * HOUR, SECOND - 5 * HOUR, -HOUR, id="which may be over already"),
        pytest.param(terms(relative="2h"), 9 * HOUR, SECOND - 5 * HOUR, 2 * HOUR, id="the relative one from now"),
        pytest.param(terms(maximum="4h", relative="2h"), 9 * HOUR, SECOND - 3 * HOUR, HOUR, id="the nearer"),
        pytest.param(terms(maximum="4h", relative="2h"), HOUR, SECOND, HOUR, id="within both"),
        pytest.param(terms(maximum="4h", relative="2h"), -HOUR, SECOND, -HOUR, id="the past"),
        pytest.param(terms(maximum="9999999d"), 9 * HOUR, SECOND, 9 * HOUR, id="a maximum beyond the calendar"),
    ],
)
def test_a_wish_is_cut_to_the_terms(granted: Terms, requested: timedelta, base: datetime, end: timedelta) -> None:
    settled = settle(granted, SECOND + requested, base=base)
    assert settled.end == SECOND + end
    assert settled.news is (end < requested)


def test_a_wish_with_fractions_of_a_second_settles_on_what_is_written() -> None:
    settled = settle(terms(), SECOND + HOUR + timedelta(milliseconds=500))
    assert settled.end == SECOND + HOUR
    assert not settled.news


def test_a_cut_is_news_once_for_each_wish() -> None:
    first = settle(terms(maximum="1h"), SECOND + DAY)
    assert first.news
    again = settle(terms(maximum="1h"), SECOND + DAY, current=first.end, honoured=first.wish)
    assert again.end < again.wish.end
    assert not again.news
    assert settle(terms(maximum="1h"), SECOND + 2 * DAY, current=first.end, honoured=first.wish).news


def test_a_rolling_end_moves_only_when_half_of_the_relative_maximum_is_left() -> None:
    granted, requested = terms(relative="2h"), SECOND + 30 * HOUR
    now, end, honoured = SECOND, SECOND, None
    moves = []
    while True:
        settled = settle(granted, requested, current=end, now=now, honoured=honoured)
        for minutes in (0, 30, 59):  # passes in between change nothing
            between = settle(
                granted, requested, current=settled.end, now=now + minutes * timedelta(minutes=1), honoured=settled.wish
            )
            assert between.end == settled.end
        end, honoured = settled.end, settled.wish
        moves.append(end - SECOND)
        if settled.moves_at is None:
            break
        assert settled.moves_at == end - HOUR
        assert settled.moves_at > now
        now = settled.moves_at
    assert moves == [timedelta(hours=hours) for hours in range(2, 31)]


def test_a_new_wish_or_a_new_relative_maximum_is_settled_at_once() -> None:
    requested = SECOND + 30 * HOUR
    honoured = RequestedEnd(end=requested, relative_maximum=2 * HOUR)
    current = SECOND + timedelta(minutes=90)
    assert settle(terms(relative="2h"), requested, current=current, honoured=honoured).end == current
    assert settle(terms(relative="2h"), requested + HOUR, current=current, honoured=honoured).end == SECOND + 2 * HOUR
    assert settle(terms(relative="3h"), requested, current=current, honoured=honoured).end == SECOND + 3 * HOUR
    assert settle(terms(relative="1h"), requested, current=current, honoured=honoured).end == SECOND + HOUR
    assert settle(terms(relative="2h"), requested, current=current).end == SECOND + 2 * HOUR


def test_an_end_beyond_the_relative_maximum_is_shortened_regardless_of_its_origin() -> None:
    requested = SECOND + 30 * HOUR
    honoured = RequestedEnd(end=requested, relative_maximum=2 * HOUR)
    assert (
        settle(terms(relative="2h"), requested, current=SECOND + 9 * HOUR, honoured=honoured).end == SECOND + 2 * HOUR
    )


def test_after_an_outage_a_rolling_end_goes_on_from_now() -> None:
    requested = SECOND + 30 * HOUR
    honoured = RequestedEnd(end=requested, relative_maximum=2 * HOUR)
    assert settle(terms(relative="2h"), requested, current=SECOND - HOUR, honoured=honoured).end == SECOND + 2 * HOUR


@given(st.integers(1, 200), st.integers(0, 400), st.integers(0, 400), st.integers(0, 400), st.booleans())
def test_a_settled_end_never_exceeds_the_terms_nor_moves_into_the_past(
    relative: int, maximum: int, asked: int, current: int, known: bool
) -> None:
    granted = terms(maximum=f"{maximum}s", relative=f"{relative}s")
    requested_end = RequestedEnd(end=SECOND + timedelta(seconds=asked), relative_maximum=timedelta(seconds=relative))
    before = SECOND + timedelta(seconds=current)
    settled = settle(granted, requested_end.end, current=before, honoured=requested_end if known else None)
    assert settled.end <= min(requested_end.end, *(SECOND + timedelta(seconds=s) for s in (relative, maximum)))
    assert settled.end - SECOND >= timedelta(seconds=min(asked, maximum, relative) / 2 - 1)
    assert settled.moves_at is None or NOW < settled.moves_at <= settled.end
    again = settle(granted, requested_end.end, current=settled.end, honoured=settled.wish)
    assert (again.end, again.moves_at) == (settled.end, settled.moves_at)


# --- first ready ---


@pytest.mark.parametrize(
    ("default", "requested", "expected"),
    [
        pytest.param("1h", None, SECOND + HOUR, id="nothing asked for: the default restarts"),
        pytest.param("1h", SECOND - timedelta(minutes=20) + HOUR, SECOND + HOUR, id="the default was asked for"),
        pytest.param("1h", SECOND + 5 * HOUR, None, id="another end was asked for: it stays"),
        pytest.param("1h", SECOND + timedelta(minutes=10), None, id="also an earlier one"),
        pytest.param("", None, None, id="no default"),
    ],
)
def test_the_default_counts_from_first_ready(
    default: str, requested: datetime | None, expected: datetime | None
) -> None:
    start = SECOND - timedelta(minutes=20)
    end = restarted_end(terms(default, "4h"), requested_end=requested, start=start, first_ready=NOW)
    assert end == expected
    if expected is not None:
        settled = settle(terms(default, "4h"), expected, base=SECOND, current=start + HOUR)
        assert settled.end - SECOND == HOUR


# --- moments of objects ---


def claim(status: JsonObject | None = None, spec: JsonObject | None = None, **more: JsonObject) -> JsonObject:
    born: JsonObject = {"creationTimestamp": timestamp(SECOND - DAY)}
    return {"metadata": born, "spec": {"lifespan": spec or {}}, "status": {"lifespan": status or {}, **more}}


def test_a_claim_begins_when_its_spec_says_until_its_status_says_otherwise() -> None:
    requested: JsonObject = {"start": timestamp(SECOND + DAY)}
    assert start_of(claim(spec=requested)) == SECOND + DAY
    assert start_of(claim({"start": timestamp(SECOND)}, requested)) == SECOND
    assert start_of(claim({"start": "spoilt"}, requested)) == SECOND + DAY
    assert start_of(claim()) == SECOND - DAY


def test_values_written_by_users_must_be_timestamps() -> None:
    assert requested_end_of(claim(spec={"end": "2025-01-31T14:00:00.5+02:00"})) == SECOND
    assert requested_end_of(claim()) is None
    with pytest.raises(UnreadableMoment, match=r"spec\.lifespan\.end is 'later'"):
        requested_end_of(claim(spec={"end": "later"}))
    with pytest.raises(UnreadableMoment, match=r"spec\.lifespan\.start is 'later'"):
        start_of(claim(spec={"start": "later"}))


def test_only_a_detached_claim_ends_by_its_own_status() -> None:
    end: JsonObject = {"end": timestamp(SECOND)}
    assert end_of_detached(claim(end)) is None
    assert end_of_detached(claim(end, resourceHandle={"detached": False})) is None
    assert end_of_detached(claim(end, resourceHandle={"detached": True})) == SECOND
    assert end_of_detached(claim({}, resourceHandle={"detached": True})) is None


def test_an_end_has_passed_from_its_second_on() -> None:
    assert passed(SECOND, NOW)
    assert passed(NOW, NOW)
    assert not passed(SECOND + timedelta(seconds=1), NOW)
    assert not passed(None, NOW)
    assert end_of_handle({"spec": {"lifespan": {"end": "0001-01-01T00:00:00+10:00"}}}) is None
