"""A new LoadBalancerSet: its name, labels, owner, revision, and the template of its machines."""

from __future__ import annotations

from collections.abc import Iterable

from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_SET
from domain.loadbalancers.constants import API_VERSION, REVISION_ANNOTATION, SET_FINALIZER, TEMPLATE_HASH_LABEL
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerReference, LoadBalancerSet, MachineSpec
from domain.schema import Document


def set_name(load_balancer: str, template_hash: str) -> str:
    return f"{load_balancer}-{template_hash}"


def revision_number(revision: str) -> int | None:
    return int(revision) or None if revision.isascii() and revision.isdigit() and len(revision) < 19 else None


def highest_revision(sets: Iterable[LoadBalancerSet]) -> int:
    return max((revision_number(each.revision) or 0 for each in sets), default=0)


def next_revision(sets: Iterable[LoadBalancerSet]) -> int:
    return highest_revision(sets) + 1


def set_document(balancer: LoadBalancer, hash_: str, revision: int) -> Document:
    meta = balancer.metadata
    labels = {**balancer.spec.selector.match_labels, TEMPLATE_HASH_LABEL: hash_}
    machine = MachineSpec(
        infrastructure=balancer.spec.infrastructure,
        port_id=balancer.status.port_id or "",
        server_group_id=balancer.status.server_group_id or "",
        load_balancer_ref=LoadBalancerReference(name=meta.name, namespace=meta.namespace),
    )
    return {
        "apiVersion": API_VERSION,
        "kind": LOAD_BALANCER_SET.name,
        "metadata": {
            "name": set_name(meta.name, hash_),
            "namespace": meta.namespace,
            "labels": labels,
            "annotations": {REVISION_ANNOTATION: str(revision)},
            "finalizers": [SET_FINALIZER],
            "ownerReferences": [
                {"apiVersion": API_VERSION, "kind": LOAD_BALANCER.name, "name": meta.name, "uid": meta.uid}
            ],
        },
        "spec": {
            "replicas": balancer.spec.replicas,
            "selector": {"matchLabels": labels},
            "template": {"labels": labels, "spec": machine.model_dump(mode="json", exclude_none=True)},
        },
    }
