"""`perdure demo instances`: a cluster's machines while AWS stops, interrupts and terminates their instances.

The demo acts as Cluster API and its AWS provider.
"""

from __future__ import annotations

import asyncio
import time

from domain.instances import AWS_MACHINE, AWS_MACHINE_POOL, MACHINE
from domain.instances.constants import (
    CLUSTER_GROUP,
    CLUSTER_VERSION,
    GROUP_STATE_LABEL,
    INTERRUPTION_LABEL,
    STATE_LABEL,
)
from domain.instances.served_queues import places
from engine.kube.json import JsonObject, text
from engine.settings import Settings
from localcloud.demo.fleet import Fleet
from localcloud.demo.stage import FIELD_MANAGER, Scenario, Stage, Waiting
from localcloud.state import Cloud

NAMESPACE, POOL = "fleet", "batch"
MACHINES = ("web-0", "web-1", "spot-0")
MEMBER = f"{POOL}-0"
_PROVIDER_FINALIZER = "awsmachine.infrastructure.cluster.x-k8s.io"
_MACHINE_FINALIZER = "machine.cluster.x-k8s.io"
_FORTNIGHT = 14 * 86400.0


async def play(stage: Stage) -> None:
    place = places(Settings().instances_queues)[0]
    fleet = Fleet(place, stage.emulator)
    await _forget_the_last_run(stage, fleet)
    await stage.looking("the queue and its rules exist", lambda: asyncio.to_thread(fleet.has_rules))
    stage.say(f"{place} has its queue, its dead-letter queue and three rules")
    stage.emulator.forget_events()
    instances = await _launch(stage, fleet)
    await stage.breathe()
    await _stop_and_start(stage, fleet, instances["web-0"])
    await stage.breathe()
    await _schedule(stage, fleet, instances["web-1"])
    await stage.breathe()
    await _take_back(stage, fleet, instances["spot-0"])
    await stage.breathe()
    await _shrink(stage, fleet, instances[MEMBER])
    events = stage.emulator.events()
    stage.say(f"{len(events)} events were announced, {sum(each.queues > 0 for each in events)} reached the queue")


async def _forget_the_last_run(stage: Stage, fleet: Fleet) -> None:
    await asyncio.to_thread(fleet.end, POOL)
    kinds = (MACHINE, AWS_MACHINE, AWS_MACHINE_POOL)
    left = [(kind, text(obj, "metadata", "name")) for kind in kinds for obj in stage.objects.of(kind, NAMESPACE)]
    if not left:
        return
    stage.say("Machines are left from an earlier run: deleted first")
    for kind, name in left:
        await stage.kube.patch(kind, NAMESPACE, name, {"metadata": {"finalizers": None}}, field_manager=FIELD_MANAGER)
        await stage.delete(kind, NAMESPACE, name)
    await stage.until(
        "the earlier machines are gone", lambda: not any(stage.objects.of(kind, NAMESPACE) for kind in kinds)
    )


async def _launch(stage: Stage, fleet: Fleet) -> dict[str, str]:
    await stage.apply("machines.yaml")
    await stage.apply("pool.yaml")
    stage.say("Applied machines.yaml and pool.yaml: three machines, one of them a Spot instance, and a group of one")
    began = time.monotonic()
    instances = {name: await asyncio.to_thread(fleet.launch, spot=name.startswith("spot")) for name in MACHINES}
    instances[MEMBER] = await asyncio.to_thread(fleet.launch_group, POOL)
    pool = {"spec": {"providerID": fleet.group_arn(POOL)}}
    await stage.kube.patch(AWS_MACHINE_POOL, NAMESPACE, POOL, pool, field_manager=FIELD_MANAGER)
    for name, instance in instances.items():
        await _provide(stage, fleet, name, instance)
    await stage.until(
        "all machines are labelled running", lambda: all(_state(stage, name) == "running" for name in instances)
    )
    stage.say(f"The machines' instances run; all machines are labelled {_seconds(began)} after the first request")
    return instances


async def _provide(stage: Stage, fleet: Fleet, name: str, instance: str) -> None:
    machine = await stage.kube.get(MACHINE, NAMESPACE, name)
    owner = {
        "apiVersion": f"{CLUSTER_GROUP}/{CLUSTER_VERSION}",
        "kind": MACHINE.name,
        "name": name,
        "uid": text(machine, "metadata", "uid"),
    }
    provider_id = f"aws:///{fleet.zone}/{instance}"
    await stage.kube.patch(
        MACHINE,
        NAMESPACE,
        name,
        {"metadata": {"finalizers": [_MACHINE_FINALIZER]}, "spec": {"providerID": provider_id}},
        field_manager=FIELD_MANAGER,
    )
    await stage.kube.patch(
        AWS_MACHINE,
        NAMESPACE,
        name,
        {
            "metadata": {"ownerReferences": [owner], "finalizers": [_PROVIDER_FINALIZER]},
            "spec": {"instanceID": instance, "providerID": provider_id},
        },
        field_manager=FIELD_MANAGER,
    )


async def _stop_and_start(stage: Stage, fleet: Fleet, instance: str) -> None:
    for call, state in ((fleet.stop, "stopped"), (fleet.start, "running")):
        began = time.monotonic()
        await asyncio.to_thread(call, instance)
        await stage.until(f"web-0 is labelled {state}", lambda state=state: _state(stage, "web-0") == state)  # type: ignore[misc]
        stage.say(f"web-0's instance is {state}: labelled after {_seconds(began)}")
        await stage.breathe()


async def _schedule(stage: Stage, fleet: Fleet, instance: str) -> None:
    began = time.monotonic()
    start = time.time() + _FORTNIGHT
    announced = await asyncio.to_thread(fleet.announce, "health", instance, start=start)
    await stage.until("web-1 is labelled", lambda: _interruption(stage, "web-1") == "scheduled-retirement")
    stage.say(f"AWS will retire web-1's instance in 14 days: labelled scheduled-retirement after {_seconds(began)}")
    await stage.breathe()
    over = {"event": announced.event, "start": start, "status": "closed", "entity_status": "RESOLVED"}
    await asyncio.to_thread(fleet.announce, "health", instance, **over)
    await stage.until("the label of web-1 is gone", lambda: _interruption(stage, "web-1") == "")
    stage.say("AWS has cancelled the retirement: the label is gone")


async def _take_back(stage: Stage, fleet: Fleet, instance: str) -> None:
    began = time.monotonic()
    await asyncio.to_thread(fleet.announce, "spot", instance)
    await stage.until("spot-0 is labelled", lambda: _interruption(stage, "spot-0") == "spot-terminate")
    stage.say(f"Spot will reclaim spot-0's instance in two minutes: labelled after {_seconds(began)}")
    await _until_given_up(stage, "spot-0")
    stage.say(f"EC2 confirms it: Machine spot-0 is deleted {_seconds(began)} after the warning")
    await _drain(stage, "spot-0")
    await asyncio.to_thread(fleet.terminate, instance)
    await _until_ended(stage, "spot-0")
    stage.say("spot-0 is drained, and its instance terminated, before Spot would have reclaimed the instance")


async def _shrink(stage: Stage, fleet: Fleet, instance: str) -> None:
    began = time.monotonic()
    await asyncio.to_thread(fleet.shrink, POOL)
    await stage.until("the pool waits", lambda: _pool_state(stage) == "terminating-wait")
    stage.say(f"The group shrinks, and its hook holds an instance: {POOL} is labelled after {_seconds(began)}")
    await _until_given_up(stage, MEMBER)
    stage.say(f"Auto Scaling confirms it: Machine {MEMBER} is deleted, and drained")
    await _drain(stage, MEMBER)
    await stage.looking("the hook is completed", lambda: asyncio.to_thread(fleet.is_terminated, instance))
    await _until_ended(stage, MEMBER)
    stage.say(f"Perdure has completed the hook; the instance is terminated {_seconds(began)} after the group shrank")


async def _until_given_up(stage: Stage, name: str) -> None:
    def deleting() -> bool:
        machine = stage.objects.one(MACHINE, NAMESPACE, name)
        return machine is not None and text(machine, "metadata", "deletionTimestamp") != ""

    await stage.until(f"Machine {name} is being deleted", deleting)


async def _drain(stage: Stage, name: str) -> None:
    await stage.breathe()
    done = {"metadata": {"finalizers": None}}
    await stage.kube.patch(MACHINE, NAMESPACE, name, done, field_manager=FIELD_MANAGER)
    await stage.until(f"Machine {name} is gone", lambda: stage.objects.one(MACHINE, NAMESPACE, name) is None)


async def _until_ended(stage: Stage, name: str) -> None:
    await stage.until(f"{name} is labelled terminated", lambda: _state(stage, name) == "terminated")
    done = {"metadata": {"finalizers": None}}
    await stage.kube.patch(AWS_MACHINE, NAMESPACE, name, done, field_manager=FIELD_MANAGER)
    await stage.delete(AWS_MACHINE, NAMESPACE, name)


# Reading the objects.


def look(obj: JsonObject) -> Waiting:
    state = text(obj, "metadata", "labels", STATE_LABEL) or text(obj, "metadata", "labels", GROUP_STATE_LABEL)
    return Waiting(phase=" ".join(filter(None, (state, text(obj, "metadata", "labels", INTERRUPTION_LABEL)))))


def ours(obj: JsonObject) -> bool:
    return text(obj, "metadata", "namespace") == NAMESPACE and not text(obj, "spec", "clusterName")


def _state(stage: Stage, name: str) -> str:
    return text(stage.objects.one(AWS_MACHINE, NAMESPACE, name), "metadata", "labels", STATE_LABEL)


def _interruption(stage: Stage, name: str) -> str:
    return text(stage.objects.one(AWS_MACHINE, NAMESPACE, name), "metadata", "labels", INTERRUPTION_LABEL)


def _pool_state(stage: Stage) -> str:
    return text(stage.objects.one(AWS_MACHINE_POOL, NAMESPACE, POOL), "metadata", "labels", GROUP_STATE_LABEL)


def _seconds(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"


SCENARIO = Scenario(
    title="EC2 instances: stopped, interrupted, retired and drained, as their events arrive",
    clouds=(Cloud.AWS,),
    kinds=(AWS_MACHINE, AWS_MACHINE_POOL, MACHINE),
    delays={"run_instances_seconds": 2, "stop_instances_seconds": 2, "terminate_instances_seconds": 2},
    play=play,
    areas=("instances",),
    shows=ours,
    look=look,
    settings={
        "PERDURE_INSTANCES_QUEUES": "123456789012/eu-central-1",
        "PERDURE_INSTANCES_REACTIONS": "spot=delete-machine,terminating-hook=delete-machine",
    },
    hints=(
        f"kubectl -n {NAMESPACE} get awsmachines,awsmachinepools --show-labels",
        "perdure list ec2instance",
        "perdure list eventtopology",
        "perdure events list",
        "aws --region eu-central-1 ec2 describe-instances",
    ),
)
