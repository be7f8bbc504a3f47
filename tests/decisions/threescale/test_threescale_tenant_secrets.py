"""What is sure before a tenant is made: that its token, which is shown once, can be stored."""

from __future__ import annotations

import base64
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest
from threescale_objects import NOW, after, metadata

from activities.threescale.cache import ThreescaleCache
from activities.threescale.document_download import Downloads
from activities.threescale.secrets import Secrets
from activities.threescale.tenant import TenantSubject
from activities.threescale.tenant_addresses import Homes
from domain.threescale import TENANT
from domain.threescale.actions import WriteSecret
from domain.threescale.calls import Resource, Write
from domain.threescale.provider_account import NoAccount
from domain.threescale.resources import Tenant
from engine.errors import Absent, Conflict, Denied, Invalid
from engine.kube import KubeApi

ANSWER = {"signup": {"account": {"id": 5, "admin_base_url": "https://acme"}, "access_token": {"value": "t0k"}}}
CREATION = Write(resource=Resource.TENANT, method="POST", path="providers")


class Trials:
    """An API server that is asked whether a Secret could be written, and for the existing one."""

    def __init__(self, present: dict[str, Any] | None = None) -> None:
        self.asked: list[Any] = []
        self.present = present
        self.denied = False

    async def get(self, kind: object, namespace: str, name: str) -> dict[str, Any]:
        if self.denied:
            raise Denied(f"get Secret {name}: forbidden")
        if self.present is None:
            raise Absent(f"Secret {name} does not exist")
        return self.present

    async def applied(self, kind: object, obj: dict[str, Any], namespace: str) -> dict[str, object]:
        self.asked.append((namespace, obj))
        if " " in obj["metadata"]["name"]:
            raise Invalid(f"Secret {obj['metadata']['name']}: a lowercase RFC 1123 subdomain must consist of ...")
        return obj

    async def create(self, kind: object, obj: dict[str, Any], namespace: str) -> dict[str, Any]:
        raise Conflict(f"Secret {namespace}/{obj['metadata']['name']} exists")

    async def patch(self, kind: object, namespace: str, name: str, patch: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((namespace, patch))
        return patch


def subject(kube: Trials, organization: str) -> TenantSubject:
    name = f"acme-{organization.lower()}"
    tenant = Tenant.model_validate(
        {
            "metadata": metadata("acme", TENANT.finalizer),
            "spec": {"organizationName": organization, "tenantSecretRef": {"name": name, "namespace": "shop"}},
        }
    )
    return TenantSubject(
        tenant,
        cast("ThreescaleCache", None),
        Secrets(cast("KubeApi", kube), Homes()),
        cast("Downloads", None),
        cast("KubeApi", kube),
    )


async def test_a_tenant_is_not_made_whose_secret_could_not_be_written() -> None:
    with pytest.raises(Invalid, match="acme-red roses"):
        await subject(Trials(), "Red Roses").prepare(CREATION)


async def test_a_secret_is_tried_with_its_keys_and_before_the_creation_alone() -> None:
    kube = Trials()
    for write in (CREATION, CREATION.model_copy(update={"method": "PUT", "path": "providers/5"})):
        await subject(kube, "ACME").prepare(write)

    ((namespace, secret),) = kube.asked
    assert (namespace, secret["metadata"]["name"]) == ("shop", "acme-acme")
    assert secret["stringData"] == {"token": "", "adminURL": ""}


@pytest.mark.parametrize(("there", "owned"), [(None, True), ("", False)], ids=["a new one", "an existing one"])
async def test_a_secret_is_tried_with_its_owner_which_a_cluster_may_refuse(there: str | None, owned: bool) -> None:
    """Two owners of which each is the controller would be refused, although the write replaces the former one."""
    kube = Trials(None if there is None else present(there))
    await subject(kube, "ACME").prepare(CREATION)

    ((_, secret),) = kube.asked
    assert bool(secret["metadata"].get("ownerReferences")) == owned
    assert "type" not in secret


def present(token: str, **labels: str) -> dict[str, Any]:
    data = {"token": base64.b64encode(token.encode()).decode()} if token else {}
    return {"metadata": {"name": "acme-acme", "namespace": "shop", "labels": labels}, "data": data}


async def test_a_strangers_token_is_not_overwritten_and_no_tenant_made() -> None:
    kube = Trials(present("a stranger's", app="another"))
    with pytest.raises(Denied, match="Secret shop/acme-acme has a token that no Tenant has written"):
        await subject(kube, "ACME").prepare(CREATION)
    assert kube.asked == []


@pytest.mark.parametrize("there", [present(""), present("an earlier tenant's", app="3scale-operator")])
async def test_an_empty_secret_and_a_tenants_own_may_be_filled(there: dict[str, Any]) -> None:
    kube = Trials(there)
    await subject(kube, "ACME").prepare(CREATION)
    assert len(kube.asked) == 1


BY_AN_EARLIER_ONE = {
    "apiVersion": TENANT.api_version,
    "kind": "Tenant",
    "name": "acme",
    "uid": "uid-before",
    "controller": True,
}
BY_ANOTHER_GROUPS = {**BY_AN_EARLIER_ONE, "apiVersion": "storage.example.com/v2"}
BY_A_TOOL = {"apiVersion": "v1", "kind": "SealedSecret", "name": "acme", "uid": "uid-tool", "controller": True}


@pytest.mark.parametrize(
    ("owners", "owned_by"),
    [([BY_AN_EARLIER_ONE], ["uid-acme"]), ([], None), ([BY_A_TOOL], None), ([BY_ANOTHER_GROUPS], None)],
    ids=["an earlier Tenant's", "a person's", "a tool's", "another Tenant's"],
)
async def test_a_filled_secret_is_marked_and_never_goes_with_an_earlier_tenant(
    owners: list[dict[str, Any]], owned_by: list[str] | None
) -> None:
    there = present("")
    there["metadata"]["ownerReferences"] = owners
    kube = Trials(there)

    await subject(kube, "ACME").keep(CREATION, ANSWER)

    ((namespace, patch),) = kube.asked
    references = patch["metadata"].get("ownerReferences")
    assert (namespace, patch["stringData"]["token"]) == ("shop", "t0k")
    assert patch["metadata"]["labels"] == {"app": "3scale-operator"}
    assert (references and [each["uid"] for each in references]) == owned_by


async def test_a_token_is_stored_even_if_the_cluster_refuses_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asyncio.sleep", AsyncMock())
    there = present("")
    there["metadata"]["ownerReferences"] = [BY_AN_EARLIER_ONE, {**BY_A_TOOL, "controller": False}]
    kube = Trials(there)
    monkeypatch.setattr(kube, "patch", refusing_owner(kube.patch))

    await subject(kube, "ACME").keep(CREATION, ANSWER)

    ((_, patch),) = kube.asked
    assert patch["stringData"]["token"] == "t0k"
    assert [each["uid"] for each in patch["metadata"]["ownerReferences"]] == ["uid-tool"]


def refusing_owner(patch: Any) -> Any:
    """As the admission plugin OwnerReferencesPermissionEnforcement."""

    async def patched(kind: object, namespace: str, name: str, wanted: dict[str, Any]) -> dict[str, Any]:
        if "uid-acme" in str(wanted):
            raise Denied("cannot set blockOwnerDeletion")
        return cast("dict[str, Any]", await patch(kind, namespace, name, wanted))

    return patched


async def test_a_secret_that_a_person_makes_meanwhile_stays_the_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asyncio.sleep", AsyncMock())
    kube = Trials()
    of_acme = subject(kube, "ACME")
    await of_acme.prepare(CREATION)
    kube.asked.clear()
    kube.present = present("")

    await of_acme.keep(CREATION, ANSWER)

    ((_, patch),) = kube.asked
    assert patch["stringData"]["token"] == "t0k"
    assert "ownerReferences" not in patch["metadata"]


async def test_a_tenants_own_secret_need_not_be_readable_for_its_deletion() -> None:
    kube = Trials()
    kube.denied = True
    of_acme = subject(kube, "ACME")
    with pytest.raises(Denied):
        await of_acme.write(WriteSecret())
    of_acme.resource = after(of_acme.resource, {"metadata": {"deletionTimestamp": NOW.isoformat()}})
    assert await of_acme.write(WriteSecret()) == {"secret": None}


@pytest.mark.parametrize("token", ["", "\n"])
async def test_a_key_without_a_value_counts_as_absent(token: str) -> None:
    kube = Trials({"data": {"token": base64.b64encode(token.encode()).decode(), "adminURL": ""}})

    found = await Secrets(cast("KubeApi", kube), Homes()).account("shop", "own")

    assert isinstance(found, NoAccount)
    assert found.why == "LookupProviderAccount: Secret own has no adminURL and token"
    assert found.incomplete
