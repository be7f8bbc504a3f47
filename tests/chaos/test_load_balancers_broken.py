"""Every kind of effect of a load balancer's life is broken, on a real OpenStack: creation, scaling, rollout, deletion.

In each case one turn meets one fault, at each kind of call to OpenStack, or of write to Kubernetes, that the turn has:
processes and servers die while it is under way, its answer is lost, it is refused in the ways in which these APIs
refuse. By itself everything agrees again: one floating IP, one security group, one port with the virtual address, as
many machines, ports and servers as there are replicas, each machine with its rights, one workflow per object; after a
deletion nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from chaos_balancers_lab import TURNS, BalancersLab, named
from chaos_balancers_turns import CALLS, WRITES
from chaos_installation import Record
from chaos_striking import (
    WATCHER,
    WORKER,
    WRITE_ANSWERS,
    WRITE_DEATHS,
    Struck,
    arm_write,
    await_each,
    dying,
    kill,
)

from localcloud.openstack.contract import FaultKind
from localcloud.services import API_SERVER, TEMPORAL

pytestmark = [pytest.mark.integration, pytest.mark.openstack, pytest.mark.chaos, pytest.mark.timeout(1200)]

# Calls to OpenStack that are under way while somebody dies, and have their effect all the same.
CALL_DEATHS = {
    "worker killed, effect comes later": WORKER,
    "watcher killed meanwhile": WATCHER,
    "Temporal killed meanwhile": TEMPORAL,
    "API server killed meanwhile": API_SERVER,
}
UNDER_WAY_SECONDS = 4.0
# What is held goes on when it is let go, or later than this: so long others may come to be struck with it.
TOGETHER_SECONDS = 1.0
CALL_ANSWERS: dict[str, dict[str, object]] = {
    "done, answer lost": {"kind": FaultKind.CUT},
    "done, answered 504": {"kind": FaultKind.AFTER, "status": 504},
    "refused with 500": {"status": 500},
    "refused with 503": {"status": 503},
    "refused with 409": {"status": 409},
    "refused with 401": {"status": 401},
    "refused with 429": {"status": 429, "headers": {"Retry-After": "2"}},
    "refused for a quota": {},
}
QUOTA: dict[str, dict[str, object]] = {
    "neutron": {"status": 409, "type": "OverQuota", "message": "Quota exceeded for resources: ['port']."},
    "nova": {"status": 403, "message": "Quota exceeded for instances: Requested 1, but already used 10 of 10."},
}
OPENSTACK, KUBERNETES = "calls to OpenStack", "writes to Kubernetes"


def _cases() -> list[object]:
    """All of them: the turns follow one another as in a life, each life meets another fault."""
    calls = [(OPENSTACK, fault) for fault in (*CALL_ANSWERS, *CALL_DEATHS)]
    writes = [(KUBERNETES, fault) for fault in (*WRITE_ANSWERS, *WRITE_DEATHS)]
    return [
        pytest.param(turn, side, fault, id=f"{side}-{fault}-{turn}".replace(" ", "_"))
        for side, fault in (*calls, *writes)
        for turn in TURNS
    ]


@pytest.mark.parametrize(("turn", "side", "fault"), _cases())
def test_a_load_balancer_has_one_of_each_whatever_breaks(
    balancers_lab: BalancersLab,
    record: Record,
    record_property: Callable[[str, object], None],
    turn: str,
    side: str,
    fault: str,
) -> None:
    effects = (CALLS if side == OPENSTACK else WRITES)[turn]
    record([(turn, effect) for effect in effects], f"{side}: {fault}")
    balancers_lab.ready_to(turn)
    arm = _arm_call if side == OPENSTACK else _arm_write
    armed = {effect: arm(balancers_lab, effect, fault) for effect in effects}
    balancers_lab.take(turn)
    victim = CALL_DEATHS.get(fault) if side == OPENSTACK else dying(fault)
    held = side == OPENSTACK or fault != "worker killed before the effect"
    strike = partial(kill, balancers_lab, victim) if victim else None
    await_each(armed, strike, together_seconds=TOGETHER_SECONDS if held else 0)
    record_property("seconds", round(balancers_lab.settle(), 1))


def _arm_call(lab: BalancersLab, call: str, fault: str) -> Struck:
    if fault in CALL_DEATHS:
        return Struck(lab.disturb(call, kind=FaultKind.DELAY, delay_seconds=UNDER_WAY_SECONDS))
    return Struck(lab.disturb(call, **(CALL_ANSWERS[fault] or QUOTA[call.partition(" ")[0]])))


def _arm_write(lab: BalancersLab, write: str, fault: str) -> Struck:
    return arm_write(lab, named(write), fault)


def test_an_undisturbed_life_has_the_effects_that_are_tried_and_no_others(balancers_lab: BalancersLab) -> None:
    balancers_lab.ready_to(TURNS[0])
    for turn in TURNS:
        writes, calls = balancers_lab.effects(turn)
        assert calls == set(CALLS[turn])
        assert writes == set(WRITES[turn])
