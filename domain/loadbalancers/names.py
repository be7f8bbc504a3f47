"""Names of a load balancer's objects, derived so that a repeated attempt finds the existing object.

Cloud objects are named `namespace/name` after their custom resource. A floating IP has no name and gets this text as
its description; a server's name lacks the namespace. Names are not unique, so most objects also carry their owner's
uid (`ownership.py`).
"""

from __future__ import annotations

from domain.loadbalancers.template_hash import hash_of
from domain.resource import ObjectMeta


def load_balancer_name(service: ObjectMeta) -> str:
    """The LoadBalancer's name. Two Services may get the same one (`a--b`/`c` and `a`/`b--c`), so callers must check
    which Service owns the LoadBalancer.
    """
    return f"{service.namespace}--{service.name}"


def load_balancer_label(control_namespace: str, service: ObjectMeta) -> str:
    return hash_of(f"{control_namespace}.{load_balancer_name(service)}")


def service_name(service: ObjectMeta) -> str:
    return f"{service.namespace}/{service.name}"


def cloud_name(meta: ObjectMeta) -> str:
    return f"{meta.namespace}/{meta.name}"
