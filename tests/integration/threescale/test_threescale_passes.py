"""The passes over 3scale objects on the simulator: every order, every fault, no call twice.

Faults strike the calls of a whole life: they are late, lost before or after their effect, refused in every way, or
answered by a proxy in between. However they strike, in the end the tenant has what one without faults has, once.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from threescale_lab import Shop, true_conditions
from threescale_passes_lab import Passes, one_worker
from threescale_process import Client, fresh
from threescale_scene import DOCUMENT, EVERYTHING, PRODUCT_SPEC, everything, holds

from activities.threescale.pass_context import LEADER_LEASE
from domain.control_annotations import RETRIED, RETRY
from domain.decision import Outcome
from domain.identity import Kind
from domain.schema import JsonObject
from domain.threescale import (
    ACTIVE_DOC,
    APPLICATION,
    APPLICATION_AUTH,
    BACKEND,
    DEVELOPER_ACCOUNT,
    DEVELOPER_USER,
    OPEN_API,
    PRODUCT,
    TENANT,
    open_api_document,
)
from domain.threescale.deletion import RETAIN
from domain.threescale.drift_schedule import DRIFT
from engine.errors import Invalid
from engine.kube import EVENT, LEASE
from localcloud.bench.threescale_all_kinds import ADMIN_PASSWORD, MASTER_TOKEN, TENANT_TOKEN, tenant_spec
from localcloud.threescale.contract import TenantWorld
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration

FAULTS: dict[str, dict[str, Any]] = {
    "late": {"kind": "delay", "delay_seconds": 0.2},
    "lost before": {"kind": "before"},
    "lost after": {"kind": "after"},
    "cut": {"kind": "cut"},
    "500": {"kind": "refuse", "status": 500},
    "502 after": {"kind": "refuse-after", "status": 502},
    "429": {"kind": "refuse", "status": 429, "headers": {"Retry-After": "1"}},
    "429 for long": {"kind": "refuse", "status": 429, "headers": {"Retry-After": "900"}},
    "403": {"kind": "refuse", "status": 403},
    "404": {"kind": "refuse", "status": 404},
    "422": {"kind": "refuse", "status": 422},
    "409": {"kind": "refuse", "status": 409},
}


def world_of(control: ThreescaleControl, tenant: Client) -> TenantWorld:
    name = next(each.name for each in control.tenants() if each.url == tenant.url)
    return control.world(name)


async def test_everything_is_settled_whatever_the_order_and_then_costs_no_call(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    dice = random.Random(1)
    await everything(bare_shop, dice)
    await passes.settled(bare_shop, order=dice)
    control.reset_ledger()
    passes.memory.clear()
    for _ in range(2):
        await passes.round(bare_shop)
    assert control.ledger().by_route() == {}


@pytest.mark.slow
async def test_twenty_orders_come_to_the_same_end(
    passes: Passes, control: ThreescaleControl, reference: dict[str, list[str]]
) -> None:
    for seed in range(20):
        shop, dice = await passes.shop_of_its_own(control), random.Random(seed)
        await everything(shop, dice)
        await passes.settled(shop, order=dice)
        assert holds(world_of(control, shop.tenant)) == reference, f"order {seed}"


class Page:
    """A document at an address of its own; None for none."""

    def __init__(self) -> None:
        self.body: str | None = ""
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = (page.body or "").encode()
                self.send_response(200 if page.body is not None else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """The log has no reader."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/api.json"


@pytest.fixture
def page() -> Iterator[Page]:
    found = Page()
    thread = threading.Thread(target=found.server.serve_forever)
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


@pytest.fixture
async def reference(passes: Passes, control: ThreescaleControl) -> dict[str, list[str]]:
    """What a tenant without faults holds in the end."""
    shop = await passes.shop_of_its_own(control)
    await everything(shop)
    await passes.settled(shop)
    return holds(world_of(control, shop.tenant))


QUICK = ("lost after", "404")


@pytest.mark.parametrize(
    "fault", [fault if fault in QUICK else pytest.param(fault, marks=pytest.mark.slow) for fault in FAULTS]
)
async def test_a_storm_of_faults_leaves_what_was_wanted_once(
    fault: str, passes: Passes, control: ThreescaleControl, reference: dict[str, list[str]]
) -> None:
    shop = await passes.shop_of_its_own(control)
    tenant = control.tenants()[-1].name
    control.fault(path="/admin/api", tenant=tenant, probability=0.2, seed=5, count=25, **FAULTS[fault])
    await everything(shop)
    await passes.settled(shop)
    assert sum(each.hits for each in control.faults()) > 5
    control.clear()
    assert holds(world_of(control, shop.tenant)) == reference


# What a 3scale may be like, beside being at fault.
PECULIARITIES: dict[str, dict[str, Any]] = {
    "small pages": {"page_size": 2},
    "lists are late": {"stale_list_seconds": 1},
    "names are held after a deletion": {"deletion_seconds": 2},
    "its clock is a day behind": {"clock_skew_seconds": -86400},
}


@pytest.mark.parametrize("peculiarity", PECULIARITIES)
async def test_a_peculiar_3scale_comes_to_the_same(
    peculiarity: str, passes: Passes, control: ThreescaleControl, reference: dict[str, list[str]]
) -> None:
    shop = await passes.shop_of_its_own(control)
    empty = holds(world_of(control, shop.tenant))
    control.config(**PECULIARITIES[peculiarity])
    await everything(shop)
    await passes.settled(shop)
    assert holds(world_of(control, shop.tenant)) == reference
    for kind, name, _ in reversed(EVERYTHING):
        await shop.delete(kind, name)
    await passes.settled(shop)
    assert holds(world_of(control, shop.tenant)) == empty

    for kind, name, spec in EVERYTHING:
        await shop.create(kind, name, spec)
    async with asyncio.timeout(60):
        while holds(world_of(control, shop.tenant)) != reference:
            await passes.round(shop)
    await passes.settled(shop)
    assert holds(world_of(control, shop.tenant)) == reference


@pytest.mark.parametrize("kind", [BACKEND, PRODUCT], ids=str)
async def test_a_list_of_metrics_that_is_late_is_read_again(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl, kind: Kind
) -> None:
    control.config(stale_list_seconds=60)
    await (bare_shop.backend("goods") if kind == BACKEND else bare_shop.product())
    (key,) = await passes.keys(bare_shop)
    await passes.look(key)
    assert not true_conditions(await bare_shop.get(kind, "goods") or {})
    control.config(stale_list_seconds=0)
    await passes.settled(bare_shop)
    assert control.ledger().calls("POST") == 1


async def test_a_product_with_more_backends_than_fit_on_a_page_stays_in_step(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    control.config(page_size=2)
    uses = {f"stock{number}": {"path": f"/{number}"} for number in range(3)}
    for name in uses:
        await bare_shop.backend(name)
    await bare_shop.product(backendUsages=uses)
    await passes.settled(bare_shop)
    control.reset_ledger()
    await bare_shop.annotate(PRODUCT, "goods", **{DRIFT: "now"})
    await passes.settled(bare_shop)
    assert control.ledger().mutating() == 0


async def test_those_who_look_at_the_same_time_share_a_list(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    for number in range(8):
        await bare_shop.backend(f"stock{number}")
    control.reset_ledger()
    await asyncio.gather(*(passes.look(key) for key in await passes.keys(bare_shop)))
    assert control.ledger().calls("GET", "/admin/api/backend_apis") < 8
    assert control.ledger().calls("POST", "/admin/api/backend_apis") == 8


async def test_a_tenant_that_hangs_blocks_no_other_and_goes_on_when_it_answers(control: ThreescaleControl) -> None:
    """3scale weakness 3: one tenant that hangs stops all of a kind."""
    async with one_worker(slots=4, call_timeout=timedelta(hours=1)) as passes:
        hanging = await passes.shop_of_its_own(control)
        hung = control.fault(tenant=control.tenants()[-1].name, path="/admin/api", kind="hang")
        others = [await passes.shop_of_its_own(control) for _ in range(2)]
        for shop in (hanging, *others):
            for number in range(6):
                await shop.backend(f"stock{number}")
        waiting = [asyncio.create_task(passes.look(key)) for key in await passes.keys(hanging)]
        await passes.settled(*others)
        assert not any(each.done() for each in waiting[:4])
        assert sum(each.hits for each in control.faults()) <= 4, "no more calls than it has slots"
        control.clear(hung.id)
        await asyncio.gather(*waiting)
        await passes.settled(hanging)


async def test_passes_that_die_at_any_moment_leave_what_was_wanted_once(
    passes: Passes, control: ThreescaleControl, reference: dict[str, list[str]]
) -> None:
    """3scale weakness 12: who dies between a creation and its note makes a second one."""
    shop = await passes.shop_of_its_own(control)
    await everything(shop)
    dice = random.Random(3)
    for _ in range(25):
        passes.memory.clear()
        for key in await passes.keys(shop):
            one = asyncio.create_task(passes.look(key))
            await asyncio.wait([one], timeout=dice.uniform(0.0, 0.05))
            one.cancel()
            await asyncio.gather(one, return_exceptions=True)
    await passes.settled(shop)
    assert holds(world_of(control, shop.tenant)) == reference


async def test_objects_deleted_in_any_order_leave_nothing(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    """3scale weakness 9: documents and policies stay in 3scale."""
    before = holds(world_of(control, bare_shop.tenant))
    await everything(bare_shop)
    await passes.settled(bare_shop)
    dice = random.Random(4)
    for kind, name, _ in dice.sample(EVERYTHING, len(EVERYTHING)):
        if await bare_shop.get(kind, name) is not None:
            await bare_shop.delete(kind, name)
        await passes.round(bare_shop)
    await passes.settled(bare_shop)
    assert await passes.keys(bare_shop) == []
    assert holds(world_of(control, bare_shop.tenant)) == before


async def test_drift_in_3scale_is_corrected_when_an_observation_is_requested(
    bare_shop: Shop, passes: Passes, tenant: Client, control: ThreescaleControl
) -> None:
    await everything(bare_shop)
    await passes.settled(bare_shop)
    product = await bare_shop.get(PRODUCT, "goods")
    assert product is not None
    path = f"services/{product['status']['productId']}"
    wanted = holds(world_of(control, tenant))
    tenant.put(path, name="Other")
    for rule in tenant.list(f"{path}/proxy/mapping_rules"):
        tenant.delete(f"{path}/proxy/mapping_rules/{rule['id']}")
    await passes.settled(bare_shop)
    assert tenant.get(path)["service"]["name"] == "Other"

    await bare_shop.annotate(PRODUCT, "goods", **{DRIFT: "now"})
    await passes.settled(bare_shop)
    found = holds(world_of(control, tenant))
    assert found == wanted


async def test_drift_below_a_product_is_corrected_soon_after_its_next_change(
    bare_shop: Shop, passes: Passes, tenant: Client, control: ThreescaleControl
) -> None:
    await everything(bare_shop)
    await passes.settled(bare_shop)
    product = await bare_shop.get(PRODUCT, "goods") or {}
    path = f"services/{product['status']['productId']}"
    rules = [(each["pattern"], each["http_method"]) for each in tenant.list(f"{path}/proxy/mapping_rules")]
    for rule in tenant.list(f"{path}/proxy/mapping_rules"):
        tenant.delete(f"{path}/proxy/mapping_rules/{rule['id']}")
    await bare_shop.change(PRODUCT, "goods", {"description": "changed"})
    control.reset_ledger()
    (key,) = [each for each in await passes.keys(bare_shop) if (each.kind, each.name) == (PRODUCT.name, "goods")]
    changed = await passes.look(key, woken=True)
    assert control.ledger().calls() == 1
    assert tenant.list(f"{path}/proxy/mapping_rules") == []
    assert changed.decision.deadline is not None
    assert changed.decision.deadline - passes.now() <= timedelta(seconds=30)

    passes.ahead += timedelta(seconds=31)
    assert (await passes.look(key)).decision.outcome is Outcome.SETTLED
    assert [(each["pattern"], each["http_method"]) for each in tenant.list(f"{path}/proxy/mapping_rules")] == rules
    control.reset_ledger()
    passes.ahead += timedelta(minutes=5)
    await passes.round(bare_shop)
    assert control.ledger().calls() == 0


async def test_a_persons_retry_lasts_until_the_object_has_been_compared(
    bare_shop: Shop, passes: Passes, tenant: Client, control: ThreescaleControl
) -> None:
    await bare_shop.backend()
    await passes.settled(bare_shop)
    (key,) = await passes.keys(bare_shop)
    made = await bare_shop.get(BACKEND, "stock") or {}
    path = f"backend_apis/{made['status']['backendId']}"
    tenant.put(path, description="changed by hand")
    fault = control.fault("GET", "/backend_apis", status=503)
    await bare_shop.annotate(BACKEND, "stock", **{RETRY: "1"})
    waits = []
    for _ in range(3):
        world = await passes.look(key)
        found = await bare_shop.get(BACKEND, "stock") or {}
        assert RETRIED not in found["metadata"]["annotations"]
        assert world.decision.deadline is not None
        waits.append((world.decision.deadline - passes.now()).total_seconds())
        passes.ahead += world.decision.deadline - passes.now()
    assert waits[0] < waits[1] < waits[2], "a retry that lasts drops refusals once"
    control.clear(fault.id)
    await passes.look(key)
    found = await bare_shop.get(BACKEND, "stock") or {}
    assert found["metadata"]["annotations"][RETRIED] == "1"
    assert not tenant.get(path)["backend_api"]["description"]
    control.reset_ledger()
    await passes.look(key)
    assert control.ledger().calls() == 0


async def test_a_changed_backend_reaches_gateways_that_deployed_another_state(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    await everything(bare_shop)
    await passes.settled(bare_shop)
    backend, product = await bare_shop.get(BACKEND, "stock") or {}, await bare_shop.get(PRODUCT, "goods") or {}
    service = f"services/{product['status']['productId']}"

    def deployed() -> str:
        return json.dumps(tenant.get(f"{service}/proxy/configs/sandbox/latest"))

    tenant.put(f"backend_apis/{backend['status']['backendId']}", private_endpoint="https://evil.example.com")
    tenant.call("POST", f"{service}/proxy/deploy")
    assert "evil.example.com" in deployed()

    await bare_shop.annotate(BACKEND, "stock", **{DRIFT: "now"})
    await passes.settled(bare_shop)
    await passes.settled(bare_shop)
    assert "evil.example.com" not in deployed()


async def test_retained_items_stay_in_3scale(bare_shop: Shop, passes: Passes, tenant: Client) -> None:
    await bare_shop.backend()
    await passes.settled(bare_shop)
    await bare_shop.annotate(BACKEND, "stock", **{RETAIN: "true"})
    await bare_shop.delete(BACKEND, "stock")
    await passes.round(bare_shop)
    assert await bare_shop.get(BACKEND, "stock") is None
    assert [each["system_name"] for each in tenant.list("backend_apis") if each["system_name"] == "stock"] == ["stock"]


async def test_nothing_is_done_for_what_is_paused_or_only_planned(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    await bare_shop.backend()
    (key,) = await passes.keys(bare_shop)
    control.reset_ledger()
    planned = await passes.look(key, dry_run=True)
    assert planned.decision.planned == ("write the object",)
    await bare_shop.annotate(BACKEND, "stock", **{"perdure.dev/paused": "true"})
    held = await passes.look(key)
    assert held.hold
    found = await bare_shop.get(BACKEND, "stock")
    assert found is not None
    assert "finalizers" not in found["metadata"]
    assert control.ledger().calls() == 0


async def test_nothing_is_done_while_the_replaced_operator_leads(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    renewed = datetime.now(UTC) + timedelta(minutes=5)
    spec = {
        "holderIdentity": "operator-1",
        "leaseDurationSeconds": 15,
        "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    await passes.kube.create(LEASE, {"metadata": {"name": LEADER_LEASE}, "spec": spec}, bare_shop.namespace)
    await bare_shop.backend()
    (key,) = await passes.keys(bare_shop)
    held = await passes.look(key)
    assert "operator-1" in held.hold
    assert held.decision.deadline is not None
    assert "finalizers" not in ((await bare_shop.get(BACKEND, "stock")) or {})["metadata"]
    assert control.ledger().calls() == 0


async def test_an_invalid_object_waits_for_a_change_and_is_retried_once_in_an_hour(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    invalid = json.dumps({"errors": {"private_endpoint": ["is invalid"]}})
    fault = control.fault("POST", "/backend_apis", kind="refuse", status=422, body=invalid)
    await bare_shop.backend()
    (key,) = await passes.keys(bare_shop)
    first = await passes.look(key)
    assert first.decision.deadline is not None
    assert timedelta(minutes=59) < first.decision.deadline - passes.now() <= timedelta(hours=1)
    passes.ahead += timedelta(minutes=30)
    assert (await passes.look(key)).decision.deadline == first.decision.deadline
    assert sum(count for route, count in control.ledger().by_route().items() if "POST" in route) == 1
    passes.ahead += timedelta(minutes=31)
    again = await passes.look(key)
    assert again.decision.deadline is not None
    assert again.decision.deadline - passes.now() > timedelta(hours=23)
    control.clear(fault.id)
    await bare_shop.change(BACKEND, "stock", {"description": "mended"})
    assert (await passes.look(key, woken=True)).decision.outcome is Outcome.SETTLED


async def test_a_name_that_is_taken_is_tried_more_and_more_seldom_and_at_once_when_woken(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    taken = {"errors": {"system_name": ["has already been taken"]}}
    fault = control.fault("POST", "/backend_apis", kind="refuse", status=422, body=json.dumps(taken))
    await bare_shop.backend()
    (key,) = await passes.keys(bare_shop)
    waits = []
    for _ in range(3):
        world = await passes.look(key)
        assert world.decision.deadline is not None
        waits.append((world.decision.deadline - passes.now()).total_seconds())
        passes.ahead += world.decision.deadline - passes.now()
    assert waits[0] < waits[1] < waits[2]
    assert {"Invalid", "Failed"} <= true_conditions(await bare_shop.get(BACKEND, "stock") or {})
    control.clear(fault.id)
    assert (await passes.look(key, woken=True)).decision.outcome is Outcome.SETTLED


async def test_of_two_with_one_system_name_the_older_has_it_and_the_other_takes_over(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    """3scale weakness 13: two objects with one system name overwrite each other for ever."""
    await bare_shop.backend("one", systemName="same")
    await passes.settled(bare_shop)
    await bare_shop.backend("two", systemName="same")
    await passes.round(bare_shop)
    assert "Invalid" in true_conditions(await bare_shop.get(BACKEND, "two") or {})
    await bare_shop.delete(BACKEND, "one")
    await passes.settled(bare_shop)
    assert "Synced" in true_conditions(await bare_shop.get(BACKEND, "two") or {})
    assert len([each for each in tenant.list("backend_apis") if each["system_name"] == "same"]) == 1


async def test_with_an_account_go_its_users_and_applications(bare_shop: Shop, passes: Passes, tenant: Client) -> None:
    await everything(bare_shop)
    await passes.settled(bare_shop)
    await bare_shop.delete(DEVELOPER_ACCOUNT, "acme")
    await passes.settled(bare_shop)
    left: list[tuple[Kind, str]] = [
        (kind, name)
        for kind, name, _ in EVERYTHING
        if kind in (DEVELOPER_ACCOUNT, DEVELOPER_USER, APPLICATION) and await bare_shop.get(kind, name) is not None
    ]
    assert left == []
    assert "Acme" not in {each["org_name"] for each in tenant.list("accounts")}


async def test_prices_ports_and_slashes_that_mean_the_same_are_written_once(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    """3scale weakness 4: what 3scale writes in its own way is written for ever."""
    await everything(bare_shop)
    await passes.settled(bare_shop)
    control.reset_ledger()
    plans = PRODUCT_SPEC["applicationPlans"]["basic"]
    prices = [{**plans["pricingRules"][0], "pricePerUnit": "20.00"}]
    changed = {"basic": {**plans, "setupFee": "20.00", "pricingRules": prices}}
    await bare_shop.change(PRODUCT, "goods", {"applicationPlans": changed, "backendUsages": {"stock": {"path": "/v1"}}})
    await bare_shop.change(BACKEND, "stock", {"privateBaseURL": "https://stock.example.com:443"})
    for number in range(3):
        await bare_shop.annotate(PRODUCT, "goods", **{DRIFT: str(number)})
        await bare_shop.annotate(BACKEND, "stock", **{DRIFT: str(number)})
        await passes.settled(bare_shop)
    deploys = control.ledger().calls("POST", "/admin/api/services/{service}/proxy/deploy")
    assert control.ledger().mutating() - deploys == 0


async def test_a_tenant_is_made_once_and_its_token_is_in_its_secret(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    master = control.tenant("master")
    organisation = fresh("Org").replace(" ", "").lower()
    await bare_shop.secret(ADMIN_PASSWORD, admin_password="secret123")
    await bare_shop.secret(MASTER_TOKEN, MASTER_ACCESS_TOKEN=master.token)
    before = {each.id for each in control.tenants()}
    control.fault("POST", "/master/api/providers", kind="after", count=1)
    await bare_shop.create(TENANT, "branch", tenant_spec(master, organisation))
    await passes.round(bare_shop)
    made = [each for each in control.tenants() if each.id not in before]
    assert len(made) == 1, "the answer was lost, the tenant was not"
    await passes.round(bare_shop)
    assert len([each for each in control.tenants() if each.id not in before]) == 1
    decision = passes.worlds[(await passes.keys(bare_shop))[0]].decision
    assert "Create an access token" in decision.why

    secret = f"{TENANT_TOKEN}-{organisation}"
    await bare_shop.secret(secret, token=made[0].token)
    await passes.settled(bare_shop)
    opened = await bare_shop.secret_values(secret)
    assert (opened["token"], opened["adminURL"]) == (made[0].token, made[0].url)
    found = await bare_shop.get(TENANT, "branch")
    assert found is not None
    assert found["status"]["tenantId"] == made[0].id


async def test_a_tenant_whose_deletion_was_done_and_not_answered_goes_in_the_same_pass(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    master, organisation = control.tenant("master"), fresh("Org").replace(" ", "").lower()
    await bare_shop.secret(ADMIN_PASSWORD, admin_password="secret123")
    await bare_shop.secret(MASTER_TOKEN, MASTER_ACCESS_TOKEN=master.token)
    await bare_shop.create(TENANT, "branch", tenant_spec(master, organisation))
    await passes.settled(bare_shop)
    (key,) = await passes.keys(bare_shop)
    control.fault("DELETE", "/master/api/providers/[^/]+", kind="after", count=1)
    await bare_shop.delete(TENANT, "branch")

    world = await passes.look(key)

    assert world.decision.outcome is Outcome.GONE, world.decision
    assert await bare_shop.get(TENANT, "branch") is None


async def test_a_new_tenant_opens_to_the_objects_that_name_its_secret(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    master = control.tenant("master")
    organisation = fresh("Org").replace(" ", "").lower()
    secret = f"{TENANT_TOKEN}-{organisation}"
    await bare_shop.backend("inside", providerAccountRef={"name": secret})
    await bare_shop.secret(ADMIN_PASSWORD, admin_password="secret123")
    await bare_shop.secret(MASTER_TOKEN, MASTER_ACCESS_TOKEN=master.token)
    await bare_shop.create(TENANT, "branch", tenant_spec(master, organisation))
    await passes.settled(bare_shop)
    found = await bare_shop.get(BACKEND, "inside")
    assert found is not None
    assert found["status"]["providerAccountHost"] == (await bare_shop.secret_values(secret))["adminURL"]
    assert not found["metadata"].get("ownerReferences")

    tenant = await bare_shop.annotate(TENANT, "branch", **{"perdure.dev/cascade": "true"})
    await passes.settled(bare_shop)
    found = await bare_shop.get(BACKEND, "inside") or {}
    assert [each["uid"] for each in found["metadata"]["ownerReferences"]] == [tenant["metadata"]["uid"]]
    assert "Synced" in true_conditions(found)


async def test_an_object_that_refers_to_an_invalid_one_is_invalid_until_it_is_corrected(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    await everything(bare_shop)
    await passes.settled(bare_shop)
    sound = await bare_shop.get(BACKEND, "stock") or {}
    rules = [{"httpMethod": "GET", "pattern": "/", "metricMethodRef": "nothing", "increment": 1}]
    referring = ((BACKEND, "stock"), (PRODUCT, "goods"), (ACTIVE_DOC, "goods"), (APPLICATION, "till"))

    async def invalid() -> list[bool]:
        return ["Invalid" in true_conditions(await bare_shop.get(*each) or {}) for each in referring]

    control.reset_ledger()
    await bare_shop.change(BACKEND, "stock", {"mappingRules": rules})
    for _ in referring:
        await passes.round(bare_shop)
    assert await invalid() == [True] * 4
    assert control.ledger().calls() == 0

    await bare_shop.change(BACKEND, "stock", {"mappingRules": sound["spec"].get("mappingRules")})
    await passes.settled(bare_shop)
    assert await invalid() == [False] * 4


async def test_one_with_a_bad_reference_waits_and_blocks_no_other(bare_shop: Shop, passes: Passes) -> None:
    """3scale weakness 7: one bad reference breaks all Products of its namespace."""
    await bare_shop.backend("lost", systemName="lost", providerAccountRef={"name": "nowhere"})
    await bare_shop.backend()
    await bare_shop.product(backendUsages={"stock": {"path": "/"}})
    for _ in range(3):
        await passes.round(bare_shop)
    assert "Synced" in true_conditions(await bare_shop.get(PRODUCT, "goods") or {})
    lost = await bare_shop.get(BACKEND, "lost") or {}
    assert {"Orphan", "Failed"} == true_conditions(lost)
    assert "Secret nowhere not found" in await bare_shop.message(BACKEND, "lost", "Orphan")


async def test_a_token_that_is_revoked_is_reported_and_the_next_one_is_used(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    name = next(each.name for each in control.tenants() if each.url == bare_shop.tenant.url)
    control.revoke(bare_shop.tenant.token)
    await bare_shop.backend()
    await passes.round(bare_shop)
    await passes.round(bare_shop)
    message = await bare_shop.message(BACKEND, "stock", "Failed")
    assert "Check the token in the tenant's Secret" in message
    assert bare_shop.tenant.token not in message

    await bare_shop.change_secret("threescale-provider-account", token=control.add_token(name).value)
    await passes.settled(bare_shop)


async def test_a_changed_secret_of_a_policy_is_brought_to_3scale(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    """3scale weakness 11: a changed Secret was seen after ten hours."""
    await bare_shop.secret("cors", configuration='{"allow_origin": "one"}')
    policy = {"name": "cors", "version": "builtin", "enabled": True, "configurationRef": {"name": "cors"}}
    await bare_shop.product(policies=[policy])
    await passes.settled(bare_shop)
    found = await bare_shop.get(PRODUCT, "goods") or {}
    path = f"services/{found['status']['productId']}/proxy/policies"

    async def origin() -> str:
        chain = tenant.get(path)["policies_config"]
        return str(next(each["configuration"]["allow_origin"] for each in chain if each["name"] == "cors"))

    assert await origin() == "one"
    await bare_shop.change_secret("cors", configuration='{"allow_origin": "two"}')
    await passes.settled(bare_shop)
    assert await origin() == "two"


async def test_a_key_that_callers_of_the_product_do_not_need_is_set_all_the_same(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    await everything(bare_shop)
    await bare_shop.secret("till-keys", ApplicationKey="another-key")
    named = {"applicationCRName": "till", "authSecretRef": {"name": "till-keys"}}
    await bare_shop.create(APPLICATION_AUTH, "another", named)
    await passes.settled(bare_shop)
    made = await bare_shop.get(APPLICATION, "till") or {}
    account = (await bare_shop.get(DEVELOPER_ACCOUNT, "acme") or {})["status"]["accountID"]
    keys = tenant.list(f"accounts/{account}/applications/{made['status']['applicationID']}/keys")
    assert "another-key" in [each["value"] for each in keys]


async def test_a_page_is_fetched_again_and_waited_for_where_it_is_not_there(
    bare_shop: Shop, passes: Passes, tenant: Client, page: Page
) -> None:
    page.body = None
    await bare_shop.create(ACTIVE_DOC, "goods", {"name": "goods", "activeDocOpenAPIRef": {"url": page.url}})
    await passes.round(bare_shop)
    assert "Orphan" in true_conditions(await bare_shop.get(ACTIVE_DOC, "goods") or {})
    for title in ("One", "Two"):
        page.body = json.dumps({**DOCUMENT, "info": {"title": title, "version": "1"}})
        await passes.settled(bare_shop)
        (decision,) = (passes.worlds[key].decision for key in await passes.keys(bare_shop))
        assert decision.deadline is not None
        (document,) = tenant.list("active_docs")
        assert json.loads(document["body"])["info"]["title"] == title


async def test_documents_are_read_beside_the_loop(
    bare_shop: Shop, passes: Passes, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[threading.Thread] = []
    parsed = open_api_document.parsed

    def watched(text: str) -> JsonObject:
        readers.append(threading.current_thread())
        return parsed(text)

    monkeypatch.setattr(open_api_document, "parsed", watched)
    page.body = json.dumps({**DOCUMENT, "info": {"title": "Beside", "version": "1"}})
    await bare_shop.secret("document", api="no document at all")
    for name, where in (("page", {"url": page.url}), ("secret", {"secretRef": {"name": "document"}})):
        await bare_shop.create(OPEN_API, name, {"openapiRef": where})
    await passes.round(bare_shop)
    assert len(readers) == 2
    assert threading.main_thread() not in readers


async def test_the_last_admin_stays_until_its_account_goes_and_says_so(bare_shop: Shop, passes: Passes) -> None:
    """3scale weakness 10: deletions that 3scale refuses are stuck for ever."""
    await everything(bare_shop)
    await passes.settled(bare_shop)
    await bare_shop.delete(DEVELOPER_USER, "ann")
    for _ in range(2):
        await passes.round(bare_shop)
    (key,) = [each for each in await passes.keys(bare_shop) if each.name == "ann"]
    decision = passes.worlds[key].decision
    assert (decision.phase, decision.outcome) == ("Deleting", Outcome.WAITING)
    assert decision.deadline is not None
    events = await passes.kube.list(EVENT, bare_shop.namespace)
    assert "Failed to delete developer user" in {each["reason"] for each in events.items}
    await bare_shop.delete(DEVELOPER_ACCOUNT, "acme")
    for _ in range(4):
        await passes.round(bare_shop)
    assert await bare_shop.get(DEVELOPER_USER, "ann") is None


@pytest.mark.parametrize(
    "answer", ['{"unexpected": true}', "[1]", '"text"', '{"backend_apis": [{"backend_api": {"name": "x"}}]}']
)
async def test_an_answer_of_another_shape_is_shown_on_the_object_and_makes_nothing(
    answer: str, bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    await bare_shop.backend()
    (key,) = [each for each in await passes.keys(bare_shop) if each.kind == BACKEND.name]
    control.reset_ledger()
    control.fault("GET", "/backend_apis", kind="refuse", status=200, body=answer)
    for _ in range(2):
        passes.ahead += timedelta(minutes=5)
        world = await passes.look(key)
    assert control.ledger().mutating() == 0
    assert "unexpected shape" in world.decision.why
    conditions = true_conditions(await bare_shop.get(BACKEND, "stock"))
    assert "Failed" in conditions
    control.clear()
    await passes.settled(bare_shop)


async def test_a_tenant_whose_definition_allows_no_status_without_ids_waits_without_one(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replaced operator's definition may still stand."""
    patch = passes.kube.patch

    async def refusing(kind: Kind, namespace: str, name: str, change: Any, **how: Any) -> Any:
        if how.get("subresource") == "status" and kind == TENANT and "tenantId" not in change["status"]:
            raise Invalid("status.tenantId: Required value", code="Invalid")
        return await patch(kind, namespace, name, change, **how)

    monkeypatch.setattr(passes.kube, "patch", refusing)
    await bare_shop.create(TENANT, "branch", tenant_spec(control.tenant("master"), "nobody"))
    (key,) = [each for each in await passes.keys(bare_shop) if each.kind == TENANT.name]
    for _ in range(2):
        world = await passes.look(key)
    assert world.decision.outcome is Outcome.WAITING
    assert "is missing, or lacks the key" in world.decision.why
    assert not (await bare_shop.get(TENANT, "branch") or {}).get("status")
