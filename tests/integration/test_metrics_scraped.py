"""The metrics of worker and watcher when a pool has become ready and a claim has come and gone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import NamedTuple

import httpx
import pytest
from product import free_port, get_health, process
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from waiting import eventually

from domain.accounts import ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.identity import Kind
from domain.resource import parse_timestamp
from engine.errors import Absent, Conflict
from engine.kube import NAMESPACE, KubeApi
from engine.kube.json import JsonObject, at, text
from engine.settings import Settings
from localcloud.deployment import Deployment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

POOL = "metered"
TENANT = "metered-tenant"
CLAIM = {
    "metadata": {"name": "claim"},
    "spec": {
        "legalEntity": {"id": "metered", "name": "metered"},
        "awsCredentialSecret": {"name": "credentials", "namespace": TENANT},
        "aws": {"regions": [{"name": "us-east-1"}]},
        "accountLink": "",
        "accountPool": POOL,
    },
}
OF_POOL = {"namespace": OPERATOR_NAMESPACE, "pool_name": POOL}


class Scrapes(NamedTuple):
    """One answer of each process, and the seconds since the cluster was made: nothing in it took longer."""

    worker: dict[str, Metric]
    watch: dict[str, Metric]
    age: float


@pytest.fixture(scope="module")
async def scrapes(deployment: Deployment) -> AsyncIterator[Scrapes]:
    """A pool of one account that became ready, was claimed, cleaned, and released; then /metrics."""
    ports = {"worker": free_port(), "watch": free_port()}
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(
            await KubeApi.open(Settings(), "tests", deployment.env()["KUBECONFIG"]),
        )
        for name, port in ports.items():
            await stack.enter_async_context(process(deployment, name, port=port, forked=False))
        await _create(kube, NAMESPACE, "", {"metadata": {"name": TENANT}})
        await _create(kube, ACCOUNT_POOL, OPERATOR_NAMESPACE, {"metadata": {"name": POOL}, "spec": {"poolSize": 1}})
        await eventually(lambda: _is(kube, ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL, available=1), "pool is full", 120)
        await _create(kube, ACCOUNT_CLAIM, TENANT, CLAIM)
        await eventually(lambda: _is(kube, ACCOUNT_CLAIM, TENANT, "claim", state="Ready"), "claim is served", 120)
        # A tenant who changes the claim and deletes it: the newest entry of managedFields is not Perdure's.
        tenants = {"metadata": {"annotations": {"tenant/done": "true"}}}
        await kube.patch(ACCOUNT_CLAIM, TENANT, "claim", tenants, field_manager="tenant")
        await kube.delete(ACCOUNT_CLAIM, TENANT, "claim")
        await eventually(lambda: _gone(kube, ACCOUNT_CLAIM, TENANT, "claim"), "claim is released", 120)
        await eventually(lambda: _released(ports["worker"]), "the release is counted")
        await eventually(lambda: _reusable(ports["watch"]), "the watcher has seen that the account is free")
        answers = [await _scrape(port) for port in ports.values()]
        made = parse_timestamp(text(await kube.get(NAMESPACE, "", "kube-system"), "metadata", "creationTimestamp"))
        assert made is not None
        yield Scrapes(*answers, age=(datetime.now(UTC) - made).total_seconds())
        await kube.delete(ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL)


async def _create(kube: KubeApi, kind: Kind, namespace: str, obj: Mapping[str, object]) -> None:
    """Create it, or find what an earlier run on a reused deployment has left."""
    try:
        await kube.create(kind, obj, namespace)
    except Conflict:
        return


async def _is(kube: KubeApi, kind: Kind, namespace: str, name: str, *, state: str = "", available: int = 0) -> bool:
    found: JsonObject = await kube.get(kind, namespace, name)
    return text(found, "status", "state") == state and (at(found, "status", "availableAccounts") or 0) == available


async def _gone(kube: KubeApi, kind: Kind, namespace: str, name: str) -> bool:
    try:
        await kube.get(kind, namespace, name)
    except Absent:
        return True
    return False


async def _released(port: int) -> bool:
    """The claim is gone a moment before the worker has the answer to its last write."""
    return _ours(await _scrape(port), "account_reuse_cleanup_duration_seconds", "_count") >= 1


async def _reusable(port: int) -> bool:
    return _ours(await _scrape(port), "aws_accounts_reusable", legal_id="metered") == 1


async def _scrape(port: int) -> dict[str, Metric]:
    answer = await get_health(port, "/metrics")
    answer.raise_for_status()
    return {family.name: family for family in text_string_to_metric_families(answer.text)}


def _sum(family: Metric, series: str = "", /, **labels: str) -> float:
    """The sum of the series that carry these labels."""
    wanted = series or family.name
    fitting = (s for s in family.samples if s.name == wanted and s.labels.items() >= labels.items())
    return sum(sample.value for sample in fitting)


def _ours(families: Mapping[str, Metric], name: str, series: str = "", /, **labels: str) -> float:
    full = f"aws_account_operator_{name}"
    return _sum(families[full], f"{full}{series}", name="aws-account-operator", **labels)


async def test_the_watcher_shows_the_pool(scrapes: Scrapes) -> None:
    assert _ours(scrapes.watch, "account_pool_size", **OF_POOL) == 1
    assert _ours(scrapes.watch, "aws_limit_delta", **OF_POOL) > 0
    assert _sum(scrapes.watch["perdure_create_budget_reached"], **OF_POOL) == 0
    assert _sum(scrapes.watch["perdure_lifecycles"], kind="AccountPool") >= 1


async def test_the_watcher_shows_the_accounts_by_both_generations_of_names(scrapes: Scrapes) -> None:
    assert _ours(scrapes.watch, "account_crs", state="Ready", reused="true", claimed="false") >= 1
    assert _ours(scrapes.watch, "aws_accounts_reusable", legal_id="metered") == 1
    assert _ours(scrapes.watch, "total_aws_account_reused_available", LegalID="metered") == 1
    assert _ours(scrapes.watch, "total_account_crs") >= 1


@pytest.mark.parametrize(
    "name",
    [
        "account_ready_duration_seconds",
        "account_claim_ready_duration_seconds",
        "account_reuse_cleanup_duration_seconds",
    ],
)
async def test_the_worker_shows_the_durations(scrapes: Scrapes, name: str) -> None:
    count = _ours(scrapes.worker, name, "_count")
    assert count >= 1
    assert 0 <= _ours(scrapes.worker, name, "_sum") <= count * scrapes.age


async def test_the_worker_shows_the_organization(scrapes: Scrapes) -> None:
    assert _ours(scrapes.worker, "aws_accounts") >= 2  # the payer and the pool's
    assert _ours(scrapes.worker, "total_aws_accounts") == _ours(scrapes.worker, "aws_accounts")
    assert _sum(scrapes.worker["perdure_create_budget_left"]) > 0


@pytest.mark.parametrize("controller", ["account", "accountpool", "accountclaim", "organization"])
async def test_the_worker_shows_the_passes_of_every_kind(scrapes: Scrapes, controller: str) -> None:
    assert _ours(scrapes.worker, "reconcile_duration_seconds", "_count", controller=controller, error="") >= 1


async def test_the_worker_shows_requests_to_kubernetes_and_aws(scrapes: Scrapes, deployment: Deployment) -> None:
    accounts = "aws.managed.openshift.io/v1alpha1/namespaces/{NAMESPACE}/accounts/{NAME}"
    emulator = httpx.URL(deployment.env()["AWS_ENDPOINT_URL"]).netloc.decode()
    requests = "api_request_duration_seconds"

    labels = {"controller": "account", "status": "200 OK"}
    assert _ours(scrapes.worker, requests, "_count", **labels, method="GET", resource=accounts) >= 1
    assert _ours(scrapes.worker, requests, "_count", **labels, method="PATCH", resource=f"{accounts}/status") >= 1
    assert _ours(scrapes.worker, requests, "_count", **labels, method="POST", resource=emulator) >= 1
    assert _ours(scrapes.worker, requests, "_count", controller="organization", resource=emulator) >= 1


async def test_nothing_was_a_bug(scrapes: Scrapes) -> None:
    assert _sum(scrapes.worker["perdure_bugs"], "perdure_bugs_total") == 0


async def test_gauges_are_the_watchers_alone_and_durations_the_workers(scrapes: Scrapes) -> None:
    assert "aws_account_operator_account_crs" not in scrapes.worker
    assert "aws_account_operator_account_ready_duration_seconds" not in scrapes.watch


async def test_the_watcher_shows_that_it_leads_and_has_no_backlog(scrapes: Scrapes) -> None:
    assert _sum(scrapes.watch["perdure_watch_leader"]) == 1
    assert _sum(scrapes.watch["perdure_watch_objects"], kind="AccountPool") >= 1
