"""What each turn of a load balancer's life changes: its kinds of calls to OpenStack, and of writes to Kubernetes.

Machines have the same kinds each. A test holds that an undisturbed life has them, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from chaos_balancers_lab import EVENTS, BalancersLab
from chaos_striking import Area, Side, Struck, counted, writes

from localcloud.openstack.contract import FaultKind

_STATUSES = ("PATCH loadbalancers/status", "PATCH loadbalancersets/status")
_BIRTH = (
    "POST loadbalancermachines",
    "POST serviceaccounts",
    "POST secrets",
    "POST roles",
    "POST rolebindings",
    "PATCH loadbalancermachines/status",
)
_END = (
    "DELETE loadbalancermachines",
    "DELETE serviceaccounts",
    "DELETE rolebindings",
    "DELETE roles",
    "PATCH loadbalancermachines",
)
_BUILD = ("neutron POST /v2.0/ports", "nova POST /v2.1/servers")
_TEAR_DOWN = ("nova DELETE /v2.1/servers/{id}", "neutron DELETE /v2.0/ports/{id}")

CALLS: dict[str, tuple[str, ...]] = {
    "create": (
        "neutron POST /v2.0/security-groups",
        "neutron POST /v2.0/security-group-rules",
        "neutron POST /v2.0/floatingips",
        *_BUILD,
    ),
    "grow": _BUILD,
    "roll out": (*_BUILD, *_TEAR_DOWN),
    "shrink": _TEAR_DOWN,
    "delete": (
        *_TEAR_DOWN,
        "neutron DELETE /v2.0/floatingips/{id}",
        "neutron DELETE /v2.0/security-groups/{id}",
    ),
}

WRITES: dict[str, tuple[str, ...]] = {
    "create": ("PATCH loadbalancers", "POST loadbalancersets", *_STATUSES, *_BIRTH),
    "grow": ("PATCH loadbalancersets", *_STATUSES, *_BIRTH),
    "roll out": (
        "PATCH loadbalancers",
        "POST loadbalancersets",
        "PATCH loadbalancersets",
        *_STATUSES,
        *_BIRTH,
        *_END,
    ),
    "shrink": ("PATCH loadbalancersets", *_STATUSES, *_END),
    "delete": (
        "DELETE loadbalancersets",
        "PATCH loadbalancersets",
        *_END,
        "PATCH loadbalancers/status",
        "PATCH loadbalancers",
    ),
}

# Calls in flight when a process is killed; they still take effect.
_DEATHS = (
    "worker killed, effect comes later",
    "watcher killed meanwhile",
    "Temporal killed meanwhile",
    "API server killed meanwhile",
)
_UNDER_WAY = {"kind": FaultKind.DELAY, "delay_seconds": 4.0}
_QUOTA: dict[str, dict[str, object]] = {
    "neutron": {"status": 409, "type": "OverQuota", "message": "Quota exceeded for resources: ['port']."},
    "nova": {"status": 403, "message": "Quota exceeded for instances: Requested 1, but already used 10 of 10."},
}
_FOR_QUOTA = "refused for a quota"
_FAULTS: dict[str, dict[str, object]] = {
    "done, answer lost": {"kind": FaultKind.CUT},
    "done, answered 504": {"kind": FaultKind.AFTER, "status": 504},
    **{f"refused with {status}": {"status": status} for status in (500, 503, 409, 401)},
    "refused with 429": {"status": 429, "headers": {"Retry-After": "2"}},
    _FOR_QUOTA: {},
    **dict.fromkeys(_DEATHS, _UNDER_WAY),
}


def _arm_calls(lab: BalancersLab, call: str, count: int, fault: str) -> Iterator[Struck]:
    """Break the next calls of that kind, from any process."""
    for _ in range(count):
        yield Struck(lab.disturb(call, **(_QUOTA[call.partition(" ")[0]] if fault == _FOR_QUOTA else _FAULTS[fault])))


def _begin(lab: BalancersLab) -> Callable[[], None]:
    lab.stagger()
    return lab.take_all


_CALLS: Side[BalancersLab] = Side(
    "calls to OpenStack", counted(CALLS.values()), tuple(_FAULTS), lambda *call: [*_arm_calls(*call)]
)
AREA = Area(BalancersLab, (_CALLS, writes(counted(WRITES.values()) | {EVENTS: 2})), _begin)
