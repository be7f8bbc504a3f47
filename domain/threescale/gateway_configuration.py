"""A product's gateway configuration: address, authentication, error responses, policies, flows.

Only fields set in the custom resource are compared; other fields keep their values in 3scale. `with_secrets` inserts
values from Secrets (an issuer's address, a policy's configuration) before the comparison.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from domain.schema import Json
from domain.threescale.calls import SecretKey
from domain.threescale.normalize import same_address, same_text
from domain.threescale.resources.product import AppKeyAppId, Authentication, Deployment, ProductSpec, UserKey
from domain.threescale.resources.shared import OpenIdConnect, Policy, SecretReference
from domain.threescale.spec_validation import Fault
from domain.writes import merge

ISSUER_KEY = "issuerEndpoint"
CONFIGURATION_KEY = "configuration"
_ADDRESSES = ("endpoint", "sandbox_endpoint")


def backend_version(deployment: Deployment | None) -> str | None:
    """3scale's code for the authentication of callers; None leaves 3scale's setting unchanged."""
    authentication = deployment.authentication if deployment else None
    if authentication is None:
        return None
    if authentication.oidc:
        return "oidc"
    return "2" if authentication.app_key_app_id else "1"


def deployment_option(deployment: Deployment | None) -> str | None:
    """3scale's code for where the gateway runs; None leaves 3scale's setting unchanged."""
    if deployment is None:
        return None
    return "self_managed" if deployment.apicast_self_managed else "hosted"


def proxy_fields(deployment: Deployment | None) -> dict[str, Json]:
    if deployment is None:
        return {}
    fields: dict[str, Json] = {}
    if deployment.apicast_self_managed:
        fields["endpoint"] = deployment.apicast_self_managed.production_public_base_url
        fields["sandbox_endpoint"] = deployment.apicast_self_managed.staging_public_base_url
    if deployment.authentication:
        fields |= _authentication(deployment.authentication)
    return {name: value for name, value in fields.items() if value is not None}


def differing_proxy(wanted: Mapping[str, Json], found: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in wanted.items() if not _same(name, value, found.get(name))}


def flows(deployment: Deployment | None) -> dict[str, Json]:
    authentication = deployment.authentication if deployment else None
    oidc = authentication.oidc if authentication else None
    return dict(oidc.authentication_flow.model_dump(by_alias=False)) if oidc and oidc.authentication_flow else {}


def secrets_of(spec: ProductSpec, namespace: str) -> tuple[SecretKey, ...]:
    wanted = [_key(policy.configuration_ref, namespace, CONFIGURATION_KEY) for policy in spec.policies if _open(policy)]
    oidc = _oidc(spec)
    if oidc and not oidc.issuer_endpoint and oidc.issuer_endpoint_ref:
        wanted.append(_key(oidc.issuer_endpoint_ref, namespace, ISSUER_KEY))
    return tuple(each for each in wanted if each is not None)


def with_secrets(
    spec: ProductSpec, namespace: str, value: Callable[[SecretKey], str | None]
) -> tuple[ProductSpec, tuple[Fault, ...]]:
    faults: list[Fault] = []
    policies = []
    for index, policy in enumerate(spec.policies):
        path = f"spec.policies[{index}].configurationRef"
        key = _key(policy.configuration_ref, namespace, CONFIGURATION_KEY) if _open(policy) else None
        configuration = _configuration(path, value(key), faults) if key else policy.configuration
        policies.append(policy.model_copy(update={"configuration": configuration or {}}))
    filled = spec.model_copy(update={"policies": tuple(policies)})
    oidc = _oidc(spec)
    if oidc is None or oidc.issuer_endpoint:
        return filled, tuple(faults)
    key = _key(oidc.issuer_endpoint_ref, namespace, ISSUER_KEY)
    issuer = value(key) if key else None
    if not issuer:
        detail = "no issuer endpoint found, neither in the spec nor in a Secret"
        path = "spec.deployment.authentication.oidc.issuerEndpoint"
        return filled, (*faults, Fault(path=path, value="", detail=detail))
    return _with_issuer(filled, issuer), tuple(faults)


def _authentication(chosen: Authentication) -> dict[str, Json]:
    one: UserKey | AppKeyAppId | OpenIdConnect | None = chosen.oidc or chosen.app_key_app_id or chosen.userkey
    if one is None:
        return {}
    fields: dict[str, Json] = {"credentials_location": one.credentials}
    if one.security:
        fields |= {"hostname_rewrite": one.security.host_header, "secret_token": one.security.secret_token}
    if one.gateway_response:
        fields |= one.gateway_response.model_dump(by_alias=False)
    if isinstance(one, UserKey):
        fields["auth_user_key"] = one.auth_user_key
    elif isinstance(one, AppKeyAppId):
        fields |= {"auth_app_id": one.app_id, "auth_app_key": one.app_key}
    else:
        fields |= {
            "oidc_issuer_type": one.issuer_type or None,
            "oidc_issuer_endpoint": one.issuer_endpoint,
            "jwt_claim_with_client_id": one.jwt_claim_with_client_id,
            "jwt_claim_with_client_id_type": one.jwt_claim_with_client_id_type,
        }
    return fields


def _same(name: str, wanted: Json, found: Json) -> bool:
    if name in _ADDRESSES:
        return same_address(str(wanted), str(found or ""))
    return same_text(str(wanted), "" if found is None else str(found))


def _oidc(spec: ProductSpec) -> OpenIdConnect | None:
    authentication = spec.deployment.authentication if spec.deployment else None
    return authentication.oidc if authentication else None


def _open(policy: Policy) -> bool:
    return not policy.configuration and policy.configuration_ref is not None


def _key(reference: SecretReference | None, namespace: str, key: str) -> SecretKey | None:
    if reference is None or not reference.name:
        return None
    return SecretKey(namespace=reference.namespace or namespace, name=reference.name, key=key)


def _configuration(path: str, text: str | None, faults: list[Fault]) -> dict[str, Json] | None:
    if text is None:
        faults.append(Fault(path=path, value=CONFIGURATION_KEY, detail="Secret or key not found"))
        return None
    try:
        read = json.loads(text)
    except ValueError:
        read = None
    if not isinstance(read, dict):
        faults.append(Fault(path=path, value=CONFIGURATION_KEY, detail="the configuration is not a JSON object"))
        return None
    return read


def _with_issuer(spec: ProductSpec, issuer: str) -> ProductSpec:
    gateway = "apicastHosted" if spec.deployment and spec.deployment.apicast_hosted else "apicastSelfManaged"
    patch = {"deployment": {gateway: {"authentication": {"oidc": {"issuerEndpoint": issuer}}}}}
    return ProductSpec.model_validate(merge(spec.model_dump(mode="json"), patch))
