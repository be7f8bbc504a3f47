"""Tenants on the simulator: made once also where an answer got lost, changed where they differ, deleted once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from threescale_process import Client, client_of, fresh

from activities.threescale.call_limits import Guard
from activities.threescale.client import Connections, Tenant
from domain.threescale.calls import SecretKey, Write
from domain.threescale.resources import Tenant as TenantResource
from domain.threescale.tenant import (
    KnownTenant,
    admin_of,
    deletion_of_tenant,
    is_tenant,
    read_tenant,
    secret_of,
    sync_tenant,
    wrote_tenant,
)
from engine.errors import Unavailable
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration


@pytest.fixture
async def master(control: ThreescaleControl) -> AsyncIterator[Tenant]:
    client = client_of(control, "master")
    async with Connections(60) as connections:
        yield Tenant(connections.http, client.url, client.token, Guard("master", 10))
    client.close()


def resource(name: str, **spec: Any) -> TenantResource:
    secrets = {"passwordCredentialsRef": {"name": "password"}, "masterCredentialsRef": {"name": "master"}}
    return TenantResource.model_validate(
        {
            "metadata": {"name": "acme", "namespace": "shop", "uid": "1"},
            "spec": {
                "username": "jane",
                "email": "jane@example.com",
                "organizationName": name,
                "systemMasterUrl": "http://master",
                "tenantSecretRef": {"name": "acme", "namespace": "shop"},
                **secrets,
                **spec,
            },
        }
    )


async def bring(master: Tenant, tenant: TenantResource, known_id: int = 0) -> tuple[KnownTenant, list[Any]]:
    """Until nothing is left to do; what was found, and the Secrets that came with it."""
    found = KnownTenant()
    secrets: list[Any] = []
    texts = {SecretKey(namespace="shop", name="password", key="admin_password"): "secret123"}
    for _ in range(10):
        sync = sync_tenant(tenant, found, known_id)
        if sync.done:
            return found, secrets
        for each in sync.reads:
            found = read_tenant(found, each, await master.read(each), tenant)
        for step in sync.writes:
            answer = await master.write(step, texts)
            secrets += [secret] if (secret := secret_of(tenant, answer)) else []
            found = wrote_tenant(found, step, answer)
    raise AssertionError(f"no end of it: {sync_tenant(tenant, found, known_id)}")


async def test_a_tenant_is_made_with_what_opens_it_and_found_again(master: Tenant, control: ThreescaleControl) -> None:
    tenant = resource(fresh("Org"), supportEmail="help@example.com")
    found, (secret,) = await bring(master, tenant)
    own = Client(secret["stringData"]["adminURL"], secret["stringData"]["token"])
    assert own.get("provider")["account"]["support_email"] == "help@example.com"
    own.close()
    control.reset_ledger()
    again, secrets = await bring(master, tenant)

    assert (again.tenant.item, secrets) == (found.tenant.item, [])
    admin = admin_of(tenant, again.users or ())
    assert admin is not None
    assert (admin.username, admin.state, admin.role) == ("jane", "active", "admin")
    assert control.ledger().mutating() == 0


async def test_a_tenant_whose_answer_was_lost_is_not_made_twice(master: Tenant, control: ThreescaleControl) -> None:
    tenant = resource(fresh("Lost"))
    (creation,) = sync_tenant(tenant, await read_state(master, tenant), 0).writes
    texts = dict.fromkeys(creation.secrets.values(), "secret123")
    control.fault("POST", "/master/api/providers", kind="after", count=1)
    with pytest.raises(Unavailable):
        await master.write(creation, texts)
    found = wrote_tenant(KnownTenant(), creation, await master.write(creation, texts, repeated=True))
    again, secrets = await bring(master, tenant)

    assert found.tenant.item is not None
    assert again.tenant.item is not None
    assert again.tenant.item.id == found.tenant.item.id
    assert secrets == []


async def test_a_deleted_tenants_organisation_may_come_back(master: Tenant) -> None:
    tenant = resource(fresh("Gone"))
    found, _ = await bring(master, tenant)
    assert found.tenant.item is not None
    deletion: Write | None = deletion_of_tenant(found.tenant.item)
    assert deletion is not None
    await master.write(deletion, {})
    left, _ = await bring(master, tenant, found.tenant.item.id)
    assert left.tenant.item is not None
    assert (deletion_of_tenant(left.tenant.item), is_tenant(left.tenant.item, tenant)) == (None, False)
    made, (secret,) = await bring(master, tenant)

    assert made.tenant.item is not None
    assert made.tenant.item.id != found.tenant.item.id
    assert secret["stringData"]["adminURL"] == made.tenant.item.address


async def read_state(master: Tenant, tenant: TenantResource) -> KnownTenant:
    (read,) = sync_tenant(tenant, KnownTenant(), 0).reads
    return read_tenant(KnownTenant(), read, await master.read(read), tenant)
