"""Row h of `perdure bench instances`: heartbeats extend a hook, and retirements move, while processes are killed."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from domain.identity import Kind
from domain.instances import AWS_MACHINE, MACHINE
from domain.instances.constants import EVENTS_ANNOTATION, INTERRUPTION_LABEL, STATE_LABEL
from domain.instances.events import InstanceState as State
from engine.errors import Absent
from engine.kube.json import JsonObject, mapping, text
from localcloud.bench.claims_telling import step, told
from localcloud.bench.figures import Figure, Found
from localcloud.bench.instances_things import CLUSTER, PLACE, Scene, scene
from localcloud.instance_groups import make_hooked_group
from localcloud.services import EVENTS, TEMPORAL, WORKER

HOOK_SECONDS = 120
_GROUP, _WAITING = "held", "Terminating:Wait"
_KILLED = (WORKER, TEMPORAL, EVENTS, WORKER)
_REACTIONS = "terminating-hook=delete-machine,ending=delete-machine"
_MONTH = timedelta(days=30)


async def held(held_seconds: float) -> Found:
    async with scene(PERDURE_INSTANCES_REACTIONS=_REACTIONS) as on:
        await on.until(lambda: _has_rules(on))
        scaling = on.client("autoscaling")
        step("a group with a hook; three instances that are to be retired")
        grouped = await asyncio.to_thread(_grouped, on)
        await on.adopt(grouped)
        planned = await on.make(3)
        await _labelled(on, (grouped, *planned), STATE_LABEL, State.RUNNING.value)
        figures = await _moved(on, planned, _held(on, scaling, grouped, held_seconds))
    return told(Found(figures=tuple(figures)))


async def _held(on: Scene, scaling: Any, instance: str, held_seconds: float) -> list[Figure]:
    on.lab.emulator.reset_ledger()
    began = time.monotonic()
    await asyncio.to_thread(scaling.set_desired_capacity, AutoScalingGroupName=_GROUP, DesiredCapacity=0)
    await _until(on, MACHINE, instance, lambda machine: bool(text(machine, "metadata", "deletionTimestamp")))
    step(f"the Machine is deleted, and stays for {held_seconds:.0f} s")
    leaving = asyncio.create_task(_let_go(scaling, instance, began))
    for number, name in enumerate(_KILLED, 1):
        await asyncio.sleep(max(0.0, began + held_seconds * number / (len(_KILLED) + 1) - time.monotonic()))
        pid = await asyncio.to_thread(on.lab.deployment.kill, name)
        step(f"{name} is killed")
        await asyncio.to_thread(on.lab.deployment.wait_service, name, other_than_pid=pid)
    await asyncio.sleep(max(0.0, began + held_seconds - time.monotonic()))
    leaving.cancel()
    early = on.lab.emulator.ledger().calls("autoscaling", "CompleteLifecycleAction")
    released = time.time()
    await on.lab.patch(MACHINE, CLUSTER, instance, {"metadata": {"finalizers": None}})
    ended = await _labelled(on, (instance,), STATE_LABEL, State.TERMINATED.value)
    ledger = on.lab.emulator.ledger()
    beats, completions = (
        ledger.calls("autoscaling", name) for name in ("RecordLifecycleActionHeartbeat", "CompleteLifecycleAction")
    )
    late = ledger.errors("autoscaling", "RecordLifecycleActionHeartbeat")
    return [
        Figure(
            row="h",
            what=f"whether heartbeats hold an instance for {held_seconds:.0f} s, although the hook times out after "
            f"{HOOK_SECONDS} s and {len(_KILLED)} processes are killed",
            measured=f"no, for {leaving.result():.0f} s" if leaving.done() and not leaving.cancelled() else "yes",
            goal="yes",
            note=f"{beats} heartbeats, {late} of them too late",
        ),
        Figure(
            row="h",
            what="completions of the hook's action: before the Machine is gone, and in all",
            measured=f"{early}, {completions}",
            goal="0, 1",
            note=f"labelled terminated {ended - released:.1f} s after the Machine was gone",
        ),
    ]


async def _let_go(scaling: Any, instance: str, began: float) -> float:
    while await asyncio.to_thread(_lifecycle, scaling, instance) == _WAITING:  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(2)
    return time.monotonic() - began


async def _moved(on: Scene, planned: list[str], meanwhile: Coroutine[None, None, list[Figure]]) -> list[Figure]:
    withdrawn, tomorrow, left = planned
    start = datetime.now(UTC).replace(microsecond=0) + _MONTH
    names = {each: _announce(on, each, start) for each in planned}
    await _labelled(on, planned, INTERRUPTION_LABEL, "scheduled-retirement")
    holding = asyncio.create_task(meanwhile)
    later, near = start + timedelta(days=10), datetime.now(UTC) + timedelta(hours=23)
    _announce(on, withdrawn, later, names[withdrawn])
    await _until(on, AWS_MACHINE, withdrawn, lambda machine: _date(machine) == later)
    step("one retirement is moved by ten days, one to tomorrow")
    _announce(on, tomorrow, near, names[tomorrow])
    await _until(on, MACHINE, tomorrow, lambda machine: bool(text(machine, "metadata", "deletionTimestamp")))
    figures = await holding
    _announce(on, withdrawn, later, names[withdrawn], over=True)
    await on.until(lambda: not on.labels.value(withdrawn, INTERRUPTION_LABEL))
    deleted = {each: await _deleted(on, each) for each in planned}
    untouched = on.labels.value(left, INTERRUPTION_LABEL)
    return [
        *figures,
        Figure(
            row="h",
            what="whether the Machine is deleted, if its instance's retirement is moved by ten days and then "
            "withdrawn; is moved to tomorrow; stays as announced",
            measured=", ".join("yes" if deleted[each] else "no" for each in (withdrawn, tomorrow, left)),
            goal="no, yes, no",
            note=f"labels after the restarts: {on.labels.value(withdrawn, INTERRUPTION_LABEL) or 'none'}, "
            f"{on.labels.value(tomorrow, INTERRUPTION_LABEL)}, {untouched}",
        ),
    ]


def _announce(on: Scene, instance: str, start: datetime, event: str = "", *, over: bool = False) -> str:
    ended = {"status": "closed", "entity_status": "RESOLVED"} if over else {}
    body = {"event": event, "start": start.timestamp(), **ended}
    return on.lab.emulator.announce("health", PLACE.account, PLACE.region, instance, **body).event


async def _labelled(on: Scene, instances: Sequence[str], label: str, value: str) -> float:
    return await on.until(lambda: all(on.labels.value(each, label) == value for each in instances))


async def _until(on: Scene, kind: Kind, name: str, holds: Callable[[JsonObject], bool]) -> None:
    deadline = time.monotonic() + 120
    while not await _is(on, kind, name, holds):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{kind.name} {name} has not reached the expected state")
        await asyncio.sleep(0.3)


async def _is(on: Scene, kind: Kind, name: str, holds: Callable[[JsonObject], bool]) -> bool:
    try:
        return holds(await on.lab.kube.get(kind, CLUSTER, name))
    except Absent:
        return False


async def _deleted(on: Scene, instance: str) -> bool:
    return await _is(on, MACHINE, instance, lambda each: bool(text(each, "metadata", "deletionTimestamp")))


def _date(machine: JsonObject) -> datetime | None:
    story: Mapping[str, str] = json.loads(str(mapping(machine, "metadata", "annotations").get(EVENTS_ANNOTATION, "{}")))
    return datetime.fromisoformat(story["deadline"]) if "deadline" in story else None


# Auto Scaling.


def _grouped(on: Scene) -> str:
    group = make_hooked_group(
        on.client,
        _GROUP,
        zone=f"{PLACE.region}a",
        instance_type="t3.micro",
        hook_seconds=HOOK_SECONDS,
        default_result="ABANDON",
    )
    return str(group["Instances"][0]["InstanceId"])


def _lifecycle(scaling: Any, instance: str) -> str:
    found = scaling.describe_auto_scaling_instances(InstanceIds=[instance])["AutoScalingInstances"]
    return found[0]["LifecycleState"] if found else ""


def _has_rules(on: Scene) -> bool:
    arn = on.sqs.get_queue_attributes(QueueUrl=on.url(), AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    return len(on.client("events").list_rule_names_by_target(TargetArn=arn)["RuleNames"]) == 3
