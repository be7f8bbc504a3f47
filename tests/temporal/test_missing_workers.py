"""Lifecycles that no worker can run are seen: the watcher's gauges and a person's commands name the area."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kubeconfigs import kubeconfig_to_nowhere
from passing import Passes, new_key, working
from prometheus_client import REGISTRY
from temporal_server import TemporalServer, perdure, pointing_at
from temporalio.client import Client
from waiting import eventually

from domain.identity import Key
from engine.kube import KubeApi
from engine.missing_workers import MissingWorker, missing_workers
from engine.settings import Settings
from engine.temporal import connect, wake
from engine.worker_versions import count_pinned, deployment_config, make_current, polled_queues
from starters.cli import lifecycle
from starters.cli.output import CommandError
from starters.cli.session import Session
from starters.watch.missing_worker_metrics import look

NO_WORKER = "no worker for accounts: none polls the task queue accounts"
# Temporal lists a worker that has stopped among the pollers for minutes.
AT_ONCE = timedelta(milliseconds=1)


def metric_of(area: str) -> float | None:
    return REGISTRY.get_sample_value("perdure_worker_missing", {"area": area})


def metric_of_version(area: str, build_id: str) -> float | None:
    return REGISTRY.get_sample_value("perdure_worker_version_missing", {"area": area, "build_id": build_id})


async def test_an_area_without_a_worker_is_reported_until_one_polls(
    alone: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = pointing_at(alone, monkeypatch, areas=("accounts",))
    client, of_claims = await connect(settings, "tests"), metric_of("claims")

    await look(client, settings)
    assert metric_of("accounts") == 1
    assert metric_of("claims") == of_claims  # an area that is not served

    async with working(client, Passes()):

        async def polled() -> bool:
            await look(client, settings)
            return metric_of("accounts") == 0

        await eventually(polled, "a worker of accounts polls")


async def test_the_commands_name_the_area_without_a_worker(
    alone: TemporalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, key = await connect(pointing_at(alone, monkeypatch), "tests"), new_key()
    await wake(client, key)

    async def shown() -> bool:
        return (await client.count_workflows("OpKind = 'AccountPool'")).count == 1

    await eventually(shown, "the lifecycle is listed")
    unreachable = {"KUBECONFIG": str(kubeconfig_to_nowhere(tmp_path))}
    top = perdure(alone, alone.namespace, "top", "--once", **unreachable)
    assert NO_WORKER in top.stdout
    listed = perdure(alone, alone.namespace, "list", **unreachable)
    assert NO_WORKER in listed.stderr
    assert "no worker for claims" not in listed.stderr  # nothing of that area is open


async def test_why_names_the_area_without_a_worker(temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = pointing_at(temporal, monkeypatch, cluster="why")
    client, key = await connect(settings, "tests"), new_key().model_copy(update={"cluster": "why"})
    await wake(client, key)
    async with await KubeApi.open(settings, "tests", str(kubeconfig_to_nowhere(temporal.root))) as kube:
        with pytest.raises(CommandError) as refused:
            await lifecycle.why(Session(settings, kube, temporal=client), key)
    assert "no worker for accounts: none polls the task queue why/accounts" in refused.value.message
    assert "perdure worker" in refused.value.advice
    await end(client, key)


async def test_an_older_version_without_workers_is_reported_with_its_lifecycles(
    alone: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = pointing_at(alone, monkeypatch, installation=f"perdure-{uuid4().hex[:8]}", areas=("accounts",))
    client, key = await connect(settings, "tests"), new_key()
    async with working(client, Passes(), version=version(settings, "v2")):
        async with working(client, Passes(), version=version(settings, "v1")):
            await promote(client, settings, "v1")
            await wake(client, key)
            await eventually(lambda: pinned(client, settings, "v1"), "the lifecycle runs on v1")
            await promote(client, settings, "v2")
            await look(client, settings)
            assert metric_of_version("accounts", "v1") is None
            assert metric_of("accounts") == 0

        found = await missing_workers(client, ["accounts"], "", settings.worker_deployment, AT_ONCE)
        assert MissingWorker(area="accounts", queue="accounts", build_id="v1", open=1) in found
        await look(client, settings, AT_ONCE)
        assert metric_of_version("accounts", "v1") == 1

        await end(client, key)

        async def over() -> bool:
            await look(client, settings, AT_ONCE)
            return metric_of_version("accounts", "v1") is None

        await eventually(over, "nothing is left on v1, and its workers are not missing")


async def test_workers_of_a_version_that_is_not_current_do_not_serve_an_area(
    alone: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = pointing_at(alone, monkeypatch, areas=("accounts",))
    client = await connect(settings, "tests")
    async with working(client, Passes(), version=version(settings, "v1")):
        await promote(client, settings, "v1")
    async with working(client, Passes()):  # a worker without a version gets nothing any more
        found = await missing_workers(client, ["accounts"], "", settings.worker_deployment, AT_ONCE)
        assert [each.build_id for each in found] == ["v1"]
        assert found[0].message == "no worker for accounts: none of version v1 polls the task queue accounts"


def version(settings: Settings, build_id: str) -> Any:
    return deployment_config(settings.model_copy(update={"worker_build_id": build_id}))


async def promote(client: Client, settings: Settings, build_id: str) -> None:
    async def made() -> bool:
        if ("accounts", "workflow") not in await polled_queues(client, settings.worker_deployment, build_id):
            return False
        await make_current(client, settings.worker_deployment, build_id)
        return True

    await eventually(made, f"{build_id} is current")


async def pinned(client: Client, settings: Settings, build_id: str) -> bool:
    return await count_pinned(client, settings.worker_deployment, build_id) == 1


async def end(client: Client, key: Key) -> None:
    await client.get_workflow_handle(key.workflow_id).terminate("the test is over")
