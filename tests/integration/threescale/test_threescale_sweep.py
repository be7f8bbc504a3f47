"""The sweep over tenants and the audit: one list of each kind, whoever differs is looked at, refusals are told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment
from threescale_lab import Shop
from threescale_passes_lab import Passes
from threescale_process import Client

from activities.threescale.client import Connections
from activities.threescale.sweeps import SweepActivities
from domain.threescale import BACKEND, PRODUCT, THE_TENANTS
from domain.threescale.memo import DRIFT
from domain.threescale.passes import Memory, SweepTenants, ThreescaleWorld
from engine.kube.json import text
from localcloud.bench.threescale_things import backend, developer, product
from localcloud.threescale.control import ThreescaleControl
from starters.cli.audits import threescale as audit
from starters.cli.session import Session

pytestmark = pytest.mark.integration

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
async def made(bare_shop: Shop, passes: Passes, control: ThreescaleControl) -> Shop:
    _, *people = developer("acme")
    await bare_shop.secret("acme-password", password="s3cret-enough")
    objects = [backend("first"), product("one", "first"), product("two", "first"), product("three"), *people]
    for kind, body in objects:
        await bare_shop.create(kind, text(body, "metadata", "name"), cast("Any", body)["spec"])
    await passes.settled(bare_shop)
    control.reset_ledger()
    return bare_shop


async def sweep(passes: Passes, **memory: Any) -> ThreescaleWorld:
    look = SweepTenants(key=THE_TENANTS, memory=Memory(**memory))
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, started_time=datetime.now(UTC))
    return await environment.run(SweepActivities(passes._activities._ground).sweep_tenants, look)


async def test_a_sweep_lists_each_kind_once_and_finds_nothing_where_all_is_in_step(
    made: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    world = await sweep(passes, next_sweep=LONG_AGO)

    assert control.ledger().by_route() == {
        "GET /admin/api/accounts": 1,
        "GET /admin/api/backend_apis": 1,
        "GET /admin/api/services": 1,
    }
    assert world.decision.why.startswith("1 tenants were compared, 0 of 5 objects differed")
    assert world.known.next_sweep is not None
    control.reset_ledger()
    await passes.round(made)
    assert control.ledger().calls() == 0


async def test_the_first_sweep_comes_an_interval_after_the_first_object(
    made: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    world = await sweep(passes)
    due = world.known.next_sweep
    assert due is not None
    assert due > datetime.now(UTC) + timedelta(minutes=30)
    again = await sweep(passes, next_sweep=due)

    assert (again.known.next_sweep, control.ledger().calls()) == (due, 0)


async def test_whoever_differs_is_looked_at_and_mended(
    made: Shop, passes: Passes, control: ThreescaleControl, tenant: Client
) -> None:
    one, two = [int((await made.get(PRODUCT, name) or {})["status"]["productId"]) for name in ("one", "two")]
    tenant.put(f"services/{one}", name="Somebody's own")
    tenant.delete(f"services/{two}")
    await sweep(passes, next_sweep=LONG_AGO)
    marked = {name: await annotation(made, name) for name in ("one", "two", "three")}
    assert [bool(marked[name]) for name in ("one", "two", "three")] == [True, True, False]
    await passes.settled(made)

    assert tenant.get(f"services/{one}")["service"]["name"] == "one"
    assert {each["system_name"] for each in tenant.list("services")} >= {"one", "two", "three"}
    await sweep(passes, next_sweep=LONG_AGO)
    assert {name: await annotation(made, name) for name in marked} == marked


async def annotation(shop: Shop, name: str) -> str:
    return text(await shop.get(PRODUCT, name), "metadata", "annotations", DRIFT)


async def test_a_tenant_that_refuses_is_told_and_the_others_are_looked_at(
    made: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    other = await passes.shop_of_its_own(control)
    await other.create(
        BACKEND, "first", {"name": "a", "systemName": "first", "privateBaseURL": "https://a.example.com"}
    )
    await passes.settled(other)
    control.fault("GET", "/services", kind="refuse", status=403)
    other.tenant.put(f"backend_apis/{(await other.get(BACKEND, 'first') or {})['status']['backendId']}", name="b")
    world = await sweep(passes, next_sweep=LONG_AGO)
    other.tenant.close()

    assert "2 tenants were compared, 1 of 6 objects differed" in world.decision.why
    assert "403" in world.decision.why


async def test_the_audit_tells_what_has_drifted_and_what_has_no_object(
    made: Shop, passes: Passes, control: ThreescaleControl, tenant: Client
) -> None:
    one = int((await made.get(PRODUCT, "one") or {})["status"]["productId"])
    tenant.put(f"services/{one}", description="Somebody's own", name="other")
    lost = tenant.post(
        "backend_apis", name="lost", private_endpoint="https://x.example.com", annotations={"managed_by": "operator"}
    )
    control.reset_ledger()
    session = cast("Session", SimpleNamespace(kube=_Everywhere(passes, made.namespace)))
    async with Connections(60) as connections:
        found = await audit._look(session, connections)

    assert [(each.subject, each.problem) for each in found] == [
        (f"Product {made.namespace}/one", f"{one} differs in 3scale from the object"),
        (
            f"3scale backend {lost['id']} (lost) of {tenant.url}",
            "carries the operator's mark, and no object manages it",
        ),
    ]
    assert control.ledger().by_route() == {
        "GET /admin/api/accounts": 1,
        "GET /admin/api/backend_apis": 1,
        "GET /admin/api/services": 1,
    }


class _Everywhere:
    """The test's own namespace, for who looks at all of them."""

    def __init__(self, passes: Passes, namespace: str) -> None:
        self._kube, self._namespace = passes.kube, namespace

    async def list(self, kind: Any) -> Any:
        return await self._kube.list(kind, self._namespace)

    async def get(self, kind: Any, namespace: str, name: str) -> Any:
        return await self._kube.get(kind, namespace, name)
