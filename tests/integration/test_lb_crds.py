"""The definitions of the load balancers' area on a real API server, with objects as yawol and clients write them."""

from __future__ import annotations

from typing import Any

import pytest
from crd_lab import MODELS, NAMESPACE_NAME, assert_refused, assert_stored, kube, remove, store, written_objects

from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.new_machine import machine_document
from domain.loadbalancers.new_set import set_document
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine
from domain.loadbalancers.services.objects import Installation, Node, Service
from domain.loadbalancers.services.synchronization import work_for
from domain.loadbalancers.template_hash import template_hash
from engine.kube import KubeApi

__all__ = ["kube"]  # the fixture
pytestmark = pytest.mark.integration

Json = dict[str, Any]

INFRASTRUCTURE: Json = {"authSecretRef": {}, "flavor": {}, "image": {}}
MACHINE: Json = {
    "infrastructure": INFRASTRUCTURE,
    "portID": "port",
    "loadBalancerRef": {"name": "web--shop", "namespace": "lbs"},
}
OBJECTS = written_objects("loadbalancers")
LEAST: Json = {"selector": {}, "infrastructure": INFRASTRUCTURE}

REFUSED: list[tuple[Kind, Json, str]] = [
    (LOAD_BALANCER, {"selector": {}}, "spec.infrastructure: Required"),
    (LOAD_BALANCER, {"infrastructure": LEAST["infrastructure"]}, "spec.selector: Required"),
    *(
        (
            LOAD_BALANCER,
            {**LEAST, "infrastructure": {k: v for k, v in LEAST["infrastructure"].items() if k != name}},
            f"spec.infrastructure.{name}: Required",
        )
        for name in ("authSecretRef", "flavor", "image")
    ),
    (LOAD_BALANCER, {**LEAST, "replicas": -1}, "spec.replicas: Invalid"),
    (LOAD_BALANCER, {**LEAST, "endpoints": [{"addresses": []}]}, r"endpoints\[0\].name: Required"),
    (LOAD_BALANCER, {**LEAST, "ports": [{"name": "a"}]}, r"ports\[0\].port: Required"),
    (LOAD_BALANCER, {**LEAST, "options": {"tcpProxyProtocolPortFilter": ["80"]}}, "PortFilter"),
    (LOAD_BALANCER_SET, {"template": {"labels": {}, "spec": MACHINE}}, "spec.selector: Required"),
    (LOAD_BALANCER_SET, {"selector": {}}, "spec.template: Required"),
    (LOAD_BALANCER_SET, {"selector": {}, "template": {"spec": MACHINE}}, "spec.template.labels: Required"),
    (LOAD_BALANCER_MACHINE, {k: v for k, v in MACHINE.items() if k != "portID"}, "spec.portID: Required"),
    (LOAD_BALANCER_MACHINE, {**MACHINE, "loadBalancerRef": {"name": "a"}}, "loadBalancerRef.namespace: Required"),
]


@pytest.mark.parametrize("name", sorted(OBJECTS))
async def test_objects_of_yawol_are_stored_and_read_unchanged(kube: KubeApi, name: str) -> None:
    await assert_stored(kube, *OBJECTS[name])


@pytest.mark.parametrize(("kind", "spec", "complaint"), REFUSED, ids=lambda value: str(value)[:60])
async def test_a_load_balancer_kind_is_refused_as_ever(kube: KubeApi, kind: Kind, spec: Json, complaint: str) -> None:
    await assert_refused(kube, kind, spec, complaint)


async def test_defaults_are_filled_in_as_ever(kube: KubeApi) -> None:
    spec = {**LEAST, "ports": [{"port": 80}], "options": {}}
    stored = await store(kube, LOAD_BALANCER, "least", {"spec": spec})
    assert stored["spec"] == {
        **LEAST,
        "replicas": 1,
        "ports": [{"port": 80, "protocol": "TCP"}],
        "options": {"internalLB": False},
    }


@pytest.mark.parametrize("name", ["everything-lb", "everything-lbs"])
async def test_replicas_are_scaled_by_their_subresource(kube: KubeApi, name: str) -> None:
    kind, written = OBJECTS[name]
    await store(kube, kind, name, written)
    scale = await kube.patch(kind, NAMESPACE_NAME, name, {"spec": {"replicas": 5}}, subresource="scale")
    assert (scale["kind"], scale["spec"], scale["status"]) == ("Scale", {"replicas": 5}, {"replicas": 2})
    stored = await kube.get(kind, NAMESPACE_NAME, name)
    assert stored["spec"]["replicas"] == 5  # type: ignore[index]


async def test_objects_made_for_a_service_are_stored_and_need_no_patch_afterwards(kube: KubeApi) -> None:
    service = Service.model_validate(
        {
            "metadata": {"name": "shop", "namespace": "web", "finalizers": ["stackit.cloud/loadbalancer"]},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "targetPort": 80, "nodePort": 30080}]},
        }
    )
    addresses = [{"type": "InternalIP", "address": "10.0.0.1"}]
    node = Node.model_validate({"metadata": {"name": "node"}, "status": {"addresses": addresses}})
    installation = Installation(
        namespace=NAMESPACE_NAME,
        secret_name="s",
        floating_net_id="e",
        network_id="n",
        flavor_id="f",
        image_id="i",
    )
    body = work_for(service, None, (node,), installation).create
    await remove(kube, LOAD_BALANCER, "web--shop")
    stored = await kube.create(LOAD_BALANCER, body, NAMESPACE_NAME)
    balancer = LoadBalancer.model_validate(stored)
    assert work_for(service, balancer, (node,), installation).patch == {}
    assert template_hash(balancer) == template_hash(LoadBalancer.model_validate(body))


async def test_sets_and_machines_are_stored_as_made(kube: KubeApi) -> None:
    balancer = LoadBalancer.model_validate(
        {
            "metadata": {"name": "web--shop", "namespace": NAMESPACE_NAME, "uid": "u"},
            "spec": OBJECTS["everything-lb"][1]["spec"],
            "status": OBJECTS["everything-lb"][1]["status"],
        }
    )
    hash_ = template_hash(balancer)
    document = set_document(balancer, hash_, 3)
    await remove(kube, LOAD_BALANCER_SET, f"web--shop-{hash_}")
    stored = await kube.create(LOAD_BALANCER_SET, document, NAMESPACE_NAME)
    assert stored["spec"] == document["spec"]
    made = MODELS["LoadBalancerSet"].model_validate(stored)
    machine = machine_document(made, f"web--shop-{hash_}-00001")  # type: ignore[arg-type]
    await remove(kube, LOAD_BALANCER_MACHINE, f"web--shop-{hash_}-00001")
    found = await kube.create(LOAD_BALANCER_MACHINE, machine, NAMESPACE_NAME)
    assert found["spec"] == machine["spec"]
    assert LoadBalancerMachine.model_validate(found).spec.server_group_id == "g"
