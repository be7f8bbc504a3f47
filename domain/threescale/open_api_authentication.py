"""How callers authenticate, according to the OpenAPI document's security requirement."""

from __future__ import annotations

from domain.threescale.open_api_document import Api, Scheme, Unreadable
from domain.threescale.resources.documents import OpenApiSpec
from domain.threescale.resources.product import Authentication, UserKey
from domain.threescale.resources.shared import AuthenticationFlow, OpenIdConnect, Security

NO_SECURITY = "No security requirements are found in OAS"
FLOWS_OF_DOCUMENT = "OIDC flows of the spec are ignored: the OAuth 2 flows of the OAS decide"
_FLOWS = {
    "authorizationCode": "standard_flow_enabled",
    "implicit": "implicit_flow_enabled",
    "clientCredentials": "service_accounts_enabled",
    "password": "direct_access_grants_enabled",
}
_SENT_IN = {"query": "query", "header": "headers"}


def authentication_of(spec: OpenApiSpec, api: Api) -> tuple[Authentication, tuple[str, ...]]:
    if len(api.security) > 1:
        raise Unreadable("Invalid OAS: multiple security requirements")
    if spec.oidc and not spec.oidc.issuer_endpoint and not spec.oidc.issuer_endpoint_ref:
        raise Unreadable("spec.oidc: needs issuerEndpoint or issuerEndpointRef")
    security = _security(spec)
    if not api.security:
        return Authentication(userkey=UserKey(security=security)), (NO_SECURITY,) if spec.oidc else ()
    (scheme,) = api.security
    if scheme.type == "apiKey":
        credentials = _SENT_IN.get(scheme.in_)
        key = UserKey(auth_user_key=scheme.name or None, credentials=credentials, security=security)
        return Authentication(userkey=key), ()
    if scheme.type not in ("oauth2", "openIdConnect"):
        raise Unreadable(f"Unexpected security schema type: {scheme.type}")
    if spec.oidc is None:
        raise Unreadable(f"spec.oidc: required, since the document's security scheme is {scheme.type}")
    return _open_id_connect(spec.oidc, scheme, security)


def _open_id_connect(
    flows: OpenIdConnect, scheme: Scheme, security: Security | None
) -> tuple[Authentication, tuple[str, ...]]:
    flow = flows.authentication_flow or AuthenticationFlow()
    warnings: tuple[str, ...] = ()
    if scheme.type == "oauth2":
        flow = AuthenticationFlow(**{field: flow_ in scheme.flows for flow_, field in _FLOWS.items()})
        warnings = (FLOWS_OF_DOCUMENT,) if flows.authentication_flow else ()
    changed = {"authentication_flow": flow, "credentials": "headers", "security": security}
    return Authentication(oidc=flows.model_copy(update=changed)), warnings


def _security(spec: OpenApiSpec) -> Security | None:
    host, token = spec.private_api_host_header, spec.private_api_secret_token
    return Security(host_header=host, secret_token=token) if host or token else None
