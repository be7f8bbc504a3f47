"""The definitions of the 3scale area on a real API server, with objects as users of the operator write them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from crd_lab import NAMESPACE_NAME, definitions_served, remove, store, true_conditions

from domain.custom_resources import crd_of, custom_resources
from domain.identity import Kind
from domain.operator_domain import DEFAULT
from domain.reading import Malformed, read
from domain.resource import CustomResource
from domain.threescale import ACTIVE_DOC, APPLICATION, BACKEND, CUSTOM_KINDS, DEVELOPER_USER, OPEN_API, PRODUCT
from engine.errors import Invalid
from engine.kube import KubeApi
from engine.kube.kinds import CUSTOM_RESOURCE_DEFINITION
from localcloud.deployment import Deployment

pytestmark = pytest.mark.integration

Json = dict[str, Any]
MODELS: dict[str, type[CustomResource]] = {model.kind_of.name: model for model in custom_resources()}
KIND = {kind.name: kind for kind in CUSTOM_KINDS}
SAMPLES = Path(__file__).parents[1] / "samples" / "threescale.yaml"
OBJECTS: dict[str, tuple[Kind, Json]] = {
    obj["metadata"]["name"]: (KIND[obj["kind"]], {part: obj[part] for part in ("spec", "status")})
    for obj in yaml.safe_load_all(SAMPLES.read_text())
}

HOSTED: Json = {"authentication": {"userkey": {}}}
RULE: Json = {"httpMethod": "GET", "pattern": "/", "metricMethodRef": "hits", "increment": 1}
LOCAL_HITS: Json = {"systemName": "hits"}
PRICE: Json = {"from": 1, "to": 2, "pricePerUnit": "15.45", "metricMethodRef": LOCAL_HITS}

REFUSED: list[tuple[Kind, Json, str]] = [
    (PRODUCT, {}, "spec.name: Required"),
    (PRODUCT, {"name": "x", "deployment": {}}, "deployment.*oneOf"),
    (PRODUCT, {"name": "x", "deployment": {"apicastHosted": HOSTED, "apicastSelfManaged": {}}}, "deployment.*oneOf"),
    (PRODUCT, {"name": "x", "deployment": {"apicastHosted": {"authentication": {}}}}, "authentication.*oneOf"),
    (PRODUCT, {"name": "x", "mappingRules": [{**RULE, "httpMethod": "FETCH"}]}, "httpMethod: Unsupported"),
    (PRODUCT, {"name": "x", "mappingRules": [{k: RULE[k] for k in RULE if k != "increment"}]}, "increment: Required"),
    (PRODUCT, {"name": "x", "applicationPlans": {"a": {"setupFee": "15.4"}}}, "setupFee: Invalid"),
    (
        PRODUCT,
        {"name": "x", "applicationPlans": {"a": {"pricingRules": [{**PRICE, "pricePerUnit": "1.5"}]}}},
        "pricePerUnit: Invalid",
    ),
    (
        PRODUCT,
        {
            "name": "x",
            "applicationPlans": {"a": {"limits": [{"period": "decade", "value": 1, "metricMethodRef": LOCAL_HITS}]}},
        },
        "period: Unsupported",
    ),
    (BACKEND, {"name": "x"}, "privateBaseURL: Required"),
    (BACKEND, {"name": "x", "privateBaseURL": "ftp://x"}, "privateBaseURL: Invalid"),
    (ACTIVE_DOC, {"name": "x", "activeDocOpenAPIRef": {}}, "activeDocOpenAPIRef.*oneOf"),
    (
        ACTIVE_DOC,
        {"name": "x", "systemName": "Upper", "activeDocOpenAPIRef": {"url": "http://x"}},
        "systemName: Invalid",
    ),
    (OPEN_API, {"openapiRef": {"url": "http://x", "secretRef": {"name": "a"}}}, "openapiRef.*oneOf"),
    (
        DEVELOPER_USER,
        {"username": "a", "email": "b", "passwordCredentialsRef": {}, "developerAccountRef": {}, "role": "king"},
        "role: Unsupported",
    ),
]


@pytest.fixture(scope="session")
async def kube(deployment: Deployment) -> AsyncIterator[KubeApi]:
    async with definitions_served(deployment) as api:
        yield api


@pytest.mark.parametrize("kind", CUSTOM_KINDS, ids=lambda kind: kind.name)
async def test_the_api_server_accepts_the_definition_of_a_3scale_kind(kube: KubeApi, kind: Kind) -> None:
    stored = await kube.get(CUSTOM_RESOURCE_DEFINITION, "", f"{kind.plural}.{kind.group}")
    conditions = true_conditions(stored)
    assert {"Established", "NamesAccepted"} <= conditions
    assert "NonStructuralSchema" not in conditions
    (sent,), (kept,) = crd_of(MODELS[kind.name], DEFAULT)["spec"]["versions"], stored["spec"]["versions"]  # type: ignore[index]
    assert kept["schema"] == sent["schema"]


@pytest.mark.parametrize("name", sorted(OBJECTS))
async def test_what_users_of_the_operator_write_is_stored_and_read_unchanged(kube: KubeApi, name: str) -> None:
    kind, written = OBJECTS[name]
    stored = await store(kube, kind, name, written)
    assert (stored["spec"], stored["status"]) == (written["spec"], written["status"])
    found = read(MODELS[kind.name], stored)
    assert not isinstance(found, Malformed)
    again = found.model_dump(mode="json", exclude_unset=True)
    assert (again["spec"], again["status"]) == (written["spec"], written["status"])


@pytest.mark.parametrize(("kind", "spec", "complaint"), REFUSED, ids=lambda value: str(value)[:60])
async def test_a_3scale_kind_is_refused_as_ever(kube: KubeApi, kind: Kind, spec: Json, complaint: str) -> None:
    await remove(kube, kind, "refused")
    with pytest.raises(Invalid, match=complaint):
        await kube.create(kind, {"metadata": {"name": "refused"}, "spec": spec}, NAMESPACE_NAME)


async def test_what_a_definition_does_not_know_is_pruned_and_not_refused(kube: KubeApi) -> None:
    spec = {"name": "x", "providerAccountRef": {"name": "a", "namespace": "b"}, "unknown": 1}
    stored = await store(kube, PRODUCT, "pruned", {"spec": spec, "policies": []})

    assert "policies" not in stored
    assert stored["spec"] == {"name": "x", "providerAccountRef": {"name": "a"}}


async def test_a_system_name_is_given_once_and_never_changed(kube: KubeApi) -> None:
    spec = {"name": "x", "privateBaseURL": "https://x"}
    await store(kube, BACKEND, "named", {"spec": spec})
    await kube.patch(BACKEND, NAMESPACE_NAME, "named", {"spec": {"systemName": "one"}})

    with pytest.raises(Invalid, match="SystemName is immutable"):
        await kube.patch(BACKEND, NAMESPACE_NAME, "named", {"spec": {"systemName": "two"}})


async def test_an_application_never_changes_its_account(kube: KubeApi) -> None:
    await store(kube, APPLICATION, "moving", {"spec": OBJECTS["application"][1]["spec"]})

    with pytest.raises(Invalid, match="AccountCR reference is immutable once set"):
        await kube.patch(APPLICATION, NAMESPACE_NAME, "moving", {"spec": {"accountCR": {"name": "other"}}})
