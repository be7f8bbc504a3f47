"""A machine host with servers that a test writes down, as Nova would, and a real API server for their agents."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from product import free_port
from waiting import eventually

from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE
from domain.loadbalancers.machine.api_access import Credentials, access_objects, kubeconfig
from domain.loadbalancers.machine.user_data import MachineSettings, user_data
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine
from engine.kube import SECRET, KubeApi
from engine.kube.json import text
from localcloud.deployment import Deployment
from localcloud.machines.contract import HostView, MachineState, MachineView
from localcloud.machines.control import MachineHost
from localcloud.processes import tethered

# A machine takes two seconds to come up; a busy computer that has two cores for everything, many times that.
PATIENCE_SECONDS = 90.0

_RBAC = "rbac.authorization.k8s.io"
_KINDS = {
    "ServiceAccount": Kind(name="ServiceAccount", group="", version="v1", plural="serviceaccounts", area=""),
    "Secret": SECRET,
    "Role": Kind(name="Role", group=_RBAC, version="v1", plural="roles", area=""),
    "RoleBinding": Kind(name="RoleBinding", group=_RBAC, version="v1", plural="rolebindings", area=""),
}
_ENVIRONMENT = {
    "defaultNetwork": {"networkID": "net"},
    "flavor": {"flavorID": "small"},
    "image": {"imageID": "alpine"},
    "authSecretRef": {"name": "cloud", "namespace": "lbs"},
}
_REVISION = {"loadbalancer.yawol.stackit.cloud/revision": "1"}


class Lab:
    """The machine host as a process, and what Nova and Neutron would have asked it for."""

    def __init__(self, deployment: Deployment, kube: KubeApi, namespace: str, directory: Path) -> None:
        self.kube = kube
        self.namespace = namespace
        self.directory = directory
        self.home = directory / "machines"
        self._environment = deployment.program_env()
        # Above the addresses of any deployment that may run beside.
        self.network = f"127.{random.randrange(150, 250)}.{random.randrange(1, 250)}"
        self.virtual_address = f"{self.network}.100"
        self.floating_address = f"{self.network}.200"
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._url = f"http://127.0.0.1:{free_port()}"
        self.control = MachineHost(self._url)

    async def start(self) -> None:
        arguments = [
            *("-m", "localcloud.machines", "--port", self._url.rpartition(":")[2]),
            *("--ground", str(self.directory / "ground"), "--home", str(self.home)),
            *("--call", f"perdure-test-{uuid4().hex[:12]}"),
        ]
        with (self.directory / "host.log").open("ab") as log:
            command = tethered([sys.executable, *arguments])
            self.process = subprocess.Popen(  # noqa: ASYNC220 - it is waited for below
                command, env=self._environment, stdout=log, stderr=log
            )

        async def listening() -> bool:
            return await asyncio.to_thread(self._view_or_nothing) is not None

        await self.until(listening, "the machine host answers")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(60)
            self.process = None

    # What users ask for.

    async def balancer(self, node_port: int) -> LoadBalancer:
        spec: dict[str, Any] = {
            "selector": {},
            "infrastructure": _ENVIRONMENT,
            "ports": [{"name": "line", "protocol": "TCP", "port": self.port, "nodePort": node_port}],
            "endpoints": [{"name": "node-a", "addresses": ["127.0.0.1"]}],
        }
        metadata = {"namespace": self.namespace, "annotations": _REVISION, "name": "web"}
        made = await self.kube.create(LOAD_BALANCER, {"metadata": metadata, "spec": spec}, self.namespace)
        await self._lead(self.floating_address, self.virtual_address)
        return LoadBalancer.model_validate(made)

    async def server(self, balancer: LoadBalancer, name: str, last_number: int) -> str:
        """A LoadBalancerMachine and the server that Nova has built for it; the server's id."""
        spec = {
            "infrastructure": _ENVIRONMENT,
            "portID": "port-1",
            "loadBalancerRef": {"name": "web", "namespace": self.namespace},
        }
        metadata = {"namespace": self.namespace, "annotations": _REVISION, "name": name}
        made = await self.kube.create(LOAD_BALANCER_MACHINE, {"metadata": metadata, "spec": spec}, self.namespace)
        machine = LoadBalancerMachine.model_validate(made)
        for each in access_objects(machine):
            await self.kube.create(_KINDS[text(each, "kind")], each, self.namespace)
        cloud_config = user_data(
            machine,
            balancer,
            virtual_address=self.virtual_address,
            kubeconfig=kubeconfig(self.kube.host, self.namespace, await self._credentials(name)),
            settings=MachineSettings(),
        )
        return self.built(name, f"{self.network}.{last_number}", cloud_config)

    def built(self, name: str, address: str, text_of_user_data: str) -> str:
        """What the hypervisor writes down."""
        found = {
            "id": str(uuid4()),
            "name": name,
            "project": "shop",
            "addresses": [address],
            "user_data": base64.b64encode(text_of_user_data.encode()).decode(),
            "running": True,
            "boot": time.time_ns(),
        }
        self._write("servers", found)
        return str(found["id"])

    def switch(self, server_id: str, *, running: bool) -> None:
        path = self.directory / "ground" / "servers" / f"{server_id}.json"
        found = json.loads(path.read_text())
        self._write("servers", {**found, "running": running, "boot": time.time_ns()})

    def delete(self, server_id: str) -> None:
        (self.directory / "ground" / "servers" / f"{server_id}.json").unlink()

    async def _lead(self, floating: str, fixed: str) -> None:
        self._write("floatingips", {"id": str(uuid4()), "address": floating, "fixed_address": fixed})

    def _write(self, what: str, found: dict[str, Any]) -> None:
        directory = self.directory / "ground" / what
        directory.mkdir(parents=True, exist_ok=True)
        beside = directory / f".{found['id']}"
        beside.write_text(json.dumps(found))
        beside.replace(directory / f"{found['id']}.json")

    async def _credentials(self, name: str) -> Credentials:
        secret: dict[str, Any] = {}

        async def issued() -> bool:
            nonlocal secret
            secret = await self.kube.get(SECRET, self.namespace, name)
            return bool(text(secret, "data", "token"))

        await self.until(issued, f"{name}'s token is issued")
        decoded = {key: base64.b64decode(value) for key, value in secret["data"].items()}
        return Credentials(token=decoded["token"].decode(), ca=decoded["ca.crt"])

    # What becomes of it.

    async def seen(self, name: str, holds: Callable[[MachineView], bool], what: str) -> MachineView:
        found = MachineView(server_id="", name="", state=MachineState.OFF)

        async def check() -> bool:
            nonlocal found
            view = await asyncio.to_thread(self.control.view)
            found = view.machine(name) or found
            return found.name == name and holds(found)

        await self.until(check, f"{name}: {what}")
        return found

    async def answered(self, address: str) -> str:
        said = ""

        async def check() -> bool:
            nonlocal said
            said = await self.ask(address)
            return bool(said)

        await self.until(check, f"{address} answers")
        return said

    async def ask(self, address: str) -> str:
        """What comes back for a line; empty if the connection is refused or closed without an answer."""
        try:
            async with asyncio.timeout(5):
                reader, writer = await asyncio.open_connection(address, self.port)
                try:
                    writer.write(b"hello\n")
                    await writer.drain()
                    return (await reader.readline()).decode().strip()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return ""

    def _view_or_nothing(self) -> HostView | None:
        try:
            return self.control.view()
        except httpx.TransportError:
            return None

    async def until(self, holds: Callable[[], Any], what: str) -> None:
        """`holds` may have to be awaited."""
        log = self.directory / "host.log"
        await eventually(holds, lambda: f"{what}\n{log.read_text()[-3000:]}", PATIENCE_SECONDS)


@asynccontextmanager
async def backend() -> AsyncIterator[int]:
    """A node's service: it answers a line with the address that it came from."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while line := await reader.readline():
                writer.write(b"heard " + line)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
