"""Every kind of effect of 3scale objects' life is broken: all eleven kinds created, changed and deleted.

In each case one turn meets one fault, at each kind of call to 3scale, or of write to Kubernetes, that the turn has:
processes and servers die while it is under way, its answer is late or lost, it is refused in the ways in which these
APIs refuse. By itself everything agrees again: 3scale holds what it holds after a life that nothing has disturbed,
nothing twice and nothing less, every object says so, one workflow per object; after a deletion nothing at all.

What a person has to do all the same: where the one answer that shows a new tenant's token is lost, somebody makes
another token, as the Tenant says.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import zip_longest

import pytest
from chaos_balancers_lab import named
from chaos_installation import Record
from chaos_striking import WATCHER, WORKER, WRITE_ANSWERS, WRITE_DEATHS, Struck, arm_write, await_each, dying, kill
from chaos_threescale_lab import CALL_SECONDS, TURNS, ThreescaleLab
from chaos_threescale_turns import CALLS, WRITES

from localcloud.services import API_SERVER, TEMPORAL, THREESCALE
from localcloud.threescale.contract import FaultKind
from tests.replay.recording import recording

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(1200)]

# Calls to 3scale that are under way while somebody dies: done already, or to be done a moment later.
CALL_DEATHS = {
    "worker killed after the effect": (WORKER, True),
    "worker killed, effect comes later": (WORKER, False),
    "watcher killed meanwhile": (WATCHER, True),
    "Temporal killed meanwhile": (TEMPORAL, True),
    "API server killed meanwhile": (API_SERVER, True),
    "3scale killed after the effect": (THREESCALE, True),
    "3scale killed before the effect": (THREESCALE, False),
}
UNDER_WAY_SECONDS = 2.0
TOGETHER_SECONDS = 0.5
CALL_ANSWERS: dict[str, dict[str, object]] = {
    "late": {"kind": FaultKind.DELAY, "delay_seconds": 1.5},
    "later than is waited for": {"kind": FaultKind.DELAY, "delay_seconds": CALL_SECONDS + 2},
    "done, answer lost": {"kind": FaultKind.AFTER},
    "done, answer broken off": {"kind": FaultKind.CUT},
    "done, answered 502": {"kind": FaultKind.REFUSE_AFTER, "status": 502},
    "not heard": {"kind": FaultKind.BEFORE},
    "refused with 500": {"status": 500},
    "refused with 503": {"status": 503},
    "refused with 429": {"status": 429, "headers": {"Retry-After": "1"}},
    "refused with 403": {"status": 403},
    "refused with 404": {"status": 404},
    "refused with 409": {"status": 409},
    "refused with 422": {"status": 422},
}
# The answer to this call is the only showing of a token, and this write keeps it.
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


# Who dies does so a dozen times in one turn if it is to be at each kind of effect: in three parts, in as many lives.
PARTS = 3


def _cases() -> list[object]:
    """All of them: the turns follow one another as in a life, each with another fault.

    Every beginning says as much as it can: after a third of the lives each fault has been tried in one of the turns.
    """
    faults = [
        (side, fault, part)
        for part in range(PARTS)
        for side, fault in _interleaved()
        if part == 0 or fault in CALL_DEATHS or fault in WRITE_DEATHS
    ]
    third = len(faults) // len(TURNS)
    return [
        pytest.param(turn, *chosen, id=_id(turn, *chosen))
        for life in range(len(faults))
        for number, turn in enumerate(TURNS)
        for chosen in [faults[(life + number * third) % len(faults)]]
        if _effects(turn, *chosen)
    ]


def _interleaved() -> list[tuple[str, str]]:
    sides = [
        [(CLOUD, fault) for fault in CALL_DEATHS],
        [(CLOUD, fault) for fault in CALL_ANSWERS],
        [(KUBERNETES, fault) for fault in WRITE_DEATHS],
        [(KUBERNETES, fault) for fault in WRITE_ANSWERS],
    ]
    return [each for together in zip_longest(*sides) for each in together if each is not None]


def _id(turn: str, side: str, fault: str, part: int) -> str:
    return f"{side}-{fault}-{turn}-{part + 1}".replace(" ", "_")


def _effects(turn: str, side: str, fault: str, part: int) -> tuple[str, ...]:
    """The kinds of effects that are broken: all, or of those at which somebody dies every third.

    A deletion's 404 is left out: it would say that what is to be deleted is gone, and is believed.
    """
    whole = (CALLS if side == CLOUD else WRITES)[turn]
    if (side, fault) == (CLOUD, "refused with 404"):
        whole = tuple(each for each in whole if not each.startswith("DELETE "))
    return whole[part::PARTS] if fault in CALL_DEATHS or fault in WRITE_DEATHS else whole


def test_an_undisturbed_life_has_the_effects_that_are_tried_and_no_others(threescale_lab: ThreescaleLab) -> None:
    threescale_lab.ready_to(TURNS[0])
    if recording():
        threescale_lab.record()
    found = {turn: threescale_lab.effects(turn) for turn in TURNS}
    assert {turn: calls for turn, (_, calls) in found.items()} == {turn: {*CALLS[turn]} for turn in TURNS}
    made = {turn: {*writes} for turn, (writes, _) in found.items()}
    assert all({*WRITES[turn]} <= made[turn] for turn in TURNS), made
    # Whether something is told of a moment that passes is a matter of who comes first.
    others = {write for turn in TURNS for write in made[turn] - {*WRITES[turn]}}
    assert all(write.startswith("PATCH ") and write.endswith("/status") for write in others), others


@pytest.mark.parametrize(("turn", "side", "fault", "part"), _cases())
def test_one_of_each_kind_comes_to_the_same_whatever_breaks(
    threescale_lab: ThreescaleLab,
    record: Record,
    record_property: Callable[[str, object], None],
    turn: str,
    side: str,
    fault: str,
    part: int,
) -> None:
    effects = _effects(turn, side, fault, part)
    record([(turn, effect) for effect in effects], f"{side}: {fault}")
    threescale_lab.ready_to(turn)
    arm = _arm_call if side == CLOUD else _arm_write
    armed = {effect: arm(threescale_lab, effect, fault) for effect in effects}
    threescale_lab.take(turn)
    threescale_lab.token_may_be_lost = fault in _LOSES_TOKEN and bool({SHOWS_TOKEN, KEEPS_TOKEN} & {*effects})
    victim = CALL_DEATHS.get(fault, ("", True))[0] if side == CLOUD else dying(fault)
    strike = partial(kill, threescale_lab, victim) if victim else None
    await_each(armed, strike, together_seconds=TOGETHER_SECONDS if side == CLOUD else 0)
    record_property("seconds", round(threescale_lab.settle(), 1))
    threescale_lab.audit()


def _arm_call(lab: ThreescaleLab, call: str, fault: str) -> Struck:
    if fault in CALL_DEATHS:
        late_answer = CALL_DEATHS[fault][1]
        return Struck(lab.disturb(call, kind=FaultKind.DELAY, delay_seconds=UNDER_WAY_SECONDS, late_answer=late_answer))
    return Struck(lab.disturb(call, **CALL_ANSWERS[fault]))


def _arm_write(lab: ThreescaleLab, write: str, fault: str) -> Struck:
    return arm_write(lab, named(write), fault)
