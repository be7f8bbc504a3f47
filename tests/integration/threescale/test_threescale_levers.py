"""What people do to 3scale objects from a terminal, and what the sweep does by itself: the product at work for real.

One worker and one watcher serve the module; the sweep comes every few seconds. Each test has a tenant and a namespace
of its own; an object that a test wants to be left as it is meanwhile is paused.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
from product import perdure, process
from threescale_lab import SLOW_MACHINE, Json, Shop
from threescale_process import Client, fresh
from waiting import eventually

from domain.identity import Kind
from domain.threescale import BACKEND, DEVELOPER_ACCOUNT, OPEN_API, PRODUCT, TENANT
from domain.threescale.cascading_deletion import CASCADE
from engine.kube import KubeApi
from localcloud.bench.threescale_all_kinds import ADMIN_PASSWORD, MASTER_TOKEN, PETS, tenant_spec
from localcloud.deployment import Deployment
from localcloud.threescale.control import ThreescaleControl

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

USES = {"backendUsages": {"stock": {"path": "/"}}}
LEAVING = "scheduled_for_deletion"


@pytest.fixture(scope="module")
async def product_at_work(deployment: Deployment) -> AsyncIterator[None]:
    async with process(deployment, "run", PERDURE_SWEEP="5"):
        yield


class Terminal:
    """The commands, for objects of one namespace."""

    def __init__(self, deployment: Deployment, namespace: str) -> None:
        self._deployment = deployment
        self._namespace = namespace

    async def __call__(self, command: str, kind: Kind, name: str, *more: str) -> str:
        """What a command about one object says."""
        _, output = await self.ask(command, kind.name, f"{self._namespace}/{name}", *more)
        return output

    async def ask(self, *arguments: str) -> tuple[int, str]:
        """How it ends, and what it says."""
        ended = await asyncio.to_thread(perdure, self._deployment, *arguments)
        return ended.returncode, ended.stdout + ended.stderr

    async def rows(self, kind: Kind) -> list[Any]:
        """The lifecycles of a kind in the namespace."""
        _, output = await self.ask("list", kind.name, "-n", self._namespace, "-o", "json")
        found: list[Any] = json.loads(output)
        return found


@pytest.fixture
def terminal(deployment: Deployment, shop: Shop) -> Terminal:
    return Terminal(deployment, shop.namespace)


async def test_a_waiting_object_is_explained_paused_and_resumed(shop: Shop, tenant: Client, terminal: Terminal) -> None:
    await shop.product(**USES)
    await shop.shown(PRODUCT, "goods", "Orphan")
    (row,) = await terminal.rows(PRODUCT)
    assert (row["phase"], row["waits_for"]) == ("Orphan", [f"Backend/{shop.namespace}/stock"])
    assert "backend usage does not have valid backend reference." in await terminal("why", PRODUCT, "goods")

    assert "paused" in await terminal("pause", PRODUCT, "goods")
    await shop.backend()
    await shop.synced(BACKEND, "stock")
    assert "services" in await terminal("plan", PRODUCT, "goods")
    assert "goods" not in {each["system_name"] for each in tenant.list("services")}

    assert "resumed" in await terminal("resume", PRODUCT, "goods")
    await shop.synced(PRODUCT, "goods")
    assert "woken" in await terminal("wake", PRODUCT, "goods")

    (path,) = [f"services/{each['id']}" for each in tenant.list("services") if each["system_name"] == "goods"]
    tenant.put(path, description="changed by hand")
    assert "tried again" in await terminal("retry", PRODUCT, "goods")
    await eventually(lambda: not tenant.get(path)["service"]["description"], "a retry compares again", SLOW_MACHINE)
    await shop.synced(PRODUCT, "goods")


async def test_a_refusal_of_3scale_is_retried_when_a_person_says_so(
    shop: Shop, tenant: Client, terminal: Terminal, control: ThreescaleControl
) -> None:
    refusal = control.fault("POST", "/backend_apis", status=403, tenant=control.tenants()[-1].name)
    await shop.backend()
    await shop.shown(BACKEND, "stock", "Failed")
    assert "403" in await terminal("why", BACKEND, "stock")
    control.clear(refusal.id)
    assert "stock" in await terminal("retry", BACKEND, "stock", "--reason", "mended")
    await shop.synced(BACKEND, "stock")


async def test_the_audit_reports_drift_which_the_sweep_corrects(shop: Shop, tenant: Client, terminal: Terminal) -> None:
    await shop.backend()
    made = await shop.synced(BACKEND, "stock")
    path = f"backend_apis/{made['status']['backendId']}"
    await terminal("pause", BACKEND, "stock")
    tenant.put(path, description="changed by hand")
    tenant.put(path, name="Somebody's")
    code, output = await terminal.ask("audit", "threescale")
    assert code == 1
    assert f"Backend {shop.namespace}/stock" in output

    await terminal("resume", BACKEND, "stock")
    await eventually(
        lambda: tenant.get(path)["backend_api"]["name"] == "stock", "the sweep has it mended", SLOW_MACHINE
    )
    await shop.synced(BACKEND, "stock")


async def test_a_stuck_deletion_is_abandoned(
    shop: Shop, tenant: Client, terminal: Terminal, control: ThreescaleControl
) -> None:
    await shop.backend()
    await shop.synced(BACKEND, "stock")
    control.fault("DELETE", "/backend_apis", status=403, tenant=control.tenants()[-1].name)
    await shop.delete(BACKEND, "stock")
    await eventually(lambda: _refused(shop), "the refusal is reported", SLOW_MACHINE)
    output = await terminal("abandon", BACKEND, "stock", "--reason", "never mind", "--yes")
    assert "3scale" in output
    await shop.gone(BACKEND, "stock")
    assert [each["system_name"] for each in tenant.list("backend_apis")] == ["stock"]


async def _refused(shop: Shop) -> bool:
    return "403" in await shop.message(BACKEND, "stock", "Failed")


async def test_a_tenant_is_made_used_and_scheduled_for_deletion(
    shop: Shop, kube: KubeApi, control: ThreescaleControl
) -> None:
    """From its organisation to a product in it, on real servers."""
    master, organization = control.tenant("master"), fresh("branch").replace(" ", "-")
    await shop.secret(ADMIN_PASSWORD, admin_password="secret123")
    await shop.secret(MASTER_TOKEN, MASTER_ACCESS_TOKEN=master.token)
    await shop.create(TENANT, "branch", tenant_spec(master, organization))
    made = await shop.ready(TENANT, "branch")
    assert made["status"]["tenantId"]
    assert made["status"]["adminId"]

    secret = made["spec"]["tenantSecretRef"]["name"]
    values = await shop.secret_values(secret)
    own = Client(values["adminURL"], values["token"])
    await shop.backend(providerAccountRef={"name": secret})
    await shop.synced(BACKEND, "stock")
    assert [each["system_name"] for each in own.list("backend_apis")] == ["stock"]
    own.close()

    await shop.delete(TENANT, "branch")
    await shop.gone(TENANT, "branch")
    assert control.tenant(organization).state == LEAVING


async def test_a_tenant_with_cascade_deletes_the_objects_of_its_tenant_only(
    shop: Shop, control: ThreescaleControl
) -> None:
    """By Kubernetes' own garbage collector."""
    master, organization = control.tenant("master"), fresh("cascade").replace(" ", "-")
    await shop.secret(ADMIN_PASSWORD, admin_password="secret123")
    await shop.secret(MASTER_TOKEN, MASTER_ACCESS_TOKEN=master.token)
    await shop.create(TENANT, "branch", tenant_spec(master, organization), annotations={CASCADE: "true"})
    made = await shop.ready(TENANT, "branch")
    reference = {"name": made["spec"]["tenantSecretRef"]["name"]}
    await shop.backend(providerAccountRef=reference)
    await shop.product(providerAccountRef=reference, **USES)
    await shop.secret("pets", body=json.dumps(PETS))
    await shop.create(
        OPEN_API, "pets", {"openapiRef": {"secretRef": {"name": "pets"}}, "providerAccountRef": reference}
    )
    await shop.create(DEVELOPER_ACCOUNT, "acme", {"orgName": "Acme", "providerAccountRef": reference})
    await shop.backend("elsewhere")
    mine: list[tuple[Kind, str]] = [(BACKEND, "stock"), (PRODUCT, "goods"), (OPEN_API, "pets")]
    for kind, name in (*mine, (BACKEND, "elsewhere")):
        await shop.shown(kind, name, "Ready" if kind == OPEN_API else "Synced")
    mine.append((DEVELOPER_ACCOUNT, "acme"))  # it waits for its admin, and is the tenant's all the same
    await shop.shown(DEVELOPER_ACCOUNT, "acme", "Waiting")
    for kind, name in mine:
        await eventually(partial(_belongs, shop, kind, name, made), f"{name} record its Tenant", SLOW_MACHINE)

    await shop.delete(TENANT, "branch")
    await shop.gone(TENANT, "branch")
    for kind, name in mine:
        await shop.gone(kind, name)
    assert control.tenant(organization).state == LEAVING
    await shop.synced(BACKEND, "elsewhere")


async def _belongs(shop: Shop, kind: Kind, name: str, tenant: Json) -> bool:
    owners = ((await shop.get(kind, name)) or {})["metadata"].get("ownerReferences", [])
    return [each["uid"] for each in owners] == [tenant["metadata"]["uid"]]
