"""How often Perdure writes an object: once for each edit, never while it is in step, whatever definitions stand."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, cast

import pytest
from crd_lab import install
from memory_kube import MemoryKube
from threescale_lab import SLOW_MACHINE, Json, Shop, true_conditions
from threescale_passes_lab import Passes
from threescale_process import fresh
from threescale_scene import everything
from waiting import eventually

from activities.threescale.ineffective_writes import KEPT_OTHERWISE, MOST
from domain.built_in_kinds import CUSTOM_RESOURCE_DEFINITION
from domain.control_annotations import RETRIED, RETRY
from domain.custom_resources import all_crds
from domain.identity import Kind
from domain.operator_domain import DEFAULT
from domain.threescale import (
    ACTIVE_DOC,
    APPLICATION,
    BACKEND,
    CUSTOM_POLICY_DEFINITION,
    DEVELOPER_ACCOUNT,
    DEVELOPER_USER,
    OPEN_API,
    PRODUCT,
    TENANT,
)
from domain.threescale.auto_promotion import PROMOTE
from domain.threescale.digests import DIGESTS
from engine.kube import KubeApi
from engine.kube.json import mapping, sequence, text
from localcloud.bench.threescale_all_kinds import ADMIN_PASSWORD, MASTER_TOKEN, tenant_spec
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration

EDITS: dict[tuple[Kind, str], Json] = {
    (BACKEND, "stock"): {"description": "Another"},
    (PRODUCT, "goods"): {"description": "Another"},
    (CUSTOM_POLICY_DEFINITION, "mine"): {"schema": {"summary": "Another"}},
    (ACTIVE_DOC, "goods"): {"description": "Another"},
    (DEVELOPER_ACCOUNT, "acme"): {"orgName": "Another"},
    (DEVELOPER_USER, "bob"): {"email": "another@example.com"},
    (APPLICATION, "till"): {"description": "Another"},
    (TENANT, "branch"): {"supportEmail": "another@example.com"},
}


class Writes:
    """The writes of one object in memory, by subresource."""

    def __init__(self, kube: MemoryKube, monkeypatch: pytest.MonkeyPatch) -> None:
        self._found: list[tuple[str, str, str]] = []
        patch = kube.patch

        async def noted(kind: Kind, namespace: str, name: str, *arguments: Any, **more: Any) -> Json:
            self._found.append((kind.name, name, more.get("subresource", "")))
            return await patch(kind, namespace, name, *arguments, **more)

        monkeypatch.setattr(kube, "patch", noted)

    def taken(self, kind: Kind, name: str) -> list[str]:
        """Those of one object since the last time."""
        found = [subresource for *of, subresource in self._found if of == [kind.name, name]]
        self._found.clear()
        return found


@pytest.fixture
def writes(passes: Passes, monkeypatch: pytest.MonkeyPatch) -> Writes:
    return Writes(passes.kube, monkeypatch)


async def scene(shop: Shop, passes: Passes, control: ThreescaleControl) -> None:
    """One object of each kind, in step."""
    master = control.tenant("master")
    await everything(shop)
    await shop.secret(ADMIN_PASSWORD, admin_password="secret123")
    await shop.secret(MASTER_TOKEN, MASTER_ACCESS_TOKEN=master.token)
    await shop.create(TENANT, "branch", tenant_spec(master, fresh("Branch")))
    await passes.settled(shop)
    await passes.settled(shop)  # compared after the change that the creation was


async def test_an_edit_of_any_kind_is_answered_by_one_write_of_the_object(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl, writes: Writes
) -> None:
    await scene(bare_shop, passes, control)
    for (kind, name), spec in EDITS.items():
        writes.taken(kind, name)
        await bare_shop.change(kind, name, spec)
        await passes.settled(bare_shop)

        assert writes.taken(kind, name) == ["", "status"], f"{kind.name}: the edit and its answer"


async def test_objects_in_step_are_never_written(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl, writes: Writes
) -> None:
    await scene(bare_shop, passes, control)
    for kind, name in EDITS:
        writes.taken(kind, name)
    for _ in range(3):
        await passes.round(bare_shop)

    assert {name: writes.taken(kind, name) for kind, name in EDITS} == {name: [] for _, name in EDITS}


async def test_definitions_that_drop_the_digests_cost_a_second_write_and_no_call(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl, writes: Writes
) -> None:
    passes.kube.dropped_from_status = frozenset({"digests"})
    await scene(bare_shop, passes, control)
    for (kind, name), spec in EDITS.items():
        writes.taken(kind, name)
        await bare_shop.change(kind, name, spec)
        await passes.settled(bare_shop)

        assert writes.taken(kind, name) == ["", "status", ""], f"{kind.name}: the edit and its answer in two parts"
    await passes.settled(bare_shop)
    control.reset_ledger()
    for kind, name in EDITS:
        writes.taken(kind, name)
    await passes.round(bare_shop)

    assert control.ledger().calls() == 0
    assert {name: writes.taken(kind, name) for kind, name in EDITS} == {name: [] for _, name in EDITS}


async def test_a_promoted_version_that_the_definition_drops_is_written_twice_at_most(
    bare_shop: Shop, passes: Passes, writes: Writes
) -> None:
    passes.kube.dropped_from_status = frozenset({"digests", "latestProductionVersion"})
    await bare_shop.backend()
    spec = {"name": "goods", "systemName": "goods", "backendUsages": {"stock": {"path": "/"}}}
    await bare_shop.create(PRODUCT, "goods", spec, annotations={PROMOTE: "true"})
    await passes.settled(bare_shop)
    writes.taken(PRODUCT, "goods")
    rule = {"httpMethod": "GET", "pattern": "/", "metricMethodRef": "hits", "increment": 1}
    await bare_shop.change(PRODUCT, "goods", {"mappingRules": [rule]})
    await passes.settled(bare_shop)

    assert writes.taken(PRODUCT, "goods") == ["", "status", "", "status"]


async def test_nulls_in_a_policys_configuration_are_kept(bare_shop: Shop, passes: Passes) -> None:
    """The defaults of a Product and a new document are patches with a list of policies."""
    policy: Json = {
        "name": "cors",
        "version": "builtin",
        "enabled": True,
        "configuration": {"a": None, "b": [{"c": None}]},
    }
    await bare_shop.product(policies=[policy])
    document = {
        "openapi": "3.0.0",
        "info": {"title": "Pets", "version": "1"},
        "paths": {},
        "x-3scale-product": {"policies": [policy]},
    }
    await bare_shop.secret("pets", document=json.dumps(document))
    spec = {"openapiRef": {"secretRef": {"name": "pets"}}, "privateBaseURL": "https://pets.example.com"}
    await bare_shop.create(OPEN_API, "pets", spec)
    await passes.settled(bare_shop)
    policy["configuration"]["b"].append(None)
    await bare_shop.change_secret("pets", document=json.dumps(document))
    await passes.settled(bare_shop)

    made = text(await bare_shop.get(OPEN_API, "pets"), "status", "productResourceName", "name")
    for name, stored in (("goods", [{"c": None}]), (made, [{"c": None}, None])):
        found = await bare_shop.get(PRODUCT, name) or {}
        assert found["spec"]["policies"][0]["configuration"] == {"a": None, "b": stored}


def webhook(passes: Passes, monkeypatch: pytest.MonkeyPatch, kind: Kind, spec: Json) -> None:
    """One that gives this spec to every object of the kind that is patched."""
    patch = passes.kube.patch

    async def changed(of: Kind, namespace: str, name: str, wanted: Json, **more: Any) -> Json:
        instead = {"spec": spec} if of == kind and "subresource" not in more else {}
        return await patch(of, namespace, name, wanted | instead, **more)

    monkeypatch.setattr(passes.kube, "patch", changed)


async def test_a_generated_object_that_a_webhook_changes_is_reported(
    bare_shop: Shop, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bare_shop.secret(
        "pets", document='{"openapi": "3.0.0", "info": {"title": "Pets", "version": "1"}, "paths": {}}'
    )
    spec = {"openapiRef": {"secretRef": {"name": "pets"}}, "privateBaseURL": "https://pets.example.com"}
    await bare_shop.create(OPEN_API, "pets", spec)
    await passes.settled(bare_shop)
    webhook(passes, monkeypatch, BACKEND, {"name": "Mine"})
    backend, open_api = [each for each in await passes.keys(bare_shop) if each.kind in (BACKEND.name, OPEN_API.name)]
    await bare_shop.change(BACKEND, backend.name, {"name": "Edited"})
    await passes.look(open_api)

    assert true_conditions(await bare_shop.get(OPEN_API, "pets") or {}) == {"Failed"}
    assert "perhaps because of a webhook" in await bare_shop.message(OPEN_API, "pets", "Failed")


async def test_defaults_that_a_webhook_removes_are_not_written_again_and_again(
    bare_shop: Shop, passes: Passes, monkeypatch: pytest.MonkeyPatch, writes: Writes
) -> None:
    webhook(passes, monkeypatch, PRODUCT, {"policies": []})
    await bare_shop.product()
    (key,) = await passes.keys(bare_shop)
    world = await passes.look(key)

    assert len(writes.taken(PRODUCT, "goods")) == 1 + MOST, "with the finalizer, then the defaults alone"
    assert [each.code for each in world.refusals.values()] == [KEPT_OTHERWISE]


# --- on the real API server, with the product at work ---


class Changes:
    """The changes of one object that a watch reports from now on."""

    def __init__(self, kube: KubeApi, kind: Kind, obj: Json) -> None:
        self._kube, self._kind, self._obj = kube, kind, obj
        self._found: list[Json] = []

    async def __aenter__(self) -> Changes:
        self._task = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _listen(self) -> None:
        meta = self._obj["metadata"]
        version = meta["resourceVersion"]
        async for event in self._kube.watch(self._kind, meta["namespace"], resource_version=version):
            if event.type == "MODIFIED" and event.object["metadata"]["name"] == meta["name"]:
                self._found.append(event.object)

    async def until(self, version: str) -> list[Json]:
        """All of them, once the one of this resourceVersion is among them."""

        def reported() -> bool:
            return any(each["metadata"]["resourceVersion"] == version for each in self._found)

        await eventually(reported, f"the watch has reported {version}", SLOW_MACHINE)
        return self._found


async def edits(shop: Shop, count: int) -> str:
    """So many edits of the product, each answered before the next; the version that it has at the end."""
    for number in range(count):
        await shop.change(PRODUCT, "goods", {"description": f"Edit {number}"})
        await shop.synced(PRODUCT, "goods")
    return text(await shop.get(PRODUCT, "goods"), "metadata", "resourceVersion")


async def test_a_watch_sees_each_edit_and_one_answer(shop: Shop) -> None:
    await shop.product()
    async with Changes(shop.kube, PRODUCT, await shop.synced(PRODUCT, "goods")) as changes:
        found = await changes.until(await edits(shop, 4))

    generations = [each["metadata"]["generation"] for each in found]
    assert generations == sorted(generations)
    assert [generations.count(each) for each in sorted(set(generations))] == [2, 2, 2, 2]


async def test_clients_that_write_upon_what_they_have_just_read_meet_no_conflict(shop: Shop) -> None:
    await shop.product()
    for number in range(4):
        found = await shop.synced(PRODUCT, "goods")
        version, spec = found["metadata"]["resourceVersion"], {"description": f"Edit {number}"}
        await shop.kube.patch(
            PRODUCT, shop.namespace, "goods", {"spec": spec}, resource_version=version, field_manager="kubectl"
        )


@pytest.fixture
async def operators_definition(shop: Shop) -> AsyncIterator[None]:
    """Products as the replaced operator defines them, without what is added to their status."""
    (crd,) = (each for each in all_crds(DEFAULT) if text(each, "spec", "names", "kind") == PRODUCT.name)
    older = copy.deepcopy(cast("Json", crd))
    for version in sequence(older, "spec", "versions"):
        schema = mapping(version, "schema", "openAPIV3Schema")
        del schema["properties"]["status"]["properties"]["digests"]  # type: ignore[index]
    await shop.kube.patch(CUSTOM_RESOURCE_DEFINITION, "", text(crd, "metadata", "name"), {"spec": older["spec"]})
    await shop.product("probe")

    async def drops() -> bool:
        patch = {"status": {"digests": {"mended": "probe"}}}
        return (
            "digests"
            not in (await shop.kube.patch(PRODUCT, shop.namespace, "probe", patch, subresource="status"))["status"]
        )

    await eventually(drops, "the definition is in force", SLOW_MACHINE)
    yield
    await install(shop.kube)


@pytest.mark.usefixtures("operators_definition")
async def test_products_of_the_replaced_operators_definition_settle_with_one_write_more(shop: Shop) -> None:
    await shop.product()
    made = await settled_with_annotation(shop)
    async with Changes(shop.kube, PRODUCT, made) as changes:
        await shop.change(PRODUCT, "goods", {"description": "Another"})
        edited = await settled_with_annotation(shop, unlike=made)
        await shop.annotate(PRODUCT, "goods", **{RETRY: "now"})
        retried = await eventually(partial(noted, shop, RETRIED, "now"), "the retry is honoured", SLOW_MACHINE)
        found = await changes.until(retried["metadata"]["resourceVersion"])

    assert "digests" not in retried["status"]
    assert digests(retried) == digests(edited)
    assert len(found) == 5, "the edit, its status, its annotation; the retry, and that it is honoured"


def digests(obj: Json) -> str:
    return str(obj["metadata"].get("annotations", {}).get(DIGESTS, ""))


async def settled_with_annotation(shop: Shop, unlike: Json | None = None) -> Json:
    await shop.synced(PRODUCT, "goods")

    async def annotated() -> Json | None:
        found = await shop.get(PRODUCT, "goods") or {}
        return found if digests(found) not in ("", digests(unlike) if unlike else "") else None

    found: Json = await eventually(annotated, "the digests are in the annotation", SLOW_MACHINE)
    return found


async def noted(shop: Shop, annotation: str, value: str) -> Json | None:
    found = await shop.get(PRODUCT, "goods") or {}
    return found if found["metadata"]["annotations"].get(annotation) == value else None
