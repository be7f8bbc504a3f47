from __future__ import annotations

import logging

from domain.loadbalancers.services.objects import Installation
from engine.settings import Settings, variable_of

_NEEDED = ("namespace", "secret_name", "floating_net_id", "network_id")

log = logging.getLogger(__name__)


def installation_of(settings: Settings) -> Installation | None:
    """None if a needed setting is missing. If namespace and Secret are set, this is logged as an error."""
    given = {name: getattr(settings, f"loadbalancers_{name}") for name in Installation.model_fields}
    missing = [variable_of(f"loadbalancers_{name}") for name in _NEEDED if not given[name]]
    if missing:
        if given["namespace"] and given["secret_name"]:
            log.error("Services are not served until these settings are set: %s", ", ".join(missing))
        return None
    return Installation.model_validate({name: value for name, value in given.items() if value not in ("", ())})
