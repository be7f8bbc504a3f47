"""The gateways' configurations: immutable versions per product and environment.

A deployment renders the product, without limits and prices. If the result differs from the newest version in the
sandbox, it becomes the next version. A promotion copies a version to production, each version only once. A product
without a backend is not deployed.
"""

from __future__ import annotations

from http import HTTPStatus

from pydantic import JsonValue

from localcloud.threescale import answers, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.store import Record, Store

ROUTES = Routes()

SANDBOX = "sandbox"
PRODUCTION = "production"

# The policy of every chain; appended if missing.
APICAST: JsonObject = {"name": "apicast", "version": "builtin", "configuration": {}, "enabled": True}

_ENVIRONMENTS = {SANDBOX: SANDBOX, "staging": SANDBOX, PRODUCTION: PRODUCTION}
_OF_SERVICE = "/admin/api/services/{service}/proxy/configs/{environment}"
_VOLATILE = ("id", "service_id", "lock_version", "deployed_at", "created_at", "updated_at", "born", "api_test_success")


def deploy(store: Store, service: Record, proxy: Record) -> Record:
    if not store.count(tables.BACKEND_USAGES, service_id=service.id):
        return proxy
    content, metric_ids = _rendered(store, service, proxy)
    newest = latest(store, service, SANDBOX)
    if newest is not None and newest["content"] == content:
        return proxy
    store.insert(
        tables.PROXY_CONFIGS,
        service_id=service.id,
        environment=SANDBOX,
        version=newest.number("version") + 1 if newest else 1,
        content=content,
        metric_ids=metric_ids,
    )
    return store.update(proxy, deployed_at=store.moment())


def latest(store: Store, service: Record, environment: str) -> Record | None:
    found = store.all(tables.PROXY_CONFIGS, "version DESC", service_id=service.id, environment=environment)
    return found[0] if found else None


def show(call: Call, config: Record) -> JsonObject:
    environment, version = config.text("environment"), config.number("version")
    own = f"/admin/api/services/{config['service_id']}/proxy/configs/{environment}/{version}"
    return {
        "id": config.id,
        "version": version,
        "environment": environment,
        "content": config["content"],
        "created_at": config["created_at"],
        "links": call.links(own),
    }


@ROUTES.add("GET", _OF_SERVICE, json_only=True)
def index(call: Call) -> Answer:
    environment, service = _environment(call.path["environment"]), _service(call)
    found = call.all(tables.PROXY_CONFIGS, "version", service_id=service.id, environment=environment)
    return answers.collection("proxy_configs", "proxy_config", [show(call, each) for each in found])


@ROUTES.add("GET", f"{_OF_SERVICE}/{{version}}", json_only=True)
def read(call: Call) -> Answer:
    return answers.item("proxy_config", show(call, _of(call)))


@ROUTES.add("POST", f"{_OF_SERVICE}/{{version}}/promote", json_only=True)
def promote(call: Call) -> Answer:
    source = _of(call)
    target = _environment(call.parameters.required("to"))
    where: dict[str, JsonValue] = {
        "service_id": source["service_id"],
        "environment": target,
        "version": source["version"],
    }
    if call.store.find(tables.PROXY_CONFIGS, **where):
        raise refusals.invalid({"version": [refusals.TAKEN]})
    promoted = call.store.insert(
        tables.PROXY_CONFIGS, **where, content=source["content"], metric_ids=source["metric_ids"]
    )
    return Answer(HTTPStatus.CREATED, {"proxy_config": show(call, promoted)})


@ROUTES.add("GET", "/admin/api/account/proxy_configs/{environment}", json_only=True)
def index_of_tenant(call: Call) -> Answer:
    environment = _environment(call.path["environment"])
    services = call.store.all(tables.SERVICES, tenant_id=call.tenant.id, deleted=None)
    host, version = call.parameters.text("host"), call.parameters.text("version")
    found = [
        config
        for service in services
        for config in _wanted(call.store, service, environment, version)
        if not host or host in config.object("content").get("proxy_hosts", ())  # type: ignore[operator]
    ]
    page = call.wanted_page(len(found))
    first = (page.number - 1) * page.size
    shown = [show(call, each) for each in found[first : first + page.size]]
    return answers.collection("proxy_configs", "proxy_config", shown, page)


def _wanted(store: Store, service: Record, environment: str, version: str) -> list[Record]:
    if version == "latest":
        newest = latest(store, service, environment)
        return [newest] if newest else []
    found = store.all(tables.PROXY_CONFIGS, "version", service_id=service.id, environment=environment)
    return [config for config in found if not version or config.text("version") == version]


def _environment(name: str) -> str:
    if name not in _ENVIRONMENTS:
        raise refusals.wrong_environment()
    return _ENVIRONMENTS[name]


def _service(call: Call) -> Record:
    return call.find(tables.SERVICES, id=call.id("service"), tenant_id=call.tenant.id, deleted=None)


def _of(call: Call) -> Record:
    environment, service = _environment(call.path["environment"]), _service(call)
    if call.path["version"] == "latest":
        found = latest(call.store, service, environment)
        if found is None:
            raise refusals.not_found()
        return found
    return call.find(tables.PROXY_CONFIGS, service_id=service.id, environment=environment, version=call.id("version"))


def _rendered(store: Store, service: Record, proxy: Record) -> tuple[JsonObject, list[JsonValue]]:
    rules = _rules(store, service.id, None, "")
    metrics = _listed(store, tables.METRICS, service_id=service.id)
    plans = _listed(store, tables.PLANS, service_id=service.id, kind="application")
    backends: list[JsonValue] = []
    for usage in store.all(tables.BACKEND_USAGES, service_id=service.id):
        backend = store.get(tables.BACKENDS, usage.number("backend_id"))
        rules += _rules(store, None, backend.id, usage.text("path").rstrip("/"))
        metrics += _listed(store, tables.METRICS, backend_id=backend.id)
        backends.append({"id": backend.id, "path": usage["path"], "endpoint": backend["private_endpoint"]})
    settings = _lasting(proxy)
    chain = settings.pop("policies_config")
    hosts: list[JsonValue] = [_host(proxy.text(name)) for name in ("endpoint", "sandbox_endpoint") if proxy[name]]
    content: JsonObject = {
        "id": service.id,
        "account_id": service["tenant_id"],
        "name": service["name"],
        "system_name": service["system_name"],
        "backend_version": service["backend_version"],
        "deployment_option": service["deployment_option"],
        "backend_authentication_type": "service_token",
        "proxy_hosts": hosts,
        "metrics": metrics,
        "plans": plans,
        "proxy": {
            **settings,
            "hosts": hosts,
            "backends": backends,
            "policy_chain": chain,
            "proxy_rules": [*rules],
        },
    }
    return content, sorted({rule["metric_id"] for rule in rules})  # type: ignore[type-var]


def _listed(store: Store, table: str, **where: JsonValue) -> list[JsonValue]:
    return [{"id": each.id, **_lasting(each)} for each in store.all(table, "id", **where)]


def _lasting(record: Record) -> JsonObject:
    return {name: value for name, value in record.values.items() if name not in _VOLATILE}


def _rules(store: Store, service_id: int | None, backend_id: int | None, prefix: str) -> list[JsonObject]:
    found = store.all(tables.MAPPING_RULES, "position, id", service_id=service_id, backend_id=backend_id)
    return [
        {
            "id": rule.id,
            "http_method": rule["http_method"],
            "pattern": f"{prefix}{rule['pattern']}",
            "metric_id": rule["metric_id"],
            "metric_system_name": store.get(tables.METRICS, rule.number("metric_id"))["system_name"],
            "delta": rule["delta"],
            "position": rule["position"],
            "last": rule["last"],
            "redirect_url": rule["redirect_url"],
        }
        for rule in found
    ]


def _host(address: str) -> str:
    return address.partition("://")[2].partition("/")[0].partition(":")[0]
