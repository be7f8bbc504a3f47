"""The models and definitions of the 3scale area, held against what clients of the operator see of its definitions.

The tables here are written from the replaced system's public schemas, not from the models. In a sketch `!` marks
required fields, `=` a default, `*` schemas that preserve unknown fields, and brackets what else the schema asks.
"""

from __future__ import annotations

from typing import Any

import definitions
import pytest
from definitions import CRDS, Json, columns_of, schema_of, sketch, version_of
from openapi_schema_validator import OAS30Validator

from domain.reading import Malformed, read
from domain.threescale import CUSTOM_KINDS
from domain.threescale.resources import DeveloperUser, Product

URL = r"string[^https?:\/\/.*$]"
MONEY = r"string[^\d+(\.\d{2})?$]"
SECRET = "{name: string, namespace: string}"
LOCAL = "{name: string}"
OBJECT = (
    "{apiVersion: string, fieldPath: string, kind: string, name: string, namespace: string, resourceVersion: string, "
    "uid: string}"
)
DOCUMENT = f"{{secretRef: {OBJECT}, url: {URL}}}"
CREDENTIALS = "string[headers|query|authorization]"
SECURITY = "{hostHeader: string, secretToken: string}"
RESPONSE = (
    "{errorAuthFailed: string, errorAuthMissing: string, errorHeadersAuthFailed: string, "
    "errorHeadersAuthMissing: string, errorHeadersLimitsExceeded: string, errorHeadersNoMatch: string, "
    "errorLimitsExceeded: string, errorNoMatch: string, errorStatusAuthFailed: int32, errorStatusAuthMissing: int32, "
    "errorStatusLimitsExceeded: int32, errorStatusNoMatch: int32}"
)
FLOW = (
    "{directAccessGrantsEnabled!: boolean, implicitFlowEnabled!: boolean, serviceAccountsEnabled!: boolean, "
    "standardFlowEnabled!: boolean}"
)
OIDC = (
    f"{{authenticationFlow: {FLOW}, credentials: {CREDENTIALS}, gatewayResponse: {RESPONSE}, issuerEndpoint: string, "
    f"issuerEndpointRef: {SECRET}, issuerType!: string[keycloak|rest], jwtClaimWithClientID: string, "
    f"jwtClaimWithClientIDType: string[plain|liquid], security: {SECURITY}}}"
)
AUTHENTICATION = (
    f"{{appKeyAppID: {{appID: string, appKey: string, credentials: {CREDENTIALS}, gatewayResponse: {RESPONSE}, "
    f"security: {SECURITY}}}, oidc: {OIDC}, userkey: {{authUserKey: string, credentials: {CREDENTIALS}, "
    f"gatewayResponse: {RESPONSE}, security: {SECURITY}}}}}"
)
METHODS = "map<{description: string, friendlyName!: string}>"
METRICS = "map<{description: string, friendlyName!: string, unit!: string}>"
RULES = (
    "list<{httpMethod!: string[GET|HEAD|POST|PUT|DELETE|OPTIONS|TRACE|PATCH|CONNECT], increment!: integer, "
    "last: boolean, metricMethodRef!: string, pattern!: string}>"
)
REFERENCE = "{backend: string, systemName!: string}"
PLANS = (
    f"map<{{appsRequireApproval: boolean, costMonth: {MONEY}, limits: list<{{metricMethodRef!: {REFERENCE}, "
    "period!: string[eternity|year|month|week|day|hour|minute], value!: integer}>, name: string, "
    f"pricingRules: list<{{from!: integer, metricMethodRef!: {REFERENCE}, pricePerUnit!: {MONEY}, to!: integer}}>, "
    f"published: boolean, setupFee: {MONEY}, trialPeriod: integer[>=0]}}>"
)
POLICIES = f"list<{{configuration: *, configurationRef: {SECRET}, enabled!: boolean, name!: string, version!: string}}>"
SPECS = {
    "Product": (
        f"{{applicationPlans: {PLANS}, backendUsages: map<{{path!: string}}>, deployment: {{apicastHosted: "
        f"{{authentication: {AUTHENTICATION}}}, apicastSelfManaged: {{authentication: {AUTHENTICATION}, "
        f"productionPublicBaseURL: {URL}, stagingPublicBaseURL: {URL}}}}}, description: string, "
        f"mappingRules: {RULES}, methods: {METHODS}, metrics: {METRICS}, name!: string, policies: {POLICIES}, "
        f"providerAccountRef: {LOCAL}, systemName: string}}"
    ),
    "Backend": (
        f"{{description: string, mappingRules: {RULES}, methods: {METHODS}, metrics: {METRICS}, name!: string, "
        rf"privateBaseURL!: string[^(https?|wss?):\/\/.*$], providerAccountRef: {LOCAL}, systemName: string}}"
    ),
    "ActiveDoc": (
        f"{{activeDocOpenAPIRef!: {DOCUMENT}, description: string, name!: string, productSystemName: string, "
        f"providerAccountRef: {LOCAL}, published: boolean, skipSwaggerValidations: boolean, "
        "systemName: string[^[a-z0-9]+$]}"
    ),
    "OpenAPI": (
        f"{{oidc: {OIDC}, openapiRef!: {DOCUMENT}, prefixMatching: boolean, privateAPIHostHeader: string, "
        f"privateAPISecretToken: string, privateBaseURL: string, productSystemName: string, "
        f"productionPublicBaseURL: {URL}, providerAccountRef: {LOCAL}, stagingPublicBaseURL: {URL}}}"
    ),
    "DeveloperAccount": (
        f"{{monthlyBillingEnabled: boolean, monthlyChargingEnabled: boolean, orgName!: string, "
        f"providerAccountRef: {LOCAL}}}"
    ),
    "DeveloperUser": (
        f"{{developerAccountRef!: {LOCAL}, email!: string, passwordCredentialsRef!: {SECRET}, "
        f"providerAccountRef: {LOCAL}, role: string[admin|member], suspended: boolean, username!: string}}"
    ),
    "Application": (
        f"{{accountCR!: {LOCAL}, applicationPlanName!: string, authSecretRef: {LOCAL}, description!: string, "
        f"name!: string, productCR!: {LOCAL}, suspend: boolean}}"
    ),
    "ApplicationAuth": (
        f"{{applicationCRName!: string, authSecretRef!: {LOCAL}, generateSecret: boolean, providerAccountRef: {LOCAL}}}"
    ),
    "CustomPolicyDefinition": (
        f"{{name!: string, providerAccountRef: {LOCAL}, schema!: {{$schema!: string, configuration!: *, "
        "description: list<string>, name!: string, summary!: string, version!: string}, version!: string}"
    ),
    "ProxyConfigPromote": "{deleteCR: boolean, productCRName!: string, production: boolean}",
    "Tenant": (
        f"{{email!: string, financeSupportEmail: string, fromEmail: string, masterCredentialsRef!: {SECRET}, "
        f"organizationName!: string, passwordCredentialsRef!: {SECRET}, siteAccessCode: string, supportEmail: string, "
        f"systemMasterUrl!: string, tenantSecretRef!: {SECRET}, username!: string}}"
    ),
}
CONDITIONS = "list<{lastTransitionTime: date-time, message: string, reason: string, status!: string, type!: string}>"
COMMON = "observedGeneration: int64"
HOST = "providerAccountHost: string"
DIGESTS = "digests: {gateway: string, mended: string, production: string, synced: string}"
STATUSES = {
    "Product": (
        # `latestProductionVersion` and `digests` are Perdure's own.
        f"{{conditions: {CONDITIONS}, {DIGESTS}, latestProductionVersion: integer, {COMMON}, productId: int64, {HOST}, "
        "state: string}"
    ),
    "Backend": f"{{backendId: int64, conditions: {CONDITIONS}, {DIGESTS}, {COMMON}, {HOST}}}",
    "ActiveDoc": (
        f"{{activeDocId: int64, conditions: {CONDITIONS}, {DIGESTS}, {COMMON}, productResourceName: {LOCAL}, {HOST}}}"
    ),
    "OpenAPI": (
        f"{{backendResourceNames: list<{LOCAL}>, conditions: {CONDITIONS}, {COMMON}, productResourceName: {LOCAL}, "
        f"{HOST}}}"
    ),
    "DeveloperAccount": (
        f"{{accountID: int64, accountState: string, conditions: {CONDITIONS}, creditCardStored: boolean, "
        f"{DIGESTS}, {COMMON}, {HOST}}}"
    ),
    "DeveloperUser": (
        f"{{accoundID: int64, conditions: {CONDITIONS}, developerUserID: int64, developerUserState: string, "
        f"{DIGESTS}, {COMMON}, {HOST}}}"
    ),
    "Application": f"{{applicationID: int64, conditions: {CONDITIONS}, {DIGESTS}, {COMMON}, {HOST}, state: string}}",
    "ApplicationAuth": f"{{conditions: {CONDITIONS}}}",
    "CustomPolicyDefinition": f"{{conditions: {CONDITIONS}, {DIGESTS}, {COMMON}, policyID: int64, {HOST}}}",
    "ProxyConfigPromote": (
        f"{{conditions: {CONDITIONS}, latestProductionVersion: integer, latestStagingVersion: integer, "
        "productId: string}"
    ),
    "Tenant": f"{{adminId: int64, conditions: {CONDITIONS}, {DIGESTS}, tenantId: int64}}",
}
READY = 'Ready string .status.conditions[?(@.type=="Ready")].status'
ACCOUNT = "Provider Account string .status.providerAccountHost"
COLUMNS = {
    "ActiveDoc": f"{ACCOUNT}; {READY}; 3scale ID integer .status.activeDocId",
    "CustomPolicyDefinition": f"{ACCOUNT}; {READY}; 3scale ID integer .status.policyID",
}
FINALIZERS = {
    "Product": "product.capabilities.3scale.net/finalizer",
    "Backend": "backend.capabilities.3scale.net/finalizer",
    "DeveloperAccount": "developeraccount.capabilities.3scale.net/finalizer",
    "DeveloperUser": "developeruser.capabilities.3scale.net/finalizer",
    "Application": "application.capabilities.3scale.net/finalizer",
    "Tenant": "tenant.capabilities.3scale.net/finalizer",
}
KINDS_BY_NAME = sorted(SPECS)
MODELS = {kind.name: definitions.MODELS[kind.name] for kind in CUSTOM_KINDS}

OBJECTS = {obj["kind"]: obj for obj in definitions.samples("threescale").values()}


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_the_spec_of_a_3scale_kind_has_the_fields_clients_know(kind: str) -> None:
    assert sketch(schema_of(kind)["properties"]["spec"]) == SPECS[kind]


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_the_status_of_a_3scale_kind_has_the_fields_clients_know(kind: str) -> None:
    assert sketch(schema_of(kind)["properties"]["status"]) == STATUSES[kind]


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_kubectl_get_shows_the_known_columns_of_3scale_kinds(kind: str) -> None:
    assert columns_of(kind) == COLUMNS.get(kind, "")


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_a_3scale_kind_is_served_under_its_known_names_only(kind: str) -> None:
    names = CRDS[kind]["spec"]["names"]

    assert CRDS[kind]["metadata"]["name"] == f"{kind.lower()}s.capabilities.3scale.net"
    assert names == {"kind": kind, "listKind": f"{kind}List", "plural": f"{kind.lower()}s", "singular": kind.lower()}
    assert version_of(kind)["name"] == ("v1alpha1" if kind == "Tenant" else "v1beta1")
    assert version_of(kind)["subresources"] == {"status": {}}


def test_every_kind_of_the_3scale_area_has_a_definition() -> None:
    assert {kind.name: kind for kind in CUSTOM_KINDS} == {name: model.kind_of for name, model in MODELS.items()}
    assert set(MODELS) == set(SPECS) == set(STATUSES) == set(OBJECTS)


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_objects_of_the_operators_users_are_read_and_written_unchanged(kind: str) -> None:
    written = OBJECTS[kind]
    found = read(MODELS[kind], written)

    assert not isinstance(found, Malformed)
    again = found.model_dump(mode="json", exclude_unset=True)
    assert (again["spec"], again["status"]) == (written["spec"], written["status"])


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_objects_of_the_operators_users_fit_the_definition(kind: str) -> None:
    OAS30Validator(schema_of(kind)).validate(OBJECTS[kind])


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("Product", {"deployment": {}}),
        ("Product", {"deployment": {"apicastHosted": {}, "apicastSelfManaged": {}}}),
        ("Product", {"deployment": {"apicastHosted": {"authentication": {}}}}),
        ("Product", {"name": None}),
        ("Product", {"applicationPlans": {"a": {"setupFee": "15.4"}}}),
        ("Backend", {"privateBaseURL": "ftp://x"}),
        ("ActiveDoc", {"activeDocOpenAPIRef": {}}),
        ("ActiveDoc", {"systemName": "Upper"}),
        ("OpenAPI", {"openapiRef": {"url": "http://x", "secretRef": {"name": "a"}}}),
        ("DeveloperUser", {"role": "king"}),
    ],
)
def test_objects_that_the_operators_definitions_refuse_are_refused(kind: str, change: Json) -> None:
    spec = {name: value for name, value in {**OBJECTS[kind]["spec"], **change}.items() if value is not None}

    assert list(OAS30Validator(schema_of(kind)).iter_errors({**OBJECTS[kind], "spec": spec}))


def test_finalizers_are_the_operators_own_where_it_has_one() -> None:
    theirs = {kind.name: kind.finalizer for kind in CUSTOM_KINDS if kind.finalizer}

    assert {name: theirs.pop(name) for name in FINALIZERS} == FINALIZERS
    assert set(theirs) == {"ActiveDoc", "CustomPolicyDefinition", "OpenAPI"}
    assert all(finalizer.startswith("perdure.dev/") for finalizer in theirs.values())


def one_of(*names: str) -> list[dict[str, list[str]]]:
    return [{"required": [name]} for name in names]


def field(kind: str, *path: str) -> Any:
    found = schema_of(kind)["properties"]["spec"]
    for name in path:
        found = found["properties"][name]
    return found


def test_of_alternatives_exactly_one_is_given() -> None:
    assert field("Product", "deployment")["oneOf"] == one_of("apicastHosted", "apicastSelfManaged")
    for option in ("apicastHosted", "apicastSelfManaged"):
        authentication = field("Product", "deployment", option, "authentication")
        assert authentication["oneOf"] == one_of("userkey", "appKeyAppID", "oidc")
    assert field("ActiveDoc", "activeDocOpenAPIRef")["oneOf"] == one_of("secretRef", "url")
    assert field("OpenAPI", "openapiRef")["oneOf"] == one_of("secretRef", "url")


def test_an_immutable_value_is_never_changed() -> None:
    def rules(*path: str) -> Any:
        return field(*path)["x-kubernetes-validations"]

    once_made = "oldSelf == '' || self == oldSelf"
    assert rules("Backend", "systemName") == [{"message": "SystemName is immutable", "rule": once_made}]
    message = "AccountCR reference is immutable once set"
    assert rules("Application", "accountCR") == [{"message": message, "rule": "self == oldSelf"}]


def test_unknown_fields_of_clients_are_ignored() -> None:
    sent = {
        "spec": {"name": "x", "providerAccountRef": {"name": "s", "namespace": "n"}, "policies": []},
        "policies": [],
    }
    found = read(Product, sent)

    assert not isinstance(found, Malformed)
    assert found.spec.provider_account_ref is not None


def test_the_misspelt_id_of_a_users_account_is_read_and_written() -> None:
    user = DeveloperUser.model_validate({"status": {"accoundID": 7}})

    assert user.status.account_id == 7
    assert user.status.model_dump(exclude_none=True, exclude_defaults=True) == {"accoundID": 7}


def test_an_object_names_its_remote_items_and_its_owner() -> None:
    found = MODELS["Application"].model_validate(
        {"metadata": {"namespace": "ns"}, "spec": {"accountCR": {"name": "dev"}}, "status": {"applicationID": 5}}
    )

    assert (found.owner, found.outside) == ("DeveloperAccount/ns/dev", ("3scale application 5",))
