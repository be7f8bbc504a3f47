"""Clients' bytes on their way to a machine: whole, under their own address, and broken off when the machine breaks."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import cast

import pytest

from localcloud.machines.contract import Port
from localcloud.machines.router import Lead

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

FLOATING, MACHINE, CLIENT = "127.91.0.1", "127.90.0.1", "127.92.0.1"


@pytest.fixture
def number() -> int:
    with socket.socket() as probe:
        probe.bind((MACHINE, 0))
        return int(probe.getsockname()[1])


@pytest.fixture
async def lead(number: int) -> AsyncIterator[Lead]:
    found = Lead(FLOATING, lambda: MACHINE)
    await found.serve([Port(protocol="TCP", number=number), Port(protocol="UDP", number=number)])
    assert not found.problems
    yield found
    await found.serve([])


async def test_a_connection_is_led_whole_and_under_the_clients_address(lead: Lead, number: int) -> None:
    sent, received = b"x" * 1_000_000, asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.set_result((writer.get_extra_info("peername")[0], await reader.read()))
        writer.write(b"thanks")
        writer.close()

    async with await asyncio.start_server(answer, MACHINE, number):
        reader, writer = await asyncio.open_connection(FLOATING, number, local_addr=(CLIENT, 0))
        writer.write(sent)
        writer.write_eof()
        assert await reader.read() == b"thanks"
        writer.close()
    assert await received == (CLIENT, sent)


async def test_a_connection_that_the_machine_breaks_is_no_connection_that_has_ended(lead: Lead, number: int) -> None:
    async def breaks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.transport.abort()

    async with await asyncio.start_server(breaks, MACHINE, number):
        reader, writer = await asyncio.open_connection(FLOATING, number)
        writer.write(b"hello\n")
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()


async def test_a_connection_is_offered_until_a_machine_takes_it(lead: Lead, number: int) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"late")
        writer.close()

    reader, writer = await asyncio.open_connection(FLOATING, number)
    await asyncio.sleep(0.3)  # no client is there yet
    async with await asyncio.start_server(answer, MACHINE, number):
        assert await reader.read() == b"late"
        writer.close()


async def test_datagrams_find_their_way_there_and_back(lead: Lead, number: int) -> None:
    class Echo(asyncio.DatagramProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = cast("asyncio.DatagramTransport", transport)

        def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
            self.transport.sendto(addr[0].encode() + b" said " + data, addr)

    loop = asyncio.get_running_loop()
    echo, _ = await loop.create_datagram_endpoint(Echo, (MACHINE, number))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setblocking(False)
        client.bind((CLIENT, 0))
        client.connect((FLOATING, number))
        answer = b""
        async with asyncio.timeout(60):
            while not answer:
                await loop.sock_sendall(client, b"hello")
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        answer = await loop.sock_recv(client, 1024)
    echo.close()
    assert answer == f"{CLIENT} said hello".encode()


async def test_a_port_that_is_taken_is_reported_and_opened_later(number: int) -> None:
    lead, port = Lead(FLOATING, lambda: MACHINE), Port(protocol="TCP", number=number)
    with socket.socket() as other:
        other.bind((FLOATING, number))
        other.listen()
        await lead.serve([port])
        assert list(lead.problems) == [port]
        assert lead.ports == ()
    await lead.serve([port])
    assert (lead.ports, lead.problems) == ((port,), {})
    await lead.serve([])
