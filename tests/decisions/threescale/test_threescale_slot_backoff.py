"""For how long objects of a tenant go away that find no slot with it."""

from __future__ import annotations

from datetime import timedelta

from activities.threescale.slot_backoff import COME_BACK, LONGEST_AWAY, SlotBackoff
from domain.runner import SHORT_PAUSE

SLOTS = 8


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def turns_after(sitting: float) -> tuple[SlotBackoff, Clock]:
    """Where many passes have sat for so long each."""
    clock = Clock()
    turns = SlotBackoff(SLOTS, clock)
    for _ in range(100):
        turns.freed(sitting)
    return turns, clock


def test_a_few_come_back_soon() -> None:
    turns, _ = turns_after(0.1)
    delays = [turns.away() for _ in range(20)]

    assert all(SHORT_PAUSE < each <= COME_BACK * 1.5 for each in delays), "no pass waits for a slot that it may not get"


def test_a_crowd_comes_back_about_as_fast_as_slots_get_free() -> None:
    """Five hundred with 0.8 s each on eight slots take fifty seconds, and not a hundred looks a second."""
    turns, _ = turns_after(0.8)
    delays = sorted(turns.away().total_seconds() for _ in range(500))

    assert 45 < delays[-1] <= LONGEST_AWAY.total_seconds()
    in_ten_seconds = sum(20 < each <= 30 for each in delays)
    assert 80 < in_ten_seconds < 120


def test_without_progress_every_caller_stays_away_for_as_long_again() -> None:
    turns, _ = turns_after(0.1)
    delays = [turns.away(20).total_seconds() for _ in range(100)]

    assert 10 <= min(delays) < max(delays) <= 30
    assert turns.away(3600) == LONGEST_AWAY


def test_no_caller_is_away_for_longer_than_a_minute_and_an_old_crowd_is_forgotten() -> None:
    turns, clock = turns_after(60)
    assert max(turns.away() for _ in range(5_000)) == LONGEST_AWAY
    clock.now += LONGEST_AWAY.total_seconds() * 2

    assert turns.away() <= COME_BACK * 1.5


def test_nothing_is_known_of_sittings_at_first() -> None:
    delays = [SlotBackoff(SLOTS).away() for _ in range(100)]

    assert max(delays) <= timedelta(seconds=7.5)
