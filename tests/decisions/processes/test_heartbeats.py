"""When the heartbeats of running activities are sent."""

from __future__ import annotations

from contextlib import ExitStack

from engine.heartbeat import Heart


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


# The heart's own thread beats, too: by this clock it sends nothing that the test's beats would not.


def test_each_activity_beats_at_its_own_interval_while_it_runs() -> None:
    clock, beats = Clock(), list[str]()
    heart = Heart(clock)
    with heart.beating(lambda: beats.append("a"), 1.0):
        with heart.beating(lambda: beats.append("b"), 3.0):
            assert heart.beat() == 1.0
            assert beats == [], "a quick activity costs no call"
            for second in (1, 2, 3):
                clock.now = second
                heart.beat()
        assert beats == ["a", "a", "a", "b"]
        assert heart.beat() == 1.0
    clock.now = 9
    assert heart.beat() is None
    assert beats == ["a", "a", "a", "b"]


def test_a_heartbeat_that_cannot_be_sent_stops_no_other() -> None:
    clock, beats = Clock(), list[str]()
    heart = Heart(clock)

    def broken() -> None:
        raise RuntimeError

    with ExitStack() as running:
        running.enter_context(heart.beating(broken, 1.0))
        running.enter_context(heart.beating(lambda: beats.append("b"), 1.0))
        clock.now = 1
        assert heart.beat() == 1.0
    assert beats == ["b"]
