"""Every write of a claim's, handle's and pool's life is broken: the worker dies, answers are lost, the server refuses.

For each write of each turn (chaos_claims_turns.py), and each fault, everything agrees again by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from chaos_claims_lab import ClaimsLab
from chaos_claims_turns import TURNS, Turn, nth, numbered
from chaos_installation import Armed, Record
from chaos_proxy import Break
from chaos_striking import ANSWERS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

WATCHER = "watcher killed at that moment"
KILLS = {
    "worker killed after the effect": Break.AFTER,
    "worker killed before the effect": Break.BEFORE,
    "worker killed, effect comes later": Break.LATE,
}
FAULTS = (*KILLS, *ANSWERS, WATCHER)


def _cases() -> list[object]:
    """All of them, in an order of which every beginning says as much as it can.

    First each kind of write (verb, kind, subresource) with each fault, once: in each round every kind with another
    fault, and in another turn where it occurs in several. Then whatever is left, a fault after the other.
    """
    occurrences: dict[str, list[tuple[Turn, str]]] = {}
    for turn in TURNS:
        for write in turn.writes:
            occurrences.setdefault(write.rpartition(" ")[0], []).append((turn, write))
    first = [
        (*places[round_ % len(places)], FAULTS[(number + round_) % len(FAULTS)])
        for round_ in range(len(FAULTS))
        for number, places in enumerate(occurrences.values())
    ]
    others = [(turn, write, fault) for fault in FAULTS for turn in TURNS for write in turn.writes]
    tried = {(turn.name, write, fault) for turn, write, fault in first}
    rest = [(turn, write, fault) for turn, write, fault in others if (turn.name, write, fault) not in tried]
    return [
        pytest.param(turn, write, fault, id=f"{fault}-{turn.name}-{write}".replace(" ", "_").replace("/", "."))
        for turn, write, fault in (*first, *rest)
    ]


def _break(lab: ClaimsLab, turn: Turn, write: str, fault: str) -> float:
    """Take the turn with that fault at that write; the seconds until everything agrees."""
    lab.tidy()
    name = turn.prepare(lab)
    lab.oracle.forget()
    kind = Break.DELAYED if fault == WATCHER else KILLS.get(fault) or ANSWERS[fault]
    made = lab.intercept(nth(write), kind)
    turn.act(lab, name)
    lab.await_struck([Armed(f"{turn.name}: {write}", made.struck.is_set)])
    if fault == WATCHER:
        lab.watch.kill()
        lab.watch.start()
    if fault in KILLS:
        lab.worker.kill()
        lab.lift()
        lab.worker.start()
    took = lab.settle()
    lab.lift()
    lab.audit_at_times()
    return took


@pytest.mark.chaos
@pytest.mark.parametrize(("turn", "write", "fault"), _cases())
def test_everything_agrees_again_whatever_breaks(
    claims_lab: ClaimsLab,
    record: Record,
    record_property: Callable[[str, object], None],
    turn: Turn,
    write: str,
    fault: str,
) -> None:
    record([(turn.name, write)], fault)
    record_property("seconds", round(_break(claims_lab, turn, write, fault), 1))


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn.name.replace(" ", "_"))
def test_an_undisturbed_turn_makes_the_writes_that_are_tried_and_none_of_another_name(
    claims_lab: ClaimsLab, turn: Turn
) -> None:
    lab = claims_lab
    lab.tidy()
    name = turn.prepare(lab)
    lab.settle()
    lab.proxy.requests.clear()
    lab.proxy.recording = True
    try:
        turn.act(lab, name)
        lab.settle()
    finally:
        lab.proxy.recording = False
    made = numbered(lab.proxy.requests)
    assert set(turn.writes) <= set(made)
    assert _unnumbered(made) == _unnumbered(turn.writes)


def _unnumbered(writes: Iterable[str]) -> set[str]:
    return {write.rpartition(" ")[0] for write in writes}


def test_a_handle_that_was_made_when_the_worker_died_is_found_again(claims_lab: ClaimsLab) -> None:
    """What the default run holds of all this."""
    _break(claims_lab, TURNS[0], "POST resourcehandles 1", "worker killed after the effect")
