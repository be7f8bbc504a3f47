"""The resources of the Account Management and Master APIs, one module per family, each with its routes."""

from __future__ import annotations

from localcloud.threescale.call import Route
from localcloud.threescale.resources import (
    access_tokens,
    accounts,
    active_docs,
    application_keys,
    applications,
    backend_usages,
    backends,
    features,
    fields_definitions,
    limits,
    mapping_rules,
    metrics,
    not_in_plan,
    objects,
    plans,
    policies,
    pricing_rules,
    proxies,
    proxy_configs,
    services,
    signup,
    subscriptions,
    tenants,
    users,
)

_MODULES = (
    access_tokens,
    accounts,
    active_docs,
    application_keys,
    applications,
    backend_usages,
    backends,
    features,
    fields_definitions,
    limits,
    mapping_rules,
    metrics,
    not_in_plan,
    objects,
    plans,
    policies,
    pricing_rules,
    proxies,
    proxy_configs,
    services,
    signup,
    subscriptions,
    tenants,
    users,
)


def routes() -> tuple[Route, ...]:
    """All routes, those with fixed words before those with a name in the same place."""
    found = [route for module in _MODULES for route in module.ROUTES.all]
    return tuple(sorted(found, key=lambda route: route.path.count("{")))
