"""The definitions of the claims area on a real API server, with objects as clients of Poolboy write them.

The samples are those of `tests/samples/claims.yaml`: objects of Poolboy 1.12 to 1.17. The tables of what is refused and
what is accepted have a row for every rule that the schemas state.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from crd_lab import NAMESPACE_NAME, assert_stored, assert_stored_after_a_patch, kube, remove, store
from definitions import samples

from domain.claims import (
    KINDS,
    RESOURCE_CLAIM,
    RESOURCE_HANDLE,
    RESOURCE_POOL,
    RESOURCE_POOL_SCALING,
    RESOURCE_PROVIDER,
    RESOURCE_WATCH,
)
from domain.claims.handle_names import claim_handle_name, guid_of
from domain.identity import Kind
from engine.errors import Absent, Conflict, Invalid
from engine.kube import KubeApi
from engine.kube.json import at, text

__all__ = ["kube"]  # the fixture
pytestmark = pytest.mark.integration

Json = dict[str, Any]

OBJECTS = samples("claims")
SERVED = tuple(kind for kind in KINDS if kind.plural)
KIND = {kind.name: kind for kind in SERVED}

LINK: Json = {"apiVersion": "v1", "kind": "X", "name": "x", "namespace": "x"}
REFERENCE: Json = {"apiVersion": "v1", "kind": "X", "name": "x"}


def without(obj: Json, field: str) -> Json:
    return {name: value for name, value in obj.items() if name != field}


# Kind, spec, and what the API server says of it; a spec without complaint is accepted.
SPECS: list[tuple[Kind, Json, str]] = [
    (RESOURCE_CLAIM, {}, ""),
    (RESOURCE_CLAIM, {"provider": {"name": "p"}, "resources": [{}]}, ""),
    (RESOURCE_CLAIM, {"provider": {}}, "spec.provider.name: Required"),
    (RESOURCE_CLAIM, {"resources": [{"provider": {"namespace": "n"}}]}, r"spec.resources\[0\].provider.name: Required"),
    (RESOURCE_CLAIM, {"resources": [{"provider": {"name": "bare"}}]}, ""),
    (RESOURCE_CLAIM, {"resources": [{"template": "text"}]}, r"spec.resources\[0\].template: Invalid"),
    (RESOURCE_CLAIM, {"autoDelete": {"when": True}}, "spec.autoDelete.when: Invalid"),
    (RESOURCE_CLAIM, {"disableCreation": "yes"}, "spec.disableCreation: Invalid"),
    (RESOURCE_CLAIM, {"lifespan": {"end": "tomorrow"}}, "spec.lifespan.end: Invalid"),
    (RESOURCE_CLAIM, {"lifespan": {"start": "2026-01-01"}}, "spec.lifespan.start: Invalid"),
    (RESOURCE_CLAIM, {"lifespan": {"start": "2026-01-01T00:00:00.5Z", "end": "2026-01-01T00:00:00+02:00"}}, ""),
    (RESOURCE_HANDLE, {}, ""),
    (RESOURCE_HANDLE, {"lifespan": {"end": "7d"}}, "spec.lifespan.end: Invalid"),
    (RESOURCE_HANDLE, {"lifespan": {"default": "{{ x }}", "maximum": "1h30m", "relativeMaximum": "2 days"}}, ""),
    (RESOURCE_HANDLE, {"preferenceScore": "1"}, "spec.preferenceScore: Invalid"),
    (RESOURCE_HANDLE, {"preferenceScore": -1.5}, ""),
    (RESOURCE_HANDLE, {"provider": {}}, "spec.provider.name: Required"),
    (RESOURCE_HANDLE, {"resourceLabels": {"a": "b c"}}, "spec.resourceLabels.a: Invalid"),
    (RESOURCE_HANDLE, {"resourceLabels": {"a": "-b"}}, "spec.resourceLabels.a: Invalid"),
    (RESOURCE_HANDLE, {"resourceLabels": {"a": "", "b": "B_c.d-9"}, "resourceAnnotations": {"a": "b c"}}, ""),
    (RESOURCE_HANDLE, {"resourceAnnotations": {"a": 1}}, "spec.resourceAnnotations.a: Invalid"),
    *(
        (RESOURCE_HANDLE, {owner: without(LINK, field)}, f"spec.{owner}.{field}: Required")
        for owner in ("resourceClaim", "resourcePool")
        for field in LINK
    ),
    (RESOURCE_HANDLE, {"resourceClaim": LINK, "resourcePool": LINK}, ""),
    *(
        (RESOURCE_HANDLE, {"resources": [{"provider": without(LINK, field)}]}, rf"provider.{field}: Required")
        for field in LINK
    ),
    *(
        (RESOURCE_HANDLE, {"resources": [{"reference": without(REFERENCE, field)}]}, rf"reference.{field}: Required")
        for field in REFERENCE
    ),
    (RESOURCE_HANDLE, {"resources": [{"provider": LINK, "reference": REFERENCE}, {}]}, ""),
    (RESOURCE_POOL, {}, ""),
    (RESOURCE_POOL, {"minAvailable": -1}, "spec.minAvailable: Invalid"),
    (RESOURCE_POOL, {"minAvailable": 1.5}, "spec.minAvailable: Invalid"),
    (RESOURCE_POOL, {"maxUnready": -1}, "spec.maxUnready: Invalid"),
    (RESOURCE_POOL, {"minAvailable": 0, "maxUnready": 0, "preferenceScore": 3}, ""),
    (RESOURCE_POOL, {"provider": {}}, "spec.provider.name: Required"),
    (RESOURCE_POOL, {"resourceLabels": {"a": "b/c"}}, "spec.resourceLabels.a: Invalid"),
    *((RESOURCE_POOL, {"lifespan": {"unclaimed": span}}, "unclaimed: Invalid") for span in ("1h30m", "1w", "", "1 d")),
    *((RESOURCE_POOL, {"lifespan": {"unclaimed": span}}, "") for span in ("30s", "5m", "12h", "007d")),
    (RESOURCE_POOL, {"lifespan": {"maximum": "1h30m"}}, ""),
    *(
        (RESOURCE_POOL, {"resources": [{"provider": without(LINK, field)}]}, rf"provider.{field}: Required")
        for field in LINK
    ),
    (RESOURCE_POOL_SCALING, {"resourcePool": {"name": "p"}}, "spec.count: Required"),
    (RESOURCE_POOL_SCALING, {"count": 1}, "spec.resourcePool: Required"),
    (RESOURCE_POOL_SCALING, {"count": 1, "resourcePool": {}}, "spec.resourcePool.name: Required"),
    (RESOURCE_POOL_SCALING, {"count": -1, "resourcePool": {"name": "p"}}, "spec.count: Invalid"),
    (RESOURCE_POOL_SCALING, {"count": 1, "resourcePool": {"name": "p"}, "at": "noon"}, "spec.at: Invalid"),
    (RESOURCE_POOL_SCALING, {"count": 0, "resourcePool": {"name": "p"}, "at": "2026-01-01T00:00:00Z"}, ""),
    (RESOURCE_PROVIDER, {}, ""),
    (RESOURCE_PROVIDER, {"lifespan": {"unclaimed": "1h30m"}}, "spec.lifespan.unclaimed: Invalid"),
    (RESOURCE_PROVIDER, {"lifespan": {"unclaimed": "90m", "default": "1h30m"}}, ""),
    (RESOURCE_PROVIDER, {"template": {"style": "mustache"}}, "spec.template.style: Unsupported"),
    (RESOURCE_PROVIDER, {"template": {"style": "jinja2"}}, ""),
    (RESOURCE_PROVIDER, {"linkedResourceProviders": [{}]}, r"linkedResourceProviders\[0\].name: Required"),
    (
        RESOURCE_PROVIDER,
        {"linkedResourceProviders": [{"name": "a", "templateVars": [{"name": "v"}]}]},
        r"templateVars\[0\].from: Required",
    ),
    (
        RESOURCE_PROVIDER,
        {"linkedResourceProviders": [{"name": "a", "templateVars": [{"from": "/v"}]}]},
        r"templateVars\[0\].name: Required",
    ),
    (RESOURCE_PROVIDER, {"updateFilters": [{"allowedOps": ["add"]}]}, r"updateFilters\[0\].pathMatch: Required"),
    (RESOURCE_PROVIDER, {"validation": {"checks": [{"name": "a"}]}}, r"checks\[0\].check: Required"),
    (RESOURCE_PROVIDER, {"validation": {"checks": [{"check": "a"}]}}, r"checks\[0\].name: Required"),
    (RESOURCE_PROVIDER, {"parameters": [{"validation": {"checks": [{"name": "a"}]}}]}, r"checks\[0\].check: Required"),
    (RESOURCE_PROVIDER, {"parameters": [{}, {"default": {"value": [1, {"a": "b"}]}}]}, ""),
    (RESOURCE_PROVIDER, {"parameters": [{"default": {"template": 3}}]}, r"default.template: Invalid"),
    (RESOURCE_WATCH, {"kind": "X"}, "spec.apiVersion: Required"),
    (RESOURCE_WATCH, {"apiVersion": "v1"}, "spec.kind: Required"),
    (RESOURCE_WATCH, {"apiVersion": "v1", "kind": "X", "refreshInterval": "1h"}, "spec.refreshInterval: Invalid"),
    (RESOURCE_WATCH, {"apiVersion": "v1", "kind": "X", "refreshInterval": "10m"}, ""),
]

STATUSES: list[tuple[Kind, Json, str]] = [
    (RESOURCE_CLAIM, {"approval": {"message": "m"}}, "status.approval.state: Required"),
    (RESOURCE_CLAIM, {"approval": {"state": "maybe"}}, "status.approval.state: Unsupported"),
    *((RESOURCE_CLAIM, {"approval": {"state": state}}, "") for state in ("approved", "pending", "rejected")),
    (RESOURCE_CLAIM, {"healthy": "yes"}, "status.healthy: Invalid"),
    (RESOURCE_CLAIM, {"lifespan": {"maximum": "1h30m"}}, "status.lifespan.maximum: Invalid"),
    (RESOURCE_CLAIM, {"lifespan": {"relativeMaximum": "2 days"}}, "status.lifespan.relativeMaximum: Invalid"),
    (RESOURCE_CLAIM, {"lifespan": {"firstReady": "soon"}}, "status.lifespan.firstReady: Invalid"),
    (RESOURCE_CLAIM, {"lifespan": {"start": "soon"}}, "status.lifespan.start: Invalid"),
    (RESOURCE_CLAIM, {"lifespan": {"end": "soon"}}, "status.lifespan.end: Invalid"),
    (RESOURCE_CLAIM, {"lifespan": {"maximum": "90m", "relativeMaximum": "2d"}}, ""),
    (RESOURCE_CLAIM, {"provider": {"parameterValues": {}}}, "status.provider.name: Required"),
    (RESOURCE_CLAIM, {"resources": [{"waitingFor": "Godot"}]}, r"resources\[0\].waitingFor: Unsupported"),
    *(
        (RESOURCE_CLAIM, {"resources": [{"reference": without(REFERENCE, field)}]}, rf"reference.{field}: Required")
        for field in REFERENCE
    ),
    *(
        (kind, {"resources": [{"waitingFor": reason}]}, "")
        for kind in (RESOURCE_CLAIM, RESOURCE_HANDLE)
        for reason in ("ResourceClaim", "Linked ResourceProvider", "Resource Definition")
    ),
    (RESOURCE_CLAIM, {"anything": [1, {"of": "it"}]}, ""),
    (RESOURCE_HANDLE, {"resources": [{"waitingFor": "claim"}]}, r"resources\[0\].waitingFor: Unsupported"),
    (RESOURCE_HANDLE, {"ready": 1}, "status.ready: Invalid"),
    (RESOURCE_POOL, {"resourceHandleCount": {"ready": "1"}}, "resourceHandleCount.ready: Invalid"),
    (RESOURCE_POOL_SCALING, {"state": "resting"}, "status.state: Unsupported"),
    *((RESOURCE_POOL_SCALING, {"state": state}, "") for state in ("waiting", "scaling", "done")),
]

LEAST: dict[str, Json] = {
    RESOURCE_POOL_SCALING.name: {"count": 1, "resourcePool": {"name": "p"}},
    RESOURCE_WATCH.name: {"apiVersion": "v1", "kind": "X"},
}

NAMES: list[tuple[Kind, str, str]] = [
    *((kind, "a" * 64, "metadata.name: Too long") for kind in SERVED if kind is not RESOURCE_WATCH),
    *((kind, "a" * 63, "") for kind in SERVED if kind is not RESOURCE_HANDLE),
    (RESOURCE_WATCH, "a" * 64, ""),
    (RESOURCE_HANDLE, "handle-a", "metadata.name: Invalid"),
    (RESOURCE_HANDLE, "guid-", "Invalid"),
    (RESOURCE_HANDLE, "guid-a.b", "metadata.name: Invalid"),
    (RESOURCE_HANDLE, "guid-demo-base-7", ""),
]


def label(value: object) -> str:
    return value.name if isinstance(value, Kind) else str(value)[:70]


def handle_name(kind: Kind) -> str:
    return "guid-table" if kind is RESOURCE_HANDLE else "table"


async def accepted(api: KubeApi, kind: Kind, name: str, spec: Mapping[str, object]) -> None:
    await remove(api, kind, name)
    await api.create(kind, {"metadata": {"name": name}, "spec": dict(spec)}, NAMESPACE_NAME)


@pytest.mark.parametrize("name", sorted(OBJECTS))
async def test_objects_of_every_release_are_stored_and_read_unchanged_and_written_so(kube: KubeApi, name: str) -> None:
    written = OBJECTS[name]
    kind = KIND[written["kind"]]
    parts = await assert_stored(kube, kind, written)
    stored = await store(kube, kind, name, {"metadata": written["metadata"], **copy.deepcopy(parts)})
    assert (stored["spec"], stored.get("status")) == (written["spec"], written.get("status"))


@pytest.mark.parametrize("name", ["claim-1.12-bound", "guid-demo-base-7", "pool-1.12", "provider-everything"])
async def test_a_patch_of_one_annotation_leaves_the_rest_as_it_was(kube: KubeApi, name: str) -> None:
    written = OBJECTS[name]
    await assert_stored_after_a_patch(kube, KIND[written["kind"]], name, written)


@pytest.mark.parametrize(("kind", "spec", "complaint"), SPECS, ids=label)
async def test_a_spec_is_refused_or_accepted_as_ever(kube: KubeApi, kind: Kind, spec: Json, complaint: str) -> None:
    if complaint:
        with pytest.raises(Invalid, match=complaint):
            await accepted(kube, kind, handle_name(kind), spec)
    else:
        await accepted(kube, kind, handle_name(kind), spec)


@pytest.mark.parametrize(("kind", "status", "complaint"), STATUSES, ids=label)
async def test_a_status_is_refused_or_accepted_as_ever(kube: KubeApi, kind: Kind, status: Json, complaint: str) -> None:
    name = handle_name(kind)
    await accepted(kube, kind, name, LEAST.get(kind.name, {}))
    if complaint:
        with pytest.raises(Invalid, match=complaint):
            await kube.patch(kind, NAMESPACE_NAME, name, {"status": status}, subresource="status")
        return
    await kube.patch(kind, NAMESPACE_NAME, name, {"status": status}, subresource="status")
    assert at(await kube.get(kind, NAMESPACE_NAME, name), "status") == status


@pytest.mark.parametrize(("kind", "name", "complaint"), NAMES, ids=label)
async def test_a_name_is_refused_or_accepted_as_ever(kube: KubeApi, kind: Kind, name: str, complaint: str) -> None:
    if complaint:
        with pytest.raises(Invalid, match=complaint):
            await accepted(kube, kind, name, LEAST.get(kind.name, {}))
    else:
        await accepted(kube, kind, name, LEAST.get(kind.name, {}))
        await remove(kube, kind, name)


@pytest.mark.parametrize("kind", SERVED, ids=label)
async def test_an_object_needs_a_spec(kube: KubeApi, kind: Kind) -> None:
    with pytest.raises(Invalid, match="spec: Required"):
        await kube.create(kind, {"metadata": {"name": handle_name(kind)}}, NAMESPACE_NAME)


async def test_misspelt_fields_of_a_provider_vanish_and_harm_nothing(kube: KubeApi) -> None:
    spec = {"validation": {"openApiV3Schema": {"type": "object"}, "customValidation": "x", "checks": []}, "oddity": 1}
    stored = await store(kube, RESOURCE_PROVIDER, "misspelt", {"spec": spec})
    assert stored["spec"] == {"validation": {"checks": []}}


async def test_unknown_fields_beside_free_form_parts_are_pruned(kube: KubeApi) -> None:
    spec = {"resources": [{"template": {"kept": {"a": None}}, "dropped": 1}], "dropped": 2}
    stored = await store(kube, RESOURCE_CLAIM, "pruned", {"spec": spec})
    assert stored["spec"] == {"resources": [{"template": {"kept": {"a": None}}}]}


async def test_a_status_keeps_what_is_unknown_at_its_top_and_no_deeper(kube: KubeApi) -> None:
    status = {"unknown": {"kept": 1}, "resources": [{"name": "a", "dropped": 1, "state": {"kept": 1}}]}
    stored = await store(kube, RESOURCE_CLAIM, "open-status", {"spec": {}, "status": status})
    assert stored["status"] == {"unknown": {"kept": 1}, "resources": [{"name": "a", "state": {"kept": 1}}]}


async def test_a_provider_keeps_only_conditions_in_its_status_which_is_no_subresource(kube: KubeApi) -> None:
    condition = {"type": "VarsAreTemplates", "status": "True"}
    status = {"any": 1, "conditions": [condition]}
    stored = await store(kube, RESOURCE_PROVIDER, "statusless", {"spec": {}, "status": status})
    assert stored["status"] == {"conditions": [condition]}
    with pytest.raises(Absent):
        await kube.patch(RESOURCE_PROVIDER, NAMESPACE_NAME, "statusless", {"status": {}}, subresource="status")


async def test_the_status_of_a_watch_is_written_with_it(kube: KubeApi) -> None:
    written = OBJECTS["labs-0a1b2c3d4e5f"]
    await store(kube, RESOURCE_WATCH, "labs-0a1b2c3d4e5f", written)
    with pytest.raises(Absent):
        await kube.patch(RESOURCE_WATCH, NAMESPACE_NAME, "labs-0a1b2c3d4e5f", {"status": {}}, subresource="status")


async def test_the_statuses_of_claims_handles_and_pools_are_written_by_themselves(kube: KubeApi) -> None:
    for kind in (RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL):
        name = handle_name(kind)
        await accepted(kube, kind, name, {})
        await kube.patch(kind, NAMESPACE_NAME, name, {"status": {"diffBase": "x"}})
        assert at(await kube.get(kind, NAMESPACE_NAME, name), "status") is None


async def test_nulls_of_known_fields_vanish_on_their_way_in(kube: KubeApi) -> None:
    status = {"resourceHandles": [{"name": "guid-a", "healthy": None, "ready": None}]}
    stored = await store(kube, RESOURCE_POOL, "nulls", {"spec": {}, "status": status})
    assert stored["status"] == {"resourceHandles": [{"name": "guid-a"}]}


async def test_a_merge_patch_loses_the_nulls_inside_a_list(kube: KubeApi) -> None:
    # RFC 7386 would keep them; who compares a written `state` with what is stored must know.
    status = {"resources": [{"name": "a", "state": {"kept": 1, "empty": None}}]}
    stored = await store(kube, RESOURCE_CLAIM, "null-state", {"spec": {}, "status": status})
    assert stored["status"] == {"resources": [{"name": "a", "state": {"kept": 1}}]}


async def test_watches_can_be_selected_by_what_they_watch(kube: KubeApi) -> None:
    for name, namespace in (("select-a", "a"), ("select-b", "b")):
        spec = {"apiVersion": "v1", "kind": "Selected", "namespace": namespace}
        await accepted(kube, RESOURCE_WATCH, name, spec)
    selector = "spec.apiVersion=v1,spec.kind=Selected,spec.namespace=b"
    listing = await kube.list(RESOURCE_WATCH, NAMESPACE_NAME, field_selector=selector)
    assert [text(item, "metadata", "name") for item in listing.items] == ["select-b"]


async def test_a_handle_keeps_the_name_that_we_derive_beside_the_prefix_of_a_generated_one(kube: KubeApi) -> None:
    name = claim_handle_name("5f0cbb6e-6c5a-4f5e-9d0f-2f9a5d1f8f11")
    await remove(kube, RESOURCE_HANDLE, name)
    body = {"metadata": {"name": name, "generateName": "guid-"}, "spec": {}}
    created = await kube.create(RESOURCE_HANDLE, body, NAMESPACE_NAME)
    assert (text(created, "metadata", "name"), text(created, "metadata", "generateName")) == (name, "guid-")
    assert guid_of(text(created, "metadata", "name"), text(created, "metadata", "generateName")) == name[-5:]
    with pytest.raises(Conflict):
        await kube.create(RESOURCE_HANDLE, body, NAMESPACE_NAME)
    await remove(kube, RESOURCE_HANDLE, name)
