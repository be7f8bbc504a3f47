"""What a set's pass makes of its machines, and its Events, under yawol's names."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from lb_objects import healthy, machine_set
from lb_pass_context import context_on
from memory_kube import MemoryKube
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from activities.kube import KubeActivities
from activities.loadbalancers.sets import SetActivities
from domain.identity import Key, Kind
from domain.loadbalancers import LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.constants import MARKED_AT_ANNOTATION
from domain.loadbalancers.machine_health import MARKED
from domain.loadbalancers.passes import PassSet
from domain.resource import timestamp
from engine.errors import Denied
from engine.kube import EVENT
from engine.kube.reflector import Followed

SET = "web--shop-aaaa"
Recorded = list[tuple[str, ...]]


class ProcessDiedError(Exception):
    pass


class Installation:
    """One set in an API server of its own."""

    def __init__(self) -> None:
        self.kube = MemoryKube()
        context = context_on(self.kube)
        writes = KubeActivities(context.kube, cast(Client, None), wrote=context.cache.wrote)
        self._sets = SetActivities(context, writes)
        self.mirror = self.kube.follow(Followed(LOAD_BALANCER_MACHINE))
        self.mirror.listed = True

    async def passed(self) -> Recorded:
        """The Events after one more pass."""
        uid = (await self.kube.get(LOAD_BALANCER_SET, "lbs", SET))["metadata"]["uid"]
        key = Key(kind=LOAD_BALANCER_SET.name, namespace="lbs", name=SET, uid=uid)
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, started_time=datetime.now(UTC))
        await environment.run(self._sets.pass_set, PassSet(key=key))
        return sorted(map(_read, (await self.kube.list(EVENT, "lbs")).items))

    async def begun(self) -> None:
        """With a set of one machine."""
        await self.kube.create(LOAD_BALANCER_SET, machine_set(SET).model_dump(mode="json", exclude_none=True), "lbs")
        await self.passed()

    async def machines(self) -> list[str]:
        return [each["metadata"]["name"] for each in (await self.kube.list(LOAD_BALANCER_MACHINE, "lbs")).items]


def _read(events: Any) -> tuple[str, ...]:
    of = events["involvedObject"]
    return (of["kind"], of["name"], events["type"], events["reason"], events["message"], events["source"]["component"])


async def test_machines_that_a_set_creates_and_deletes_are_reported_once() -> None:
    on = Installation()
    await on.kube.create(LOAD_BALANCER_SET, machine_set(SET).model_dump(mode="json", exclude_none=True), "lbs")
    events = await on.passed()
    (machine,) = (await on.kube.list(LOAD_BALANCER_MACHINE, "lbs")).items
    name = machine["metadata"]["name"]
    born = ("LoadBalancerMachine", name, "Normal", "Created", f"Created loadBalancerMachine {name}", "LoadBalancerSet")
    assert events == [born]
    assert await on.passed() == [born]

    await on.kube.patch(LOAD_BALANCER_SET, "lbs", SET, {"spec": {"replicas": 0}})
    gone = f"Deleted loadBalancerMachine {name}"
    assert await on.passed() == [
        born,
        ("LoadBalancerSet", SET, "Normal", "Deleted", gone, "LoadBalancerSet"),
    ]


async def test_the_creation_of_a_machine_is_reported_by_the_attempt_after_a_crash() -> None:
    on = Installation()
    await on.kube.create(LOAD_BALANCER_SET, machine_set(SET).model_dump(mode="json", exclude_none=True), "lbs")
    create = on.kube.create

    async def dies(kind: Kind, body: Any, namespace: str) -> Any:
        if kind == EVENT:
            raise ProcessDiedError
        return await create(kind, body, namespace)

    on.kube.create = dies  # type: ignore[assignment,method-assign]
    with pytest.raises(ProcessDiedError):
        await on.passed()
    (name,) = await on.machines()
    on.kube.create = create  # type: ignore[method-assign]
    born = ("LoadBalancerMachine", name, "Normal", "Created", f"Created loadBalancerMachine {name}", "LoadBalancerSet")
    assert await on.passed() == [born]
    assert await on.machines() == [name]


async def test_a_machine_that_the_api_server_refuses_is_reported_on_its_set_once() -> None:
    on = Installation()
    why, create = "exceeded quota: count/loadbalancermachines=3", on.kube.create

    async def refuses(kind: Kind, body: Any, namespace: str = "", **more: Any) -> Any:
        if kind == LOAD_BALANCER_MACHINE:
            raise Denied(why)
        return await create(kind, body, namespace, **more)

    on.kube.create = refuses  # type: ignore[method-assign]
    body = machine_set(SET).model_dump(mode="json", exclude_none=True)
    await on.kube.create(LOAD_BALANCER_SET, body, "lbs")
    reported = [("LoadBalancerSet", SET, "Warning", "Failed", why, "LoadBalancerSet")]
    assert await on.passed() == reported
    assert await on.passed() == reported
    on.kube.create = create  # type: ignore[method-assign]
    await on.passed()
    assert len(await on.machines()) == 1


async def test_a_refused_deletion_of_a_machine_is_reported_on_its_deleted_set() -> None:
    on = Installation()
    await on.begun()
    (name,) = await on.machines()
    why, delete = f"a policy protects {name}", on.kube.delete

    async def refuses(kind: Kind, *more: Any, **options: Any) -> Any:
        if kind == LOAD_BALANCER_MACHINE:
            raise Denied(why)
        return await delete(kind, *more, **options)

    on.kube.delete = refuses  # type: ignore[method-assign]
    await on.kube.delete(LOAD_BALANCER_SET, "lbs", SET)
    assert ("LoadBalancerSet", SET, "Warning", "Failed", why, "LoadBalancerSet") in await on.passed()


async def test_a_machine_that_a_person_creates_for_a_set_is_not_reported_as_created_by_it() -> None:
    on = Installation()
    await on.begun()
    (name,) = await on.machines()
    body = await on.kube.get(LOAD_BALANCER_MACHINE, "lbs", name)
    meta = {"name": "by-hand", "labels": body["metadata"]["labels"]}
    await on.kube.create(LOAD_BALANCER_MACHINE, {**body, "metadata": meta}, "lbs")
    assert "by-hand" not in {of for kind, of, *_ in await on.passed() if kind == LOAD_BALANCER_MACHINE.name}


async def test_a_machine_that_a_person_takes_out_of_its_set_is_replaced_once() -> None:
    on = Installation()
    await on.begun()
    (name,) = await on.machines()
    aside = {"metadata": {"labels": {"lbm-template-hash": "aside"}}}
    await on.kube.patch(LOAD_BALANCER_MACHINE, "lbs", name, aside)
    await on.passed()
    assert len(await on.machines()) == 2
    await on.passed()
    assert len(await on.machines()) == 2


async def test_a_machine_that_was_made_a_moment_ago_is_found_by_its_name_and_not_doubled() -> None:
    on = Installation()
    await on.begun()
    (name,) = await on.machines()
    on.mirror.entries.clear()  # as of another worker, whose stream is behind
    await on.passed()
    assert await on.machines() == [name]


async def test_a_mark_is_not_written_over_a_report_that_has_come_meanwhile() -> None:
    """W15: the mark and the reports share one list, which is written as a whole."""
    on = Installation()
    await on.begun()
    (name,) = await on.machines()
    moment = datetime.now(UTC)
    stale, fresh = (healthy(beat=timestamp(moment - timedelta(minutes=each))) for each in (6, 0))
    status = {"status": {"conditions": stale}}
    body = await on.kube.patch(LOAD_BALANCER_MACHINE, "lbs", name, status, subresource="status")
    # The agent reports again, and the worker's stream is behind.
    body["status"]["conditions"], body["metadata"]["resourceVersion"] = fresh, "900"
    on.kube.objects[LOAD_BALANCER_MACHINE.name, "lbs", name] = body
    await on.passed()
    found = await on.kube.get(LOAD_BALANCER_MACHINE, "lbs", name)
    assert found["status"]["conditions"] == fresh
    assert MARKED_AT_ANNOTATION not in found["metadata"]["annotations"]


async def test_a_mark_is_written_to_a_machine_and_to_its_conditions() -> None:
    on = Installation()
    await on.begun()
    (name,) = await on.machines()
    stale = healthy(beat=timestamp(datetime.now(UTC) - timedelta(minutes=6)))
    await on.kube.patch(LOAD_BALANCER_MACHINE, "lbs", name, {"status": {"conditions": stale}}, subresource="status")
    await on.passed()
    found = await on.kube.get(LOAD_BALANCER_MACHINE, "lbs", name)
    assert [each["type"] for each in found["status"]["conditions"]] == [*(each["type"] for each in stale), MARKED]
    assert found["metadata"]["annotations"][MARKED_AT_ANNOTATION]
