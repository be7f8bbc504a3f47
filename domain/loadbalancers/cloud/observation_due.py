"""Fingerprints of objects. The cloud is observed if an object has changed since its cloud objects were complete.

When all its cloud objects are complete, a pass stores the object's fingerprint. The sweep reports drift in the cloud by
an annotation, which is part of the fingerprint.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from pydantic.main import IncEx

from domain.loadbalancers.cloud.served import ServedBalancer
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine

_RANGES = {"load_balancer_source_ranges"}
# The inputs of the rules; their hash is also recorded in the status.
_RULES_SPEC: Mapping[str, IncEx | bool] = {"ports": True, "debug_settings": True, "options": _RANGES}
# The inputs of the rules, and fields without any effect in the cloud.
_OTHER_SPEC: Mapping[str, IncEx | bool] = {**_RULES_SPEC, "endpoints": True, "replicas": True}
_RULES_STATUS = {"openstack_reconcile_hash", "last_openstack_reconcile"}
_BALANCER_STATUS = {"ready_replicas", "replicas", "conditions"}
_MACHINE_STATUS = {"conditions", "metrics"}


def look_of_balancer(balancer: LoadBalancer) -> str:
    return _fingerprint(
        balancer.metadata.annotations,
        balancer.spec.model_dump(mode="json", exclude=_OTHER_SPEC),
        balancer.status.model_dump(mode="json", exclude=_BALANCER_STATUS | _RULES_STATUS),
        bool(balancer.status.last_openstack_reconcile),  # a cleared value requests a complete observation
    )


def look_of_rules(balancer: LoadBalancer) -> str:
    return _fingerprint(
        balancer.spec.model_dump(mode="json", include=_RULES_SPEC),
        balancer.status.model_dump(mode="json", include=_RULES_STATUS),
    )


def look_of_machine(machine: LoadBalancerMachine, balancer: ServedBalancer | None) -> str:
    return _fingerprint(
        machine.metadata.annotations,
        machine.spec.model_dump(mode="json"),
        machine.status.model_dump(mode="json", exclude=_MACHINE_STATUS),
        [balancer.uid, balancer.group_id] if balancer else [],
    )


def _fingerprint(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]
