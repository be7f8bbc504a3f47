"""Every step from an event to its label and its reaction is broken: processes and servers die, answers are lost.

Each life (`TURNS`) is taken once undisturbed, which holds that its steps are those named here. Then all are taken under
one fault, which meets each step of each; those that are under way at the same time are struck by one death. By itself
everything agrees again: labels say what EC2 says, Machines are deleted that have lost their instance and no others,
replaced ones after their replacement is ready, Nodes without a Machine are drained, hooks are completed, the queue is
empty and nothing is among the dead letters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest

import pytest
from chaos_claims_oracle import at
from chaos_claims_turns import numbered
from chaos_installation import Record
from chaos_instances_lab import NODE_ONLY, REPLACED_FIRST, InstancesLab, Life
from chaos_proxy import Break, Request
from chaos_striking import ANSWERS, Struck, again, await_each, kill, victim

from domain.instances.constants import REPLACING_ANNOTATION, STATE_LABEL
from localcloud.aws.contract import FaultKind
from localcloud.aws.events_contract import EventFaultKind

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(900)]

CONSUMER = "consumer"
# Calls of AWS in flight when a process is killed, and effects interrupted together.
UNDER_WAY_SECONDS, HELD_SECONDS = 4.0, 12.0
TOGETHER_SECONDS = 0.5


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


def _with_requested_replacement(lab: InstancesLab) -> Life:
    life = lab.launch(policy=REPLACED_FIRST)
    lab.settle()
    life.replacement_ready, life.awaits_replacement = False, True
    _EVENTS[life.name] = lab.retire(life)
    life.state, life.kept = "running", True
    lab.settle()
    return life


def _keep(lab: InstancesLab, life: Life) -> None:
    """The reason is withdrawn before the replacement is ready."""
    life.awaits_replacement = False
    lab.withdraw(life, _EVENTS[life.name])


_EVENTS: dict[str, str] = {}
# A Machine is entered into the ledger of disruptions before it is deleted.
LABEL, ENTER, GIVE_UP = "PATCH awsmachines 1", "PATCH leases 1", "DELETE machines 1"
ASK, ANNOTATE, LOWER = "PATCH machinedeployments 1", "PATCH machines 1", "PATCH machinedeployments 2"
NODE_LABEL, CORDON, EVICT = "PATCH nodes 1", "PATCH nodes 2", "POST pods/eviction 1"
LAST_LABEL, LAST_NODE_LABEL = "PATCH awsmachines 2", "PATCH nodes 3"
COMPLETE, TERMINATE = "autoscaling CompleteLifecycleAction", "ec2 TerminateInstances"
OF_INSTANCES = (COMPLETE, TERMINATE)
RECEIVED, DELETED = "sqs ReceiveMessage", "sqs DeleteMessageBatch"
TURNS = (
    Turn("stop", InstancesLab.launch, InstancesLab.stop_one, (RECEIVED, LABEL, DELETED)),
    Turn("end", InstancesLab.launch, InstancesLab.end_one, (RECEIVED, LABEL, ENTER, GIVE_UP, DELETED)),
    Turn(
        "spot",
        lambda lab: lab.launch(spot=True),
        InstancesLab.take_back,
        (RECEIVED, LABEL, ENTER, GIVE_UP, LAST_LABEL, DELETED),
    ),
    Turn(
        "shrink",
        lambda lab: lab.launch(grouped=True),
        InstancesLab.shrink,
        (RECEIVED, "PATCH awsmachinepools 1", LABEL, ENTER, GIVE_UP, COMPLETE, DELETED),
    ),
    Turn("schedule", InstancesLab.launch, InstancesLab.schedule, (RECEIVED, LABEL, DELETED)),
    Turn(
        "withdraw",
        _scheduled,
        lambda lab, life: lab.withdraw(life, _EVENTS[life.name]),
        (RECEIVED, LABEL, DELETED),
    ),
    Turn(
        "replace",
        lambda lab: lab.launch(policy=REPLACED_FIRST),
        InstancesLab.retire,
        (RECEIVED, LABEL, ENTER, ASK, ANNOTATE, LOWER, GIVE_UP, LAST_LABEL, DELETED),
    ),
    Turn("keep", _with_requested_replacement, _keep, (RECEIVED, LABEL, ENTER, ASK, ANNOTATE, DELETED)),
    Turn(
        "drain a node",
        lambda lab: lab.launch(spot=True, policy=NODE_ONLY),
        InstancesLab.take_back,
        (RECEIVED, NODE_LABEL, ENTER, CORDON, EVICT, LAST_NODE_LABEL, DELETED),
    ),
    Turn(
        "shrink to no node",
        lambda lab: lab.launch(grouped=True, policy=NODE_ONLY),
        InstancesLab.shrink,
        (RECEIVED, NODE_LABEL, ENTER, CORDON, EVICT, COMPLETE, DELETED),
    ),
    Turn(
        "terminate a node's instance",
        lambda lab: lab.launch(policy=NODE_ONLY),
        InstancesLab.retire,
        (RECEIVED, NODE_LABEL, ENTER, CORDON, EVICT, TERMINATE, LAST_NODE_LABEL, DELETED),
    ),
)
CALLS = {"answer lost": FaultKind.AFTER, "not received": FaultKind.BEFORE, "refused with 429": FaultKind.THROTTLE}
_WORKER_BREAKS = {
    "worker killed before": Break.BEFORE,
    "worker killed after": Break.AFTER,
    "worker killed, effect comes later": Break.PARKED,
}
OF_WRITES = (*_WORKER_BREAKS, "consumer killed", "watcher killed", "Temporal killed", "API server killed", *ANSWERS)
# What meets Kubernetes' writes meets calls about an instance in the same case; the rest belongs to the messages' cases.
OF_CALLS_BESIDE_WRITES = ("worker killed before", "worker killed after")
OF_QUEUES = ("consumer killed", "Temporal killed", *CALLS)
OF_EVENTS = {
    "delivered twice": EventFaultKind.DOUBLE,
    "delivered late": EventFaultKind.DELAY,
    "delivered out of order": EventFaultKind.REORDER,
    "never delivered": EventFaultKind.DROP,
}
EVENT = "event"


def _of_writes(turn: Turn, fault: str) -> tuple[str, ...]:
    """The steps of a turn that a fault of writes meets."""
    calls = OF_INSTANCES if fault in OF_CALLS_BESIDE_WRITES else ()
    return tuple(step for step in turn.steps if step[0].isupper() or step in calls)


def _of_queues(turn: Turn) -> tuple[str, ...]:
    """The steps of a turn that a fault of messages meets."""
    return tuple(step for step in turn.steps if not step[0].isupper())


def _alternating() -> list[object]:
    """Every beginning says as much as it can: faults of writes, of messages and of events take turns."""
    writes, queues, events = (
        [pytest.param(side, fault, id=f"{side}-{fault}".replace(" ", "_")) for fault in faults]
        for side, faults in (("writes", OF_WRITES), ("messages", OF_QUEUES), ("events", OF_EVENTS))
    )
    return [each for some in zip_longest(writes, queues, events) for each in some if each is not None]


@pytest.mark.parametrize(("side", "fault"), _alternating())
def test_everything_agrees_again_whatever_breaks(
    instances_lab: InstancesLab,
    record: Record,
    record_property: Callable[[str, object], None],
    side: str,
    fault: str,
) -> None:
    lab = instances_lab
    lab.forget()
    tried = {"writes": lambda turn: _of_writes(turn, fault), "messages": _of_queues, "events": lambda _: (EVENT,)}
    for turn in TURNS:
        record([(turn.name, step) for step in tried[side](turn)], fault)
    if fault == "never delivered":
        lab.look_often()
    lives = {turn: turn.prepare(lab) for turn in TURNS}
    lab.settle()
    try:
        {"writes": _break_writes, "messages": _break_messages, "events": _break_events}[side](lab, lives, fault)
        record_property("seconds", round(lab.settle(), 1))
    finally:
        lab.lift()
        if fault == "never delivered":
            lab.look_seldom()


def _break_writes(lab: InstancesLab, lives: Mapping[Turn, Life], fault: str) -> None:
    """Everything happens at once, and each step is met by the fault; steps under way together by one death."""
    armed = {
        f"{turn.name}: {step}": _armed(lab, life, step, fault)
        for turn, life in lives.items()
        for step in _of_writes(turn, fault)
    }
    for turn, life in lives.items():
        turn.act(lab, life)
    await_each(armed, _strike(lab, fault), together_seconds=TOGETHER_SECONDS, meanwhile=lab.play)


def _break_messages(lab: InstancesLab, lives: Mapping[Turn, Life], fault: str) -> None:
    """One thing happens after the other, as a message's call is nobody's in particular."""
    for turn, life in lives.items():
        armed = {step: _armed(lab, life, step, fault) for step in _of_queues(turn)}
        turn.act(lab, life)
        await_each(armed, _strike(lab, fault), meanwhile=lab.play)


def _break_events(lab: InstancesLab, lives: Mapping[Turn, Life], fault: str) -> None:
    """Of each instance one event is disturbed, or all are lost."""
    for turn, life in lives.items():
        lab.emulator.event_fault(
            OF_EVENTS[fault], containing=life.instance, count=None if fault == "never delivered" else 1
        )
        turn.act(lab, life)
        if fault == "never delivered" and turn.act is InstancesLab.take_back:
            # Nothing but its event tells of a notice: the end is found, and an ended instance's Node is not drained.
            life.interruption, life.kept = None, life.has_node
        if fault == "never delivered" and turn.act is InstancesLab.shrink and life.has_node:
            life.kept = True  # nothing tells which groups a Node may be in


def _armed(lab: InstancesLab, life: Life, step: str, fault: str) -> Struck:
    """A fault at a step, for the first time that it is taken."""
    if step[0].isupper():
        kind = _WORKER_BREAKS.get(fault) or ANSWERS.get(fault) or Break.DELAYED
        made = lab.proxy.intercept(_taken(life, step), kind, seconds=HELD_SECONDS)
        overtaken = _overtaken(lab, life, step)
        return Struck(lambda: made.struck.is_set() or overtaken(), made.released.set)
    service, action = step.split()
    # Other calls are nobody's in particular: they name messages, or the token of a hook.
    of_it = {"containing": life.instance} if step == TERMINATE else {}
    if fault in CALLS:
        return Struck(
            lab.disturb(service, action, CALLS[fault], 3 if fault == "refused with 429" else 1, **of_it).struck
        )
    delay = {"delay_seconds": UNDER_WAY_SECONDS, "late_answer": fault != "worker killed before"}
    return Struck(lab.disturb(service, action, FaultKind.DELAY, **delay, **of_it).struck)


def _overtaken(lab: InstancesLab, life: Life, step: str) -> Callable[[], bool]:
    """Whether a step is not needed any more.

    Where nothing can be written for a while, the first label is written together with the second, and was struck. Once
    the replicas are lowered, the MachineSet may delete the Machine before Perdure does.
    """
    if step in (LAST_LABEL, LAST_NODE_LABEL):
        return partial(lab.tells_state, life)
    return partial(lab.is_going, life) if step == GIVE_UP and life.is_replaced else lambda: False


def _taken(life: Life, step: str) -> Callable[[Request], bool]:
    """Whether a request is this step of this life.

    The ledger is one Lease for all: the first write that holds the instance is its own.
    """
    method, what, _ = step.split()
    plural, _, subresource = what.partition("/")

    def matches(request: Request) -> bool:
        if step == ENTER:
            return request.of_one(method, plural) and life.instance in str(request.body)
        path = request.path.partition("?")[0].removesuffix(f"/{subresource}")
        of_it = request.of(method, plural, subresource) and path.endswith(f"/{life.name}")
        return of_it and _CONTENTS.get(step, lambda _: True)(request.body)

    return matches


def _labels_state(body: Mapping[str, object]) -> bool:
    return STATE_LABEL in (at(body, "metadata", "labels") or {})


# What tells a write from others of the same object.
_CONTENTS: Mapping[str, Callable[[Mapping[str, object]], bool]] = {
    LAST_LABEL: _labels_state,
    LOWER: lambda body: (at(body, "metadata", "annotations") or {}).get(REPLACING_ANNOTATION, "") is None,
    NODE_LABEL: lambda body: bool(at(body, "metadata", "labels")),
    LAST_NODE_LABEL: _labels_state,
    CORDON: lambda body: bool(at(body, "spec", "unschedulable")),
}


def _strike(lab: InstancesLab, fault: str) -> Callable[[], None] | None:
    """What dies while steps are under way; then whatever was held goes on."""
    dying = victim(fault)
    if dying == CONSUMER:
        return partial(again, lab.events)
    return partial(kill, lab, dying) if dying else None


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn.name)
def test_an_undisturbed_turn_takes_exactly_the_steps_that_the_sweep_breaks(
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
