"""When the cloud has to be looked at for an object: when what it rests on has changed since all was as it should be.

Wakes are frequent (a machine reports, a set counts, a node comes), and a look costs calls that all of a project share.
So a pass keeps, as a fingerprint, the object for which it last found everything in place. What changes in the cloud
alone is the sweep's to find: it writes an annotation, which is part of the fingerprint.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from pydantic.main import IncEx

from domain.loadbalancers.cloud.served import ServedBalancer
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine

_RANGES = {"load_balancer_source_ranges"}
# What only the rules of the security group rest on; a hash of it is recorded, too.
_RULES_SPEC: Mapping[str, IncEx | bool] = {"ports": True, "debug_settings": True, "options": _RANGES}
# That, and what the cloud knows nothing of.
_OTHER_SPEC: Mapping[str, IncEx | bool] = {**_RULES_SPEC, "endpoints": True, "replicas": True}
_RULES_STATUS = {"openstack_reconcile_hash", "last_openstack_reconcile"}
_BALANCER_STATUS = {"ready_replicas", "replicas", "conditions"}
_MACHINE_STATUS = {"conditions", "metrics"}


def look_of_balancer(balancer: LoadBalancer) -> str:
    """All of a LoadBalancer that its objects in the cloud rest on, but for the rules of its security group."""
    return _fingerprint(
        balancer.metadata.annotations,
        balancer.spec.model_dump(mode="json", exclude=_OTHER_SPEC),
        balancer.status.model_dump(mode="json", exclude=_BALANCER_STATUS | _RULES_STATUS),
        bool(balancer.status.last_openstack_reconcile),  # blanked, it asks for a look at everything
    )


def look_of_rules(balancer: LoadBalancer) -> str:
    """All of a LoadBalancer that the rules of its security group rest on."""
    return _fingerprint(
        balancer.spec.model_dump(mode="json", include=_RULES_SPEC),
        balancer.status.model_dump(mode="json", include=_RULES_STATUS),
    )


def look_of_machine(machine: LoadBalancerMachine, balancer: ServedBalancer | None) -> str:
    """All of a machine that its objects in the cloud rest on."""
    return _fingerprint(
        machine.metadata.annotations,
        machine.spec.model_dump(mode="json"),
        machine.status.model_dump(mode="json", exclude=_MACHINE_STATUS),
        [balancer.uid, balancer.group_id] if balancer else [],
    )


def _fingerprint(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]
