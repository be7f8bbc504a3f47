"""Objects that are deleted before anybody knows what came of their creation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from test_threescale_passes import world_of
from threescale_lab import Shop
from threescale_passes_lab import Passes
from threescale_process import Client
from threescale_scene import everything, holds
from waiting import eventually

from domain.control_annotations import RETRY
from domain.decision import Outcome
from domain.identity import Key, Kind
from domain.threescale import (
    ACTIVE_DOC,
    APPLICATION,
    APPLICATION_AUTH,
    CUSTOM_POLICY_DEFINITION,
    DEVELOPER_ACCOUNT,
    DEVELOPER_USER,
)
from domain.threescale.idempotent_creations import CREATING
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration

# Its name among the scene's objects, and the call that makes it.
MADE: dict[Kind, tuple[str, str]] = {
    APPLICATION: ("till", r"/accounts/\d+/applications\.json$"),
    DEVELOPER_ACCOUNT: ("acme", r"/signup\.json$"),
    DEVELOPER_USER: ("bob", r"/accounts/\d+/users\.json$"),
    ACTIVE_DOC: ("goods", r"/active_docs\.json$"),
    CUSTOM_POLICY_DEFINITION: ("mine", r"/registry/policies\.json$"),
}


async def key_of(shop: Shop, passes: Passes, kind: Kind) -> Key:
    return next(each for each in await passes.keys(shop) if (each.kind, each.name) == (kind.name, MADE[kind][0]))


async def dies_at(path: str, key: Key, passes: Passes, control: ThreescaleControl) -> None:
    """A pass that dies when 3scale has done what it was asked for and has not answered."""
    hanging = control.fault("POST", path, kind="hang", count=1)
    one = asyncio.create_task(passes.look(key))

    async def struck() -> bool:
        return any(each.hits for each in control.faults()) or one.done()

    await eventually(struck, "the call is made")
    one.cancel()
    await asyncio.gather(one, return_exceptions=True)
    assert [each.hits for each in control.faults()] == [1]
    control.clear(hanging.id)


@pytest.mark.parametrize("kind", list(MADE), ids=lambda kind: kind.name)
async def test_an_item_made_by_a_lost_creation_goes_with_its_object(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl, tenant: Client, kind: Kind
) -> None:
    await everything(bare_shop)
    name, path = MADE[kind]
    found = await bare_shop.get(kind, name) or {}
    if kind != DEVELOPER_ACCOUNT:
        await bare_shop.delete(kind, name)
        for _ in range(3):
            await passes.round(bare_shop)
    else:
        await bare_shop.delete(APPLICATION, "till")
        for each in await passes.keys(bare_shop):
            if each.kind not in (DEVELOPER_ACCOUNT.name, APPLICATION.name):
                await passes.look(each)
    before = holds(world_of(control, tenant))
    if kind != DEVELOPER_ACCOUNT:
        await bare_shop.create(kind, name, found["spec"])
    key = await key_of(bare_shop, passes, kind)
    await dies_at(path, key, passes, control)
    assert CREATING in ((await bare_shop.get(kind, name)) or {})["metadata"]["annotations"]
    assert holds(world_of(control, tenant)) != before

    passes.memory.clear()
    await bare_shop.delete(kind, name)
    if kind == DEVELOPER_ACCOUNT:
        await bare_shop.delete(DEVELOPER_USER, "ann")
        for each in await passes.keys(bare_shop):
            if each.name == "ann":
                await passes.look(each)  # who signs up is gone before
    for _ in range(3):
        if await bare_shop.get(kind, name):
            await passes.look(key)
    assert await bare_shop.get(kind, name) is None
    assert holds(world_of(control, tenant)) == before


def plan_of_goods(tenant: Client) -> dict[str, Any]:
    """The plan `basic` of the product `goods`; the product that every tenant has offers one of that name, too."""
    (goods,) = [each for each in tenant.list("services") if each["system_name"] == "goods"]
    (plan,) = [
        each for each in tenant.list(f"services/{goods['id']}/application_plans") if each["system_name"] == "basic"
    ]
    return plan


@pytest.mark.parametrize("answer", ["told", "lost", "lost with the pass"])
async def test_a_strangers_application_of_the_same_name_stays_the_strangers(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl, tenant: Client, answer: str
) -> None:
    await everything(bare_shop)
    till = await bare_shop.get(APPLICATION, "till") or {}
    for kind in (APPLICATION_AUTH, APPLICATION):
        await bare_shop.delete(kind, "till")
    await passes.settled(bare_shop)
    account = (await bare_shop.get(DEVELOPER_ACCOUNT, "acme") or {})["status"]["accountID"]
    plan = plan_of_goods(tenant)
    applications = f"accounts/{account}/applications"
    name = till["spec"]["name"]
    stranger = tenant.post(applications, plan_id=plan["id"], name=name, description="mine", user_key="strangers")

    await bare_shop.secret("till-keys", UserKey="our-own-key")
    await bare_shop.create(APPLICATION, "till", {**till["spec"], "authSecretRef": {"name": "till-keys"}})
    key = await key_of(bare_shop, passes, APPLICATION)
    if answer == "lost":
        control.fault("POST", MADE[APPLICATION][1], kind="after", count=1)
    elif answer == "lost with the pass":
        await dies_at(MADE[APPLICATION][1], key, passes, control)
        passes.memory.clear()
    await passes.settled(bare_shop)
    made = {each["user_key"]: each["id"] for each in tenant.list(applications)}
    assert sorted(made) == ["our-own-key", "strangers"]
    assert (await bare_shop.get(APPLICATION, "till") or {})["status"]["applicationID"] == made["our-own-key"]

    tenant.delete(f"{applications}/{made['our-own-key']}")
    await bare_shop.annotate(APPLICATION, "till", **{RETRY: "1"})
    await passes.settled(bare_shop)
    made = {each["user_key"]: each["id"] for each in tenant.list(applications)}
    assert sorted(made) == ["our-own-key", "strangers"]

    await bare_shop.delete(APPLICATION, "till")
    await passes.settled(bare_shop)
    assert [(each["id"], each["description"]) for each in tenant.list(applications)] == [(stranger["id"], "mine")]


async def test_an_object_that_never_existed_is_deleted_although_its_tenant_is_gone(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl, tenant: Client
) -> None:
    await everything(bare_shop)
    await bare_shop.delete(APPLICATION, "till")
    for _ in range(4):
        await passes.round(bare_shop)
    account = (await bare_shop.get(DEVELOPER_ACCOUNT, "acme") or {})["status"]["accountID"]
    plan = plan_of_goods(tenant)
    stranger = tenant.post(f"accounts/{account}/applications", plan_id=plan["id"], name="Till", description="mine")
    spec = {
        "accountCR": {"name": "acme"},
        "productCR": {"name": "goods"},
        "applicationPlanName": "none",
        "name": "Till",
        "description": "It sells",
    }
    await bare_shop.create(APPLICATION, "till", spec)
    await passes.round(bare_shop)
    control.fault(path="/admin/api", kind="before")
    await bare_shop.delete(APPLICATION, "till")
    world = await passes.look(await key_of(bare_shop, passes, APPLICATION), woken=True)

    assert world.decision.outcome is Outcome.GONE
    assert await bare_shop.get(APPLICATION, "till") is None
    control.clear()
    assert stranger["id"] in [each["id"] for each in tenant.list(f"accounts/{account}/applications")]
