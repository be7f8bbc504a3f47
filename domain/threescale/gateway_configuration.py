"""A product's gateway configuration: address, authentication, error responses, policies, flows.

Only fields set in the custom resource, or in its Secrets (`issuer_and_policy_secrets.py`), are compared; other fields
keep their values in 3scale.
"""

from __future__ import annotations

from collections.abc import Mapping

from domain.schema import Json
from domain.threescale.normalize import same_address, same_text
from domain.threescale.resources.product import AppKeyAppId, Authentication, Deployment, UserKey
from domain.threescale.resources.shared import OpenIdConnect

_ADDRESSES = ("endpoint", "sandbox_endpoint")


def backend_version(deployment: Deployment | None) -> str | None:
    """3scale's code for the authentication of callers; None leaves 3scale's setting unchanged."""
    authentication = deployment.authentication if deployment else None
    if authentication is None:
        return None
    if authentication.oidc:
        return "oidc"
    return "2" if authentication.app_key_app_id else "1" if authentication.userkey else None


def deployment_option(deployment: Deployment | None) -> str | None:
    """3scale's code for where the gateway runs; None leaves 3scale's setting unchanged."""
    if deployment is None:
        return None
    return "self_managed" if deployment.apicast_self_managed else "hosted" if deployment.apicast_hosted else None


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
    # The proxy of a new product is unread and has 3scale's defaults.
    return {name: value for name, value in wanted.items() if not found or not _same(name, value, found.get(name))}


def flows(deployment: Deployment | None) -> dict[str, Json]:
    authentication = deployment.authentication if deployment else None
    oidc = authentication.oidc if authentication else None
    return dict(oidc.authentication_flow.model_dump(by_alias=False)) if oidc and oidc.authentication_flow else {}


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
