"""The agent as a process of its own, under its machine's role, between a real API server and a real Envoy."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from crd_lab import install
from product import get_health
from waiting import eventually
from yawollet_lab import HOST, Backend, Machine, answered, ask, free_port, machine, port, tcp_backend

from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE
from domain.loadbalancers.machine.api_access import Credentials, access_objects, kubeconfig
from domain.loadbalancers.machine_health import health_of, is_master
from domain.loadbalancers.resources import LoadBalancerMachine
from engine.kube import EVENT, SECRET, KubeApi
from engine.kube.json import text

pytestmark = pytest.mark.integration

Json = dict[str, Any]

_RBAC = "rbac.authorization.k8s.io"
KINDS = {
    "ServiceAccount": Kind(name="ServiceAccount", group="", version="v1", plural="serviceaccounts", area=""),
    "Secret": SECRET,
    "Role": Kind(name="Role", group=_RBAC, version="v1", plural="roles", area=""),
    "RoleBinding": Kind(name="RoleBinding", group=_RBAC, version="v1", plural="rolebindings", area=""),
}
REVISION = "loadbalancer.yawol.stackit.cloud/revision"
MACHINE_ENVIRONMENT = {
    "defaultNetwork": {"networkID": "net"},
    "flavor": {"flavorID": "small"},
    "image": {"imageID": "alpine"},
    "authSecretRef": {"name": "cloud", "namespace": "lbs"},
}
STATS = """ VRRP Instance: ENVOY
   Advertisements:
     Received: 0
     Sent: 3
   Became master: {became}
   Released master: 0
"""


class Cluster:
    """A LoadBalancer, its machine, and the agent's way to them."""

    def __init__(self, kube: KubeApi, namespace: str, directory: Path) -> None:
        self.kube = kube
        self.namespace = namespace
        self.kubeconfig = directory / "kubeconfig"
        self.nowhere = directory / "kubeconfig-of-nothing"

    async def fill(self, *ports: Json) -> None:
        meta = {"namespace": self.namespace, "annotations": {REVISION: "1"}}
        spec: Json = {
            "selector": {},
            "infrastructure": MACHINE_ENVIRONMENT,
            "ports": list(ports),
            "endpoints": [{"name": "node-a", "addresses": [HOST]}],
        }
        await self.kube.create(LOAD_BALANCER, {"metadata": {**meta, "name": "web"}, "spec": spec}, self.namespace)
        machine_spec = {
            "infrastructure": MACHINE_ENVIRONMENT,
            "portID": "port-1",
            "loadBalancerRef": {"name": "web", "namespace": self.namespace},
        }
        made = await self.kube.create(
            LOAD_BALANCER_MACHINE, {"metadata": {**meta, "name": "web-1"}, "spec": machine_spec}, self.namespace
        )
        for each in access_objects(LoadBalancerMachine.model_validate(made)):
            await self.kube.create(KINDS[text(each, "kind")], each, self.namespace)
        await self._write_kubeconfigs()

    async def _write_kubeconfigs(self) -> None:
        async def token() -> Json | bool:
            secret = await self.kube.get(SECRET, self.namespace, "web-1")
            return secret if text(secret, "data", "token") else False

        secret = await eventually(token, "the machine's token is issued")
        decoded = {key: base64.b64decode(value) for key, value in secret["data"].items()}
        credentials = Credentials(token=decoded["token"].decode(), ca=decoded["ca.crt"])
        self.kubeconfig.write_text(kubeconfig(self.kube.host, self.namespace, credentials))
        self.nowhere.write_text(kubeconfig(f"https://{HOST}:{free_port()}", self.namespace, credentials))

    async def machine(self) -> LoadBalancerMachine:
        return LoadBalancerMachine.model_validate(await self.kube.get(LOAD_BALANCER_MACHINE, self.namespace, "web-1"))

    async def reported(self, holds: Callable[[dict[str, Any]], bool], what: str, seconds: float = 60) -> dict[str, Any]:
        """The machine's conditions by type, once they are so."""

        async def check() -> Any:
            found = {each.type: each for each in (await self.machine()).status.conditions}
            return found if holds(found) else None

        return dict(await eventually(check, what, seconds))

    async def ready(self) -> dict[str, Any]:
        """The machine's conditions once its health is good by the rules that decide on machines."""
        await eventually(self._healthy, "the machine is ready")
        return {each.type: each for each in (await self.machine()).status.conditions}

    async def _healthy(self) -> bool:
        return health_of(await self.machine(), datetime.now(UTC)).ready

    async def change(self, **spec: Any) -> None:
        await self.kube.patch(LOAD_BALANCER, self.namespace, "web", {"spec": spec})

    async def events(self) -> list[tuple[str, str, str]]:
        listing = await self.kube.list(EVENT, self.namespace, field_selector="involvedObject.name=web-1")
        assert {text(each, "source", "component") for each in listing.items} <= {"yawollet"}
        return [(text(each, "type"), text(each, "reason"), text(each, "message")) for each in listing.items]


class Agent:
    """The process."""

    def __init__(self, vm: Machine, cluster: Cluster) -> None:
        self.vm = vm
        self.cluster = cluster
        self.health = f"{HOST}:{free_port()}"
        self.stats = vm.directory / "keepalived.stats"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, config: Path | None = None, requeue: int = 5) -> None:
        command = Path(sys.executable).parent / "yawollet"
        flags = {
            "namespace": self.cluster.namespace,
            "loadbalancer-name": "web",
            "loadbalancer-machine-name": "web-1",
            "listen-address": HOST,
            "health-probe-bind-address": self.health,
            "kubeconfig": config or self.cluster.kubeconfig,
            "requeue-time": requeue,
            "keepalived-stats-file": self.stats,
            "keepalived-pid-file": self.vm.directory / "keepalived.pid",
            "ads-bind-address": self.vm.ads,
            "envoy-admin-address": self.vm.admin_address,
            "snapshot-file": self.vm.directory / "snapshot.json",
        }
        arguments = [f"--{name}={value}" for name, value in flags.items()]
        with (self.vm.directory / "yawollet.log").open("ab") as log:
            self.process = subprocess.Popen([str(command), *arguments], stdout=log, stderr=log)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    async def readyz(self) -> httpx.Response | None:
        try:
            return await get_health(int(self.health.rpartition(":")[2]), "/readyz")
        except httpx.HTTPError:
            return None


@pytest.fixture(scope="module")
async def served(kube: KubeApi) -> KubeApi:
    await install(kube)
    return kube


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    async with tcp_backend() as found:
        yield found


@pytest.fixture
async def agent(served: KubeApi, namespace: str, tmp_path: Path) -> AsyncIterator[Agent]:
    async with running(served, namespace, tmp_path) as found:
        yield found


@asynccontextmanager
async def running(kube: KubeApi, namespace: str, directory: Path) -> AsyncIterator[Agent]:
    """A machine with its Envoy; the agent is started by the test."""
    async with machine(directory) as vm:
        found = Agent(vm, Cluster(kube, namespace, directory))
        try:
            yield found
        finally:
            found.kill()


async def test_a_machine_serves_and_reports_under_its_own_role(agent: Agent, backend: Backend) -> None:
    number, cluster = free_port(), agent.cluster
    agent.stats.write_text(STATS.format(became=1))
    await cluster.fill(port(number, backend.port))
    agent.start()
    assert await answered(number) == "backend: hello"
    conditions = await cluster.ready()
    found = {name: (each.status, each.reason) for name, each in conditions.items()}
    assert found == {
        "ConfigReady": ("True", found["ConfigReady"][1]),
        "EnvoyReady": ("True", "EnvoyReady"),
        "EnvoyUpToDate": ("True", "EnvoySnapshotUpToDate"),
        "KeepalivedMaster": ("True", "KeepalivedStatus"),
        "KeepalivedProcess": ("False", "CouldNotGetPIDFile"),
        "KeepalivedStatsFile": ("True", "StatsUpToDate"),
    }
    assert list(conditions) == sorted(conditions)
    assert is_master(await cluster.machine())

    async def updated() -> bool:
        return ("Normal", "Update", "Envoy is updated to new snapshot version: 1") in await cluster.events()

    await eventually(updated, "an Event says that Envoy is up to date")

    async def counted() -> dict[str, str] | None:
        metrics = {each.type: each.value for each in (await cluster.machine()).status.metrics}
        return metrics if int(metrics.get(f"TCP-{number}-upstream_cx_total", 0)) > 0 else None

    metrics = await eventually(counted, "the client's connection is counted")
    assert metrics["keepalivedIsMaster"] == "1"
    assert {"load1", "memTotal", "numCPU", "uptime", f"TCP-{number}-upstream_cx_rx_bytes_total"} <= set(metrics)


async def test_readyz_holds_while_the_report_is_read_back_and_the_revisions_agree(
    agent: Agent, backend: Backend
) -> None:
    cluster = agent.cluster
    await cluster.fill(port(free_port(), backend.port))
    agent.start()

    async def status(wanted: int) -> httpx.Response | None:
        answer = await agent.readyz()
        return answer if answer is not None and answer.status_code == wanted else None

    await eventually(lambda: status(200), "readyz says yes")
    newer = {"metadata": {"annotations": {REVISION: "2"}}}
    await cluster.kube.patch(LOAD_BALANCER, cluster.namespace, "web", newer)
    answer = await eventually(lambda: status(503), "readyz says no")
    assert "loadbalancer-revision" in answer.text
    await cluster.kube.patch(LOAD_BALANCER_MACHINE, cluster.namespace, "web-1", newer)
    await eventually(lambda: status(200), "readyz says yes again")


async def test_a_change_of_the_load_balancer_is_served_at_once(agent: Agent, backend: Backend) -> None:
    first, second = free_port(), free_port()
    await agent.cluster.fill(port(first, backend.port))
    agent.start(requeue=60)
    assert await answered(first)
    await agent.cluster.ready()
    await agent.cluster.change(ports=[port(first, backend.port), port(second, backend.port)])
    assert await answered(second) == "backend: hello"


async def test_a_spec_that_cannot_be_served_is_reported_and_costs_no_machine(agent: Agent, backend: Backend) -> None:
    number, cluster = free_port(), agent.cluster
    await cluster.fill(port(number, backend.port), {"protocol": "SCTP", "port": 1, "nodePort": 2})
    endpoints = [{"name": "v6-only"}, {"name": "dns", "addresses": ["node.example"]}]
    await cluster.change(
        endpoints=[*endpoints, {"name": "good", "addresses": [HOST]}],
        options={"loadBalancerSourceRanges": ["127.0.0.0/8", "10.0.0.0/40"]},
    )
    agent.start()
    assert await answered(number) == "backend: hello"
    await cluster.ready()

    async def reported() -> set[str]:
        return {
            message for type_, reason, message in await cluster.events() if (type_, reason) == ("Warning", "Failed")
        }

    refused = {
        "Port SCTP-1 is not served: protocol 'SCTP' is neither TCP nor UDP",
        "Endpoint v6-only has no addresses, so it is left out",
        "Endpoint dns: 'node.example' is not an IP address, so it is left out",
        "Source range '10.0.0.0/40' is not a network, so it is left out",
    }

    async def all_reported() -> bool:
        return await reported() >= refused

    await eventually(all_reported, reported)
    assert await reported() == refused


async def test_envoys_refusal_appears_word_for_word_in_the_condition_and_in_an_event(
    agent: Agent, backend: Backend
) -> None:
    number, cluster = free_port(), agent.cluster
    blocker = await asyncio.start_server(backend.answer, HOST, 0)
    taken = blocker.sockets[0].getsockname()[1]
    await cluster.fill(port(number, backend.port), port(taken, backend.port))
    agent.start()
    found = await cluster.reported(
        lambda found: "ConfigReady" in found and found["ConfigReady"].reason == "EnvoyConfigurationFailed",
        "the refusal is reported",
    )
    text = f"Error adding/updating listener(s) TCP-{taken}: cannot bind '{HOST}:{taken}': Address already in use"
    assert (found["ConfigReady"].status, found["ConfigReady"].message.strip()) == ("False", text)
    assert await answered(number) == "backend: hello"
    # Only the configuration is at fault: Envoy works by all that it has taken.
    await cluster.reported(
        lambda found: found["EnvoyReady"].status == found["EnvoyUpToDate"].status == "True", "Envoy is up to date"
    )

    async def reported() -> bool:
        return any(reason == "Failed" and message.strip() == text for _, reason, message in await cluster.events())

    await eventually(reported, "an Event reports the refusal")
    blocker.close()
    await cluster.change(options={"tcpIdleTimeout": "1h"})
    await cluster.ready()
    assert await answered(taken) == "backend: hello"


async def test_a_killed_agent_that_finds_no_api_server_serves_on(agent: Agent, backend: Backend) -> None:
    """W10."""
    number, cluster = free_port(), agent.cluster
    await cluster.fill(port(number, backend.port))
    agent.start()
    assert await answered(number)
    await cluster.ready()
    agent.kill()
    assert await ask(number) == "backend: hello"
    agent.start(cluster.nowhere)
    await eventually(agent.readyz, "the agent runs again")
    # Envoy, too, may have to restart: all that it serves then comes from the agent's file.
    agent.vm.stop_envoy()
    agent.vm.start_envoy()
    assert await answered(number) == "backend: hello"
    answer = await agent.readyz()
    assert answer is not None
    assert (answer.status_code, "informer-sync" in answer.text) == (503, True)
    # With the API server back the same goes on under the same version.
    version = await agent.vm.admin.versions()
    agent.kill()
    before = datetime.now(UTC)
    agent.start()
    await cluster.reported(lambda found: beat(found["EnvoyUpToDate"]) > before, "the agent reports again")
    await cluster.ready()
    assert await agent.vm.admin.versions() == version
    assert await ask(number) == "backend: hello"


def beat(condition: Any) -> datetime:
    return datetime.fromisoformat(condition.last_heartbeat_time)


async def test_no_request_fails_while_the_agent_is_killed_and_comes_back(agent: Agent, backend: Backend) -> None:
    number, cluster = free_port(), agent.cluster
    await cluster.fill(port(number, backend.port))
    agent.start()
    assert await answered(number)
    await cluster.ready()
    failed, sent, over = 0, 0, asyncio.Event()

    async def keep_asking() -> None:
        nonlocal failed, sent
        while not over.is_set():
            failed += await ask(number) != "backend: hello"
            sent += 1
            await asyncio.sleep(0.02)

    asking = asyncio.create_task(keep_asking())
    for _ in range(2):
        agent.kill()
        since = datetime.now(UTC)  # of the killed one no heartbeat, in whole seconds, is later
        agent.start()
        await cluster.reported(lambda found, since=since: beat(found["EnvoyReady"]) > since, "it reports again")
    over.set()
    await asking
    assert sent > 20
    assert failed == 0


async def test_the_mark_of_a_machine_that_is_given_up_is_neither_lost_nor_brought_back(
    agent: Agent, backend: Backend
) -> None:
    cluster, kube = agent.cluster, agent.cluster.kube
    await cluster.fill(port(free_port(), backend.port))
    agent.start()
    await cluster.ready()

    async def put(conditions: list[Json]) -> None:
        patch = {"status": {"conditions": conditions}}
        await kube.patch(LOAD_BALANCER_MACHINE, cluster.namespace, "web-1", patch, subresource="status")

    async def beats_again() -> dict[str, Any]:
        since = datetime.now(UTC)  # heartbeats are whole seconds: a later one is of a later pass
        return await cluster.reported(lambda found: beat(found["EnvoyReady"]) > since, "another heartbeat")

    mark = {"type": "MarkedForDeletion", "status": "True", "reason": "PendingDeletion", "message": "for the test"}
    mark["lastTransitionTime"] = (datetime.now(UTC) - timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    stored = [each.model_dump(exclude_none=True) for each in (await cluster.machine()).status.conditions]
    await put([*stored, mark])
    found = await beats_again()
    assert found["MarkedForDeletion"].last_transition_time == mark["lastTransitionTime"]
    await put(stored)
    assert "MarkedForDeletion" not in await beats_again()
