"""What those who operate Perdure see and do: an area paused and let go, traces; every part of it real."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from bare_accounts import make_account, remove_account
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from product import Ended, free_port, get_health, process, typed
from waiting import eventually

from domain.accounts import ACCOUNT, ACCOUNT_POOL
from engine.errors import Absent
from engine.kube import NAMESPACE, KubeApi
from engine.kube.json import sequence
from engine.settings import Settings
from localcloud.deployment import Deployment
from tests.running.programs import COMMAND, ROOT, command_line

pytestmark = pytest.mark.integration

# The pause is in a namespace of this run's own, so that no other test's processes obey it.
PLACE = f"pauses-{secrets.token_hex(3)}"
ENVIRONMENT = {"PERDURE_WATCH_LEASE_NAMESPACE": PLACE}


class Installation:
    """Worker and watcher that obey a pause of their own, and a person beside them."""

    def __init__(self, deployment: Deployment, kube: KubeApi, port: int, spans: list[Span]) -> None:
        self.spans = spans
        self.deployment = deployment
        self.kube = kube
        self.port = port

    async def perdure(self, *arguments: str) -> Ended:
        return await typed(self.deployment, *arguments, **ENVIRONMENT)

    async def why(self, path: str) -> Any:
        """The explanation of an Account; empty while its lifecycle has not begun."""
        code, out, _ = await self.perdure("why", "account", path, "-o", "json")
        return json.loads(out) if code == 0 else {}

    async def account(self, name: str, *, state: str = "") -> str:
        return await make_account(self.kube, PLACE, name, state, "999900002222")

    async def in_hand(self, name: str) -> bool:
        """Whether its lifecycle has done its first step."""
        return bool(sequence(await self.kube.get(ACCOUNT, PLACE, name), "metadata", "finalizers"))

    async def remove(self, name: str) -> None:
        await remove_account(self.kube, PLACE, name)

    async def page(self, what: str) -> str:
        return (await get_health(self.port, what)).text


@pytest.fixture(scope="module")
async def installation(deployment: Deployment) -> AsyncIterator[Installation]:
    port = free_port()
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(await KubeApi.open(Settings(), "tests", deployment.env()["KUBECONFIG"]))
        await kube.create(NAMESPACE, {"metadata": {"name": PLACE}})
        stack.push_async_callback(kube.delete, NAMESPACE, "", PLACE)
        spans: list[Span] = []
        tracing = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": await stack.enter_async_context(collector(spans)),
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            "PERDURE_AREAS": "accounts",
        }
        run = ("run", "--only", "accounts")
        await stack.enter_async_context(process(deployment, *run, port=port, **ENVIRONMENT, **tracing))
        yield Installation(deployment, kube, port, spans)


@asynccontextmanager
async def collector(spans: list[Span]) -> AsyncIterator[str]:
    """An OTLP/HTTP collector that records what it is sent; its address."""

    async def take(request: web.Request) -> web.Response:
        sent = ExportTraceServiceRequest.FromString(await request.read())
        spans.extend(span for each in sent.resource_spans for scope in each.scope_spans for span in scope.spans)
        return web.Response()

    app = web.Application()
    app.add_routes([web.post("/v1/traces", take)])
    runner, port = web.AppRunner(app, access_log=None), free_port()
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


async def test_the_watcher_shows_that_the_served_area_has_a_worker(installation: Installation) -> None:
    async def polled() -> bool:
        return 'perdure_worker_missing{area="accounts"} 0.0' in await installation.page("/metrics")

    await eventually(polled, "the leading watcher has found the worker", seconds=150)
    assert 'perdure_worker_missing{area="claims"}' not in await installation.page("/metrics")


async def test_a_paused_area_does_nothing_until_it_is_resumed(installation: Installation) -> None:
    code, out, _ = await installation.perdure("pause", "--area", "accounts", "--reason", "the payer's key leaked")
    assert code == 0
    assert "accounts is paused by ann since" in out

    async def obeyed() -> bool:
        return "accounts is paused by ann" in await installation.page("/readyz")

    await eventually(obeyed, "worker and watcher know of the pause")
    try:
        await _held(installation)
        await _not_retried(installation)
    finally:
        code, out, _ = await installation.perdure("resume", "--area", "accounts")
    assert (code, out.strip()) == (0, "accounts is resumed")
    await eventually(lambda: installation.in_hand("held"), "what was left is done")
    await installation.remove("held")
    assert 'perdure_paused{area="accounts"} 0.0' in await installation.page("/metrics")


async def _held(installation: Installation) -> None:
    """An object that comes during the pause is looked at, and left alone."""
    path = await installation.account("held")

    async def explained() -> Any:
        answer = await installation.why(path)
        return answer if answer.get("planned") else None

    message = await eventually(explained, "its lifecycle has looked at it")
    assert "the payer's key leaked" in message["hold"]
    assert not await installation.in_hand("held")
    _, _, err = await installation.perdure("list", "account", "-n", PLACE)
    assert "accounts is paused by ann" in err
    assert 'perdure_paused{area="accounts"} 1.0' in await installation.page("/metrics")
    assert 'perdure_paused{area="claims"} 0.0' in await installation.page("/metrics")


async def _not_retried(installation: Installation) -> None:
    """A retry is refused with the reason at once, and does not take effect when the area goes on."""
    path = await installation.account("failed", state="Failed")

    async def looked_at() -> bool:
        return bool((await installation.why(path)).get("outcome") == "failed")

    await eventually(looked_at, "its lifecycle knows that it has failed")
    code, _, err = await installation.perdure("retry", "account", path)
    assert code == 1
    assert "not sent, accounts is paused by ann" in err
    assert (await installation.why(path))["hindrances"] == []
    await installation.remove("failed")


async def test_a_pause_without_a_reason_is_refused(installation: Installation) -> None:
    code, _, err = await installation.perdure("pause", "--all")
    assert code == 2
    assert "--reason" in err


PLANNED = """
apiVersion: aws.managed.openshift.io/v1alpha1
kind: AccountPool
metadata: {name: planned, namespace: aws-account-operator}
spec: {poolSize: 2}
---
apiVersion: aws.managed.openshift.io/v1alpha1
kind: Account
metadata: {name: planned}
spec: {awsAccountID: "999900003333", iamUserSecret: planned}
"""


async def test_the_effect_of_a_file_is_printed_and_not_applied(installation: Installation, tmp_path: Path) -> None:
    file = tmp_path / "planned.yaml"
    file.write_text(PLANNED)
    code, out, err = await installation.perdure("plan", "-f", str(file), "-n", PLACE, "-o", "json")
    assert code == 0, err
    pool, account = json.loads(out)
    assert pool["object"] == "AccountPool/aws-account-operator/planned"
    assert "pool size 2:" in pool["why"]
    assert account["object"] == f"Account/{PLACE}/planned"
    assert any("finalizer" in line for line in account["planned"]), account
    assert (pool["hold"], account["hold"]) == ("", "")
    for kind, namespace in ((ACCOUNT_POOL, "aws-account-operator"), (ACCOUNT, PLACE)):
        with pytest.raises(Absent):
            await installation.kube.get(kind, namespace, "planned")


async def test_a_file_with_a_mistake_is_refused_as_the_cluster_would(
    installation: Installation, tmp_path: Path
) -> None:
    file = tmp_path / "mistaken.yaml"
    file.write_text(PLANNED.replace("poolSize: 2", "poolSize: two"))
    code, _, err = await installation.perdure("plan", "-f", str(file), "-n", PLACE)
    assert code == 1
    assert "poolSize" in err


async def test_findings_of_a_scheduled_audit_are_a_metric(installation: Installation) -> None:
    code, out, err = await installation.perdure("audit", "claims", "--report")
    assert (code, out[:8]) == (0, "claims: "), err

    async def published() -> bool:
        return 'perdure_audit_timestamp_seconds{area="claims"}' in await installation.page("/metrics")

    await eventually(published, "the watcher has read the report")


async def test_the_fleet_is_seen_at_a_glance_and_sought_for_retries(installation: Installation) -> None:
    await installation.account("fleet")
    try:
        await eventually(lambda: installation.in_hand("fleet"), "its lifecycle has begun")
        await eventually(lambda: _counted(installation), "visibility counts it")
        sought = ("retry", "account", "-n", PLACE, "--all", "--dry-run", "-o", "yaml")

        async def found() -> bool:
            _, out, _ = await installation.perdure(*sought)
            return "name: fleet" in out and "would be asked" in out

        await eventually(found, "visibility finds it")
        code, out, _ = await installation.perdure("list", "account", "-n", PLACE, "-o", "wide")
        assert code == 0
        assert f"Account/{PLACE}/fleet/" in out
        # On a busy machine nothing is filled in within a shell's patience, as it should be.
        filled = await eventually(lambda: _filled_in(installation, "account", f"{PLACE}/fl"), "the shell is answered")
        assert filled == [f"{PLACE}/fleet"]
    finally:
        await installation.remove("fleet")


async def _counted(installation: Installation) -> bool:
    code, out, err = await installation.perdure("top", "-o", "json")
    assert code == 0, err
    return any(area["area"] == "accounts" and area["open"] >= 1 for area in json.loads(out)["areas"])


async def _filled_in(installation: Installation, kind: str, typed: str) -> list[str]:
    """What bash is offered in the place of an object."""
    started = await asyncio.create_subprocess_exec(
        *command_line(COMMAND),
        cwd=ROOT,
        env=installation.deployment.program_env()
        | {"_PERDURE_COMPLETE": "complete_bash", "COMP_WORDS": f"perdure why {kind} {typed}", "COMP_CWORD": "3"},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await started.communicate()
    return out.decode().split()


async def test_one_trace_leads_from_the_change_of_an_object_to_a_call_of_aws(installation: Installation) -> None:
    await installation.account("traced")
    try:
        way = await eventually(
            lambda: _way_to_aws(installation.spans, f"Account/{PLACE}/traced"), "a call of AWS has been traced"
        )
    finally:
        await installation.remove("traced")
    assert [span.name.partition(":")[0] for span in way[1:]] == [
        "RunActivity",
        "StartActivity",
        "SignalWithStartWorkflow",
        "watch Account",
    ]
    assert len({span.trace_id for span in way}) == 1


def _way_to_aws(spans: Iterable[Span], of: str) -> list[Span]:
    """A call of AWS and its ancestors, up to the change of that object; unfinished spans are not exported yet."""
    by_id = {span.span_id: span for span in spans}
    for span in by_id.values():
        if span.name.startswith("aws "):
            way = list(_upwards(span, by_id))
            if any(each.value.string_value == of for each in way[-1].attributes):
                return way
    return []


def _upwards(span: Span, by_id: dict[bytes, Span]) -> Iterator[Span]:
    """It, its parent, and so on, as far as they are exported."""
    yield span
    if span.parent_span_id in by_id:
        yield from _upwards(by_id[span.parent_span_id], by_id)
