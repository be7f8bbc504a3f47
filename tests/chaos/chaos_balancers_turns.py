"""What each turn of a load balancer's life changes: its kinds of calls to OpenStack, and of writes to Kubernetes.

Machines have the same kinds each. A test holds that an undisturbed life has them, and no others.
"""

from __future__ import annotations

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
