"""When the cloud is observed: after a failed step, while the cloud has a problem, or after a change of the object.

A change is noticed by the custom resource's fingerprint, which includes the sweep's drift annotation.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from pydantic.main import IncEx

from domain.decision import Action
from domain.loadbalancers.cloud.machine import ServedBalancer
from domain.loadbalancers.cloud.world import CloudWorld
from domain.loadbalancers.object_world import Moment
from domain.loadbalancers.refused_calls import PAUSES, Nature
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine

# How long after the loss of its answer a creation may still take effect.
LATE_EFFECT = timedelta(minutes=1)
LATE = "waits a minute, because OpenStack did not answer a creation and may still carry it out"
_RANGES = {"load_balancer_source_ranges"}
# The inputs of the security group rules. The status also records the hash of these inputs.
_RULES_SPEC: Mapping[str, IncEx | bool] = {"ports": True, "debug_settings": True, "options": _RANGES}
# The inputs of the security group rules, and fields without any effect in the cloud.
_OTHER_SPEC: Mapping[str, IncEx | bool] = {**_RULES_SPEC, "endpoints": True, "replicas": True}
_RULES_STATUS = {"openstack_reconcile_hash", "last_openstack_reconcile"}
_BALANCER_STATUS = {"ready_replicas", "replicas", "conditions"}
_MACHINE_STATUS = {"conditions", "metrics"}


def needs_look(world: CloudWorld, steps: Iterable[Action]) -> bool:
    current = world.look in (world.seen, world.known.settled)
    waits = any(world.refused(each.slot) for each in steps)
    return not current or (world.stale and not waits)


def observed_again(world: CloudWorld) -> list[Moment]:
    """When to observe the cloud again after a problem that is not a refused call."""
    since, seen = world.known.blocked_since, world.seen_at
    if not (since and seen):
        return []
    first, longest = PAUSES[Nature.REFUSED]
    return [Moment(at=seen + max(first, min(longest, seen - since)))]


def effects_until(world: CloudWorld) -> datetime | None:
    lost = world.known.unanswered_at
    until = lost + LATE_EFFECT if lost else None
    return None if until and world.seen_at and world.seen_at >= until else until


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
