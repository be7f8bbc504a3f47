"""The decisions for a Greeting, as a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from perdure_greeting.greeting import GreetingWorld, decide
from perdure_greeting.resources import Greeting

from domain.decision import Outcome
from domain.identity import Key

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER, EARLIER = NOW + timedelta(hours=1), NOW - timedelta(hours=1)
KEY = Key(kind="Greeting", namespace="default", name="hello", uid="1")


def world(text: str = "hi", *, until: datetime | None = None, **seen: object) -> GreetingWorld:
    greeting = Greeting.model_validate({"metadata": {"name": "hello"}, "spec": {"text": text, "until": until}})
    return GreetingWorld.model_validate({"key": KEY, "greeting": greeting, **seen})


@pytest.mark.parametrize(
    ("seen", "does", "outcome"),
    [
        (world(), ["write ConfigMap default/hello"], Outcome.WORKING),
        (world(shown="old"), ["write ConfigMap default/hello"], Outcome.WORKING),
        (world(shown="hi"), ["status Shown"], Outcome.WORKING),
        (world(""), ["status Waiting"], Outcome.WAITING),
        (world("", shown="hi"), ["status Waiting"], Outcome.WAITING),
        (world(taken=True), ["status Waiting"], Outcome.WAITING),
        (world(shown="hi", until=EARLIER), ["delete ConfigMap default/hello"], Outcome.WORKING),
        (world(until=EARLIER), ["status Over"], Outcome.WORKING),
        (world(exists=False), [], Outcome.GONE),
    ],
)
def test_each_situation_has_its_step(seen: GreetingWorld, does: list[str], outcome: Outcome) -> None:
    decision = decide(seen, NOW)
    assert [action.summary for action in decision.actions] == does
    assert decision.outcome is outcome


def test_a_shown_text_waits_for_its_end_and_asks_for_nothing_more() -> None:
    shown = world(shown="hi", until=LATER)
    (write,) = decide(shown, NOW).actions
    settled = decide(write.fold(shown, None), NOW)
    assert (settled.actions, settled.deadline, settled.outcome) == ((), LATER, Outcome.SETTLED)
