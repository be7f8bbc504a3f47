"""OpenAPI: which Product and Backend a document becomes, and the object's state until they are in 3scale."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
import yaml
from threescale_objects import NO_ACCOUNT, NOW, Requested, after, decided, message, metadata, refusal, states

from domain.refusal import ErrorType
from domain.threescale import OPEN_API
from domain.threescale.auto_promotion import PROMOTE
from domain.threescale.calls import Resource
from domain.threescale.deletion import RETAIN
from domain.threescale.document_sources import Text, text_at, text_in_secret
from domain.threescale.open_api import SOURCE_UID, LabelSource, SourceSecret
from domain.threescale.open_api_authentication import FLOWS_OF_DOCUMENT, NO_SECURITY
from domain.threescale.open_api_document import Unreadable, read_api
from domain.threescale.open_api_generated import Generated, generate
from domain.threescale.reference_names import known_as, refers_to
from domain.threescale.resources import Backend, OpenApi, Product
from domain.writes import merge

ISSUER = {"issuerType": "keycloak", "issuerEndpoint": "https://id.example.com/realm"}
HITS = {"friendlyName": "Hits", "unit": "hit", "description": "Number of API hits"}
APICAST = {"name": "apicast", "version": "builtin", "enabled": True, "configuration": {}}
GOING = {"deletionTimestamp": NOW.isoformat()}
ANSWERS = {"responses": {"200": {"description": "ok"}}}
PATHS: dict[str, Any] = {
    "/pets/{id}": {"get": {**ANSWERS, "operationId": "showPet", "description": "One pet."}},
    "/pets": {"post": dict(ANSWERS), "get": {**ANSWERS, "operationId": "list-Pets"}},
}


def document(**more: Any) -> dict[str, Any]:
    return {
        "openapi": "3.0.2",
        "info": {"title": "Pet Store (new)", "version": "1.0.0", "description": "Pets."},
        "servers": [{"url": "https://pets.example.com:8443/v1/"}, {"url": "https://other.example.com"}],
        "paths": PATHS,
        **more,
    }


def open_api(meta: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **spec: Any) -> OpenApi:
    reference = {"secretRef": {"name": "pets"}}
    return OpenApi.model_validate(
        {
            "metadata": metadata("pets", OPEN_API.finalizer, **{"uid": "u-1", **(meta or {})}),
            "spec": {"openapiRef": reference, **spec},
            "status": status or {},
        }
    )


def generated(content: dict[str, Any] | None = None, **spec: Any) -> Generated:
    return generate(open_api(**spec).spec, read_api(yaml.safe_dump(content or document())), "u-1")


def spec_of(made: Any) -> Any:
    return made.model_dump(mode="json", exclude_none=True)


def test_a_document_becomes_a_product_and_a_backend_with_the_known_names() -> None:
    found = generated()

    assert found.name == "petstorenew-u-1"
    assert spec_of(found.backend) == {
        "name": "Pet Store (new) Backend",
        "systemName": "Pet_Store__new_",
        "privateBaseURL": "https://pets.example.com:8443",
        "description": "Backend of Pet Store (new)",
        "mappingRules": [],
        "methods": {},
        "metrics": {"hits": HITS},
    }
    assert spec_of(found.product) == {
        "name": "Pet Store (new)",
        "systemName": "Pet_Store__new_",
        "description": "Pets.",
        "deployment": {"apicastHosted": {"authentication": {"userkey": {}}}},
        "metrics": {"hits": HITS},
        "methods": {
            "list_pets": {"friendlyName": "list-Pets"},
            "postpets": {"friendlyName": "POSTpets"},
            "showpet": {"friendlyName": "showPet", "description": "One pet."},
        },
        "mappingRules": [
            {"httpMethod": "GET", "pattern": "/v1/pets$", "metricMethodRef": "list_pets", "increment": 1},
            {"httpMethod": "POST", "pattern": "/v1/pets$", "metricMethodRef": "postpets", "increment": 1},
            {"httpMethod": "GET", "pattern": "/v1/pets/{id}$", "metricMethodRef": "showpet", "increment": 1},
        ],
        "backendUsages": {"Pet_Store__new_": {"path": "/"}},
        "applicationPlans": {},
        "policies": [APICAST],
    }


def test_the_order_of_the_document_does_not_matter() -> None:
    """3scale weakness 4: rules of a document come in another order each time."""
    turned = {path: dict(reversed(item.items())) for path, item in reversed(PATHS.items())}

    assert list(turned) != list(PATHS)
    assert generated(document(paths=turned)) == generated()


def test_the_spec_of_the_object_says_what_the_document_cannot() -> None:
    found = generated(
        productSystemName="pets",
        privateBaseURL="http://pets.shop.svc",
        prefixMatching=True,
        stagingPublicBaseURL="https://staging.example.com",
        privateAPIHostHeader="pets",
        privateAPISecretToken="t0k",
        providerAccountRef={"name": "tenant"},
    )
    product = spec_of(found.product)

    assert (found.backend.system_name, product["systemName"]) == ("pets", "pets")
    assert found.backend.private_base_url == "http://pets.shop.svc"
    assert [each["pattern"] for each in product["mappingRules"]] == ["/v1/pets", "/v1/pets", "/v1/pets/{id}"]
    assert product["deployment"] == {
        "apicastSelfManaged": {
            "stagingPublicBaseURL": "https://staging.example.com",
            "authentication": {"userkey": {"security": {"hostHeader": "pets", "secretToken": "t0k"}}},
        }
    }
    assert product["providerAccountRef"] == {"name": "tenant"}
    assert spec_of(found.backend)["providerAccountRef"] == {"name": "tenant"}


@pytest.mark.parametrize(
    ("servers", "address", "pattern"),
    [
        ([], "https://", "/pets$"),
        ([{"url": "/v2"}], "https://", "/v2/pets$"),
        ([{"url": "http://jane:x@a.example.com"}], "http://a.example.com", "/pets$"),
        (
            [
                {
                    "url": "{s}://{h}/{v}",
                    "variables": {"s": {"default": "ws"}, "h": {"default": "b:1"}, "v": {"default": "x"}},
                }
            ],
            "ws://b:1",
            "/x/pets$",
        ),
    ],
    ids=["none", "a path", "with a user", "variables"],
)
def test_the_first_server_says_where_the_backend_is(servers: list[Any], address: str, pattern: str) -> None:
    found = generated(document(servers=servers))

    assert (found.backend.private_base_url, found.product.mapping_rules[0].pattern) == (address, pattern)


def schemes(scheme: dict[str, Any]) -> dict[str, Any]:
    return document(security=[{"it": []}], components={"securitySchemes": {"it": scheme}})


@pytest.mark.parametrize(
    ("scheme", "key"),
    [
        ({"type": "apiKey", "name": "key", "in": "query"}, {"authUserKey": "key", "credentials": "query"}),
        ({"type": "apiKey", "name": "X-Key", "in": "header"}, {"authUserKey": "X-Key", "credentials": "headers"}),
        ({"type": "apiKey", "name": "key", "in": "cookie"}, {"authUserKey": "key"}),
    ],
    ids=["query", "header", "cookie"],
)
def test_a_key_in_the_document_is_a_user_key(scheme: dict[str, Any], key: dict[str, Any]) -> None:
    deployment = spec_of(generated(schemes(scheme)).product)["deployment"]

    assert deployment == {"apicastHosted": {"authentication": {"userkey": key}}}


ALL_FLOWS = {
    "standardFlowEnabled": True,
    "implicitFlowEnabled": True,
    "serviceAccountsEnabled": True,
    "directAccessGrantsEnabled": True,
}
NO_FLOWS = dict.fromkeys(ALL_FLOWS, False)
OAUTH = {"type": "oauth2", "flows": {"implicit": {}, "clientCredentials": {}}}


@pytest.mark.parametrize(
    ("scheme", "fields", "flows", "warnings"),
    [
        ({"type": "openIdConnect"}, {}, NO_FLOWS, ()),
        ({"type": "openIdConnect"}, {"authenticationFlow": ALL_FLOWS}, ALL_FLOWS, ()),
        (OAUTH, {}, {**NO_FLOWS, "implicitFlowEnabled": True, "serviceAccountsEnabled": True}, ()),
        (
            OAUTH,
            {"authenticationFlow": ALL_FLOWS},
            {**NO_FLOWS, "implicitFlowEnabled": True, "serviceAccountsEnabled": True},
            (FLOWS_OF_DOCUMENT,),
        ),
    ],
    ids=["no flows", "the object's flows", "the document's flows", "the document's before the object's"],
)
def test_tokens_of_an_issuer_are_taken_in_the_flows_that_are_said(
    scheme: dict[str, Any], fields: dict[str, Any], flows: dict[str, Any], warnings: tuple[str, ...]
) -> None:
    found = generated(schemes(scheme), oidc={**ISSUER, "jwtClaimWithClientID": "azp", **fields})

    assert found.warnings == warnings
    assert spec_of(found.product)["deployment"]["apicastHosted"]["authentication"]["oidc"] == {
        **ISSUER,
        "jwtClaimWithClientID": "azp",
        "authenticationFlow": flows,
        "credentials": "headers",
    }


def test_an_issuer_without_a_security_requirement_is_left_aside_with_a_warning() -> None:
    found = generated(oidc=ISSUER)

    assert found.warnings == (NO_SECURITY,)
    assert spec_of(found.product)["deployment"] == {"apicastHosted": {"authentication": {"userkey": {}}}}


def test_extensions_say_what_is_3scales_own() -> None:
    plan = {"published": True, "setupFee": "20", "limits": []}
    extension: dict[str, Any] = {
        "metrics": {"bytes": {"friendlyName": "Bytes", "unit": "byte"}},
        "policies": [{"name": "cors", "version": "builtin", "enabled": True, "configuration": {"a": None}}],
        "applicationPlans": {"gold": plan},
    }
    rule = {"metricMethodRef": "bytes", "increment": 3, "last": True}
    paths = {"/a": {"get": {**ANSWERS, "operationId": "a", "x-3scale-operation": {"mappingRule": rule}}}}
    product = spec_of(generated(document(**{"x-3scale-product": extension, "paths": paths})).product)

    assert product["metrics"] == {**extension["metrics"], "hits": HITS}
    assert product["policies"] == [*extension["policies"], APICAST]
    assert product["applicationPlans"] == {"gold": {**plan, "pricingRules": []}}
    assert product["mappingRules"] == [{"httpMethod": "GET", "pattern": "/v1/a$", **rule}]
    assert product["methods"] == {"a": {"friendlyName": "a"}}


def test_operations_whose_names_make_one_system_name_share_a_method() -> None:
    paths = {
        "/pets/": {"get": dict(ANSWERS)},
        "/pets": {"get": dict(ANSWERS), "put": {**ANSWERS, "operationId": "getPets", "description": "Changes them."}},
    }
    product = spec_of(generated(document(paths=paths)).product)

    assert product["methods"] == {"getpets": {"friendlyName": "GETpets"}}
    rules = [(each["httpMethod"], each["pattern"], each["metricMethodRef"]) for each in product["mappingRules"]]
    assert rules == [
        ("GET", "/v1/pets$", "getpets"),
        ("PUT", "/v1/pets$", "getpets"),
        ("GET", "/v1/pets/$", "getpets"),
    ]


BROKEN = {
    "two requirements": (document(security=[{"a": []}, {"b": []}]), {}, "is not among the security schemes"),
    "multiple": (
        document(
            security=[{"a": [], "b": []}], components={"securitySchemes": {"a": {"type": "x"}, "b": {"type": "x"}}}
        ),
        {},
        "Invalid OAS: multiple security requirements",
    ),
    "another scheme": (schemes({"type": "http"}), {}, "Unexpected security schema type: http"),
    "no issuer said": (schemes({"type": "openIdConnect"}), {}, "spec.oidc: required"),
    "no issuer's address": (document(), {"oidc": {"issuerType": "rest"}}, "needs issuerEndpoint"),
    "no name": (document(info={"title": "!?", "version": "1"}), {}, "gives no valid object name"),
    "metric": (document(**{"x-3scale-product": {"metrics": {"a": {"unit": "x"}}}}), {}, "friendlyName and unit"),
    "policy": (document(**{"x-3scale-product": {"policies": [{"name": "a"}]}}), {}, "name and version"),
    "hits": (document(paths={"/a": {"get": {**ANSWERS, "operationId": "Hits"}}}), {}, "would be named 'hits'"),
    "one id twice": (
        document(paths={"/a": {"get": {**ANSWERS, "operationId": "x"}, "put": {**ANSWERS, "operationId": "x"}}}),
        {},
        "PUT /a and GET /a have the same operationId 'x'",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_product_that_cannot_be_made_is_reported(name: str) -> None:
    content, spec, text = BROKEN[name]
    with pytest.raises(Unreadable, match=re.escape(text)):
        generated(content, **spec)


SECRET = Text(body=yaml.safe_dump(document()), version="1")


def on(object_: OpenApi, **more: Any) -> Requested:
    return decided(object_, **{"text": SECRET, **more})


def test_a_plan_names_the_objects_that_would_be_made() -> None:
    assert [each.summary for each in on(open_api()).effects] == [
        "create Backend/petstorenew-u-1",
        "create Product/petstorenew-u-1",
    ]


def made(requested: Requested, **status: Any) -> dict[str, tuple[Any, ...]]:
    """What the API server has after the children were written."""
    models: dict[str, type[Product] | type[Backend]] = {"Product": Product, "Backend": Backend}
    objects: dict[str, tuple[Any, ...]] = {"products": (), "backends": ()}
    for child in requested.effects:
        body: Any = {**child.body, "metadata": {**metadata(child.name), **child.body["metadata"]}}  # type: ignore[dict-item]
        objects[f"{child.kind.lower()}s"] = (models[child.kind].model_validate({**body, "status": status}),)
    return objects


SYNCED = {"observedGeneration": 3, "conditions": [{"type": "Synced", "status": "True"}]}


def test_backend_and_product_are_made_and_the_object_is_ready_with_the_product() -> None:
    found = on(open_api({"annotations": {"insecure_skip_verify": "true"}}))
    assert [(each.kind, each.name) for each in found.effects] == [
        ("Backend", "petstorenew-u-1"),
        ("Product", "petstorenew-u-1"),
    ]
    body: Any = found.effects[1].body
    assert body["metadata"]["annotations"] == {"insecure_skip_verify": "true"}
    assert [(each["kind"], each["uid"], each["controller"]) for each in body["metadata"]["ownerReferences"]] == [
        ("OpenAPI", "u-1", True)
    ]
    object_ = open_api({"annotations": {"insecure_skip_verify": "true"}})
    waiting = on(object_, **made(found))
    assert (waiting.effects, states(waiting.status), waiting.waits_for) == (
        (),
        "InSync",
        ("Product/shop/petstorenew-u-1",),
    )
    ready = on(object_, **made(found, **SYNCED))

    assert states(ready.status) == "Ready"
    assert ready.status["productResourceName"] == {"name": "petstorenew-u-1"}
    assert ready.status["backendResourceNames"] == [{"name": "petstorenew-u-1"}]
    assert on(after(object_, {}, ready.status), **made(found, **SYNCED)).idle


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({**SYNCED, "observedGeneration": 2}, "InSync"),
        ({"observedGeneration": 3, "conditions": [{"type": "Failed", "status": "True", "message": "no"}]}, "Failed"),
        (
            {
                "observedGeneration": 3,
                "conditions": [{"type": "Failed", "status": "True"}, {"type": "Orphan", "status": "True"}],
            },
            "InSync",
        ),
    ],
    ids=["an older spec", "refused", "waits for its backend"],
)
def test_the_object_has_the_state_of_its_product(status: dict[str, Any], shown: str) -> None:
    assert states(on(open_api(), **made(on(open_api()), **status)).status) == shown


def test_edits_of_generated_objects_are_overruled_field_by_field() -> None:
    there = made(on(open_api()), **SYNCED)
    body = there["products"][0].model_dump(mode="json")
    body["spec"]["methods"]["mine"] = {"friendlyName": "Mine"}
    body["spec"]["mappingRules"] = []
    body["metadata"]["resourceVersion"] = "77"
    changed = Product.model_validate(body)
    (child,) = on(open_api(), backends=there["backends"], products=(changed,)).effects
    patch: Any = child.patch

    assert (child.kind, child.resource_version) == ("Product", "77")
    assert patch["spec"]["methods"] == {"mine": None}
    assert len(patch["spec"]["mappingRules"]) == 3
    assert "null" not in yaml.safe_dump(patch["spec"]["mappingRules"])
    restored = Product.model_validate(merge(changed.model_dump(mode="json"), child.patch))
    assert restored.spec == there["products"][0].spec


def test_another_title_changes_what_is_there_and_makes_nothing_new() -> None:
    there = made(on(open_api()), **SYNCED)
    other = Text(body=yaml.safe_dump(document(info={"title": "Cats", "version": "1"})), version="2")
    children = on(open_api(), text=other, **there).effects

    assert [(each.name, each.body) for each in children] == [("petstorenew-u-1", {})] * 2
    product: Any = children[1].patch
    assert product["spec"] == {"name": "Cats", "description": None}


NOTED = {"productResourceName": {"name": "newpets-u-1"}, "backendResourceNames": [{"name": "newpets-u-1"}]}


@pytest.mark.parametrize(
    ("status", "title", "name"),
    [
        (NOTED, "Third Pets", "newpets-u-1"),
        ({}, "New Pets", "newpets-u-1"),
        ({}, "Third Pets", "petstorenew-u-1"),
    ],
    ids=["named by the status", "named like the title", "the oldest"],
)
def test_of_several_products_of_a_document_the_present_one_is_used(
    status: dict[str, Any], title: str, name: str
) -> None:
    """The replaced operator makes others after a change of the title."""
    old = made(on(open_api()))
    changed = Text(body=yaml.safe_dump(document(info={"title": title, "version": "1"})))
    new = {
        kind: tuple(
            after(each, {"metadata": {"name": "newpets-u-1", "uid": "u-2", "creationTimestamp": NOW.isoformat()}})
            for each in objects
        )
        for kind, objects in old.items()
    }
    there = {kind: (*objects, *new[kind]) for kind, objects in old.items()}
    found = on(open_api(status=status), text=changed, **there)

    assert [(each.kind, each.name) for each in found.effects] == [("Backend", name), ("Product", name)]


@pytest.mark.parametrize("kind", ["Product", "Backend"])
def test_a_product_and_a_backend_with_different_system_names_are_not_combined(kind: str) -> None:
    old = made(on(open_api()))
    patch = {"metadata": {"name": "newpets-u-1", "uid": "u-2"}, "spec": {"systemName": "New_Pets"}}
    field = f"{kind.lower()}s"
    there = {**old, field: (*old[field], after(old[field][0], patch))}
    third = Text(body=yaml.safe_dump(document(info={"title": "Third Pets", "version": "1"})))
    found = on(open_api(status=NOTED), text=third, **there)
    (created,) = [each for each in found.effects if each.body]
    spec: Any = created.body["spec"]

    assert (created.kind == kind, spec["systemName"]) == (False, "New_Pets")


def test_another_system_name_is_refused() -> None:
    there = made(on(open_api()), **SYNCED)
    found = on(open_api(productSystemName="cats"), **there)

    assert (found.effects, states(found.status)) == ((), "Failed")
    assert "cannot change: create another OpenAPI" in message(found.status, "Failed")


@pytest.mark.parametrize(
    ("more", "shown", "waits_for"),
    [
        ({"provider": NO_ACCOUNT}, "Failed Orphan", ("Secret/shop/threescale-provider-account",)),
        (
            {"text": text_in_secret("spec.openapiRef", "shop", "pets", None)},
            "Failed Orphan",
            ("Secret/shop/pets",),
        ),
        (
            {"text": text_in_secret("spec.openapiRef", "shop", "pets", {"a": "", "b": ""})},
            "Invalid",
            ("Secret/shop/pets",),
        ),
        ({"text": Text(body="- 1", version="1")}, "Invalid", ()),
    ],
    ids=["no tenant", "no Secret", "two keys", "no document"],
)
def test_an_object_without_a_document_waits(more: dict[str, Any], shown: str, waits_for: tuple[str, ...]) -> None:
    found = on(open_api(), **more)

    assert (states(found.status), found.waits_for, found.effects) == (shown, waits_for, ())


def test_the_only_key_of_a_secret_is_the_document() -> None:
    assert text_in_secret("spec.openapiRef", "shop", "pets", {"x.yaml": "a"}, "3") == Text(body="a", version="3")
    wrong = text_in_secret("spec.openapiRef", "shop", "pets", {}).blocker
    assert wrong is not None
    assert wrong.message == (
        'spec.openapiRef.secretRef: Invalid value: "pets": '
        "Secret was empty or contains too many fields. Only one is required."
    )


def test_a_generated_spec_at_fault_is_reported_as_failed() -> None:
    price = {"from": 9, "to": 1, "pricePerUnit": "1", "metricMethodRef": {"systemName": "hits"}}
    extension = {"applicationPlans": {"gold": {"pricingRules": [price]}}}
    text = Text(body=yaml.safe_dump(document(**{"x-3scale-product": extension})))
    found = on(open_api(), text=text)

    assert (states(found.status), found.effects) == ("Failed", ())
    assert "'To' value cannot be less than your 'From' value." in message(found.status, "Failed")


def test_a_page_is_fetched_again_every_five_minutes_and_its_faults_are_tried_again() -> None:
    """3scale weakness 18: a page that could not be fetched once is Invalid for good."""
    paged = open_api(openapiRef={"url": "https://example.com/pets.yaml?sig=s3cret"})
    found = on(paged, text=None)
    (read,) = found.reads
    assert (read.resource, read.path) == (Resource.TEXT, "https://example.com/pets.yaml?sig=s3cret")
    assert "s3cret" not in found.why
    lost = refusal(ErrorType.UNAVAILABLE, "no answer")
    failed = on(paged, text=None, refusals={read.slot: lost})
    assert (states(failed.status), failed.deadline) == ("Failed", lost.retry_at)
    there = made(on(paged, text=text_at(SECRET.body)), **SYNCED)

    assert on(paged, text=text_at(SECRET.body), **there).deadline == NOW + timedelta(minutes=5)
    assert on(open_api(), **there).deadline is None


def test_a_refusal_of_the_api_server_is_reported_until_it_is_retried() -> None:
    refused = {"Product/petstorenew-u-1": refusal(ErrorType.INVALID, "spec.x: Unsupported value")}
    found = on(open_api(), refusals=refused)

    assert (found.effects, states(found.status)) == ((), "Invalid")
    later = {name: each.model_copy(update={"at": NOW - timedelta(hours=1)}) for name, each in refused.items()}
    assert len(on(open_api(), refusals=later).effects) == 2


def test_a_deleted_object_takes_its_product_and_then_its_backend_along() -> None:
    there = made(on(open_api()), **SYNCED)
    going = open_api(GOING)
    (first,) = on(going, **there).effects
    assert (first.kind, first.delete) == ("Product", True)
    leaving = after(there["products"][0], {"metadata": GOING})
    waiting = on(going, backends=there["backends"], products=(leaving,))
    assert (waiting.effects, waiting.waits_for) == ((), ("Product/shop/petstorenew-u-1",))
    (second,) = on(going, backends=there["backends"]).effects
    assert (second.kind, second.delete) == ("Backend", True)
    assert on(going).drops_finalizer

    remaining = on(open_api({**GOING, "finalizers": [OPEN_API.finalizer, "orphan"]}), **there)
    assert (remaining.effects, remaining.drops_finalizer) == ((), True)


def test_generated_objects_of_a_retained_object_are_retained_too() -> None:
    retained = {"annotations": {"perdure.dev/retain": "true"}}
    body: Any = on(open_api(retained)).effects[1].body

    assert body["metadata"]["annotations"]["perdure.dev/retain"] == "true"


def test_an_object_retained_just_before_its_deletion_retains_what_it_made() -> None:
    there = made(on(open_api()), **SYNCED)
    going = open_api({**GOING, "annotations": {"perdure.dev/retain": "true"}})
    (noted,) = on(going, **there).effects
    assert (noted.kind, noted.delete, noted.patch) == (
        "Product",
        False,
        {"metadata": {"annotations": {"perdure.dev/retain": "true"}}},
    )

    product = after(there["products"][0], noted.patch)
    (deleted,) = on(going, products=(product,), backends=there["backends"]).effects
    assert (deleted.kind, deleted.delete) == ("Product", True)
    (noted,) = on(going, backends=there["backends"]).effects
    assert (noted.kind, noted.delete) == ("Backend", False)


def test_a_product_with_automatic_promotion_is_reported_but_not_its_backend() -> None:
    backend, product = on(open_api({"annotations": {PROMOTE: "true"}})).effects

    assert product.body["metadata"]["annotations"][PROMOTE] == "true"  # type: ignore[index,call-overload]
    assert PROMOTE not in backend.body["metadata"]["annotations"]  # type: ignore[index,call-overload,operator]


def annotated(there: dict[str, tuple[Any, ...]], annotations: dict[str, str]) -> dict[str, tuple[Any, ...]]:
    """The generated objects after the next pass over an OpenAPI with these annotations."""
    for each in on(open_api({"annotations": annotations}), **there).effects:
        kind = f"{each.kind.lower()}s"
        there = {**there, kind: (after(there[kind][0], each.patch),)}
    return there


def test_annotations_that_a_person_removes_are_taken_back_from_the_generated_objects() -> None:
    bare = made(on(open_api()), **SYNCED)
    there = annotated(bare, {PROMOTE: "true", RETAIN: "true"})
    product, backend = (there[kind][0].metadata.annotations for kind in ("products", "backends"))
    assert (product[PROMOTE], product[RETAIN], backend[RETAIN], PROMOTE in backend) == ("true", "true", "true", False)
    assert annotated(there, {PROMOTE: "true", RETAIN: "true"}) == there
    there = annotated(there, {RETAIN: "true"})
    product = there["products"][0].metadata.annotations
    assert (PROMOTE in product, product[RETAIN]) == (False, "true")
    there = annotated(there, {})
    assert [there[kind][0].metadata.annotations for kind in there] == [
        bare[kind][0].metadata.annotations for kind in bare
    ]


def test_an_annotation_that_a_person_set_on_a_generated_object_stays() -> None:
    there = made(on(open_api()), **SYNCED)
    own = after(there["products"][0], {"metadata": {"annotations": {PROMOTE: "true"}}})
    assert on(open_api(), products=(own,), backends=there["backends"]).effects == ()


def test_an_object_and_its_secret_are_labelled_for_each_other() -> None:
    source = SourceSecret(uid="s-1")
    noted = on(open_api(), source=source)
    assert noted.patch == {"metadata": {"labels": {SOURCE_UID: "s-1"}}}

    bears_it = after(open_api(), noted.patch)
    assert on(bears_it, source=source).effects == (LabelSource(),)
    labelled = SourceSecret(uid="s-1", labelled=True)
    assert on(bears_it, source=labelled).effects

    another = SourceSecret(uid="s-2", labelled=True)
    assert on(bears_it, source=another).patch == {"metadata": {"labels": {SOURCE_UID: "s-2"}}}
    assert on(bears_it).patch == {"metadata": {"labels": {SOURCE_UID: None}}}


def test_the_first_write_has_the_finalizer_and_the_label_together() -> None:
    found = on(open_api({"finalizers": []}), source=SourceSecret(uid="s-1"))

    assert found.patch == {"metadata": {"finalizers": [OPEN_API.finalizer], "labels": {SOURCE_UID: "s-1"}}}


def test_an_object_is_woken_by_what_it_has_made() -> None:
    there = made(on(open_api()), **SYNCED)
    names = refers_to(open_api())

    assert set(known_as(there["products"][0])) & set(names)
    assert set(known_as(there["backends"][0])) & set(names)
    assert "Secret/shop/pets" in names
