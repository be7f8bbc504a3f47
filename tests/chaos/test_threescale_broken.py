"""Every kind of effect of 3scale objects' life is broken: all eleven kinds created, changed and deleted.

In each case one turn meets its faults at each kind of call to 3scale, and of write to Kubernetes, that the turn has.
Answers that are late, lost or refusals, as these APIs refuse, strike six lives at once, each life with one of them.
Processes and servers die while something is under way, in four lives at once, each of which has a quarter of the
kinds of effects. By itself everything agrees again: 3scale holds what it holds after a life that nothing has disturbed,
nothing twice and nothing less, every object says so, one workflow per object; after a deletion nothing at all.

What a person has to do all the same: where the one answer that shows a new tenant's token is lost, a person makes
another token, as the Tenant says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import pytest
from chaos_installation import Record
from chaos_proxy import Request
from chaos_striking import (
    TOGETHER_SECONDS,
    WRITE_ANSWERS,
    WRITE_DEATHS,
    Struck,
    arm_write,
    await_each,
    kill,
    victim,
    write_name,
)
from chaos_threescale_lab import CALL_SECONDS, ThreescaleLab
from chaos_threescale_life import TURNS, Life
from chaos_threescale_turns import CALLS, WRITES, is_believed

from localcloud.threescale.contract import FaultKind
from tests.replay.recording import recording

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(1200)]

# Calls to 3scale in flight when a process is killed: done already, or to be done a moment later.
CALL_DEATHS = {
    "worker killed after the effect": True,
    "worker killed, effect comes later": False,
    "watcher killed meanwhile": True,
    "Temporal killed meanwhile": True,
    "API server killed meanwhile": True,
    "3scale killed after the effect": True,
    "3scale killed before the effect": False,
}
UNDER_WAY_SECONDS = 4.0
CALL_ANSWERS: dict[str, dict[str, object]] = {
    "late": {"kind": FaultKind.DELAY, "delay_seconds": 1.5},
    "later than is waited for": {"kind": FaultKind.DELAY, "delay_seconds": CALL_SECONDS + 2},
    "done, answer lost": {"kind": FaultKind.AFTER},
    "done, answer broken off": {"kind": FaultKind.CUT},
    "done, answered 502": {"kind": FaultKind.REFUSE_AFTER, "status": 502},
    "not received": {"kind": FaultKind.BEFORE},
    "refused with 500": {"status": 500},
    "refused with 503": {"status": 503},
    "refused with 429": {"status": 429, "headers": {"Retry-After": "1"}},
    "refused with 403": {"status": 403},
    "refused with 404": {"status": 404},
    "refused with 409": {"status": 409},
    "refused with 422": {"status": 422},
}
# The answer to this call is the only showing of a token, and this write stores it.
SHOWS_TOKEN, KEEPS_TOKEN = "POST /master/api/providers", "POST secrets"
_LOSES_TOKEN = {
    "later than is waited for",
    "done, answer lost",
    "done, answer broken off",
    "done, answered 502",
    "worker killed after the effect",
    "worker killed, effect comes later",
    "worker killed before the effect",
    "3scale killed after the effect",
}
CLOUD, KUBERNETES = "calls to 3scale", "writes to Kubernetes"


# What is answered instead, each in a life of its own, some of them at once: seventeen begin with 240 workflows in one
# moment, and Temporal's development server, on a computer with other work, does not come to an end of these.
ANSWERED = (*((CLOUD, fault) for fault in CALL_ANSWERS), *((KUBERNETES, fault) for fault in WRITE_ANSWERS))
AT_ONCE = 6
# A process would have to be killed a dozen times in one turn to be killed at each kind of effect. So the kinds are
# spread over four objects, whose calls one kill interrupts together.
PARTS = 4
# Kills at calls, and at writes in the same way, are made for one object.
RIDING = {
    "worker killed after the effect": "worker killed after the effect",
    "worker killed, effect comes later": "worker killed, effect comes later",
    "watcher killed meanwhile": "watcher killed meanwhile",
    "Temporal killed meanwhile": "Temporal killed meanwhile",
    "API server killed meanwhile": "API server killed, answer lost",
}
Broken = tuple[tuple[str, str], ...]  # sides with their faults


def _deaths() -> list[object]:
    """The turns follow one another as in a life, each with another death; after a third of them each has been tried."""
    deaths: list[Broken] = [
        ((CLOUD, fault), (KUBERNETES, RIDING[fault])) if fault in RIDING else ((CLOUD, fault),) for fault in CALL_DEATHS
    ]
    deaths += [((KUBERNETES, fault),) for fault in WRITE_DEATHS if fault not in RIDING.values()]
    third = len(deaths) // len(TURNS)
    return [
        pytest.param(turn, broken, id=f"{broken[0][1]}-{turn}".replace(" ", "_"))
        for life in range(len(deaths))
        for number, turn in enumerate(TURNS)
        for broken in [deaths[(life + number * third) % len(deaths)]]
    ]


def _effects(turn: str, side: str, fault: str) -> tuple[str, ...]:
    """The kinds of effects that are broken, but for those of which the answer would say that they are there."""
    if side != CLOUD:
        return WRITES[turn]
    status = fault.removeprefix("refused with ")
    return tuple(each for each in CALLS[turn] if not is_believed(each, status))


def _part(turn: str, part: int, side: str, fault: str) -> tuple[str, ...]:
    """A part of the effects; the write that stores a token is in another part than the loss of its answer."""
    shown, stored = CALLS["create"].index(SHOWS_TOKEN), WRITES["create"].index(KEEPS_TOKEN)
    first = part if side == CLOUD else part + stored - shown - 1
    return _effects(turn, side, fault)[first % PARTS :: PARTS]


def test_an_undisturbed_life_has_the_effects_that_are_tried_and_no_others(threescale_lab: ThreescaleLab) -> None:
    threescale_lab.ready_to(TURNS[0], threescale_lab.life())
    if recording():
        threescale_lab.record()
    found = {turn: threescale_lab.effects(turn) for turn in TURNS}
    assert {turn: calls for turn, (_, calls) in found.items()} == {turn: {*CALLS[turn]} for turn in TURNS}
    made = {turn: {*writes} for turn, (writes, _) in found.items()}
    assert all({*WRITES[turn]} <= made[turn] for turn in TURNS), made
    # Whether a moment that passes is reported depends on the order of the passes.
    others = {write for turn in TURNS for write in made[turn] - {*WRITES[turn]}}
    assert all(write.startswith("PATCH ") and write.endswith("/status") for write in others), others


@pytest.mark.parametrize(
    ("turn", "first"), [(turn, first) for first in range(0, len(ANSWERED), AT_ONCE) for turn in TURNS]
)
def test_lives_that_each_meet_another_answer_come_to_the_same(
    threescale_lab: ThreescaleLab,
    record: Record,
    record_property: Callable[[str, object], None],
    turn: str,
    first: int,
) -> None:
    numbers = range(first, min(first + AT_ONCE, len(ANSWERED)))
    lives = {ANSWERED[number]: threescale_lab.life(f"answer-{number}") for number in numbers}
    threescale_lab.ready_to(turn, *lives.values())
    broken = [(life, each, _effects(turn, *each)) for each, life in lives.items()]
    armed = _armed(threescale_lab, broken, record)
    for life, (_, fault), effects in broken:
        life.take(turn)
        life.token_may_be_lost = _loses_token(fault, effects)
    await_each(armed, None)
    record_property("seconds", round(threescale_lab.settle(), 1))
    threescale_lab.audit()


@pytest.mark.parametrize(("turn", "broken"), _deaths())
def test_lifecycles_reach_the_same_result_whichever_process_dies(
    threescale_lab: ThreescaleLab,
    record: Record,
    record_property: Callable[[str, object], None],
    turn: str,
    broken: Broken,
) -> None:
    lives = [threescale_lab.life(f"part-{part + 1}") for part in range(PARTS)]
    threescale_lab.ready_to(turn, *lives)
    struck = [(life, each, _part(turn, part, *each)) for part, life in enumerate(lives) for each in broken]
    armed = _armed(threescale_lab, struck, record)
    for life in lives:
        life.take(turn)
        own = [(fault, effects) for other, (_, fault), effects in struck if other is life]
        life.token_may_be_lost = any(_loses_token(*each) for each in own)
    (dying,) = {victim(fault) for _, fault in broken}
    await_each(armed, partial(kill, threescale_lab, dying), together_seconds=TOGETHER_SECONDS)
    record_property("seconds", round(threescale_lab.settle(), 1))
    threescale_lab.audit()


def _armed(
    lab: ThreescaleLab, broken: Iterable[tuple[Life, tuple[str, str], Sequence[str]]], record: Record
) -> dict[str, Struck]:
    """The effects of each life that its fault is to strike, noted."""
    armed = {}
    for life, (side, fault), effects in broken:
        record([(life.coming, effect) for effect in effects], f"{side}: {fault}")
        arm = _arm_call if side == CLOUD else _arm_write
        armed |= {f"{life.name}, {side}, {fault}: {effect}": arm(lab, life, effect, fault) for effect in effects}
    return armed


def _loses_token(fault: str, effects: Sequence[str]) -> bool:
    return fault in _LOSES_TOKEN and bool({SHOWS_TOKEN, KEEPS_TOKEN} & {*effects})


def _arm_call(lab: ThreescaleLab, life: Life, call: str, fault: str) -> Struck:
    if fault in CALL_DEATHS:
        late_answer = CALL_DEATHS[fault]
        delay = {"kind": FaultKind.DELAY, "delay_seconds": UNDER_WAY_SECONDS, "late_answer": late_answer}
        return Struck(lab.disturb(life, call, **delay))
    return Struck(lab.disturb(life, call, **CALL_ANSWERS[fault]))


def _arm_write(lab: ThreescaleLab, life: Life, write: str, fault: str) -> Struck:
    place = f"/namespaces/{life.name}/"

    def matches(request: Request) -> bool:
        return request.method != "GET" and place in request.path and write_name(request) == write

    return arm_write(lab, matches, fault, UNDER_WAY_SECONDS)
