"""Every kind of effect of a load balancer's life is broken, on a real OpenStack: creation, scaling, rollout, deletion.

In each case one turn meets one fault, at each kind of call to OpenStack, or of write to Kubernetes, that the turn has:
processes and servers die while it is under way, its answer is lost, it is refused in the ways in which these APIs
refuse. By itself everything agrees again: one floating IP, one security group, one port with the virtual address, as
many machines, ports and servers as there are replicas, each machine with its rights, one workflow per object; after a
deletion nothing at all.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import pytest
from chaos_balancers_lab import TURNS, BalancersLab, named
from chaos_balancers_turns import CALLS, WRITES
from chaos_installation import STRIKE_SECONDS, Record
from chaos_proxy import Break

from localcloud.openstack.contract import FaultKind
from localcloud.services import API_SERVER, TEMPORAL

pytestmark = [pytest.mark.integration, pytest.mark.openstack, pytest.mark.chaos, pytest.mark.timeout(1200)]

WORKER, WATCHER = "worker", "watcher"
# Calls to OpenStack that are under way while somebody dies, and have their effect all the same.
CALL_DEATHS = {
    "worker killed, effect comes later": WORKER,
    "watcher killed meanwhile": WATCHER,
    "Temporal killed meanwhile": TEMPORAL,
    "API server killed meanwhile": API_SERVER,
}
UNDER_WAY_SECONDS = 4.0
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
# Writes to Kubernetes: on which side of the effect who dies.
WRITE_DEATHS = {
    "worker killed before the effect": (WORKER, Break.BEFORE),
    "worker killed after the effect": (WORKER, Break.AFTER),
    "worker killed, effect comes later": (WORKER, Break.LATE),
    "watcher killed meanwhile": (WATCHER, Break.DELAYED),
    "Temporal killed meanwhile": (TEMPORAL, Break.DELAYED),
    "API server killed, answer lost": (API_SERVER, Break.AFTER),
}
WRITE_ANSWERS = {
    "done, answer lost": Break.LOST,
    "refused with 409": Break.CONFLICT,
    "refused with 429": Break.THROTTLED,
    "refused with 500": Break.FAILED,
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
    dying = CALL_DEATHS.get(fault) if side == OPENSTACK else WRITE_DEATHS.get(fault, ("",))[0]
    _await_each(armed, partial(_kill, balancers_lab, dying) if dying else None)
    record_property("seconds", round(balancers_lab.settle(), 1))


@dataclass(frozen=True)
class Armed:
    """A kind of effect at which something happens once; what is held there goes on when it is let go."""

    struck: Callable[[], bool]
    let_go: Callable[[], None] = lambda: None


def _arm_call(lab: BalancersLab, call: str, fault: str) -> Armed:
    if fault in CALL_DEATHS:
        return Armed(lab.disturb(call, kind=FaultKind.DELAY, delay_seconds=UNDER_WAY_SECONDS))
    return Armed(lab.disturb(call, **(CALL_ANSWERS[fault] or QUOTA[call.partition(" ")[0]])))


def _arm_write(lab: BalancersLab, write: str, fault: str) -> Armed:
    kind = WRITE_ANSWERS[fault] if fault in WRITE_ANSWERS else WRITE_DEATHS[fault][1]
    made = lab.proxy.intercept(named(write), kind)
    return Armed(made.struck.is_set, made.released.set)


def _await_each(armed: Mapping[str, Armed], strike: Callable[[], None] | None) -> None:
    """Wait until every effect has been reached; each time that one more is, strike.

    Raises:
        AssertionError: some are never reached, so nothing was tried there.
    """
    waiting, deadline = dict(armed), time.monotonic() + STRIKE_SECONDS
    while waiting:
        reached = [effect for effect, each in waiting.items() if each.struck()]
        if reached and strike is not None:
            strike()
        for effect in reached:
            waiting.pop(effect).let_go()
            deadline = time.monotonic() + STRIKE_SECONDS
        assert time.monotonic() < deadline, f"never reached, so nothing was tried: {', '.join(waiting)}"
        time.sleep(0.05)


def _kill(lab: BalancersLab, victim: str) -> None:
    if victim in (WORKER, WATCHER):
        process = lab.worker if victim == WORKER else lab.watch
        process.kill()
        process.start()
        process.await_ready()
        return
    pid = lab.deployment.kill(victim, signal.SIGKILL)
    lab.deployment.wait_service(victim, other_than_pid=pid, timeout_seconds=180)


def test_an_undisturbed_life_has_the_effects_that_are_tried_and_no_others(balancers_lab: BalancersLab) -> None:
    balancers_lab.ready_to(TURNS[0])
    for turn in TURNS:
        writes, calls = balancers_lab.effects(turn)
        assert calls == set(CALLS[turn])
        assert writes == set(WRITES[turn])
