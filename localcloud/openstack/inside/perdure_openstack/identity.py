"""Prepares Keystone before its first answer: the catalog, whose ports may have changed, and the user's project."""

from __future__ import annotations

import uuid
from typing import Any

import keystone.conf
from keystone import exception
from keystone.common import driver_hints, provider_api

from . import environment

CONF = keystone.conf.CONF
PROVIDERS = provider_api.ProviderAPIs

REGION = "RegionOne"
ADMIN = "admin"
USER = "perdure"
"""The name of the project, and of its member."""

_TYPES = {
    "keystone": ("identity", "/v3"),
    "placement": ("placement", ""),
    "glance": ("image", ""),
    "neutron": ("network", ""),
    "nova": ("compute", "/v2.1"),
}
# Services use the internal endpoint, clients the public one.
_INTERFACES = ("public", "internal")


def ensure() -> None:
    for name, url in environment.urls().items():
        kind, path = _TYPES[name]
        _ensure_endpoints(_ensure_service(name, kind), url + path)
    domain = CONF.identity.default_domain_id
    roles = {role["name"]: role["id"] for role in PROVIDERS.role_api.list_roles()}
    admin_project = PROVIDERS.resource_api.get_project_by_name(ADMIN, domain)["id"]
    _grant(_ensure_user(ADMIN, domain), admin_project, roles["service"])
    _grant(_ensure_user(USER, domain), _ensure_project(USER, domain), roles["member"])


def _ensure_service(name: str, kind: str) -> str:
    found = PROVIDERS.catalog_api.list_services(_where(type=kind))
    if found:
        return str(found[0]["id"])
    new = uuid.uuid4().hex
    PROVIDERS.catalog_api.create_service(new, {"id": new, "name": name, "type": kind, "enabled": True})
    return new


def _ensure_endpoints(service: str, url: str) -> None:
    known = {one["interface"]: one for one in PROVIDERS.catalog_api.list_endpoints(_where(service_id=service))}
    for interface in _INTERFACES:
        endpoint = known.get(interface)
        if endpoint is None:
            new = uuid.uuid4().hex
            fresh = {"id": new, "interface": interface, "service_id": service, "region_id": REGION, "enabled": True}
            PROVIDERS.catalog_api.create_endpoint(new, fresh | {"url": url})
        elif endpoint["url"] != url:
            PROVIDERS.catalog_api.update_endpoint(endpoint["id"], {"url": url})


def _ensure_project(name: str, domain: str) -> str:
    try:
        return str(PROVIDERS.resource_api.get_project_by_name(name, domain)["id"])
    except exception.ProjectNotFound:
        new = uuid.uuid4().hex
        project = {"id": new, "name": name, "domain_id": domain, "enabled": True, "description": ""}
        PROVIDERS.resource_api.create_project(new, project)
        return new


def _ensure_user(name: str, domain: str) -> str:
    try:
        return str(PROVIDERS.identity_api.get_user_by_name(name, domain)["id"])
    except exception.UserNotFound:
        user = {"name": name, "domain_id": domain, "enabled": True, "password": environment.password()}
        return str(PROVIDERS.identity_api.create_user(user)["id"])


def _grant(user: str, project: str, role: str) -> None:
    try:
        PROVIDERS.assignment_api.add_role_to_user_and_project(user_id=user, project_id=project, role_id=role)
    except exception.Conflict:
        return  # already assigned


def _where(**filters: str) -> Any:
    hints = driver_hints.Hints()
    for name, value in filters.items():
        hints.add_filter(name, value)
    return hints
