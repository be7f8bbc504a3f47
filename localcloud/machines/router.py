"""Forwards traffic for floating and virtual addresses to Envoy on the machine that is VRRP master (`vrrp.py`).

A connection stays with its machine, and is reset when the machine dies. A refused TCP connection is retried for three
seconds; a refused UDP datagram is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
from collections.abc import Callable, Iterable
from typing import Any

from localcloud.machines.contract import Port

TCP, UDP = "TCP", "UDP"
_OFFERED_SECONDS = 3.0
_PAUSE_SECONDS = 0.1
_SILENT_SECONDS = 60.0
_CHUNK = 64 * 1024
_BACKLOG = 1024
# Linux's constant, missing in Python 3.11: the kernel chooses the local port only when it knows the destination.
_IP_BIND_ADDRESS_NO_PORT = 24
_AT_ONCE = struct.pack("ii", 1, 0)

Target = Callable[[], str | None]

log = logging.getLogger("machines")


class Lead:
    def __init__(self, address: str, target: Target) -> None:
        self.address = address
        self.problems: dict[Port, str] = {}
        self._target = target
        self._opened: dict[Port, _TcpPort | _UdpPort] = {}

    @property
    def ports(self) -> tuple[Port, ...]:
        return tuple(self._opened)

    async def serve(self, ports: Iterable[Port]) -> None:
        wanted = set(ports)
        for port in set(self._opened) - wanted:
            await self._opened.pop(port).close()
        self.problems = {}
        for port in sorted(wanted - set(self._opened), key=str):
            kind = _UdpPort if port.protocol == UDP else _TcpPort
            opening = kind(self.address, port.number, self._target)
            try:
                await opening.open()
            except OSError as error:
                self.problems[port] = f"{self.address} {port}: {error}"
                continue
            self._opened[port] = opening


class _TcpPort:
    def __init__(self, address: str, number: int, target: Target) -> None:
        self._where = (address, number)
        self._target = target
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._lead, *self._where, backlog=_BACKLOG)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _lead(self, client_reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        try:
            machine_reader, machine = await self._connect(client.get_extra_info("peername")[0])
        except OSError:
            _reset(client)
            return
        there = asyncio.ensure_future(_pump(client_reader, machine))
        back = asyncio.ensure_future(_pump(machine_reader, client))
        try:
            await asyncio.gather(there, back)
        except OSError:
            # Reset both sides, so that a broken connection does not look finished.
            _reset(client)
            _reset(machine)
        finally:
            for each in (there, back):
                each.cancel()
            client.close()
            machine.close()

    async def _connect(self, client_address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        until = loop.time() + _OFFERED_SECONDS
        while True:
            master = self._target()
            if master is not None:
                opened = _socket(socket.SOCK_STREAM, client_address)
                try:
                    await loop.sock_connect(opened, (master, self._where[1]))
                    return await asyncio.open_connection(sock=opened)
                except OSError:
                    opened.close()
                    if loop.time() > until:
                        raise
            elif loop.time() > until:
                raise ConnectionRefusedError("no machine has the address")
            await asyncio.sleep(_PAUSE_SECONDS)


class _UdpPort(asyncio.DatagramProtocol):
    def __init__(self, address: str, number: int, target: Target) -> None:
        self._where = (address, number)
        self._target = target
        self._transport: asyncio.DatagramTransport | None = None
        self._sessions: dict[Any, _Session] = {}

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=self._where)

    async def close(self) -> None:
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()
        if self._transport is not None:
            self._transport.close()

    def datagram_received(self, data: bytes, addr: Any) -> None:
        master, session = self._target(), self._sessions.get(addr)
        if session is not None and session.machine != master:
            session.close()
            session = None
        if master is None:
            return
        if session is None:
            session = _Session(addr, (master, self._where[1]), self._answer, self._forget)
            self._sessions[addr] = session
        session.send(data)

    def _answer(self, data: bytes, client: Any) -> None:
        if self._transport is not None:
            self._transport.sendto(data, client)

    def _forget(self, client: Any) -> None:
        self._sessions.pop(client, None)


class _Session:
    def __init__(
        self,
        client: Any,
        machine: tuple[str, int],
        answer: Callable[[bytes, Any], None],
        forget: Callable[[Any], None],
    ) -> None:
        self.machine = machine[0]
        self._client = client
        self._answer = answer
        self._forget = forget
        self._loop = asyncio.get_running_loop()
        self._socket = _socket(socket.SOCK_DGRAM, client[0])
        self._socket.connect(machine)
        self._loop.add_reader(self._socket, self._receive)
        self._silence = self._loop.call_later(_SILENT_SECONDS, self._end)

    def send(self, data: bytes) -> None:
        self._silence.cancel()
        self._silence = self._loop.call_later(_SILENT_SECONDS, self._end)
        with contextlib.suppress(OSError):  # a datagram may be lost
            self._socket.send(data)

    def close(self) -> None:
        self._silence.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()

    def _receive(self) -> None:
        with contextlib.suppress(OSError):
            self._answer(self._socket.recv(_CHUNK), self._client)

    def _end(self) -> None:
        self.close()
        self._forget(self._client)


def _socket(kind: socket.SocketKind, client_address: str) -> socket.socket:
    opened = socket.socket(socket.AF_INET, kind)
    opened.setblocking(False)
    if kind is socket.SOCK_STREAM:
        opened.setsockopt(socket.IPPROTO_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
    with contextlib.suppress(OSError):  # for clients on other computers the kernel chooses the address
        opened.bind((client_address, 0))
    return opened


def _reset(writer: asyncio.StreamWriter) -> None:
    opened = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    writer.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
