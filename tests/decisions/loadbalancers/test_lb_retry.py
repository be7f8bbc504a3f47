"""A person's retry on a set that pauses after machines that did not boot."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from lb_objects import NOW, ago, machine_set

from domain.decision import Decision
from domain.loadbalancers.balancer_lifecycle import Phase
from domain.loadbalancers.machine.lifecycle import MachinePhase
from domain.loadbalancers.passes import RETRYABLE
from domain.loadbalancers.resources import LoadBalancerSet
from domain.loadbalancers.set_lifecycle import SetPhase, decide_set
from domain.loadbalancers.set_world import CreateMachine, SetWorld
from domain.writes import Patch, merge

PAUSING = {"perdure.dev/boot-failures": "a,b,c", "perdure.dev/boot-failed-at": ago(seconds=10)}


def decided(found: LoadBalancerSet) -> Decision:
    return decide_set(SetWorld(key=found.key, machine_set=found), NOW)


def created(found: LoadBalancerSet) -> int:
    return sum(isinstance(each, CreateMachine) for each in decided(found).actions)


def pausing(**more: str) -> LoadBalancerSet:
    finalizer = {"finalizers": ["stackit.cloud/loadbalancermachine"]}
    return machine_set(metadata={**finalizer, "annotations": {**PAUSING, **more}})


def after(found: LoadBalancerSet, patch: dict[str, Any]) -> LoadBalancerSet:
    return LoadBalancerSet.model_validate(merge(found.model_dump(mode="json", by_alias=True, exclude_none=True), patch))


def test_a_set_that_pauses_makes_no_machine() -> None:
    assert created(pausing()) == 0
    assert decided(pausing()).deadline == NOW + timedelta(minutes=2) - timedelta(seconds=10)


def test_a_retry_ends_the_pause_once_and_forgets_no_failure() -> None:
    requested = pausing(**{"perdure.dev/retry": "one"})
    (retried,) = decided(requested).actions
    assert isinstance(retried, Patch)
    honoured = after(requested, retried.patch)
    annotations = honoured.metadata.annotations
    assert annotations["perdure.dev/retried"] == "one"
    assert annotations["perdure.dev/boot-failures"] == "a,b,c"
    assert created(honoured) == 1

    failed_again = after(honoured, {"metadata": {"annotations": {"perdure.dev/boot-failed-at": ago(seconds=10)}}})
    assert created(failed_again) == 0, "the same retry counts once"


def test_retries_are_taken_in_phases_that_each_kind_has() -> None:
    for phases in (Phase, SetPhase, MachinePhase):
        assert RETRYABLE & {phase.value for phase in phases}, phases
    settled = {Phase.READY, SetPhase.READY, MachinePhase.READY, Phase.DELETING}
    assert RETRYABLE & {phase.value for phase in settled} == set()
