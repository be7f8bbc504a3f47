"""Names of what belongs to a load balancer: deriving them again finds what they named before.

In the cloud everything is called `namespace/name` of its object: security group, port and server group by name, the
floating IP (Neutron's have none) by description; only a server is called by its machine's bare name. None of these
names is unique there, and two clusters may share a project, so an object is known by its mark too (`ownership.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator

from domain.loadbalancers.hashes import hash_of
from domain.resource import ObjectMeta

_SUFFIX_LENGTH = 5


def load_balancer_name(service: ObjectMeta) -> str:
    """The LoadBalancer of a Service; `a--b`/`c` and `a`/`b--c` share theirs, which whoever makes it must notice."""
    return f"{service.namespace}--{service.name}"


def load_balancer_label(control_namespace: str, service: ObjectMeta) -> str:
    """The value of the label that all sets and machines of a Service's LoadBalancer carry."""
    return hash_of(f"{control_namespace}.{load_balancer_name(service)}")


def service_name(service: ObjectMeta) -> str:
    """The Service as its LoadBalancer names it."""
    return f"{service.namespace}/{service.name}"


def cloud_name(meta: ObjectMeta) -> str:
    """The name of what belongs to the object in the cloud."""
    return f"{meta.namespace}/{meta.name}"


def set_name(load_balancer: str, template_hash: str) -> str:
    """The set of a LoadBalancer for a template."""
    return f"{load_balancer}-{template_hash}"


def machine_names(machine_set: ObjectMeta, taken: Collection[str]) -> Iterator[str]:
    """Names for machines of the set that no machine has: the same ones as long as the same ones are taken."""
    number = 0
    while True:
        digest = hashlib.sha256(f"{machine_set.uid}/{number}".encode()).hexdigest()
        name = f"{machine_set.name}-{digest[:_SUFFIX_LENGTH]}"
        if name not in taken:
            yield name
        number += 1
