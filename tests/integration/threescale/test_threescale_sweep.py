"""The sweep over tenants and the audit: one list of each kind, differing objects are observed, refusals reported."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment
from threescale_lab import Shop
from threescale_passes_lab import Passes
from threescale_process import Client
from threescale_scene import holds

from activities.threescale.drift_sweep import SweepActivities
from domain.control_annotations import PAUSED
from domain.identity import Kind
from domain.threescale import BACKEND, PRODUCT, THE_TENANTS
from domain.threescale.drift_schedule import DRIFT
from domain.threescale.observed import Memory
from domain.threescale.passes import SweepTenants, ThreescaleWorld
from engine.kube.json import text
from localcloud.bench.threescale_things import backend, developer, example, product
from localcloud.threescale.control import ThreescaleControl
from starters.cli.audits import Finding
from starters.cli.audits import threescale as audit
from starters.cli.session import Session

pytestmark = pytest.mark.integration

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
async def made(bare_shop: Shop, passes: Passes, control: ThreescaleControl) -> Shop:
    _, *people = developer("acme")
    await bare_shop.secret("acme-password", password="s3cret-enough")
    objects = [backend("first"), product("one", "first"), product("two", "first"), product("three"), *people]
    for each in objects:
        await bare_shop.create(*_named(each))
    await passes.settled(bare_shop)
    control.reset_ledger()
    return bare_shop


async def sweep(passes: Passes, **memory: Any) -> ThreescaleWorld:
    look = SweepTenants(key=THE_TENANTS, memory=Memory(**memory))
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, started_time=datetime.now(UTC))
    return await environment.run(SweepActivities(passes.activities.context).sweep_tenants, look)


LISTS = {"GET /admin/api/accounts": 1, "GET /admin/api/backend_apis": 1, "GET /admin/api/services": 1}
# Of three products with two plans each, and a backend; no product has a gateway of its own.
PARTS = {
    "GET /admin/api/application_plans/{plan}/limits": 6,
    "GET /admin/api/application_plans/{plan}/pricing_rules": 6,
    "GET /admin/api/backend_apis/{backend}/mapping_rules": 1,
    "GET /admin/api/backend_apis/{backend}/metrics": 1,
    "GET /admin/api/services/{service}/application_plans": 3,
    "GET /admin/api/services/{service}/backend_usages": 3,
    "GET /admin/api/services/{service}/metrics": 3,
    "GET /admin/api/services/{service}/proxy/mapping_rules": 3,
    "GET /admin/api/services/{service}/proxy/policies": 3,
}


async def test_a_sweep_reads_each_list_once_and_finds_nothing_where_all_is_in_step(
    made: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    world = await sweep(passes, next_sweep=LONG_AGO)

    assert control.ledger().by_route() == {**LISTS, **PARTS}
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


async def test_an_object_that_differs_is_observed_and_corrected(
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


@pytest.fixture
async def whole(bare_shop: Shop, passes: Passes) -> Shop:
    """A product with something of everything, over two backends."""
    for each in (backend("first"), backend("second"), example("example", "first", "second")):
        await bare_shop.create(*_named(each))
    await passes.settled(bare_shop)
    return bare_shop


def _below(tenant: Client, own: str, listed: str, changes: dict[str, Any] | None = None) -> None:
    """Another client changes the first of a list, or deletes it."""
    first = tenant.list(f"{own}/{listed}")[0]["id"]
    if changes is None:
        tenant.delete(f"{own}/{listed}/{first}")
    else:
        tenant.put(f"{own}/{listed}/{first}", **changes)


def _renames_a_metric(tenant: Client, own: str) -> None:
    metric = next(each for each in tenant.list(f"{own}/metrics") if each["system_name"] == "m1")
    tenant.put(f"{own}/metrics/{metric['id']}", friendly_name="Somebody's own")


def _makes_a_method(tenant: Client, own: str) -> None:
    metrics = {each["system_name"]: each["id"] for each in tenant.list(f"{own}/metrics")}
    tenant.post(f"{own}/metrics/{metrics['hits']}/methods", friendly_name="Somebody's own", system_name="own")


def _raises_a_limit(tenant: Client, own: str) -> None:
    plan = tenant.list(f"{own}/application_plans")[0]["id"]
    limit = tenant.list(f"application_plans/{plan}/limits")[0]
    path = f"application_plans/{plan}/metrics/{limit['metric_id']}/limits/{limit['id']}"
    tenant.put(path, value=7)


def _drops_a_price(tenant: Client, own: str) -> None:
    plan = tenant.list(f"{own}/application_plans")[0]["id"]
    price = tenant.list(f"application_plans/{plan}/pricing_rules")[0]
    tenant.delete(f"application_plans/{plan}/metrics/{price['metric_id']}/pricing_rules/{price['id']}")


BY_HAND: dict[str, Callable[[Client, str], None]] = {
    "a rule is deleted": lambda tenant, own: _below(tenant, f"{own}/proxy", "mapping_rules"),
    "a rule counts otherwise": lambda tenant, own: _below(tenant, f"{own}/proxy", "mapping_rules", {"delta": 9}),
    "a metric is renamed": _renames_a_metric,
    "a method is made": _makes_a_method,
    "a backend is used elsewhere": lambda tenant, own: _below(tenant, own, "backend_usages", {"path": "/other"}),
    "a plan costs something else": lambda tenant, own: _below(tenant, own, "application_plans", {"setup_fee": "3"}),
    "a limit is raised": _raises_a_limit,
    "a price is dropped": _drops_a_price,
    "the proxy is changed": lambda tenant, own: tenant.put(f"{own}/proxy", auth_user_key="other"),
    "a policy is added": lambda tenant, own: tenant.put(
        f"{own}/proxy/policies",
        policies_config=[{"name": "cors", "version": "builtin", "enabled": True, "configuration": {}}],
    ),
}


def _state(control: ThreescaleControl, tenant: Client) -> dict[str, list[str]]:
    """What the tenant has, but for when and how often a proxy was written or deployed."""
    name = next(each.name for each in control.tenants() if each.url == tenant.url)
    proxies = [tenant.get(f"services/{each['id']}/proxy")["proxy"] for each in tenant.list("services")]
    written = {"lock_version", "updated_at", "deployed_at", "links"}
    return {
        **{
            table: sorted(re.sub(r'"lock_version": \d+', "", each) for each in rows)
            for table, rows in holds(control.world(name)).items()
        },
        "proxies": [str({name: value for name, value in each.items() if name not in written}) for each in proxies],
    }


@pytest.mark.parametrize("change", BY_HAND.values(), ids=BY_HAND)
async def test_a_change_by_hand_below_a_product_is_undone_after_a_sweep(
    whole: Shop, passes: Passes, tenant: Client, control: ThreescaleControl, change: Callable[[Client, str], None]
) -> None:
    before = _state(control, tenant)
    product_id = int((await whole.get(PRODUCT, "example") or {})["status"]["productId"])
    change(tenant, f"services/{product_id}")
    assert _state(control, tenant) != before
    await sweep(passes, next_sweep=LONG_AGO)
    assert await annotation(whole, "example")
    await passes.settled(whole)

    after = _state(control, tenant)
    assert [(each, after[each], before[each]) for each in before if after[each] != before[each]] == []
    again = await sweep(passes, next_sweep=LONG_AGO)
    assert "0 of 3 objects differed" in again.decision.why


async def test_a_change_by_hand_below_a_backend_is_undone_after_a_sweep(
    whole: Shop, passes: Passes, tenant: Client
) -> None:
    own = f"backend_apis/{int((await whole.get(BACKEND, 'first') or {})['status']['backendId'])}"
    before = [each["system_name"] for each in tenant.list(f"{own}/metrics")]
    metric = next(each for each in tenant.list(f"{own}/metrics") if each["system_name"].startswith("bytes"))
    tenant.delete(f"{own}/metrics/{metric['id']}")
    world = await sweep(passes, next_sweep=LONG_AGO)
    await passes.settled(whole)

    assert "1 of 3 objects differed" in world.decision.why
    assert [each["system_name"] for each in tenant.list(f"{own}/metrics")] == before


async def test_a_paused_object_and_one_with_a_pass_to_come_are_not_compared(
    made: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    await made.annotate(PRODUCT, "one", **{PAUSED: "true"})
    await made.change(PRODUCT, "two", {"description": "Another"})
    await sweep(passes, next_sweep=LONG_AGO)

    assert control.ledger().calls("GET", "/admin/api/services/{service}/metrics") == 1


async def test_a_tenant_that_breaks_off_is_reported_and_compared_again_later(
    made: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    control.fault("GET", "/mapping_rules", kind="refuse", status=503)
    world = await sweep(passes, next_sweep=LONG_AGO)

    assert "503" in world.decision.why
    assert world.known.sweeps == 1
    control.clear()
    again = await sweep(passes, next_sweep=LONG_AGO, sweeps=world.known.sweeps)
    assert again.decision.why == "1 tenants were compared, 0 of 5 objects differed"


def _named(thing: tuple[Kind, Any]) -> tuple[Kind, str, Any]:
    kind, body = thing
    return kind, text(body, "metadata", "name"), body["spec"]


async def annotation(shop: Shop, name: str) -> str:
    return text(await shop.get(PRODUCT, name), "metadata", "annotations", DRIFT)


async def test_a_tenant_that_refuses_is_reported_and_the_others_are_observed(
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


async def test_the_audit_reports_drift_and_items_without_an_object(
    made: Shop, passes: Passes, control: ThreescaleControl, tenant: Client
) -> None:
    one = int((await made.get(PRODUCT, "one") or {})["status"]["productId"])
    tenant.put(f"services/{one}", description="Somebody's own", name="other")
    lost = tenant.post(
        "backend_apis", name="lost", private_endpoint="https://x.example.com", annotations={"managed_by": "operator"}
    )
    control.reset_ledger()
    found = await audited(made, passes)

    assert [(each.subject, each.problem) for each in found] == [
        (f"Product {made.namespace}/one", f"entry {one} differs in 3scale from the object"),
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


async def test_the_audit_reports_a_tenant_whose_answers_have_another_shape(
    made: Shop, passes: Passes, control: ThreescaleControl, tenant: Client
) -> None:
    control.fault("GET", "/services", kind="refuse", status=200, body='{"services": [{"service": {"name": "x"}}]}')
    (found,) = await audited(made, passes)

    assert found.subject == f"tenant {tenant.url}"
    assert "unexpected shape" in found.problem


async def test_the_audit_takes_two_spellings_of_an_address_for_one_tenant(
    made: Shop, passes: Passes, tenant: Client
) -> None:
    await made.secret("loud", adminURL=tenant.url.replace("http", "HTTP"), token=tenant.token)
    await made.backend(providerAccountRef={"name": "loud"})
    await passes.settled(made)

    assert await audited(made, passes) == []


async def test_the_audit_reads_a_tenant_with_any_of_its_tokens(made: Shop, passes: Passes, tenant: Client) -> None:
    await made.change_secret("threescale-provider-account", token="revoked")
    await made.secret("good", adminURL=tenant.url, token=tenant.token)
    await made.backend(providerAccountRef={"name": "good"})
    await passes.round(made)

    assert await audited(made, passes) == []


async def audited(shop: Shop, passes: Passes) -> list[Finding]:
    session = cast("Session", SimpleNamespace(kube=Everywhere(passes, shop.namespace)))
    return await audit.observe(session, passes.activities.context.tenants)


class Everywhere:
    """The test's own namespace, for who looks at all of them."""

    def __init__(self, passes: Passes, namespace: str) -> None:
        self._kube, self._namespace = passes.kube, namespace

    async def list(self, kind: Any, namespace: str = "") -> Any:
        return await self._kube.list(kind, self._namespace)

    async def get(self, kind: Any, namespace: str, name: str) -> Any:
        return await self._kube.get(kind, namespace, name)
