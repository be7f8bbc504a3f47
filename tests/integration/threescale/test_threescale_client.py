"""The product's own client of 3scale on the simulator: pages, lost answers, refusals, silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from threescale_process import Client, fresh

from activities.threescale.call_limits import Guard
from activities.threescale.client import Connections, Tenant
from domain.threescale.calls import Read, Resource, SecretKey, Write
from domain.threescale.remote_state import answers_of
from engine.errors import Absent, Denied, Invalid, Throttled, Unavailable
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration

PASSWORD = SecretKey(namespace="shop", name="ann", key="password")
SERVICES = Read(resource=Resource.SERVICE, path="services", paged=True)


@pytest.fixture
async def tenant(client: Client) -> AsyncIterator[Tenant]:
    async with Connections(60) as connections:
        yield Tenant(connections.http, f"{client.url}/", client.token, Guard("tenant", 10))


def creation(name: str) -> Write:
    fields: dict[str, object] = {"name": name, "system_name": name}
    return Write(resource=Resource.SERVICE, method="POST", path="services", fields=fields, key={"system_name": name})


async def names(tenant: Tenant) -> list[str]:
    return [str(each["system_name"]) for each in answers_of("service", await tenant.read(SERVICES))]


async def test_a_list_is_read_to_its_last_page(tenant: Tenant, control: ThreescaleControl) -> None:
    made = [fresh("page").replace(" ", "") for _ in range(5)]
    for name in made:
        await tenant.write(creation(name), {})
    whole = await names(tenant)
    control.config(page_size=2)

    assert await names(tenant) == whole
    assert set(made) <= set(whole)


@pytest.mark.parametrize("kind", ["after", "cut"])
async def test_a_creation_whose_answer_was_lost_is_found_again(
    tenant: Tenant, control: ThreescaleControl, kind: str
) -> None:
    name = fresh("lost").replace(" ", "")
    control.fault("POST", "/services", kind=kind, count=1)
    with pytest.raises(Unavailable):
        await tenant.write(creation(name), {})
    (again,) = answers_of("service", [await tenant.write(creation(name), {}, repeated=True)])

    assert again["system_name"] == name
    assert (await names(tenant)).count(name) == 1


async def test_a_signup_whose_answer_was_lost_is_found_by_its_admin(tenant: Tenant, control: ThreescaleControl) -> None:
    name = fresh("dev").replace(" ", "")
    fields: dict[str, object] = {"org_name": name, "username": name, "email": f"{name}@example.com"}
    signup = Write(
        resource=Resource.ACCOUNT,
        method="POST",
        path="signup",
        fields=fields,
        secrets={"password": PASSWORD},
        key={"username": name},
    )
    control.fault("POST", "/signup", kind="after", count=1)
    with pytest.raises(Unavailable):
        await tenant.write(signup, {PASSWORD: "secret123"})
    control.reset_ledger()
    (again,) = answers_of("account", [await tenant.write(signup, {PASSWORD: "secret123"}, repeated=True)])

    assert again["org_name"] == name
    assert control.ledger().mutating() == 0


async def test_a_lost_creation_is_made_by_the_repetition(tenant: Tenant, control: ThreescaleControl) -> None:
    name = fresh("lost").replace(" ", "")
    control.fault("POST", "/services", kind="before", count=1)
    with pytest.raises(Unavailable):
        await tenant.write(creation(name), {})
    await tenant.write(creation(name), {}, repeated=True)

    assert (await names(tenant)).count(name) == 1


async def test_a_repeated_key_whose_list_has_another_shape_is_not_added(
    tenant: Tenant, control: ThreescaleControl
) -> None:
    key = Write(resource=Resource.KEY, method="POST", path="accounts/1/applications/1/keys", fields={"key": "abcde"})
    control.fault("GET", "/keys", kind="refuse", status=200, body='{"unexpected": true}')
    with pytest.raises(Unavailable, match="unexpected shape"):
        await tenant.write(key, {}, repeated=True)

    assert control.ledger().mutating() == 0


async def test_lists_without_a_wrapper_and_of_backends_are_read(tenant: Tenant, client: Client) -> None:
    service, backend = client.service()["id"], client.backend()["id"]
    use = {"backend_api_id": backend, "path": "/v1"}
    usages = f"services/{service}/backend_usages"
    await tenant.write(Write(resource=Resource.USAGE, method="POST", path=usages, fields=use), {})
    found = await tenant.read(Read(resource=Resource.USAGE, path=usages, paged=True))
    metrics = await tenant.read(Read(resource=Resource.METRIC, path=f"backend_apis/{backend}/metrics", paged=True))

    assert [each["path"] for each in answers_of("backend_usage", found)] == ["/v1"]
    assert [each["system_name"] for each in answers_of("metric", metrics)] == [f"hits.{backend}"]


@pytest.mark.parametrize(("number", "size", "calls"), [(1, None, 1), (3, None, 2), (3, 2, 2), (4, 2, 3)])
async def test_a_list_that_does_not_say_how_long_it_is_is_read_to_its_end(
    tenant: Tenant, client: Client, control: ThreescaleControl, number: int, size: int | None, calls: int
) -> None:
    usages = f"services/{client.service()['id']}/backend_usages"
    uses = [{"backend_api_id": client.backend()["id"], "path": f"/{index}"} for index in range(number)]
    made = [Write(resource=Resource.USAGE, method="POST", path=usages, fields=use) for use in uses]
    for each in made:
        await tenant.write(each, {})
    control.config(page_size=size)
    control.reset_ledger()
    found = answers_of("backend_usage", await tenant.read(Read(resource=Resource.USAGE, path=usages, paged=True)))
    assert [each["path"] for each in found] == [use["path"] for use in uses]
    assert control.ledger().calls() == calls

    last = made[-1].model_copy(update={"key": {"backend_id": uses[-1]["backend_api_id"]}})
    assert await tenant.write(last, {}, repeated=True) == {"backend_usage": found[-1]}
    assert control.ledger().mutating() == 0


async def test_a_list_whose_page_number_is_ignored_is_read_once(
    tenant: Tenant, client: Client, control: ThreescaleControl
) -> None:
    usages = f"services/{client.service()['id']}/backend_usages"
    for path in ("/a", "/b"):
        client.call("POST", usages, {"backend_api_id": client.backend()["id"], "path": path})
    control.fault("GET", "/backend_usages", status=200, body=client.call("GET", usages).text)
    found = await asyncio.wait_for(tenant.read(Read(resource=Resource.USAGE, path=usages, paged=True)), 10)
    assert [each["path"] for each in answers_of("backend_usage", found)] == ["/a", "/b"]


async def test_a_missing_object_is_none_deleted_and_not_changed(tenant: Tenant) -> None:
    path = "services/999999"
    assert await tenant.read(Read(resource=Resource.SERVICE, path=path, of=999999)) is None
    assert await tenant.write(Write(resource=Resource.SERVICE, method="DELETE", path=path, id=999999), {}) is None
    with pytest.raises(Absent):
        await tenant.write(Write(resource=Resource.SERVICE, method="PUT", path=path, fields={"name": "x"}), {})


async def test_refusals_are_reported_without_the_token(
    tenant: Tenant, client: Client, control: ThreescaleControl
) -> None:
    """3scale weakness 21: tokens in logs."""
    with pytest.raises(Invalid, match="system_name"):
        await tenant.write(creation("!"), {})
    async with Connections(60) as connections:
        stranger = Tenant(connections.http, client.url, "not-the-token", Guard("stranger", 10))
        with pytest.raises(Denied, match="Access denied") as denied:
            await stranger.read(SERVICES)
    assert "not-the-token" not in denied.value.message
    control.fault(status=429, headers={"Retry-After": "7"}, count=1)
    with pytest.raises(Throttled) as throttled:
        await tenant.read(SERVICES)
    assert throttled.value.delay is not None
    assert throttled.value.delay.total_seconds() == 7


async def test_a_call_that_hangs_ends(client: Client, control: ThreescaleControl) -> None:
    """3scale weakness 3: calls without an end."""
    control.fault("GET", "/services", kind="hang")
    async with Connections(1) as connections:
        tenant = Tenant(connections.http, client.url, client.token, Guard("tenant", 10))
        with pytest.raises(Unavailable, match="no answer"):
            await tenant.read(SERVICES)
