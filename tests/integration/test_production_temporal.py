"""The product on a production Temporal: real server, PostgreSQL, mutual TLS, encrypted payloads.

Where neither Temporal's programs nor a build of them are at hand they are compiled first, which takes minutes. It
therefore has a command of its own: `./run pytest -m slow tests/integration/test_production_temporal.py`.
"""

from __future__ import annotations

import asyncio
import os
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from product import perdure
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import TLSConfig

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
from domain.accounts.constants import OPERATOR_NAMESPACE
from engine.encryption.codec import ENCODING
from engine.kube import NAMESPACE, KubeApi
from engine.kube.json import JsonObject, text
from engine.settings import Settings
from engine.temporal import connect
from localcloud.deployment import Deployment, DeploymentError
from localcloud.objects import Objects
from localcloud.services import POSTGRES, TEMPORAL, TEMPORAL_NAMESPACE, TEMPORAL_SCHEMA, TEMPORAL_UI
from localcloud.state import Cloud
from localcloud.temporal import choice, control_plane
from tests.running.failed_servers import end

pytestmark = [pytest.mark.integration, pytest.mark.slow]

KILLED = ("claimed-before-postgres-died", "claimed-before-temporal-died")


@pytest.fixture(scope="module")
def production_deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment with the whole product on a production Temporal, after a first life of accounts."""
    deployment = Deployment(tmp_path_factory.mktemp("production") / "state")
    deployment.up(clouds=(Cloud.AWS,), temporal="postgres", tether=True)
    lived = perdure(deployment, "demo", "accounts", "--exit", seconds=600)
    assert lived.returncode == 0, f"{lived.stdout}\n{lived.stderr}"
    yield deployment
    end(deployment)


@asynccontextmanager
async def clients(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Client, KubeApi]]:
    """Temporal's and Kubernetes' client of a process of the deployment."""
    with monkeypatch.context() as patch:
        for name in set(os.environ) - set(deployment.program_env()):
            patch.delenv(name)
        for name, value in deployment.program_env().items():
            patch.setenv(name, value)
        settings = Settings()
        temporal = await connect(settings, "tests")
        async with await KubeApi.open(settings, "tests", deployment.env()["KUBECONFIG"]) as kube:
            yield temporal, kube


async def open_runs(temporal: Client, kind: str) -> dict[str, str]:
    found = temporal.list_workflows(f"ExecutionStatus = 'Running' AND OpKind = '{kind}'")
    return {row.id: row.run_id async for row in found}


async def claim(kube: KubeApi, name: str) -> None:
    await kube.create(NAMESPACE, {"metadata": {"name": name}})
    spec: JsonObject = {
        "legalEntity": {"id": name, "name": name},
        "awsCredentialSecret": {"name": "aws-credentials", "namespace": name},
        "aws": {"regions": [{"name": "us-east-1"}]},
        "accountLink": "",
    }
    await kube.create(ACCOUNT_CLAIM, {"metadata": {"name": name}, "spec": spec}, namespace=name)


async def test_running_work_goes_on_when_the_database_or_the_server_is_killed(
    production_deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with clients(production_deployment, monkeypatch) as (_, kube):
        objects = Objects(kube)
        async with objects.followed(ACCOUNT, ACCOUNT_CLAIM), asyncio.timeout(600):
            for name, service in zip(KILLED, (POSTGRES, TEMPORAL), strict=True):
                await claim(kube, name)
                pid = production_deployment.kill(service)
                await asyncio.to_thread(production_deployment.wait_service, service, other_than_pid=pid)
            for name in KILLED:
                await objects.until(
                    lambda name=name: text(objects.one(ACCOUNT_CLAIM, name, name), "status", "state") == "Ready"
                )
        links = [text(objects.one(ACCOUNT_CLAIM, name, name), "spec", "accountLink") for name in KILLED]
        accounts = [text(objects.one(ACCOUNT, OPERATOR_NAMESPACE, link), "spec", "awsAccountID") for link in links]
        assert len(set(accounts)) == len(KILLED)


async def test_a_second_start_goes_on_with_the_same_runs(
    production_deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with clients(production_deployment, monkeypatch) as (temporal, _):
        before = await open_runs(temporal, "AccountPool")
    assert before

    production_deployment.down()
    production_deployment.up(clouds=(Cloud.AWS,), temporal="postgres", tether=True)

    async with clients(production_deployment, monkeypatch) as (temporal, _):
        assert await open_runs(temporal, "AccountPool") == before
        request = DescribeNamespaceRequest(namespace="default")
        namespace = await temporal.workflow_service.describe_namespace(request)
        assert namespace.config.workflow_execution_retention_ttl.ToTimedelta() == timedelta(days=30)


async def test_a_client_without_a_certificate_is_refused(production_deployment: Deployment) -> None:
    address = production_deployment.env()["TEMPORAL_ADDRESS"]
    authority = control_plane.certificates(production_deployment.state).authority.read_bytes()
    for tls in (False, TLSConfig(server_root_ca_cert=authority)):
        with pytest.raises(RuntimeError):
            await Client.connect(address, tls=tls)


async def test_payloads_are_encrypted_in_the_database_and_readable_in_the_web_ui(
    production_deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with clients(production_deployment, monkeypatch) as (temporal, _):
        keyless = Client(temporal.service_client, namespace=temporal.namespace)
        id_, *_ = await open_runs(temporal, "Account")
        events = [event async for event in keyless.get_workflow_handle(id_).fetch_history_events()]
    payloads = [
        payload
        for event in events
        for payload in (
            *event.workflow_execution_started_event_attributes.input.payloads,
            *event.activity_task_completed_event_attributes.result.payloads,
        )
    ]
    assert payloads
    assert {payload.metadata["encoding"] for payload in payloads} == {ENCODING}

    ui = production_deployment.service(TEMPORAL_UI).url
    async with httpx.AsyncClient(trust_env=False) as browser:
        endpoint = (await browser.get(f"{ui}/api/v1/settings")).json()["Codec"]["Endpoint"]
        history = await browser.get(f"{ui}/api/v1/namespaces/default/workflows/{id_.replace('/', '%2F')}/history")
        started = history.json()["history"]["events"][0]["workflowExecutionStartedEventAttributes"]
        answer = await browser.post(f"{endpoint}/decode", json=started["input"], headers={"Origin": str(ui)})
    assert answer.headers["Access-Control-Allow-Origin"] == ui
    assert id_.split("/")[2] in decoded(answer.json())
    assert id_.split("/")[2] not in decoded(started["input"])


def decoded(payloads: JsonObject) -> str:
    """What payloads in JSON hold, decoded from base64."""
    return " ".join(b64decode(each["data"]).decode(errors="replace") for each in payloads["payloads"])


def test_another_temporal_is_refused_while_this_one_runs(production_deployment: Deployment) -> None:
    with pytest.raises(DeploymentError, match="already up, with the postgres Temporal"):
        production_deployment.start(temporal=choice.DEVELOPMENT)
    assert production_deployment.start() is False


def test_a_database_server_of_the_users_own_gets_databases_of_the_given_name(
    production_deployment: Deployment, tmp_path: Path
) -> None:
    password = postgres_password(production_deployment).read_text()
    port = production_deployment.service(POSTGRES).port
    url = f"postgres://temporal:{password}@127.0.0.1:{port}/theirs?sslmode=disable"
    other = Deployment(tmp_path / "state")
    try:
        running = other.up(only=(TEMPORAL,), temporal=f"postgres={url}", tether=True)
        assert [row.name for row in running.services] == [TEMPORAL, TEMPORAL_SCHEMA, TEMPORAL_NAMESPACE]
        other.down()
        other.up(only=(TEMPORAL,), temporal=f"postgres={url}", tether=True)
    finally:
        end(other)
    data = production_deployment.state.root / "data" / "postgres" / "cluster"
    # A directory for each database: postgres, two templates, two of the deployment, two of the other one.
    assert len(list((data / "base").glob("[0-9]*"))) == 7


def postgres_password(deployment: Deployment) -> Path:
    return deployment.state.root / "data" / "postgres" / "password"


def test_the_databases_password_is_on_no_command_line(production_deployment: Deployment) -> None:
    file = postgres_password(production_deployment)
    mentions = [path for path in Path("/proc").glob("[0-9]*/cmdline") if _mentions(path, file.read_bytes())]
    assert mentions == []
    assert file.stat().st_mode & 0o077 == 0


def _mentions(path: Path, secret: bytes) -> bool:
    try:
        return secret in path.read_bytes()
    except OSError:
        return False
