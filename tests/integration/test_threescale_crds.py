"""The definitions of the 3scale area on a real API server, with objects as users of the operator write them."""

from __future__ import annotations

from typing import Any

import pytest
from crd_lab import NAMESPACE_NAME, assert_refused, assert_stored, kube, store, written_objects

from domain.identity import Kind
from domain.threescale import ACTIVE_DOC, APPLICATION, BACKEND, DEVELOPER_USER, OPEN_API, PRODUCT
from engine.errors import Invalid
from engine.kube import KubeApi

__all__ = ["kube"]  # the fixture
pytestmark = pytest.mark.integration

Json = dict[str, Any]
OBJECTS = written_objects("threescale")

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


@pytest.mark.parametrize("name", sorted(OBJECTS))
async def test_objects_of_the_operators_users_are_stored_and_read_unchanged(kube: KubeApi, name: str) -> None:
    await assert_stored(kube, *OBJECTS[name])


@pytest.mark.parametrize(("kind", "spec", "complaint"), REFUSED, ids=lambda value: str(value)[:60])
async def test_a_3scale_kind_is_refused_as_ever(kube: KubeApi, kind: Kind, spec: Json, complaint: str) -> None:
    await assert_refused(kube, kind, spec, complaint)


async def test_unknown_fields_are_pruned_and_not_refused(kube: KubeApi) -> None:
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
