"""A tenant with a certificate of an unknown authority is called for objects that say so, and for no others."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from threescale_lab import Shop, true_conditions
from threescale_passes_lab import Passes
from threescale_process import Client

from domain.threescale import BACKEND
from domain.threescale.tls_verification import INSECURE
from localcloud.kubernetes.certificates import Certificates

pytestmark = pytest.mark.integration


@pytest.fixture
async def over_tls(tenant: Client, tmp_path: Path) -> AsyncIterator[str]:
    """The tenant's address behind a certificate of an authority of its own."""
    certificates = Certificates(tmp_path)
    certificates.ensure()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.certificate("server"), certificates.key("server"))
    behind = urlsplit(tenant.url)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ahead, back = await asyncio.open_connection(behind.hostname, behind.port)
        await asyncio.gather(_forward(reader, back), _forward(ahead, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while received := await reader.read(65536):
            writer.write(received)
            await writer.drain()
    writer.close()


async def test_a_certificate_of_an_unknown_authority_is_trusted_where_an_object_says_so(
    bare_shop: Shop, passes: Passes, over_tls: str
) -> None:
    await bare_shop.change_secret("threescale-provider-account", adminURL=over_tls)
    await bare_shop.backend("careful")
    await bare_shop.backend("bold")
    await bare_shop.annotate(BACKEND, "bold", **{INSECURE: "true"})
    for _ in range(3):
        await passes.round(bare_shop)

    assert "Synced" in true_conditions(await bare_shop.get(BACKEND, "bold") or {})
    assert true_conditions(await bare_shop.get(BACKEND, "careful") or {}) == {"Failed"}
    assert "certificate verify failed" in await bare_shop.message(BACKEND, "careful", "Failed")
