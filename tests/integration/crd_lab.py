"""Definitions installed on the real API server, and objects stored under them as clients and operators write them."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from definitions import MODELS, samples
from waiting import PATIENT

from domain.built_in_kinds import CUSTOM_RESOURCE_DEFINITION
from domain.custom_resources import all_crds
from domain.identity import Kind
from domain.operator_domain import DEFAULT
from domain.reading import Malformed, read
from engine.errors import Absent, Conflict, Invalid
from engine.kube import NAMESPACE, KubeApi
from engine.kube.json import sequence, text
from engine.settings import Settings
from localcloud.deployment import Deployment

NAMESPACE_NAME = "crd-round-trip"

Json = dict[str, Any]


def written_objects(area: str) -> dict[str, tuple[Kind, Json]]:
    """Kind, spec and status of an area's samples, by name."""
    kinds = {name: model.kind_of for name, model in MODELS.items()}
    return {
        name: (kinds[obj["kind"]], {part: obj[part] for part in ("spec", "status")})
        for name, obj in samples(area).items()
    }


@pytest.fixture(scope="session")
async def kube(deployment: Deployment) -> AsyncIterator[KubeApi]:
    """The API server with every definition installed and the namespace of these tests."""
    async with await KubeApi.open(Settings(), "tests", deployment.env()["KUBECONFIG"]) as api:
        await install(api)
        with suppress(Conflict):
            await api.create(NAMESPACE, {"metadata": {"name": NAMESPACE_NAME}})
        yield api


async def install(api: KubeApi) -> None:
    """Create the definitions, or bring those that are there up to date, and wait until they are served."""
    for crd in all_crds(DEFAULT):
        name = text(crd, "metadata", "name")
        try:
            await api.create(CUSTOM_RESOURCE_DEFINITION, crd)
        except Conflict:
            await api.patch(CUSTOM_RESOURCE_DEFINITION, "", name, {"spec": crd["spec"]})
    async with asyncio.timeout(PATIENT):
        for crd in all_crds(DEFAULT):
            name = text(crd, "metadata", "name")
            while "Established" not in true_conditions(await api.get(CUSTOM_RESOURCE_DEFINITION, "", name)):  # noqa: ASYNC110 - a server
                await asyncio.sleep(0.05)


def true_conditions(obj: Json) -> set[str]:
    return {text(item, "type") for item in sequence(obj, "status", "conditions") if text(item, "status") == "True"}


async def store(api: KubeApi, kind: Kind, name: str, written: Json) -> Json:
    """Create an object and write its status, as an operator does; returns what is stored."""
    body = copy.deepcopy(written)
    served = status_is_a_subresource(kind)
    status = body.pop("status", None) if served else None
    body["metadata"] = {**body.get("metadata", {}), "name": name}
    await remove(api, kind, name)
    await api.create(kind, body, NAMESPACE_NAME)
    if status is not None:
        await api.patch(kind, NAMESPACE_NAME, name, {"status": status}, subresource="status")
    return await api.get(kind, NAMESPACE_NAME, name)


async def assert_stored(api: KubeApi, kind: Kind, written: Json) -> Json:
    """An object is stored as it was written, and its model reads it so; returns what the model writes of it."""
    stored = await store(api, kind, text(written, "metadata", "name") or "kept", written)
    assert (stored["spec"], stored.get("status")) == (written["spec"], written.get("status"))
    found = read(MODELS[kind.name], stored)
    assert not isinstance(found, Malformed)
    again = found.model_dump(mode="json", exclude_unset=True)
    assert (again["spec"], again.get("status")) == (written["spec"], written.get("status"))
    return {part: again[part] for part in ("spec", "status") if part in again}


async def assert_stored_after_a_patch(api: KubeApi, kind: Kind, name: str, written: Json) -> None:
    """An annotation leaves the rest of an object as it was written."""
    await store(api, kind, name, written)
    await api.patch(kind, NAMESPACE_NAME, name, {"metadata": {"annotations": {"perdure.dev/paused": "true"}}})
    stored = await api.get(kind, NAMESPACE_NAME, name)
    assert (stored["spec"], stored.get("status")) == (written["spec"], written.get("status"))


async def assert_refused(api: KubeApi, kind: Kind, spec: Json, complaint: str) -> None:
    """The API server refuses such an object with these words."""
    await remove(api, kind, "refused")
    with pytest.raises(Invalid, match=complaint):
        await api.create(kind, {"metadata": {"name": "refused"}, "spec": spec}, NAMESPACE_NAME)


async def remove(api: KubeApi, kind: Kind, name: str) -> None:
    try:
        await api.patch(kind, NAMESPACE_NAME, name, {"metadata": {"finalizers": None}})
        await api.delete(kind, NAMESPACE_NAME, name)
    except Absent:
        return


def status_is_a_subresource(kind: Kind) -> bool:
    """Whether the kind's status is written by itself."""
    (crd,) = (crd for crd in all_crds(DEFAULT) if text(crd, "spec", "names", "kind") == kind.name)
    (version,) = sequence(crd, "spec", "versions")
    return text(version, "name") == kind.version and "subresources" in version  # type: ignore[operator]
