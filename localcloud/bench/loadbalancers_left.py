"""Load balancers as yawol leaves them: no mark of ours in the cloud, and the custom resources that tell of them.

From what the bare script has made (`loadbalancers_bare.py`) and the names that yawol gives: the set is called after the
template's hash, so the cloud's machine is renamed to what it would have been called. Statuses, labels, finalizers and
owners are those that yawol 0.29 writes; the machine's rights are left out of what is looked at, as they are recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from keystoneauth1.session import Session

from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.constants import (
    API_VERSION,
    LOAD_BALANCER_FINALIZER,
    MACHINE_FINALIZER,
    REVISION_ANNOTATION,
    SET_FINALIZER,
    TEMPLATE_HASH_LABEL,
)
from domain.loadbalancers.hashes import cloud_hash, template_hash
from domain.loadbalancers.resources import LoadBalancer
from domain.resource import timestamp
from engine.kube import KubeApi
from engine.kube.json import JsonObject, at, mapping, text
from localcloud.bench.loadbalancers_reports import conditions, metrics

_ENDING = "abcde"
_REVISION = {REVISION_ANNOTATION: "1"}


async def leave(kube: KubeApi, member: Session, body: JsonObject, made: Mapping[str, str], namespace: str) -> None:
    """Make one load balancer's custom resources of what there is in the cloud.

    Args:
        kube: the API server.
        member: of the project.
        body: the LoadBalancer as its Service would make it, of the script's name.
        made: what the script has made for it.
        namespace: of the custom resources.
    """
    spec, path = mapping(body, "spec"), f"{namespace}/{made['name']}"
    long_ago = timestamp(datetime.now(UTC) - timedelta(minutes=3))
    status = {
        "floatingID": made["floating"],
        "floatingName": path,
        "externalIP": made["external"],
        "portID": made["port"],
        "portName": path,
        "portIP": made["address"],
        "securityGroupID": made["group"],
        "securityGroupName": path,
        "replicas": 1,
        "readyReplicas": 1,
        "lastOpenstackReconcile": long_ago,
    }
    meta = {"name": made["name"], "annotations": _REVISION, "finalizers": [LOAD_BALANCER_FINALIZER]}
    balancer = await kube.create(LOAD_BALANCER, {"metadata": meta, "spec": dict(spec)}, namespace)
    read = LoadBalancer.model_validate({**balancer, "status": status})
    status["openstackReconcileHash"] = cloud_hash(read)
    await kube.patch(LOAD_BALANCER, namespace, made["name"], {"status": status}, subresource="status")
    machine_set = await _leave_set(kube, balancer, read, made, long_ago)
    await _leave_machine(kube, member, machine_set, made, long_ago)


async def _leave_set(
    kube: KubeApi, balancer: JsonObject, read: LoadBalancer, made: Mapping[str, str], long_ago: str
) -> JsonObject:
    namespace, found = read.metadata.namespace, template_hash(read)
    labels = {**read.spec.selector.match_labels, TEMPLATE_HASH_LABEL: found}
    machine = {
        "infrastructure": at(balancer, "spec", "infrastructure"),
        "portID": made["port"],
        "loadBalancerRef": {"name": made["name"], "namespace": namespace},
    }
    body = {
        "metadata": {
            "name": f"{made['name']}-{found}",
            "labels": labels,
            "annotations": _REVISION,
            "finalizers": [SET_FINALIZER],
            "ownerReferences": [_owner(LOAD_BALANCER.name, balancer)],
        },
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"labels": labels, "spec": machine},
        },
    }
    made_set = await kube.create(LOAD_BALANCER_SET, body, namespace)
    master = {"type": "HasKeepalivedMaster", "status": "True", "reason": "KeepalivedMasterInSet", "message": ""}
    status = {"replicas": 1, "readyReplicas": 1, "conditions": [{**master, "lastTransitionTime": long_ago}]}
    name = text(made_set, "metadata", "name")
    await kube.patch(LOAD_BALANCER_SET, namespace, name, {"status": status}, subresource="status")
    return made_set


async def _leave_machine(
    kube: KubeApi, member: Session, machine_set: JsonObject, made: Mapping[str, str], long_ago: str
) -> None:
    namespace = text(machine_set, "metadata", "namespace")
    name = f"{text(machine_set, 'metadata', 'name')}-{_ENDING}"
    path = f"{namespace}/{name}"
    body = {
        "metadata": {
            "name": name,
            "labels": at(machine_set, "spec", "template", "labels"),
            "annotations": _REVISION,
            "finalizers": [MACHINE_FINALIZER],
            "ownerReferences": [_owner(LOAD_BALANCER_SET.name, machine_set)],
        },
        "spec": at(machine_set, "spec", "template", "spec"),
    }
    machine = await kube.create(LOAD_BALANCER_MACHINE, body, namespace)
    reported = [{**each, "lastTransitionTime": long_ago} for each in conditions(machine, master=True)]
    status = {
        "conditions": reported,
        "metrics": metrics(),
        "serverID": made["server"],
        "defaultPortID": made["own"],
        "defaultPortName": path,
        "defaultPortIP": made["own_address"],
        "creationTimestamp": long_ago,
        "lastOpenstackReconcile": long_ago,
        "serviceAccountName": path,
        "serviceAccountSecretName": path,
        "roleName": path,
    }
    await kube.patch(LOAD_BALANCER_MACHINE, namespace, name, {"status": status}, subresource="status")
    await asyncio.to_thread(_renamed, member, made, name, path)


def _renamed(member: Session, made: Mapping[str, str], name: str, path: str) -> None:
    """The cloud's machine, called as yawol would have called it."""
    for service, route, body in (
        ("compute", f"/servers/{made['server']}", {"server": {"name": name}}),
        ("network", f"/v2.0/ports/{made['own']}", {"port": {"name": path}}),
    ):
        member.put(route, json=body, endpoint_filter={"service_type": service, "interface": "public"})


def _owner(kind: str, owner: JsonObject) -> JsonObject:
    meta = mapping(owner, "metadata")
    return {"apiVersion": API_VERSION, "kind": kind, "name": text(meta, "name"), "uid": text(meta, "uid")}
