"""What a Service is told as Events: of itself, and of what its LoadBalancer was told; each once, whoever tells it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from lb_objects import INSTALLATION
from memory_kube import MemoryKube
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from activities.kube import KubeActivities
from activities.loadbalancers.services import ServiceActivities
from domain.identity import Key
from domain.loadbalancers import LOAD_BALANCER, SERVICE
from domain.loadbalancers.constants import LOAD_BALANCER_COMPONENT
from domain.loadbalancers.notices import bad_source_range
from domain.loadbalancers.passes import PassService
from domain.notices import Notice, normal, warning
from engine.kube import EVENT, KubeApi
from engine.kube.events import Said, Subject, event, named, record
from engine.settings import Settings

RANGES = "yawol.stackit.cloud/loadBalancerSourceRanges"


class Installed:
    """One Service, in a cluster of its own."""

    def __init__(self) -> None:
        self.kube, self.served = MemoryKube(), MemoryKube()
        self.restart()

    def restart(self) -> None:
        """A worker that has told nothing yet."""
        kube, served = cast(KubeApi, self.kube), cast(KubeApi, self.served)
        writes = KubeActivities(kube, cast(Client, None), served)
        self._services = ServiceActivities(kube, served, Settings(), INSTALLATION, writes)

    async def create(self, **annotations: str) -> None:
        port = {"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080, "nodePort": 30080}
        body = {
            "metadata": {"name": "shop", "annotations": annotations},
            "spec": {"type": "LoadBalancer", "loadBalancerClass": "stackit.cloud/yawol", "ports": [port]},
        }
        await self.served.create(SERVICE, body, "web")
        await self.passed()

    async def passed(self) -> Counter[tuple[str, str]]:
        """How often the Service was told what, by reason and message, after one more pass."""
        uid = (await self.served.get(SERVICE, "web", "shop"))["metadata"]["uid"]
        key = Key(kind=SERVICE.name, namespace="web", name="shop", uid=uid)
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, started_time=datetime.now(UTC))
        await environment.run(self._services.pass_service, PassService(key=key))
        told = (await self.served.list(EVENT, "web")).items
        return Counter((str(each["reason"]), str(each["message"])) for each in told)

    async def balancer_told(self, notice: Notice) -> None:
        """As the LoadBalancer's pass tells it."""
        (balancer,) = (await self.kube.list(LOAD_BALANCER, "lbs")).items
        subject = Subject.of(LOAD_BALANCER, cast(Any, balancer))
        said = Said(notice.type.value, notice.reason, notice.message, LOAD_BALANCER_COMPONENT)
        name = named(subject, said.reason, said.message)
        await record(cast(KubeApi, self.kube), event(subject, said, datetime.now(UTC), name=name))


def errors(told: Counter[tuple[str, str]]) -> int:
    return sum(number for (reason, _), number in told.items() if reason == "Error")


async def test_what_is_wrong_with_a_service_and_with_its_load_balancer_is_told_once() -> None:
    """W31. A range that is no network is refused in both places, in the same words."""
    for bad in ("10.0.0.0/99", "x" * 2000):
        on = Installed()
        await on.create(**{RANGES: bad})
        await on.balancer_told(bad_source_range(bad))
        told = await on.passed()
        assert errors(told) == 1
        on.restart()
        assert await on.passed() == told
        await on.served.patch(SERVICE, "web", "shop", {"metadata": {"annotations": {RANGES: None}}})
        assert errors(await on.passed()) == 1  # what is mended is no news


async def test_what_only_its_load_balancer_was_told_a_service_is_told_once() -> None:
    on = Installed()
    await on.create(**{RANGES: "10.0.0.0/99"})
    for notice in (warning("Failed", "Quota exceeded"), normal("Adopted", "a port"), bad_source_range("10.0.0.0/98")):
        await on.balancer_told(notice)
    told = await on.passed()
    wanted = {("Failed", "Quota exceeded"), ("Adopted", "a port")}
    wanted |= {("Error", bad_source_range(f"10.0.0.0/{bits}").message) for bits in (98, 99)}
    assert {what: told[what] for what in wanted} == dict.fromkeys(wanted, 1)
    on.restart()
    assert await on.passed() == told
