"""The agent's conversation with a real Envoy: what is served, what is refused, what outlives a restart. No cluster."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from waiting import PATIENT, eventually
from yawollet_lab import (
    HOST,
    Backend,
    Machine,
    answered,
    ask,
    ask_udp,
    balancer,
    connected,
    conversation,
    free_port,
    machine,
    port,
    silence,
    tcp_backend,
    udp_backend,
)

from domain.loadbalancers.resources import LoadBalancer
from yawollet.conversation import Conversation

pytestmark = pytest.mark.integration


@pytest.fixture
async def vm(tmp_path: Path) -> AsyncIterator[Machine]:
    async with machine(tmp_path) as found:
        yield found


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    async with tcp_backend() as found:
        yield found


async def serve(talk: Conversation, wanted: LoadBalancer) -> bool:
    changed, _ = await talk.serve(wanted, HOST, cpus=2)
    return changed


async def accepted(vm: Machine, talk: Conversation) -> None:
    """Envoy works by what is served."""

    async def up_to_date() -> bool:
        version = str(talk.delivery.served.version) if talk.delivery.served else ""
        return await vm.admin.versions() == (version, version)

    await eventually(up_to_date, "Envoy is up to date")


async def test_a_clients_bytes_pass_through_to_a_backend_and_back(vm: Machine, backend: Backend) -> None:
    async with conversation(vm) as talk:
        await connected(talk)
        number = free_port()
        assert await serve(talk, balancer(port(number, backend.port), loadBalancerSourceRanges=["127.0.0.0/8"]))
        assert talk.delivery.settled
        assert await answered(number) == "backend: hello"
        assert not await serve(talk, balancer(port(number, backend.port), loadBalancerSourceRanges=["127.0.0.0/8"]))


@pytest.mark.parametrize("ranges", [["192.0.2.0/24"], ["nonsense"]])
async def test_a_client_in_no_source_range_gets_no_byte(vm: Machine, backend: Backend, ranges: list[str]) -> None:
    async with conversation(vm) as talk:
        await connected(talk)
        open_port, closed_port = free_port(), free_port()
        await serve(talk, balancer(port(open_port, backend.port)))
        assert await answered(open_port)
        await serve(talk, balancer(port(closed_port, backend.port), loadBalancerSourceRanges=ranges))
        assert talk.delivery.refusals == []
        await accepted(vm, talk)
        assert await ask(closed_port) == ""
        assert await denied(vm) > 0


async def denied(vm: Machine) -> int:
    return int((await vm.admin.statistics("envoyrbac"))["envoyrbac.rbac.denied"])


async def test_an_idle_connection_is_closed_after_its_timeout_and_counted(vm: Machine, backend: Backend) -> None:
    async with conversation(vm) as talk:
        await connected(talk)
        number = free_port()
        await serve(talk, balancer(port(number, backend.port), tcpIdleTimeout="500ms"))
        assert await answered(number)
        reader, writer = await asyncio.open_connection(HOST, number)
        async with asyncio.timeout(30):
            assert await reader.read() == b""
        writer.close()
        assert int((await vm.admin.statistics("tcp"))["tcp.envoytcp.idle_timeout"]) > 0


async def test_a_backend_learns_the_client_by_proxy_protocol_where_it_is_requested(vm: Machine) -> None:
    async with conversation(vm) as talk, tcp_backend() as with_protocol, tcp_backend() as without_protocol:
        await connected(talk)
        one, other = free_port(), free_port()
        ports = (port(one, with_protocol.port), port(other, without_protocol.port))
        await serve(talk, balancer(*ports, tcpProxyProtocol=True, tcpProxyProtocolPortFilter=[one]))
        assert await answered(one)
        assert await answered(other) == "backend: hello"
        # Health checks carry a header, too; the client's says PROXY (0x21), theirs LOCAL (0x20).
        signature = b"\r\n\r\n\x00\r\nQUIT\n\x21\x11"
        assert any(first.startswith(signature) for first in with_protocol.first)
        assert not any(first.startswith(b"\r\n\r\n\x00") for first in without_protocol.first)


@pytest.mark.parametrize("timeout", [None, "0s", "10s"])
async def test_datagrams_go_there_and_back(vm: Machine, timeout: str | None) -> None:
    async with conversation(vm) as talk, udp_backend() as node_port:
        await connected(talk)
        number = free_port(socket.SOCK_DGRAM)
        options = {} if timeout is None else {"udpIdleTimeout": timeout}
        await serve(talk, balancer(port(number, node_port, "UDP"), **options))
        assert talk.delivery.refusals == []
        assert await eventually(lambda: ask_udp(number, "hello"), "the datagram comes back") == "echo: hello"


async def test_a_listener_that_envoy_refuses_is_reported_verbatim_and_others_work(
    vm: Machine, backend: Backend
) -> None:
    with socket.socket() as squatter:
        squatter.bind((HOST, 0))
        squatter.listen()
        taken, free = squatter.getsockname()[1], free_port()
        async with conversation(vm) as talk:
            await connected(talk)
            await serve(talk, balancer(port(taken, backend.port), port(free, backend.port)))
            (message,) = talk.delivery.refusals
            assert f"Error adding/updating listener(s) TCP-{taken}: cannot bind '{HOST}:{taken}'" in message
            assert "Address already in use" in message
            assert await answered(free) == "backend: hello"
            await accepted(vm, talk)
            # A change of another port is not held up, and the refusal stays reported.
            another = free_port()
            await serve(talk, balancer(port(taken, backend.port), port(another, backend.port)))
            assert await answered(another) == "backend: hello"
            assert talk.delivery.refusals == [message]


async def test_a_refused_resource_is_served_once_it_has_changed(vm: Machine, backend: Backend) -> None:
    async with conversation(vm) as talk:
        await connected(talk)
        with socket.socket() as squatter:
            squatter.bind((HOST, 0))
            squatter.listen()
            number = squatter.getsockname()[1]
            await serve(talk, balancer(port(number, backend.port)))
            assert len(talk.delivery.refusals) == 1
        await serve(talk, balancer(port(number, backend.port), tcpIdleTimeout="1h"))
        assert talk.delivery.refusals == []
        assert await answered(number) == "backend: hello"


async def test_a_change_of_endpoints_is_worked_by_at_once_though_one_is_dead(vm: Machine, backend: Backend) -> None:
    async with conversation(vm) as talk:
        await connected(talk)
        number = free_port()
        await serve(talk, balancer(port(number, backend.port)))
        assert await answered(number)
        # Envoy waits 5 seconds for a dead backend's health before it says that it has taken the change.
        dead = "127.0.0.2"
        with silence(dead, backend.port):
            wanted = balancer(port(number, backend.port), addresses=(HOST, dead))
            changed = asyncio.create_task(serve(talk, wanted))
            accepted = asyncio.create_task(accepted_version(vm, "2", seconds=PATIENT))
            first, _ = await asyncio.wait([accepted, changed], return_when=asyncio.FIRST_COMPLETED)
            assert first == {accepted}
            assert await ask(number) == "backend: hello"
            await changed
        assert talk.delivery.settled
        assert await ask(number) == "backend: hello"


async def test_a_backend_that_comes_late_is_found_without_a_request_for_it(vm: Machine) -> None:
    node_port = free_port()

    async def healthy(count: int) -> bool:
        found = await vm.admin.statistics("membership_healthy")
        return [value for name, value in found.items() if name.startswith("cluster.TCP-")] == [str(count)]

    async with conversation(vm) as talk:
        await connected(talk)
        await serve(talk, balancer(port(free_port(), node_port)))
        await eventually(lambda: healthy(0), "the backend is known to be down", seconds=60)
        async with await asyncio.start_server(lambda _, writer: writer.close(), HOST, node_port):
            # Envoy's own default would be two minutes: a minute for each of the two checks that have to go well.
            await eventually(lambda: healthy(1), "the backend is found", seconds=90)


async def accepted_version(vm: Machine, version: str, seconds: float) -> None:
    async def up_to_date() -> bool:
        return await vm.admin.versions() == (version, version)

    await eventually(up_to_date, f"Envoy works by version {version}", seconds)


async def test_an_update_that_is_refused_leaves_the_former_listener_working(vm: Machine, backend: Backend) -> None:
    async with conversation(vm) as talk:
        await connected(talk)
        number = free_port()
        wanted = balancer(port(number, backend.port))
        await serve(talk, wanted)
        assert await answered(number)
        await talk.serve(wanted, "not-an-address", cpus=2)
        assert any("malformed IP address: not-an-address" in message for message in talk.delivery.refusals)
        assert await ask(number) == "backend: hello"
        await accepted(vm, talk)


async def test_envoy_keeps_its_listeners_while_the_agent_has_nothing_to_serve_yet(
    vm: Machine, backend: Backend
) -> None:
    number = free_port()
    async with conversation(vm) as talk:
        await connected(talk)
        await serve(talk, balancer(port(number, backend.port)))
        assert await answered(number)
    vm.options().snapshot_file.unlink()
    async with conversation(vm) as talk:
        await connected(talk)
        assert talk.delivery.served is None
        await await_cluster_request(vm)
        assert await ask(number) == "backend: hello"


async def await_cluster_request(vm: Machine) -> None:
    """Envoy has asked the agent that is there now."""

    async def asked() -> bool:
        found = await vm.admin.statistics(r"cluster_manager.cds.update_attempt|control_plane.connected_state")
        return found["control_plane.connected_state"] == "1"

    await eventually(asked, "Envoy asks")


async def test_resources_accepted_by_envoy_are_served_to_a_new_envoy_by_a_new_agent(
    vm: Machine, backend: Backend
) -> None:
    number = free_port()
    async with conversation(vm) as talk:
        await connected(talk)
        await serve(talk, balancer(port(number, backend.port)))
        assert await answered(number)
    vm.stop_envoy()
    assert await ask(number) == ""
    vm.start_envoy()
    async with conversation(vm) as talk:
        assert await answered(number) == "backend: hello"
        assert talk.delivery.served is not None
        # The same LoadBalancer is nothing new.
        assert not await serve(talk, balancer(port(number, backend.port)))


async def test_a_port_that_is_added_costs_no_connection_of_the_others(vm: Machine, backend: Backend) -> None:
    async with conversation(vm) as talk:
        await connected(talk)
        first, second = free_port(), free_port()
        await serve(talk, balancer(port(first, backend.port)))
        assert await answered(first)
        reader, writer = await asyncio.open_connection(HOST, first)
        writer.write(b"before")
        assert await reader.read(1024) == b"backend: before"
        await serve(talk, balancer(port(first, backend.port), port(second, backend.port)))
        assert await answered(second)
        writer.write(b"after")
        async with asyncio.timeout(30):
            assert await reader.read(1024) == b"backend: after"
        writer.close()
