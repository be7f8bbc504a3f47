"""Durations and moments of lifespans: read kindly, written exactly."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.claims.durations import (
    EARLIEST,
    FOREVER,
    LONGEST_TEXT,
    UnreadableDuration,
    UnreadableMoment,
    after,
    format_duration,
    in_one_unit,
    parse_duration,
    parse_moment,
)

NOW = datetime(2025, 1, 31, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", 1800),
        ("1h30m", 5400),
        ("2 days", 172800),
        ("1:24:11", 5051),
        ("1:24", 84),
        (":22", 22),
        ("2-04:13:02", 187982),
        ("1w3d2h32m", 873120),
        ("4d 1h, 5 mins", 349500),
        ("1.2 minutes", 72),
        ("1.5s", 1.5),
        ("2H", 7200),
        ("- 1 minute", -60),
        ("0s", 0),
    ],
)
def test_durations_are_read_as_pytimeparse_reads_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", " ", "30", "soon", "1x", "{{ d }}", "9" * 30 + "d", "1" * LONGEST_TEXT + "s", "1d" * 90]
)
def test_a_text_that_is_no_duration_is_quoted(text: str) -> None:
    with pytest.raises(UnreadableDuration, match=r"lifespan\.maximum is") as caught:
        parse_duration(text, "lifespan.maximum")
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(days=1, hours=2, minutes=3, seconds=4), "1d2h3m4s"),
        (timedelta(hours=24), "1d"),
        (timedelta(days=1, seconds=4), "1d4s"),
        (timedelta(minutes=90), "1h30m"),
        (timedelta(days=10), "10d"),
        (timedelta(0), "0s"),
        (timedelta(seconds=1.9), "1s"),
        (timedelta(minutes=-90), "-1h30m"),
    ],
)
def test_durations_are_written_without_units_of_zero(duration: timedelta, text: str) -> None:
    assert format_duration(duration) == text


@given(st.timedeltas(timedelta(days=-4000), timedelta(days=4000)))
def test_a_written_duration_reads_the_same(duration: timedelta) -> None:
    whole = timedelta(seconds=int(duration.total_seconds()))
    assert parse_duration(format_duration(whole)) == whole


@pytest.mark.parametrize(
    ("text", "one_unit"),
    [
        ("1h30m", "90m"),
        ("5400s", "5400s"),
        ("48h", "48h"),
        ("2 days", "2d"),
        ("1d12h", "36h"),
        ("1:00:01", "3601s"),
        ("1.5s", "1s"),
        ("0.5s", "0s"),
        ("0 h", "0s"),
        ("1 week", "7d"),
    ],
)
def test_a_maximum_fits_the_schema_of_the_claims_status(text: str, one_unit: str) -> None:
    assert in_one_unit(text) == one_unit


@given(st.integers(0, 10**9))
def test_one_unit_always_fits_the_schema_and_says_the_same(seconds: int) -> None:
    text = in_one_unit(format_duration(timedelta(seconds=seconds)))
    assert re.fullmatch(r"^[0-9]+[smhd]$", text)
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["-1h", "never"])
def test_a_duration_that_the_schema_cannot_express_is_refused(text: str) -> None:
    with pytest.raises(UnreadableDuration):
        in_one_unit(text)


@pytest.mark.parametrize(
    "text",
    [
        "2025-01-31T12:00:00Z",
        "2025-01-31T12:00:00.5Z",
        "2025-01-31T12:00:00.123456789Z",
        "2025-01-31T14:00:00+02:00",
        "2025-01-31T06:30:00-05:30",
        "2025-01-31t12:00:00z",
        " 2025-01-31T12:00:00Z\n",
    ],
)
def test_moments_are_read_kindly_in_utc_and_whole_seconds(text: str) -> None:
    moment = parse_moment(text)
    assert moment == NOW
    assert moment.utcoffset() == timedelta(0)


@pytest.mark.parametrize("text", ["", "tomorrow", "2025-13-01T00:00:00Z", "12:00", "0001-01-01T00:00:00+10:00"])
def test_a_text_that_is_no_timestamp_is_quoted(text: str) -> None:
    with pytest.raises(UnreadableMoment, match=r"lifespan\.end is"):
        parse_moment(text, "lifespan.end")


def test_durations_beyond_the_calendar_mean_for_ever() -> None:
    assert after(NOW, timedelta(days=1)) == NOW + timedelta(days=1)
    assert after(NOW, timedelta(days=9_999_999)) == FOREVER
    assert after(NOW, timedelta(days=-9_999_999)) == EARLIEST
