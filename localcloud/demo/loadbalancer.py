"""`perdure demo loadbalancer`: a Service from its creation to its clients' answers, and through a machine's death."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable

import aiohttp

from domain.built_in_kinds import NODE
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET, SERVICE
from engine.kube.json import JsonObject, sequence, text
from localcloud.demo.stage import Scenario, Stage, UnsettledError
from localcloud.machines.contract import Fare, MachineView
from localcloud.machines.control import MachineHost
from localcloud.openstack.control import OpenStackControl
from localcloud.processes import tethered
from localcloud.services import LOAD_BALANCER_NAMESPACE
from localcloud.state import Cloud

NAMESPACE, NAME = "shop", "web"
NODES = ("node-a", "node-b")
PORT = 8080
REPLICAS = 2
REQUESTS = 40
_REQUEST = aiohttp.ClientTimeout(total=5)


async def play(stage: Stage) -> None:
    with MachineHost.of(stage.deployment) as machines, OpenStackControl.of(stage.deployment) as cloud:
        machines.fare()
        await forget_the_last_run(stage)
        cloud.reset_ledger()
        began = time.monotonic()
        await apply_service(stage)
        address = await until_it_has_an_address(stage)
        await _ask_until_answered(stage, address, began)
        ledger = cloud.ledger()
        stage.say(f"OpenStack was called {ledger.calls()} times, with {ledger.tokens()} tokens")
        await until_complete(stage, machines, began)
        await ask(stage, address)
        await stage.breathe()
        dead = await _cut_the_power(stage, machines, address)
        await stage.breathe()
        await _replace(stage, machines, dead)
        await ask(stage, address)


async def forget_the_last_run(stage: Stage) -> None:
    if _service(stage) is None:
        return
    stage.say("A Service is left from an earlier run: it is deleted first")
    await stage.delete(SERVICE, NAMESPACE, NAME)
    await stage.until(
        "the earlier Service and its load balancer are gone",
        lambda: _service(stage) is None and not stage.objects.of(LOAD_BALANCER, LOAD_BALANCER_NAMESPACE),
    )


async def apply_service(stage: Stage) -> None:
    await stage.apply("nodes.yaml", of="loadbalancer")
    await stage.apply("service.yaml", of="loadbalancer")
    stage.say(f"Applied service.yaml: Service {NAMESPACE}/{NAME} of type LoadBalancer, with {REPLICAS} machines")
    await stage.until("the Service has a node port", lambda: _node_port(stage) > 0)
    for name in NODES:
        await _play_node(stage, name, _node_port(stage))


async def until_it_has_an_address(stage: Stage) -> str:
    await stage.until("the Service has an address", lambda: _address(stage) != "")
    stage.say(
        f"The Service's address is {_address(stage)}; {' and '.join(NODES)} answer at node port {_node_port(stage)}"
    )
    return _address(stage)


async def _play_node(stage: Stage, name: str, port: int) -> None:
    node = await stage.kube.get(NODE, "", name)
    addresses = sequence(node, "status", "addresses")
    address = next((text(each, "address") for each in addresses if text(each, "type") == "InternalIP"), "")
    command = tethered([sys.executable, "-m", "localcloud.demo.node", address, str(port), name])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    # A session of its own, since the demo handles Ctrl-C and ends it.
    subprocess.Popen(command, env=environment, start_new_session=True)  # noqa: ASYNC220


async def _ask_until_answered(stage: Stage, address: str, began: float) -> None:
    async with _client() as client:
        await stage.looking("a request is answered", lambda: _answered(client, address))
    stage.say(f"The first request was answered {time.monotonic() - began:.1f} s after the Service was applied")


async def until_complete(stage: Stage, machines: MachineHost, began: float) -> None:
    await stage.until("the machines of the load balancer are ready", lambda: _ready(stage) == REPLICAS)
    await _one_master(stage, machines, lambda _: True)
    stage.say(f"{REPLICAS} machines are ready after {time.monotonic() - began:.1f} s")


async def ask(stage: Stage, address: str) -> None:
    async with _client() as client:
        answers = Counter([await _answer(client, address) for _ in range(REQUESTS)])
    if failed := answers.pop("", 0):
        raise UnsettledError(f"{failed} of {REQUESTS} requests to {address} were not answered")
    if set(answers) != set(NODES):
        raise UnsettledError(f"requests to {address} were answered by {', '.join(answers)} only")
    counts = ", ".join(f"{count} by {name}" for name, count in sorted(answers.items()))
    stage.say(f"{REQUESTS} requests to http://{address}:{PORT} are answered: {counts}")


async def _cut_the_power(stage: Stage, machines: MachineHost, address: str) -> MachineView:
    master = await _one_master(stage, machines, lambda _: True)
    began = time.monotonic()
    await asyncio.to_thread(machines.fare, Fare(server=f"^{master.name}$", boots=False))
    stage.say(f"The power of {master.name}, which has the address, is cut")
    other = await _one_master(stage, machines, lambda machine: machine.name != master.name)
    async with _client() as client:
        await stage.looking("a request is answered again", lambda: _answered(client, address))
    stage.say(f"{other.name} has the address; requests are answered again after {time.monotonic() - began:.1f} s")
    await ask(stage, address)
    return master


async def _replace(stage: Stage, machines: MachineHost, dead: MachineView) -> None:
    began = time.monotonic()
    await stage.delete(LOAD_BALANCER_MACHINE, LOAD_BALANCER_NAMESPACE, dead.name)
    stage.say(
        f"Deleted LoadBalancerMachine {dead.name}: Perdure itself replaces a machine only after five minutes "
        "without a report"
    )
    await stage.until(
        "another machine is ready in its place",
        lambda: (
            stage.objects.one(LOAD_BALANCER_MACHINE, LOAD_BALANCER_NAMESPACE, dead.name) is None
            and len(_machines(stage)) == REPLICAS
            and _ready(stage) == REPLICAS
        ),
    )
    await asyncio.to_thread(machines.fare)
    stage.say(f"A new machine is ready in its place after {time.monotonic() - began:.1f} s")


async def _one_master(stage: Stage, machines: MachineHost, holds: Callable[[MachineView], bool]) -> MachineView:
    found: list[MachineView] = []

    async def look() -> bool:
        view = await asyncio.to_thread(machines.view)
        names = {text(each, "metadata", "name") for each in _machines(stage)}
        ours = [each for each in view.machines if each.name in names and each.master and each.ports]
        found[:] = [each for each in ours if holds(each)]
        return len(found) == 1

    await stage.looking("a machine has the address", look)
    return found[0]


# Reading the objects.


def ours(obj: JsonObject) -> bool:
    return text(obj, "metadata", "namespace") in (NAMESPACE, LOAD_BALANCER_NAMESPACE)


def _service(stage: Stage) -> JsonObject | None:
    return stage.objects.one(SERVICE, NAMESPACE, NAME)


def _node_port(stage: Stage) -> int:
    ports = sequence(_service(stage), "spec", "ports")
    found = ports[0].get("nodePort") if ports and isinstance(ports[0], dict) else None
    return found if isinstance(found, int) else 0


def _address(stage: Stage) -> str:
    ingress = sequence(_service(stage), "status", "loadBalancer", "ingress")
    return text(ingress[0], "ip") if ingress else ""


def _machines(stage: Stage) -> list[JsonObject]:
    return stage.objects.of(LOAD_BALANCER_MACHINE, LOAD_BALANCER_NAMESPACE)


def _ready(stage: Stage) -> int:
    found = [each.get("status") for each in stage.objects.of(LOAD_BALANCER, LOAD_BALANCER_NAMESPACE)]
    return sum(each.get("readyReplicas", 0) for each in found if isinstance(each, dict))


# Requests of a client.


def _client() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True), timeout=_REQUEST)


async def _answered(client: aiohttp.ClientSession, address: str) -> bool:
    return await _answer(client, address) in NODES


async def _answer(client: aiohttp.ClientSession, address: str) -> str:
    try:
        async with client.get(f"http://{address}:{PORT}/") as answer:
            return (await answer.text()).strip()
    except (aiohttp.ClientError, TimeoutError):
        return ""


SCENARIO = Scenario(
    title="A load balancer in OpenStack: a Service gets an address, clients are answered, and a machine fails",
    clouds=(Cloud.OPENSTACK,),
    kinds=(SERVICE, LOAD_BALANCER, LOAD_BALANCER_SET, LOAD_BALANCER_MACHINE),
    play=play,
    areas=("loadbalancers",),
    shows=ours,
    hints=(
        "kubectl get services,loadbalancers,loadbalancersets,loadbalancermachines -A",
        f"curl http://$(kubectl -n {NAMESPACE} get service {NAME} -o "
        f"jsonpath='{{.status.loadBalancer.ingress[0].ip}}'):{PORT}",
        f"perdure why service {NAMESPACE}/{NAME}",
        f"kubectl -n {NAMESPACE} annotate service {NAME} yawol.stackit.cloud/replicas=3 --overwrite",
        f"kubectl -n {NAMESPACE} delete service {NAME}",
    ),
)
