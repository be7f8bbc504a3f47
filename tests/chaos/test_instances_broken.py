"""Every step from an event to its label and its reaction is broken: processes and servers die, answers are lost.

Each life (`TURNS`) is taken once undisturbed, which holds that its steps are those named here; then with each fault at
each step, everything agrees again by itself: labels say what EC2 says, Machines are deleted that have lost their
instance and no others, hooks are completed, the queue is empty and nothing is among the dead letters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from chaos_claims_turns import nth, numbered
from chaos_installation import Armed, Record
from chaos_instances_lab import InstancesLab, Life
from chaos_proxy import Break
from chaos_striking import ANSWERS

from localcloud.aws.contract import FaultKind
from localcloud.aws.events_contract import EventFaultKind

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(400)]

HOLD_SECONDS = 20.0


@dataclass(frozen=True)
class Turn:
    """What happens to an instance; `steps` are the writes and calls by which Perdure answers, in their order."""

    name: str
    prepare: Callable[[InstancesLab], Life]
    act: Callable[[InstancesLab, Life], object]
    steps: tuple[str, ...]


def _scheduled(lab: InstancesLab) -> Life:
    life = lab.launch()
    lab.settle()
    _EVENTS[life.name] = lab.schedule(life)
    return life


_EVENTS: dict[str, str] = {}
LABEL, GIVE_UP = "PATCH awsmachines 1", "DELETE machines 1"
COMPLETE = "autoscaling CompleteLifecycleAction"
RECEIVED, DELETED = "sqs ReceiveMessage", "sqs DeleteMessageBatch"
TURNS = (
    Turn("stop", InstancesLab.launch, InstancesLab.stop_one, (RECEIVED, LABEL, DELETED)),
    Turn("end", InstancesLab.launch, InstancesLab.end_one, (RECEIVED, LABEL, GIVE_UP, DELETED)),
    Turn(
        "spot",
        lambda lab: lab.launch(spot=True),
        InstancesLab.take_back,
        (RECEIVED, LABEL, GIVE_UP, "PATCH awsmachines 2", DELETED),
    ),
    Turn(
        "shrink",
        lambda lab: lab.launch(grouped=True),
        InstancesLab.shrink,
        (RECEIVED, "PATCH awsmachinepools 1", LABEL, GIVE_UP, COMPLETE, DELETED),
    ),
    Turn("schedule", InstancesLab.launch, InstancesLab.schedule, (RECEIVED, LABEL, DELETED)),
    Turn(
        "withdraw",
        _scheduled,
        lambda lab, life: lab.withdraw(life, _EVENTS[life.name]),
        (RECEIVED, LABEL, DELETED),
    ),
)
WORKER_KILLS = {
    "worker killed after": Break.AFTER,
    "worker killed before": Break.BEFORE,
    "worker killed, effect comes later": Break.LATE,
}
AT_WORK = ("consumer killed", "watcher killed", "Temporal killed", "API server killed")
OF_WRITES = (*WORKER_KILLS, *AT_WORK, *ANSWERS)
CALLS = {"answer lost": FaultKind.AFTER, "not heard": FaultKind.BEFORE, "refused with 429": FaultKind.THROTTLE}
OF_HOOKS = ("worker killed after", "worker killed before", "consumer killed", "Temporal killed", *CALLS)
OF_QUEUES = ("consumer killed", "Temporal killed", *CALLS)
OF_EVENTS = {
    "told twice": EventFaultKind.DOUBLE,
    "told late": EventFaultKind.DELAY,
    "told out of order": EventFaultKind.REORDER,
    "never told": EventFaultKind.DROP,
}
EVENT = "event"


def _faults(step: str) -> tuple[str, ...]:
    if step.startswith("sqs"):
        return OF_QUEUES
    return OF_HOOKS if step == COMPLETE else OF_WRITES


def _cases() -> list[object]:
    """All of them; every beginning says as much as it can: each step and turn with another fault in each round."""
    rounds: list[list[tuple[Turn, str, str]]] = [[] for _ in OF_WRITES]
    for number, (turn, step) in enumerate([(each, step) for each in TURNS for step in each.steps]):
        for index, fault in enumerate(_faults(step)):
            rounds[(index - number) % len(rounds)].append((turn, step, fault))
    for number, turn in enumerate(TURNS):
        for index, fault in enumerate(OF_EVENTS):
            rounds[(index + number) % len(rounds)].append((turn, EVENT, fault))
    return [
        pytest.param(turn, step, fault, id=f"{turn.name}-{step}-{fault}".replace(" ", "_"))
        for each in rounds
        for turn, step, fault in each
    ]


@pytest.mark.parametrize(("turn", "step", "fault"), _cases())
def test_everything_agrees_again_whatever_breaks(
    instances_lab: InstancesLab,
    record: Record,
    record_property: Callable[[str, object], None],
    turn: Turn,
    step: str,
    fault: str,
) -> None:
    lab = instances_lab
    lab.forget()
    if fault == "never told":
        lab.look_often()
    record([(f"{turn.name}", step)], fault)
    life = turn.prepare(lab)
    lab.settle()
    try:
        armed = _armed(lab, life, step, fault)
        turn.act(lab, life)
        if fault == "never told" and turn.name == "spot":
            life.interruption = None  # nothing but its event ever tells of a notice; the end is found
        if armed is not None:
            lab.await_one(armed)
        _strike(lab, fault)
        record_property("seconds", round(lab.settle(), 1))
    finally:
        lab.lift()
        if fault == "never told":
            lab.look_seldom()


def _armed(lab: InstancesLab, life: Life, step: str, fault: str) -> Armed | None:
    if step == EVENT:
        count = None if fault == "never told" else 1
        lab.emulator.event_fault(OF_EVENTS[fault], containing=life.instance, count=count)
        return None
    if " " in step and step.split(maxsplit=1)[0].islower():
        service, action = step.split()
        if fault in CALLS:
            return lab.disturb(service, action, CALLS[fault], 3 if fault == "refused with 429" else 1)
        late = fault != "worker killed before"
        return lab.disturb(service, action, FaultKind.DELAY, delay_seconds=HOLD_SECONDS, late_answer=late)
    kind = WORKER_KILLS.get(fault) or ANSWERS.get(fault) or Break.DELAYED
    return Armed(step, lab.intercept(nth(step), kind).struck.is_set)


def _strike(lab: InstancesLab, fault: str) -> None:
    """What dies while the step is under way; then whatever was held goes on."""
    process = {"consumer killed": lab.events, "watcher killed": lab.watch}.get(fault)
    if fault in WORKER_KILLS:
        process = lab.worker
    server = {"Temporal killed": "temporal", "API server killed": "kube-apiserver"}.get(fault)
    if process is not None:
        process.kill()
        lab.lift()
        process.start()
    elif server is not None:
        pid = lab.deployment.kill(server)
        lab.lift()
        lab.deployment.wait_service(server, other_than_pid=pid, timeout_seconds=120)


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn.name)
def test_an_undisturbed_turn_takes_the_steps_that_are_broken_and_none_of_another_name(
    instances_lab: InstancesLab, turn: Turn
) -> None:
    lab = instances_lab
    lab.forget()
    life = turn.prepare(lab)
    lab.settle()
    lab.emulator.reset_ledger()
    lab.proxy.requests.clear()
    lab.proxy.recording = True
    try:
        turn.act(lab, life)
        lab.settle()
    finally:
        lab.proxy.recording = False
    made = numbered(lab.proxy.requests)
    writes = {step for step in turn.steps if step.split()[0].isupper()}
    assert writes <= set(made)
    assert {each.rpartition(" ")[0] for each in made} == {each.rpartition(" ")[0] for each in writes}
    ledger = lab.emulator.ledger()
    for step in turn.steps:
        if step.split()[0].islower():
            assert ledger.calls(*step.split()) > 0, step
