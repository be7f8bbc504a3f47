"""Names of a load balancer's objects, derived so that a repeated attempt finds the existing object.

Cloud objects are named `namespace/name`. A floating IP has no name and gets this text as its description; a server has
only its machine's name. Names are not unique, so most objects also have a mark (`ownership.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator

from domain.loadbalancers.template_hash import hash_of
from domain.resource import ObjectMeta

_SUFFIX_LENGTH = 5


def load_balancer_name(service: ObjectMeta) -> str:
    """The name of the LoadBalancer. Two Services may get the same name (`a--b`/`c` and `a`/`b--c`), so callers must
    check which Service owns the LoadBalancer.
    """
    return f"{service.namespace}--{service.name}"


def load_balancer_label(control_namespace: str, service: ObjectMeta) -> str:
    return hash_of(f"{control_namespace}.{load_balancer_name(service)}")


def service_name(service: ObjectMeta) -> str:
    return f"{service.namespace}/{service.name}"


def cloud_name(meta: ObjectMeta) -> str:
    return f"{meta.namespace}/{meta.name}"


def set_name(load_balancer: str, template_hash: str) -> str:
    return f"{load_balancer}-{template_hash}"


def machine_names(machine_set: ObjectMeta, taken: Collection[str]) -> Iterator[str]:
    """An endless series of names that are not `taken`. It is always the same for the same set and `taken`."""
    number = 0
    while True:
        digest = hashlib.sha256(f"{machine_set.uid}/{number}".encode()).hexdigest()
        name = f"{machine_set.name}-{digest[:_SUFFIX_LENGTH]}"
        if name not in taken:
            yield name
        number += 1
