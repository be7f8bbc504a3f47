"""A new LoadBalancerMachine of a set: its name, labels, owner, revision and spec."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator

from domain.loadbalancers import LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.constants import API_VERSION, MACHINE_FINALIZER, REVISION_ANNOTATION
from domain.loadbalancers.resources import LoadBalancerSet
from domain.resource import ObjectMeta
from domain.schema import Document

_SUFFIX_LENGTH = 5


def machine_names(machine_set: ObjectMeta, taken: Collection[str]) -> Iterator[str]:
    """An endless series of names that are not `taken`, always the same for the same set and `taken`."""
    number = 0
    while True:
        digest = hashlib.sha256(f"{machine_set.uid}/{number}".encode()).hexdigest()
        name = f"{machine_set.name}-{digest[:_SUFFIX_LENGTH]}"
        if name not in taken:
            yield name
        number += 1


def machine_document(machine_set: LoadBalancerSet, name: str) -> Document:
    meta, template = machine_set.metadata, machine_set.spec.template
    return {
        "apiVersion": API_VERSION,
        "kind": LOAD_BALANCER_MACHINE.name,
        "metadata": {
            "name": name,
            "namespace": meta.namespace,
            "labels": dict(machine_set.spec.selector.match_labels),
            "annotations": {REVISION_ANNOTATION: machine_set.revision} if machine_set.revision else {},
            "finalizers": [MACHINE_FINALIZER],
            "ownerReferences": [
                {"apiVersion": API_VERSION, "kind": LOAD_BALANCER_SET.name, "name": meta.name, "uid": meta.uid}
            ],
        },
        "spec": template.spec.model_dump(mode="json", exclude_none=True),
    }
