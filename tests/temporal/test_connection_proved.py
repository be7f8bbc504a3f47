"""Certificates and API keys before a real Temporal: who is let in, which error a refused client gets, and renewal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from gate import certificates, gated, hand_out
from passing import Passes, new_key, working
from temporal_server import TemporalServer, perdure, pointing_at
from temporalio.client import Client
from waiting import eventually

from domain.identity import Key
from domain.instances.workflow_ids import InstanceKey
from engine.settings import Settings
from engine.temporal import connect, wake
from engine.temporal_connection import Connection, TemporalRefused, meaning_of
from localcloud.kubernetes.certificates import Certificates
from localcloud.state import choose_ports
from workers.main import follow

API_KEY = "first-key"
# Of a cluster that is never asked anything.
KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:1"}}],
    "contexts": [{"name": "none", "context": {"cluster": "none", "user": "nobody"}}],
    "users": [{"name": "nobody", "user": {}}],
    "current-context": "none",
}

Come = Callable[[dict[str, str], Path | None], Settings]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
async def gate(
    temporal: TemporalServer, made: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[str]:
    async with gated(temporal, tmp_path_factory.mktemp("gate"), free_port(), made, api_key=API_KEY) as address:
        yield address


def free_port() -> int:
    ports, _ = choose_ports(("gate",), {})
    return ports["gate"]


def coming_to(
    address: str, temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], key: Path | None
) -> Settings:
    settings = pointing_at(temporal, monkeypatch, temporal_api_key_file=str(key) if key else "")
    for name, value in {**variables, "TEMPORAL_ADDRESS": address}.items():
        monkeypatch.setenv(name, value)
    return settings


async def refused(settings: Settings) -> str:
    with pytest.raises(TemporalRefused) as found:
        await connect(settings, "tests")
    return str(found.value)


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "api-key"
    file.write_text(f"{API_KEY}\n")
    return file


@pytest.fixture
def files(made: Certificates, tmp_path: Path) -> dict[str, str]:
    """The variables that name our certificates."""
    return hand_out(made, tmp_path / "mounted")


@pytest.fixture
def come(gate: str, temporal: TemporalServer, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Come:
    """Come to the gate with such variables and such a key."""

    def come(variables: dict[str, str], key: Path | None) -> Settings:
        for name in files:
            monkeypatch.delenv(name, raising=False)
        return coming_to(gate, temporal, monkeypatch, variables, key)

    return come


async def test_with_certificate_and_key_we_are_let_in(come: Come, files: dict[str, str], key_file: Path) -> None:
    client = await connect(come(files, key_file), "tests")
    assert await client.service_client.check_health()
    assert (await client.count_workflows()).count >= 0


async def test_a_refused_client_gets_the_reason(
    come: Come, files: dict[str, str], key_file: Path, tmp_path: Path
) -> None:
    strangers = hand_out(certificates(tmp_path / "strange"), tmp_path / "strangers")
    authority = {name: path for name, path in files.items() if "SERVER_CA" in name}
    assert "a certificate of an unknown authority" in await refused(come(strangers, key_file))
    assert "it requires a client certificate" in await refused(come(authority, key_file))
    unknown = await refused(come(strangers | authority, key_file))
    assert "it requires a client certificate of an authority that it trusts" in unknown
    wrong = tmp_path / "wrong-key"
    wrong.write_text("another-key")
    message = await refused(come(files, wrong))
    assert "refuses the API key" in message
    assert "another-key" not in message
    alone = {name: path for name, path in files.items() if "KEY_PATH" not in name}
    assert "a client certificate was given without its key" in await refused(come(alone, key_file))
    assert "cannot be read" in await refused(come(files, tmp_path / "absent"))


def test_the_command_line_comes_with_the_same_proofs(
    gate: str, temporal: TemporalServer, made: Certificates, key_file: Path, tmp_path: Path
) -> None:
    files = hand_out(made, tmp_path / "mounted")
    proofs = {**files, "TEMPORAL_ADDRESS": gate, "PERDURE_TEMPORAL_API_KEY_FILE": str(key_file)}
    let_in = perdure(temporal, "default", "temporal", "versions", **proofs)
    assert let_in.returncode == 0, let_in.stderr
    key_file.write_text("another-key")
    refused = perdure(temporal, "default", "temporal", "versions", **proofs)
    assert refused.returncode == 1
    assert f"error: Temporal at {gate} refuses the API key" in refused.stderr


async def test_a_commands_output_has_no_lines_of_the_sdk_among_it(
    temporal: TemporalServer, made: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its core reports a call that it has made again and again, and would do so on standard output."""
    files = hand_out(made, tmp_path / "mounted")
    key = InstanceKey(account="111122223333", region="eu-west-1", instance_id="i-0d").lifecycle
    client = await connect(pointing_at(temporal, monkeypatch), "tests")
    await wake(client, key)
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text(json.dumps(KUBECONFIG))
    async with gated(temporal, tmp_path / "gate", free_port(), made, failing="ExecuteMultiOperation") as address:
        environment = {**files, "TEMPORAL_ADDRESS": address, "KUBECONFIG": str(nowhere)}
        command = ("retry", key.kind, f"{key.namespace}/{key.name}")
        refused = await asyncio.to_thread(perdure, temporal, "default", *command, **environment)
    await client.get_workflow_handle(key.workflow_id).terminate("the test is over")
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"error: Temporal at {address}: UNAVAILABLE")
    assert refused.stdout == ""


async def test_without_tls_where_it_is_wanted_and_with_it_where_it_is_not(
    gate: str, temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "seems to require TLS" in await refused(coming_to(gate, temporal, monkeypatch, {}, None))
    plain = coming_to(temporal.address, temporal, monkeypatch, {"TEMPORAL_TLS": "true"}, None)
    assert "does not use TLS" in await refused(plain)


@pytest.mark.parametrize(
    ("text", "by_tls", "meant"),
    [
        ("h2 protocol error: http2 error", False, "require TLS"),
        ("Io, Custom { kind: BrokenPipe, error: ... }", False, "require TLS"),
        ("Io, Os { code: 104, kind: ConnectionReset }", False, "require TLS"),
        ("Io, Custom { kind: BrokenPipe, error: ... }", True, "requires a client certificate"),
        ("hyper::Error(Canceled, connection closed)", False, "require TLS"),
        ("hyper::Error(Canceled, connection closed)", True, "requires a client certificate"),
        ('hyper::Error(Canceled, "connection was not ready")', False, "require TLS"),
        ('hyper::Error(Canceled, "connection was not ready")', True, "requires a client certificate"),
        ("Io, Os { code: 111, kind: ConnectionRefused }", False, "does not answer"),
    ],
)
def test_a_server_that_hangs_up_on_us_may_want_tls(text: str, by_tls: bool, meant: str) -> None:
    assert meant in meaning_of(text, by_tls=by_tls)


async def test_a_worker_goes_over_to_renewed_certificates_and_keys(
    temporal: TemporalServer, made: Certificates, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server gives up the old authority, and the old key too; the worker goes on, and what it is asked is done."""
    port, passes, key = free_port(), Passes(), new_key()
    variables = hand_out(made, tmp_path / "mounted")
    renewed = certificates(tmp_path / "renewed")
    async with gated(temporal, tmp_path / "before", port, made, api_key=API_KEY) as address:
        settings = coming_to(address, temporal, monkeypatch, variables, key_file)
        client = await connect(settings, "tests")
        connection = client.service_client
        assert isinstance(connection, Connection)
        assert not await connection.renew(settings)
        running = working(client, passes)
        workers = await running.__aenter__()
        follow(client, workers)
        await wake(client, key)
        await await_looks(passes, key, 1)
    async with gated(temporal, tmp_path / "after", port, renewed, api_key="second-key"):
        hand_out(certificates(tmp_path / "strange"), tmp_path / "mounted")
        with pytest.raises(TemporalRefused):
            await connection.renew(settings)
        hand_out(renewed, tmp_path / "mounted")
        key_file.write_text("second-key")
        assert await connection.renew(settings)
        await wake(client, key)
        await await_looks(passes, key, 2)
    async with gated(temporal, tmp_path / "then", port, renewed, api_key="third-key"):
        key_file.write_text("third-key")
        assert await connection.renew(settings)
        await wake(client, key)
        await await_looks(passes, key, 3)
        await client.get_workflow_handle(key.workflow_id).terminate("the test is over")
        await running.__aexit__(None, None, None)


async def test_a_running_process_looks_for_renewed_files_by_itself(
    come: Come, files: dict[str, str], key_file: Path
) -> None:
    settings = come(files, key_file)
    client: Client = await connect(settings, "tests")
    connection = client.service_client
    assert isinstance(connection, Connection)
    renewals: list[str] = []
    connection.follow(lambda: renewals.append("renewed"))
    connection.keep(settings, every=timedelta(seconds=0.1))
    key_file.write_text("newer-key")

    async def followed() -> bool:
        return bool(renewals)

    await eventually(followed, "the newer key in use")
    assert connection.config.api_key == "newer-key"


async def await_looks(passes: Passes, key: Key, times: int) -> None:
    async def done() -> bool:
        return passes.of(key) >= times

    await eventually(done, f"look {times}")
