from __future__ import annotations

import logging

from domain.loadbalancers.constants import DEFAULT_CLASS
from domain.loadbalancers.services.objects import Installation
from engine.settings import Settings

_NEEDED = ("namespace", "secret_name", "floating_net_id", "network_id")

log = logging.getLogger(__name__)


def installation_of(settings: Settings) -> Installation | None:
    """The settings for Services; None if a required one is missing. This is logged if namespace and Secret are set."""
    given = {name: str(getattr(settings, f"loadbalancers_{name}")) for name in _NEEDED}
    missing = [f"PERDURE_LOADBALANCERS_{name.upper()}" for name, value in given.items() if not value]
    if missing:
        if given["namespace"] and given["secret_name"]:
            log.error("Services are not served, as these are not set: %s", ", ".join(missing))
        return None
    return Installation(
        control_namespace=settings.loadbalancers_namespace,
        secret_name=settings.loadbalancers_secret_name,
        floating_net_id=settings.loadbalancers_floating_net_id,
        network_id=settings.loadbalancers_network_id,
        subnet_id=settings.loadbalancers_subnet_id or None,
        flavor_id=settings.loadbalancers_flavor_id or None,
        flavor_name=settings.loadbalancers_flavor_name or None,
        flavor_search=settings.loadbalancers_flavor_search or None,
        image_id=settings.loadbalancers_image_id or None,
        image_name=settings.loadbalancers_image_name or None,
        image_search=settings.loadbalancers_image_search or None,
        availability_zone=settings.loadbalancers_availability_zone,
        internal=settings.loadbalancers_internal,
        classes=settings.loadbalancers_classes or (DEFAULT_CLASS,),
        unclassed=settings.loadbalancers_unclassed,
        release_foreign=settings.loadbalancers_release_foreign,
    )
