"""The objects and waits of `perdure bench loadbalancers`: LoadBalancers, a Service, a node, OpenStack's objects."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
from aiohttp import web
from keystoneauth1.session import Session

from domain.built_in_kinds import NODE
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET, SERVICE
from engine.kube.json import JsonObject, at, sequence, text
from localcloud.bench.claims_telling import step
from localcloud.bench.laboratory import PATIENCE_SECONDS, Laboratory, laboratory_with
from localcloud.machines.contract import Port
from localcloud.machines.control import MachineHost
from localcloud.machines.machine import answers
from localcloud.openstack.configuration import ADMIN_CLOUD
from localcloud.openstack.contract import Ledger
from localcloud.openstack.control import OpenStackControl
from localcloud.openstack.control_plane import project
from localcloud.openstack.project import listed, project_session
from localcloud.services import LOAD_BALANCER_NAMESPACE as NAMESPACE_NAME
from localcloud.services import LOAD_BALANCER_SECRET, MACHINES, settled
from localcloud.state import Cloud

__all__ = ["NAMESPACE_NAME"]

KINDS = (LOAD_BALANCER, LOAD_BALANCER_SET, LOAD_BALANCER_MACHINE)
PORT = 18080
SECOND_PORT = Port(protocol="TCP", number=PORT + 2)
NODE_ADDRESS, NODE_PORT = "127.0.11.9", 30080
_LOOK_SECONDS = 0.05
_NOVA_LIMITS = ("instances", "cores", "ram")
_NEUTRON_LIMITS = ("security_group", "security_group_rule", "port", "floatingip")
_REQUEST = aiohttp.ClientTimeout(total=2)


class Scene(NamedTuple):
    lab: Laboratory
    cloud: OpenStackControl
    host: MachineHost | None
    project: Session

    @property
    def machines(self) -> MachineHost:
        assert self.host is not None, "no machine host runs"
        return self.host

    def of_machines(self) -> list[JsonObject]:
        return self.lab.objects.of(LOAD_BALANCER_MACHINE)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await asyncio.to_thread(holds):  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(_LOOK_SECONDS)

    async def things_of(self, name: str) -> tuple[int, int, int, int]:
        return await asyncio.to_thread(self._things_of, f"{NAMESPACE_NAME}/{name}")

    def _things_of(self, path: str) -> tuple[int, int, int, int]:
        def counted(service: str, route: str, plural: str, field: str, prefix: str) -> int:
            found = listed(self.project, service, route, plural)
            return sum(str(each[field]).startswith(prefix) for each in found)

        server = path.partition("/")[2]
        return (
            counted("network", "/v2.0/floatingips", "floatingips", "description", path),
            counted("network", "/v2.0/security-groups", "security_groups", "name", path),
            counted("network", "/v2.0/ports", "ports", "name", path),
            counted("compute", "/servers", "servers", "name", f"{server}-"),
        )


class Counted(NamedTuple):
    ledger: Ledger
    requests: Counter[str]
    seconds: float


class FirstAnswer(NamedTuple):
    address_seconds: float
    answer_seconds: float


@asynccontextmanager
async def scene(only: Sequence[str] | None = None) -> AsyncIterator[Scene]:
    step("a deployment with OpenStack is brought up")
    async with laboratory_with(only, (Cloud.OPENSTACK,), *KINDS) as lab, scene_in(lab) as found:
        yield found


@asynccontextmanager
async def scene_in(lab: Laboratory) -> AsyncIterator[Scene]:
    with ExitStack() as opened:
        cloud = opened.enter_context(OpenStackControl.of(lab.deployment))
        hosted = MACHINES in lab.deployment.state.plan().services
        host = opened.enter_context(MachineHost.of(lab.deployment)) if hosted else None
        yield Scene(lab, cloud, host, await asyncio.to_thread(project_session, lab.deployment))


async def counted(on: Scene, work: Callable[[], Awaitable[object]]) -> Counted:
    on.cloud.reset_ledger()
    mark, began = on.lab.audit_mark(), time.monotonic()
    await work()
    seconds = time.monotonic() - began
    await on.lab.quiet()
    return Counted(on.cloud.ledger(), on.lab.requests_since(mark), seconds)


async def settle(on: Scene) -> None:
    await on.lab.quiet()


async def all_ready(on: Scene, name: str, replicas: int) -> None:
    def ready() -> bool:
        found = on.lab.objects.one(LOAD_BALANCER, NAMESPACE_NAME, name)
        return found is not None and at(found, "status", "readyReplicas") == replicas

    async with asyncio.timeout(PATIENCE_SECONDS):
        await on.lab.objects.until(ready)


async def delete(on: Scene, *names: str) -> None:
    for name in names:
        await on.lab.kube.delete(LOAD_BALANCER, NAMESPACE_NAME, name)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await on.lab.objects.until(
            lambda: all(on.lab.objects.one(LOAD_BALANCER, NAMESPACE_NAME, name) is None for name in names)
        )


def balancer(on: Scene, name: str, ports: int = 1) -> dict[str, Any]:
    settings = settled(project(on.lab.deployment.state))
    infrastructure = {name.removeprefix("PERDURE_LOADBALANCERS_"): value for name, value in settings.items()}
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"yawol.stackit.cloud/loadbalancer": name}},
            "ports": [
                {"name": f"port-{index}", "protocol": "TCP", "port": PORT + index, "nodePort": NODE_PORT + index}
                for index in range(ports)
            ],
            "endpoints": [{"name": "node", "addresses": [NODE_ADDRESS]}],
            "infrastructure": {
                "defaultNetwork": {
                    "floatingNetID": infrastructure["FLOATING_NET_ID"],
                    "networkID": infrastructure["NETWORK_ID"],
                },
                "flavor": {"flavorName": infrastructure["FLAVOR_NAME"]},
                "image": {"imageName": infrastructure["IMAGE_NAME"]},
                "authSecretRef": {"name": LOAD_BALANCER_SECRET, "namespace": NAMESPACE_NAME},
            },
        },
    }


async def first_answer(on: Scene) -> FirstAnswer:
    kube = on.lab.kube
    await kube.create(NODE, _NODE)
    began = time.monotonic()
    service = await kube.create(SERVICE, _SERVICE, "default")
    node_port = int(str(at(sequence(service, "spec", "ports")[0], "nodePort")))
    # Polled, because clients of a Service get no event either.
    async with node(node_port), aiohttp.ClientSession(timeout=_REQUEST) as client, asyncio.timeout(PATIENCE_SECONDS):
        while not (address := _address(await kube.get(SERVICE, "default", "web"))):  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_SECONDS)
        known = time.monotonic() - began
        while not await answers(client, f"http://{address}:{PORT}/"):  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_SECONDS)
        found = FirstAnswer(known, time.monotonic() - began)
    await kube.delete(SERVICE, "default", "web")
    async with asyncio.timeout(PATIENCE_SECONDS):
        await on.lab.objects.until(lambda: not on.lab.objects.of(LOAD_BALANCER))
    return found


_NODE: JsonObject = {
    "metadata": {"name": "node"},
    "status": {
        "addresses": [{"type": "InternalIP", "address": NODE_ADDRESS}],
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
_SERVICE: JsonObject = {
    "metadata": {"name": "web"},
    "spec": {"type": "LoadBalancer", "ports": [{"name": "http", "protocol": "TCP", "port": PORT}]},
}


@asynccontextmanager
async def node(port: int) -> AsyncIterator[None]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="node\n")

    app = web.Application()
    app.add_routes([web.get("/", answer)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, NODE_ADDRESS, port).start()
        yield
    finally:
        await runner.cleanup()


def _address(service: JsonObject) -> str:
    ingress = sequence(service, "status", "loadBalancer", "ingress")
    return text(ingress[0], "ip") if ingress else ""


def lift_quotas(on: Scene) -> None:
    administrator, project_id = project_session(on.lab.deployment, ADMIN_CLOUD), on.project.get_project_id()
    for service, route, body in (
        ("compute", f"/os-quota-sets/{project_id}", {"quota_set": dict.fromkeys(_NOVA_LIMITS, -1)}),
        ("network", f"/v2.0/quotas/{project_id}", {"quota": dict.fromkeys(_NEUTRON_LIMITS, -1)}),
    ):
        administrator.put(route, json=body, endpoint_filter={"service_type": service, "interface": "public"})
