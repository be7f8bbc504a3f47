"""Custom resources of load balancers as yawol 0.29 leaves them, for the cloud objects of `loadbalancers_bare.py`.

A set is named after its template's hash, a machine after its set.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.constants import (
    API_VERSION,
    LOAD_BALANCER_FINALIZER,
    MACHINE_FINALIZER,
    REVISION_ANNOTATION,
    SET_FINALIZER,
    TEMPLATE_HASH_LABEL,
)
from domain.loadbalancers.resources import LoadBalancer
from domain.loadbalancers.template_hash import cloud_hash, template_hash
from domain.model import Model
from domain.resource import timestamp
from engine.kube import KubeApi
from engine.kube.json import JsonObject, at, mapping, text
from localcloud.bench.loadbalancers_reports import conditions, metrics

_REVISION = {REVISION_ANNOTATION: "1"}
# Young enough for a machine's report to count.
_AGE = timedelta(minutes=2)


class MadeMachine(Model):
    own: str
    own_address: str
    server: str


class Made(Model):
    name: str
    group: str
    port: str
    address: str
    floating: str
    external: str
    machines: tuple[MadeMachine, ...] = ()


def machine_name(machine_set: JsonObject, number: int) -> str:
    return f"{text(machine_set, 'metadata', 'name')}-{number:05x}"


async def leave_balancer(kube: KubeApi, body: JsonObject, made: Made, namespace: str) -> JsonObject:
    path, replicas = f"{namespace}/{made.name}", at(body, "spec", "replicas")
    status = {
        "floatingID": made.floating,
        "floatingName": path,
        "externalIP": made.external,
        "portID": made.port,
        "portName": path,
        "portIP": made.address,
        "securityGroupID": made.group,
        "securityGroupName": path,
        "replicas": replicas,
        "readyReplicas": replicas,
        "lastOpenstackReconcile": _long_ago(),
    }
    meta = {"name": made.name, "annotations": _REVISION, "finalizers": [LOAD_BALANCER_FINALIZER]}
    balancer = await kube.create(LOAD_BALANCER, {"metadata": meta, "spec": dict(mapping(body, "spec"))}, namespace)
    read = LoadBalancer.model_validate({**balancer, "status": status})
    status["openstackReconcileHash"] = cloud_hash(read)
    await kube.patch(LOAD_BALANCER, namespace, made.name, {"status": status}, subresource="status")
    return await _leave_set(kube, balancer, read)


async def _leave_set(kube: KubeApi, balancer: JsonObject, read: LoadBalancer) -> JsonObject:
    namespace, name, found = read.metadata.namespace, read.metadata.name, template_hash(read)
    labels = {**read.spec.selector.match_labels, TEMPLATE_HASH_LABEL: found}
    machine = {
        "infrastructure": at(balancer, "spec", "infrastructure"),
        "portID": read.status.port_id,
        "loadBalancerRef": {"name": name, "namespace": namespace},
    }
    body = {
        "metadata": {
            "name": f"{name}-{found}",
            "labels": labels,
            "annotations": _REVISION,
            "finalizers": [SET_FINALIZER],
            "ownerReferences": [_owner(LOAD_BALANCER.name, balancer)],
        },
        "spec": {
            "replicas": read.spec.replicas,
            "selector": {"matchLabels": labels},
            "template": {"labels": labels, "spec": machine},
        },
    }
    made = await kube.create(LOAD_BALANCER_SET, body, namespace)
    master = {"type": "HasKeepalivedMaster", "status": "True", "reason": "KeepalivedMasterInSet", "message": ""}
    status = {
        "replicas": read.spec.replicas,
        "readyReplicas": read.spec.replicas,
        "conditions": [{**master, "lastTransitionTime": _long_ago()}],
    }
    await kube.patch(
        LOAD_BALANCER_SET, namespace, text(made, "metadata", "name"), {"status": status}, subresource="status"
    )
    return made


async def leave_machine(kube: KubeApi, machine_set: JsonObject, number: int, made: MadeMachine) -> None:
    namespace, name = text(machine_set, "metadata", "namespace"), machine_name(machine_set, number)
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
    status = {
        "conditions": [{**each, "lastTransitionTime": _long_ago()} for each in conditions(machine, master=number == 0)],
        "metrics": metrics(),
        "serverID": made.server,
        "defaultPortID": made.own,
        "defaultPortName": path,
        "defaultPortIP": made.own_address,
        "creationTimestamp": _long_ago(),
        "lastOpenstackReconcile": _long_ago(),
        "serviceAccountName": path,
        "serviceAccountSecretName": path,
        "roleName": path,
    }
    await kube.patch(LOAD_BALANCER_MACHINE, namespace, name, {"status": status}, subresource="status")


def _owner(kind: str, owner: JsonObject) -> JsonObject:
    meta = mapping(owner, "metadata")
    return {"apiVersion": API_VERSION, "kind": kind, "name": text(meta, "name"), "uid": text(meta, "uid")}


def _long_ago() -> str:
    return timestamp(datetime.now(UTC) - _AGE)
