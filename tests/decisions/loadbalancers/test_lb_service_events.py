"""The Events of a Service: its own, and those of its LoadBalancer; each once, whichever pass reports it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from lb_objects import INSTALLATION
from memory_kube import MemoryKube
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from activities.kube import KubeActivities
from activities.loadbalancers.services import ServiceActivities
from domain.identity import Key, Kind
from domain.loadbalancers import LOAD_BALANCER, SERVICE
from domain.loadbalancers.constants import LOAD_BALANCER_COMPONENT
from domain.loadbalancers.ip_addresses import bad_source_range
from domain.loadbalancers.object_world import ObjectMemory
from domain.loadbalancers.passes import PassService
from domain.notices import Notice, normal, warning
from engine.errors import Unavailable
from engine.kube import EVENT, KubeApi
from engine.kube.events import EventContent, Subject, event, named, record
from engine.settings import Settings

RANGES = "yawol.stackit.cloud/loadBalancerSourceRanges"


class WorkerDied(BaseException):
    """Nothing in the worker catches it."""


class DeadlyKube(MemoryKube):
    """Kills the worker right after a write of a LoadBalancer, if that is asked for."""

    deadly = False
    lists_events = True

    async def list(self, kind: Kind, *args: Any, **more: Any) -> Any:
        if kind == EVENT and not self.lists_events:
            raise Unavailable("list events: 500")
        return await super().list(kind, *args, **more)

    async def create(self, kind: Kind, *args: Any, **more: Any) -> Any:
        return self._answer(kind, await super().create(kind, *args, **more))

    async def patch(self, kind: Kind, *args: Any, **more: Any) -> Any:
        return self._answer(kind, await super().patch(kind, *args, **more))

    def _answer(self, kind: Kind, made: Any) -> Any:
        if self.deadly and kind == LOAD_BALANCER:
            self.deadly = False
            raise WorkerDied
        return made


class Installed:
    """One Service, in a cluster of its own."""

    def __init__(self, name: str = "shop") -> None:
        self.name = name
        self.kube, self.served = DeadlyKube(), MemoryKube()
        self._memory, self._recorded = ObjectMemory(), dict[str, datetime | None]()
        self.restart()

    def restart(self) -> None:
        """A worker that has reported nothing yet."""
        kube, served = cast(KubeApi, self.kube), cast(KubeApi, self.served)
        writes = KubeActivities(kube, cast(Client, None), served)
        self._services = ServiceActivities(kube, served, Settings(), INSTALLATION, writes)

    async def create(self, **annotations: str) -> None:
        await self.served.create(SERVICE, self.body(annotations), "web")
        await self.passed()

    def body(self, annotations: dict[str, str]) -> dict[str, Any]:
        port = {"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080, "nodePort": 30080}
        return {
            "metadata": {"name": self.name, "annotations": annotations},
            "spec": {"type": "LoadBalancer", "loadBalancerClass": "stackit.cloud/yawol", "ports": [port]},
        }

    async def passed(self, attempt: int = 1) -> Counter[tuple[str, str]]:
        """How often each Event, by reason and message, was recorded on the Service after one more pass."""
        uid = (await self.served.get(SERVICE, "web", self.name))["metadata"]["uid"]
        key = Key(kind=SERVICE.name, namespace="web", name=self.name, uid=uid)
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, started_time=datetime.now(UTC), attempt=attempt)
        look = PassService(key=key, memory=self._memory, recorded=self._recorded)
        world = await environment.run(self._services.pass_service, look)
        self._memory, self._recorded = world.known, world.recorded
        events = (await self.served.list(EVENT, "web")).items
        return Counter((str(each["reason"]), str(each["message"])) for each in events)

    async def record_on_balancer(self, notice: Notice) -> None:
        """As the LoadBalancer's pass records it."""
        (balancer,) = (await self.kube.list(LOAD_BALANCER, "lbs")).items
        subject = Subject.of(LOAD_BALANCER, cast(Any, balancer))
        message = EventContent(notice.type.value, notice.reason, notice.message, LOAD_BALANCER_COMPONENT)
        name = named(subject, message.reason, message.message)
        await record(cast(KubeApi, self.kube), event(subject, message, datetime.now(UTC), name=name))


def errors(events: Counter[tuple[str, str]]) -> int:
    return sum(number for (reason, _), number in events.items() if reason == "Error")


async def test_problems_of_a_service_and_of_its_load_balancer_are_reported_once() -> None:
    """W31. A range that is no network is refused in both places, in the same words."""
    for bad in ("10.0.0.0/99", "x" * 2000):
        on = Installed()
        await on.create(**{RANGES: bad})
        await on.record_on_balancer(bad_source_range(bad))
        events = await on.passed()
        assert errors(events) == 1
        on.restart()
        assert await on.passed() == events
        await on.served.patch(SERVICE, "web", "shop", {"metadata": {"annotations": {RANGES: None}}})
        assert errors(await on.passed()) == 1  # what is mended is no news


async def test_notices_of_only_its_load_balancer_reach_the_service_once() -> None:
    on = Installed()
    await on.create(**{RANGES: "10.0.0.0/99"})
    for notice in (warning("Failed", "Quota exceeded"), normal("Adopted", "a port"), bad_source_range("10.0.0.0/98")):
        await on.record_on_balancer(notice)
    events = await on.passed()
    wanted = {("Failed", "Quota exceeded"), ("Adopted", "a port")}
    wanted |= {("Error", bad_source_range(f"10.0.0.0/{bits}").message) for bits in (98, 99)}
    assert {what: events[what] for what in wanted} == dict.fromkeys(wanted, 1)
    on.restart()
    assert await on.passed() == events


async def test_events_of_a_load_balancer_that_serves_another_service_stay_there() -> None:
    on = Installed("a--shop")
    await on.create()
    theirs = {"annotations": {"yawol.stackit.cloud/serviceName": "web--a/shop"}}
    await on.kube.patch(LOAD_BALANCER, "lbs", "web--a--shop", {"metadata": theirs})
    await on.record_on_balancer(warning("Failed", "Quota exceeded"))
    assert ("Failed", "Quota exceeded") not in await on.passed()


CREATED = ("creation", "LoadBalancer is in creation")
PORTS_SYNCED = ("update", "LoadBalancer ports successfully synced with service ports")


async def test_a_success_is_reported_although_the_worker_died_before_its_event() -> None:
    on = Installed()
    await on.served.create(SERVICE, on.body({}), "web")
    on.kube.deadly = True
    with pytest.raises(WorkerDied):
        await on.passed()
    on.restart()
    events = await on.passed(attempt=2)
    assert (events[CREATED], events[PORTS_SYNCED]) == (1, 1)
    assert await on.passed() == events

    port = {"name": "http", "protocol": "TCP", "port": 81, "targetPort": 8080, "nodePort": 30080}
    await on.served.patch(SERVICE, "web", "shop", {"spec": {"ports": [port]}})
    on.kube.deadly = True
    with pytest.raises(WorkerDied):
        await on.passed()
    on.restart()
    events = await on.passed(attempt=2)
    assert (events[CREATED], events[PORTS_SYNCED]) == (1, 2)
    assert await on.passed() == events


async def test_a_lost_attempt_that_changed_nothing_reports_no_success() -> None:
    on = Installed()
    await on.create()
    events = await on.passed()
    on.restart()
    assert await on.passed(attempt=2) == events


async def test_a_pass_whose_events_cannot_be_listed_ends_and_the_next_forwards_them() -> None:
    on = Installed()
    await on.served.create(SERVICE, on.body({}), "web")
    on.kube.lists_events = False
    events = await on.passed()
    assert (events[CREATED], events[PORTS_SYNCED]) == (1, 1)
    await on.record_on_balancer(warning("Failed", "Quota exceeded"))
    assert await on.passed() == events
    on.kube.lists_events = True
    assert (await on.passed())["Failed", "Quota exceeded"] == 1
