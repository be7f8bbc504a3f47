"""Who has an entry in 3scale is observed by its id, because an object with another name may have it, too."""

from __future__ import annotations

import base64
from typing import Any, cast

import pytest
from memory_kube import MemoryKube
from test_threescale_developer_lifecycle import SHOP, account, application, ready_account, user
from test_threescale_once_and_documents import document, policy
from test_threescale_tenant import MASTER, tenant
from threescale_objects import ANN_SPEC, NOW, URL, Requested, after, backend, message, product, requested, states

from activities.threescale.cache import ThreescaleCache
from activities.threescale.document_download import Downloads
from activities.threescale.pass_context import PassContext
from activities.threescale.tenant_concurrency import Tenants
from domain.identity import Kind
from domain.threescale.calls import Answer, Read, Resource
from domain.threescale.observed import Phase
from engine.kube import SECRET, KubeApi
from engine.kube.informer_cache import Store
from engine.settings import Settings

GOING = {"deletionTimestamp": NOW.isoformat()}
OURS = {"annotations": {"managed_by": "operator"}}
SECRETS = {
    "threescale-provider-account": {"adminURL": URL, "token": "x"},
    "elsewhere": {"adminURL": "https://other.example.com", "token": "x"},
    "ann-password": {"password": "secret"},
    "master": {"MASTER_ACCESS_TOKEN": "x"},
    "password": {"admin_password": "secret"},
}
# The field of the spec with the name in 3scale, and the field of the status with the id.
FIELDS = {
    "Product": ("systemName", "productId"),
    "Backend": ("systemName", "backendId"),
    "ActiveDoc": ("systemName", "activeDocId"),
    "CustomPolicyDefinition": ("name", "policyID"),
    "DeveloperAccount": ("orgName", "accountID"),
    "DeveloperUser": ("username", "developerUserID"),
    "Application": ("name", "applicationID"),
    "Tenant": ("organizationName", "tenantId"),
}
# An ActiveDoc that is renamed leaves its document to the one that has the name now, and Applications adopt nothing.
ADOPTING = tuple(kind for kind in FIELDS if kind not in ("ActiveDoc", "Application"))


def named(kind: str, name: str, id_: int = 0, *, host: str | None = URL, **meta: Any) -> Any:
    """An object of the kind whose name in 3scale is its own name."""
    of_kind: dict[str, Any] = {
        "Product": product(),
        "Backend": backend(synced=False),
        "ActiveDoc": document(),
        "CustomPolicyDefinition": policy(),
        "DeveloperAccount": account(),
        "DeveloperUser": user(),
        "Application": application(),
        "Tenant": tenant(),
    }
    field, id_field = FIELDS[kind]
    spec = {field: name, "tenantSecretRef": {"name": name, "namespace": "shop"}}  # only a Tenant has one
    patch = {"metadata": {"name": name, "uid": f"uid-{name}", **meta}, "spec": spec}
    status: dict[str, Any] = {id_field: id_, "providerAccountHost": host} if id_ else {}
    return after(of_kind[kind], patch, {**status, "accoundID": 11} if kind == "DeveloperUser" and id_ else status)


def entry(kind: str, name: str) -> Any:
    """3scale's answer to the search for the entry 5 with this name."""
    match kind:
        case "Product":
            return {"services": [{"service": {"id": 5, "system_name": name, **OURS}}]}
        case "Backend":
            return {"backend_apis": [{"backend_api": {"id": 5, "system_name": name, **OURS}}]}
        case "CustomPolicyDefinition":
            return {"policies": [{"policy": {"id": 5, "name": name, "version": "1"}}]}
        case "DeveloperAccount":
            return {"account": {"id": 5, "org_name": name, **OURS}}
        case "DeveloperUser":
            return {"users": [{"user": {"id": 5, "username": name, "email": ANN_SPEC["email"]}}]}
    return {"accounts": [{"account": {"id": 5, "org_name": name, **OURS}}]}


class Ground:
    """Objects in memory, and what passes over one of them observe."""

    def __init__(self) -> None:
        self.kube = MemoryKube()
        api = cast("KubeApi", self.kube)
        cache = ThreescaleCache(api, cast("Store", self.kube))
        self._context = PassContext(api, cache, cast("Tenants", None), cast("Downloads", None), Settings())
        self._subject: Any = None

    async def put(self, resource: Any) -> None:
        """The object with its creation time."""
        await self.kube.put(resource)
        created = {"creationTimestamp": resource.metadata.creation_timestamp.isoformat()}
        key = resource.key
        await self.kube.patch(resource.kind_of, key.namespace, key.name, {"metadata": created})

    async def observed(self, resource: Any) -> Any:
        """The object with what is beside it."""
        self._subject = self._context.subject(resource, self._context.secrets())
        return await self._subject.observed()

    async def answered(self, world: Any, body: Any) -> Any:
        """The world after the next read."""
        (read,) = requested(world.decide(NOW)).reads
        assert isinstance(read, Read)
        beside = await self._subject.noticed(read, world.read(read, body))
        return read.fold(world, Answer(body=body, beside=beside))


@pytest.fixture
async def ground() -> Ground:
    made = Ground()
    for name, values in SECRETS.items():
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        await made.kube.create(SECRET, {"metadata": {"name": name}, "data": encoded}, "shop")
    await made.put(ready_account())
    await made.put(after(SHOP, {}, {"productId": 7}))
    return made


async def decided(ground: Ground, resource: Any, *answers: Any) -> Requested:
    world = await ground.observed(resource)
    for body in answers:
        world = await ground.answered(world, body)
    return requested(world.decide(NOW))


def read_of(kind: str, resource: Any) -> tuple[Any, ...]:
    """The answers that a deletion by id asks for before it: a Tenant's state."""
    name = resource.spec.organization_name if kind == "Tenant" else ""
    return ({Resource.TENANT.value: {"account": {"id": 5, "org_name": name, **OURS}}},) if name else ()


@pytest.mark.parametrize("kind", FIELDS)
async def test_a_deleted_object_leaves_its_entry_to_one_with_another_name(ground: Ground, kind: str) -> None:
    await ground.put(named(kind, "adopter", 5))
    going = named(kind, "renamed", 5, **GOING)
    found = await decided(ground, going, *read_of(kind, going))

    assert (found.writes, found.drops_finalizer) == ((), True)
    assert "shop/adopter manages the same object in 3scale" in found.why


@pytest.mark.parametrize("kind", [kind for kind in FIELDS if kind != "Tenant"])
async def test_an_object_of_another_tenant_with_the_same_id_keeps_no_entry(ground: Ground, kind: str) -> None:
    await ground.put(named(kind, "stranger", 5, host="https://other.example.com"))
    (deletion,) = (await decided(ground, named(kind, "renamed", 5, **GOING))).writes

    assert (deletion.method, deletion.id) == ("DELETE", 5)


async def test_a_tenant_of_another_master_with_the_same_id_keeps_no_tenant(ground: Ground) -> None:
    stranger = named("Tenant", "stranger", 5)
    await ground.put(after(stranger, {"spec": {"systemMasterUrl": "https://other.example.com"}}))
    going = named("Tenant", "renamed", 5, **GOING)
    (deletion,) = (await decided(ground, going, *read_of("Tenant", going))).writes

    assert (going.spec.system_master_url, deletion.method, deletion.id) == (MASTER.url, "DELETE", 5)


@pytest.mark.parametrize("kind", ADOPTING)
async def test_an_entry_of_a_renamed_object_is_not_adopted_by_its_former_name(ground: Ground, kind: str) -> None:
    await ground.put(named(kind, "renamed", 5))
    await ground.put(user(developerAccountRef={"name": "adopter"}))
    found = await decided(ground, named(kind, "adopter"), entry(kind, "adopter"))

    assert (found.phase, found.writes, found.patch) == (Phase.INVALID, (), {})
    assert "Invalid" in states(found.status)
    assert message(found.status, "Invalid").startswith(f"{kind} shop/renamed already manages 3scale ")
    assert found.deadline is not None, "nothing wakes it when the other one is deleted"


@pytest.mark.parametrize("kind", ["Product", "Backend", "Tenant"])
async def test_an_entry_of_a_renamed_object_is_not_deleted_by_its_former_name(ground: Ground, kind: str) -> None:
    await ground.put(named(kind, "renamed", 5))
    found = await decided(ground, named(kind, "adopter", **GOING), entry(kind, "adopter"))

    assert (found.writes, found.drops_finalizer) == ((), True)


@pytest.mark.parametrize("kind", ADOPTING)
async def test_an_entry_whose_other_object_is_being_deleted_is_adopted(ground: Ground, kind: str) -> None:
    await ground.put(named(kind, "renamed", 5, **GOING))
    await ground.put(user(developerAccountRef={"name": "adopter"}))
    found = await decided(ground, named(kind, "adopter"), entry(kind, "adopter"))

    assert found.phase is not Phase.INVALID


# How an object that knows no id looks for its entry, and how it reads the entry 5. Applications adopt nothing.
SEARCHES = {
    "DeveloperAccount": ("accounts/find", "accounts/5"),
    "DeveloperUser": ("accounts/11/users", "accounts/11/users/5"),
    "Application": ("accounts/11/applications", "accounts/11/applications/5"),
    "Tenant": ("accounts", "providers/5"),
}


def annotated(kind: str, name: str, **more: Any) -> Any:
    """An object whose id 5 is known from its annotation only."""
    made = named(kind, name)
    owner = ready_account().metadata
    owners = {"kind": "DeveloperAccount", "name": owner.name, "uid": owner.uid}
    return after(made, {"metadata": {"annotations": {made.id_annotation: "5"}, "ownerReferences": [owners], **more}})


async def first_reads(ground: Ground, resource: Any) -> list[str]:
    await ground.put(user(developerAccountRef={"name": resource.metadata.name}))
    return [each.path for each in (await decided(ground, resource)).reads if each.resource is not Resource.PLAN]


YOUNGER = {"creationTimestamp": NOW.isoformat()}


@pytest.mark.parametrize("kind", SEARCHES)
async def test_a_copy_with_its_originals_annotation_searches_for_an_entry_of_its_own(ground: Ground, kind: str) -> None:
    await ground.put(named(kind, "original", 5))

    assert await first_reads(ground, annotated(kind, "copy", **YOUNGER)) == [SEARCHES[kind][0]]


@pytest.mark.parametrize("kind", SEARCHES)
async def test_a_restored_object_is_found_by_the_id_in_its_annotation(ground: Ground, kind: str) -> None:
    await ground.put(named(kind, "other", 6))
    await ground.put(named(kind, "younger", 5, **YOUNGER))

    assert await first_reads(ground, annotated(kind, "restored")) == [SEARCHES[kind][1]]


@pytest.mark.parametrize("kind", ["DeveloperAccount", "DeveloperUser"])
async def test_ids_of_objects_restored_in_two_tenants_may_be_the_same(ground: Ground, kind: str) -> None:
    await ground.put(after(annotated(kind, "older"), {"spec": {"providerAccountRef": {"name": "elsewhere"}}}))

    assert await first_reads(ground, annotated(kind, "restored", **YOUNGER)) == [SEARCHES[kind][1]]


@pytest.mark.parametrize("kind", SEARCHES)
async def test_a_copy_that_is_deleted_leaves_the_entry_to_its_original(ground: Ground, kind: str) -> None:
    await ground.put(named(kind, "original", 5))
    nothing = ({"accounts": []},) if kind == "Tenant" else ()
    found = await decided(ground, annotated(kind, "copy", **YOUNGER, **GOING), *nothing)

    assert (found.reads, found.writes, found.drops_finalizer) == ((), (), True)


@pytest.mark.parametrize("kind", SEARCHES)
async def test_an_entry_is_deleted_with_its_original_in_spite_of_a_copy(ground: Ground, kind: str) -> None:
    await ground.put(annotated(kind, "copy", **YOUNGER))
    going = named(kind, "original", 5, **GOING)
    (deletion,) = (await decided(ground, going, *read_of(kind, going))).writes
    assert (deletion.method, deletion.id) == ("DELETE", 5)


@pytest.mark.parametrize("kind", SEARCHES)
async def test_a_copy_does_not_take_the_entry_of_an_original_being_deleted(ground: Ground, kind: str) -> None:
    await ground.put(named(kind, "original", 5, **GOING))

    assert await first_reads(ground, annotated(kind, "copy", **YOUNGER)) == [SEARCHES[kind][0]]


@pytest.mark.parametrize("kind", SEARCHES)
async def test_a_deleted_object_leaves_its_entry_to_an_older_restored_one(ground: Ground, kind: str) -> None:
    await ground.put(annotated(kind, "restored"))
    going = named(kind, "younger", 5, **YOUNGER, **GOING)
    found = await decided(ground, going, *read_of(kind, going))
    assert (found.writes, found.drops_finalizer) == ((), True)


MISSPELT = {"spec": {"developerAccountRef": {"name": "misspelt"}}}


async def test_the_account_that_has_a_user_is_found_by_its_id(ground: Ground) -> None:
    """The fixture's account has the id 11."""
    (deletion,) = (await decided(ground, after(named("DeveloperUser", "ann", 4, **GOING), MISSPELT))).writes
    assert (deletion.method, deletion.path) == ("DELETE", "accounts/11/users/4")

    elsewhere = after(named("DeveloperUser", "ann", 4, **GOING), MISSPELT, {"accoundID": 12})
    await ground.put(named("DeveloperAccount", "stranger", 12, host="https://other.example.com"))
    found = await decided(ground, elsewhere)
    assert (found.writes, found.drops_finalizer) == ((), True)


async def test_the_older_of_two_with_one_name_takes_the_entry_of_the_younger(ground: Ground) -> None:
    younger = named("Product", "younger", 5, creationTimestamp=NOW.isoformat())
    await ground.put(after(younger, {"spec": {"systemName": "goods"}}))
    found = await decided(ground, named("Product", "goods"), entry("Product", "goods"))

    assert found.phase is Phase.SYNCING


async def test_a_tenant_does_not_read_the_secrets_of_other_tenants(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, get = set[str](), ground.kube.get

    async def getting(kind: Kind, namespace: str, name: str) -> Any:
        read.update({name} if kind is SECRET else ())
        return await get(kind, namespace, name)

    monkeypatch.setattr(ground.kube, "get", getting)
    await ground.put(named("Tenant", "other", 5))
    await ground.observed(named("Tenant", "adopter", 5))

    assert read == {"master", "adopter", "password"}
