"""A product's proxy: the gateway's addresses, authentication, and error responses.

Every change, even of the policy chain, deploys to the sandbox. Changed OIDC flags wait for the next deployment.
"""

from __future__ import annotations

import secrets
from http import HTTPStatus

from localcloud.threescale import addresses, answers, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes, shown
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.parameters import Parameters, as_integer
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.resources import backends, proxy_configs
from localcloud.threescale.resources.proxy_configs import APICAST
from localcloud.threescale.store import Record, Store

ROUTES = Routes()

_PATH = "/admin/api/services/{service}/proxy"
_LOCATIONS = ("headers", "query", "authorization")
_ADDRESSES = ("endpoint", "sandbox_endpoint")
_API_BACKEND = "api_backend"
_SELF_MANAGED = "self_managed"

_ERRORS: JsonObject = {
    "error_auth_failed": "Authentication failed",
    "error_auth_missing": "Authentication parameters missing",
    "error_no_match": "No Mapping Rule matched",
    "error_limits_exceeded": "Usage limit exceeded",
    "error_headers_auth_failed": "text/plain; charset=us-ascii",
    "error_headers_auth_missing": "text/plain; charset=us-ascii",
    "error_headers_no_match": "text/plain; charset=us-ascii",
    "error_headers_limits_exceeded": "text/plain; charset=us-ascii",
}
_STATUSES: JsonObject = {
    "error_status_auth_failed": 403,
    "error_status_auth_missing": 403,
    "error_status_no_match": 404,
    "error_status_limits_exceeded": 429,
}
_OIDC: JsonObject = {
    "oidc_issuer_endpoint": None,
    "oidc_issuer_type": "keycloak",
    "jwt_claim_with_client_id": None,
    "jwt_claim_with_client_id_type": None,
}
_FLOWS: JsonObject = {
    "standard_flow_enabled": True,
    "implicit_flow_enabled": False,
    "service_accounts_enabled": False,
    "direct_access_grants_enabled": False,
}
_TEXTS: JsonObject = {
    "credentials_location": "query",
    "auth_app_key": "app_key",
    "auth_app_id": "app_id",
    "auth_user_key": "user_key",
    "secret_token": None,
    "hostname_rewrite": None,
    "oauth_login_url": None,
    "api_test_path": "/",
    **_ERRORS,
    **_OIDC,
}


def of(call: Call) -> tuple[Record, Record]:
    service = call.find(tables.SERVICES, id=call.id("service"), tenant_id=call.tenant.id, deleted=None)
    return service, of_service(call.store, service)


def of_service(store: Store, service: Record) -> Record:
    found = store.find(tables.PROXIES, service_id=service.id)
    assert found is not None, f"service {service.id} has no proxy"
    return found


def establish(store: Store, tenant: Record, service: Record) -> Record:
    values: JsonObject = {
        **_TEXTS,
        **_STATUSES,
        **_FLOWS,
        **_addresses(tenant, service),
        "service_id": service.id,
        "secret_token": f"Shared_secret_sent_from_proxy_to_API_backend_{secrets.token_hex(8)}",
        "policies_config": [APICAST],
        "api_test_success": None,
        "deployed_at": None,
    }
    return store.insert(tables.PROXIES, **values)


def readdress(store: Store, tenant: Record, service: Record) -> None:
    store.update(of_service(store, service), **_addresses(tenant, service))


def show(call: Call, service: Record, proxy: Record) -> JsonObject:
    names = [name for name in _TEXTS if name not in _OIDC or service["backend_version"] == "oidc"]
    fields: JsonObject = {
        "service_id": service.id,
        **{name: proxy[name] for name in (*_ADDRESSES, "deployed_at")},
        _API_BACKEND: None,
        **{name: proxy[name] for name in names},
        **{name: proxy[name] for name in _STATUSES},
        "api_test_success": proxy["api_test_success"],
        "policies_config": proxy["policies_config"],
        "deployment_option": service["deployment_option"],
        "lock_version": proxy["lock_version"],
    }
    own = f"/admin/api/services/{service.id}/proxy"
    return shown(call, proxy, own, fields, mapping_rules=f"{own}/mapping_rules")


@ROUTES.add("GET", _PATH)
def read(call: Call) -> Answer:
    return answers.item("proxy", show(call, *of(call)))


@ROUTES.add("PUT PATCH", _PATH)
def change(call: Call) -> Answer:
    """Change the gateway's settings. `api_backend` is older than backends: it sets the address of the backend at `/`,
    and creates that backend if it is missing. In the answer `api_backend` is always null.
    """
    service, proxy = of(call)
    values = _changes(service, call.parameters.within("proxy"))
    address = values.pop(_API_BACKEND, None)
    if address:
        backends.serve_from(call.store, call.tenant, service, str(address))
    proxy = _touched(call.store, proxy, values)
    return answers.item("proxy", show(call, service, proxy_configs.deploy(call.store, service, proxy)))


@ROUTES.add("POST", f"{_PATH}/deploy")
def deploy(call: Call) -> Answer:
    service, proxy = of(call)
    proxy = proxy_configs.deploy(call.store, service, proxy)
    return Answer(HTTPStatus.CREATED, {"proxy": show(call, service, proxy)})


@ROUTES.add("GET", f"{_PATH}/oidc_configuration")
def read_flows(call: Call) -> Answer:
    return answers.item("oidc_configuration", _show_flows(of(call)[1]))


@ROUTES.add("PUT PATCH", f"{_PATH}/oidc_configuration")
def change_flows(call: Call) -> Answer:
    _, proxy = of(call)
    changes = call.parameters.within("oidc_configuration").flags(_FLOWS)
    return answers.item("oidc_configuration", _show_flows(call.store.update(proxy, **changes)))


def _show_flows(proxy: Record) -> JsonObject:
    return {"id": proxy.id, **{name: proxy[name] for name in _FLOWS}}


def _addresses(tenant: Record, service: Record) -> JsonObject:
    if service["deployment_option"] != "hosted":
        return dict.fromkeys(_ADDRESSES)
    host = f"{service.text('system_name').replace('_', '-').lower()}-{tenant.text('name')}"
    return {
        "endpoint": f"https://{host}.apicast-production.{_domain(tenant)}:443",
        "sandbox_endpoint": f"https://{host}.apicast-staging.{_domain(tenant)}:443",
    }


def _domain(tenant: Record) -> str:
    return tenant.text("host").partition(".")[2]


def _touched(store: Store, proxy: Record, values: JsonObject) -> Record:
    changed = store.update(proxy, **values)
    return changed if changed is proxy else store.update(changed, lock_version=proxy.number("lock_version") + 1)


def _changes(service: Record, sent: Parameters) -> JsonObject:
    values = sent.texts((*_TEXTS, *_ADDRESSES, _API_BACKEND))
    complaints = Complaints()
    complaints.if_too_long(values, *_TEXTS, *_ADDRESSES)
    backends.settle_endpoint(values, _API_BACKEND, complaints)
    if values.get("credentials_location") is not None:
        complaints.if_unlisted(values, "credentials_location", _LOCATIONS)
    for name in _STATUSES:
        if name in sent:
            number = as_integer(sent.get(name))
            if number is None:
                complaints.add(name, refusals.NOT_A_NUMBER)
            values[name] = number
    self_managed = service["deployment_option"] == _SELF_MANAGED
    for name in _ADDRESSES:
        address = values.get(name)
        if not isinstance(address, str) or not address:
            continue
        if addresses.is_acceptable(address, ("http", "https"), localhost=self_managed):
            values[name] = addresses.with_port(address)
        else:
            complaints.add(name, refusals.INVALID)
    complaints.settle()
    return values
