"""A watch without a reader leaves no connection behind, whatever the server does about it."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from engine.kube import CONFIG_MAP, KubeApi
from engine.settings import Settings
from localcloud.kubernetes.certificates import Certificates

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
LINE = b'{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "2"}}}\n'
PATIENCE_SECONDS = 60.0


class Deaf:
    """A server that answers over TLS with one event, and then neither speaks nor listens."""

    def __init__(self, certificates: Certificates) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificates.certificate("server"), certificates.key("server"))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._held: list[ssl.SSLSocket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        caller, _ = self._listening.accept()
        held = self._context.wrap_socket(caller, server_side=True)
        self._held.append(held)
        held.recv(65536)
        held.sendall(ANSWER + b"%x\r\n%s\r\n" % (len(LINE), LINE))

    def closed_by_the_caller(self) -> bool:
        """Whether the connection is at its end: its end is heard, or it was cut."""
        (held,) = self._held
        held.settimeout(PATIENCE_SECONDS)
        try:
            return held.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def close(self) -> None:
        """Let go of everything."""
        self._thread.join(PATIENCE_SECONDS)
        self._listening.close()
        for each in self._held:
            each.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Deaf]:
    certificates = Certificates(tmp_path)
    certificates.ensure()
    found = Deaf(certificates)
    certificates.write_kubeconfig(tmp_path / "kubeconfig", "admin", found.port)
    yield found
    found.close()


async def test_a_watch_that_is_cancelled_ends_its_connection_at_once(
    server: Deaf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    received = asyncio.Event()
    sockets: list[socket.socket] = []
    request = aiohttp.ClientSession.request

    async def noted(session: aiohttp.ClientSession, *arguments: Any, **more: Any) -> aiohttp.ClientResponse:
        response = await request(session, *arguments, **more)
        assert response.connection is not None
        assert response.connection.transport is not None
        sockets.append(response.connection.transport.get_extra_info("socket"))
        return response

    monkeypatch.setattr(aiohttp.ClientSession, "request", noted)

    async def follow(api: KubeApi) -> None:
        async for _ in api.watch(CONFIG_MAP, resource_version="1"):
            received.set()

    async with await KubeApi.open(Settings(), "tests", str(tmp_path / "kubeconfig")) as api:
        following = asyncio.create_task(follow(api))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await received.wait()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    # What asyncio leaves to the loop after a connection was cut takes one round; a good-bye would be waited for.
    await asyncio.sleep(0)
    assert [each.fileno() for each in sockets] == [-1]
    assert await asyncio.to_thread(server.closed_by_the_caller)
