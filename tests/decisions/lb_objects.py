"""Objects of the load balancers' area for tests, and a moment to look at them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from domain.loadbalancers.balancer_world import BalancerWorld, LookAtBalancer
from domain.loadbalancers.cloud.machine import ServedBalancer
from domain.loadbalancers.cloud.objects import LoadBalancerCloud, MachineCloud
from domain.loadbalancers.constants import MARKED_AT_ANNOTATION
from domain.loadbalancers.fleet_silence import Fleet, fleet_that_reported, report_of
from domain.loadbalancers.machine.world import MachineWorld
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine, LoadBalancerSet
from domain.loadbalancers.services.objects import Installation, Node, Service
from domain.loadbalancers.set_world import SetWorld
from domain.refusal import ErrorType, Refusal
from domain.resource import timestamp
from domain.writes import merge

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)

Json = dict[str, Any]

INFRASTRUCTURE: Json = {
    "defaultNetwork": {"floatingNetID": "ext-net", "networkID": "net"},
    "flavor": {"flavorID": "small"},
    "image": {"imageID": "alpine"},
    "authSecretRef": {"name": "cloud", "namespace": "lbs"},
}

# What the API server and yawol add to a load balancer with two more networks.
ADDED_BY_YAWOL: Json = {
    "debugSettings": {"enabled": False},
    "infrastructure": {
        "additionalNetworks": [{"networkID": "net-b"}, {"networkID": "net-a"}],
        "availabilityZone": "",
        "projectID": None,
    },
    "options": {
        "internalLB": False,
        "tcpIdleTimeout": "5m0s",
        "logForward": {"enabled": False, "lokiUrl": "", "labels": {}},
        "serverGroupPolicy": "",
    },
}

INSTALLATION = Installation(
    namespace="lbs",
    secret_name="cloud",
    floating_net_id="ext-net",
    network_id="net",
    flavor_id="small",
    image_id="alpine",
)


def ago(**span: float) -> str:
    """A moment before NOW, as Kubernetes writes it."""
    return timestamp(NOW - timedelta(**span))


LABELS = {"yawol.stackit.cloud/loadbalancer": "yyjki53tcryt5pcw"}


def balancer(**changes: Any) -> LoadBalancer:
    """A LoadBalancer that has everything in the cloud, with changes merged into it."""
    body: Json = {
        "metadata": {
            "name": "web--shop",
            "namespace": "lbs",
            "uid": "lb-uid",
            "creationTimestamp": ago(days=1),
            "annotations": {
                "loadbalancer.yawol.stackit.cloud/revision": "1",
                "yawol.stackit.cloud/serviceName": "web/shop",
            },
        },
        "spec": {
            "selector": {"matchLabels": LABELS},
            "replicas": 1,
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080, "nodePort": 30080}],
            "endpoints": [{"name": "node-a", "addresses": ["10.0.0.1"]}],
            "infrastructure": INFRASTRUCTURE,
        },
        "status": {
            "floatingID": "fip-1",
            "floatingName": "lbs/web--shop",
            "externalIP": "203.0.113.7",
            "portID": "port-1",
            "portName": "lbs/web--shop",
            "portIP": "10.1.0.5",
            "securityGroupID": "sg-1",
            "securityGroupName": "lbs/web--shop",
        },
    }
    return LoadBalancer.model_validate(merge(body, changes))


def machine_set(name: str = "web--shop-aaaa", **changes: Any) -> LoadBalancerSet:
    """A set of one machine, with changes merged into it."""
    labels = {**LABELS, "lbm-template-hash": name.rsplit("-", 1)[-1]}
    body: Json = {
        "metadata": {
            "name": name,
            "namespace": "lbs",
            "uid": f"uid-of-{name}",
            "creationTimestamp": ago(hours=1),
            "labels": labels,
            "annotations": {"loadbalancer.yawol.stackit.cloud/revision": "1"},
            "ownerReferences": [
                {
                    "apiVersion": "yawol.stackit.cloud/v1beta1",
                    "kind": "LoadBalancer",
                    "name": "web--shop",
                    "uid": "lb-uid",
                }
            ],
        },
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "labels": labels,
                "spec": {
                    "infrastructure": INFRASTRUCTURE,
                    "portID": "port-1",
                    "loadBalancerRef": {"name": "web--shop", "namespace": "lbs"},
                },
            },
        },
    }
    return LoadBalancerSet.model_validate(merge(body, changes))


def condition(type_: str, status: str = "True", *, beat: str = "", since: str = "", reason: str = "R") -> Json:
    """A machine's condition, by default fresh and long true."""
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "lastHeartbeatTime": beat or ago(seconds=10),
        "lastTransitionTime": since or ago(minutes=30),
    }


def healthy(*, beat: str = "", since: str = "", master: bool = False) -> list[Json]:
    """The conditions of a machine that serves."""
    names = ["ConfigReady", "EnvoyReady", "EnvoyUpToDate"]
    found = [condition(name, beat=beat, since=since) for name in names]
    return [*found, condition("KeepalivedMaster", str(master), beat=beat, since=since)]


def machine(
    name: str = "web--shop-aaaa-00001", conditions: list[Json] | None = None, **changes: Any
) -> LoadBalancerMachine:
    """A machine, a day old by default, with changes merged into it."""
    body: Json = {
        "metadata": {
            "name": name,
            "namespace": "lbs",
            "uid": f"uid-of-{name}",
            "creationTimestamp": ago(days=1),
            "annotations": {"loadbalancer.yawol.stackit.cloud/revision": "1"},
        },
        "spec": {
            "infrastructure": {"defaultNetwork": {"networkID": "net"}, "flavor": {"flavorID": "small"}},
            "portID": "port-1",
            "loadBalancerRef": {"name": "web--shop", "namespace": "lbs"},
        },
        "status": {"conditions": conditions or [], "serverID": "server-1"},
    }
    return LoadBalancerMachine.model_validate(merge(body, changes))


def fleet_of(machines: Iterable[LoadBalancerMachine], now: datetime) -> Fleet:
    """All machines of the installation together."""
    return fleet_that_reported(map(report_of, machines), now)


def machine_world(
    of: LoadBalancerMachine,
    its: LoadBalancer | None = None,
    cloud: MachineCloud | None = None,
    *,
    granted: bool = True,
    **changes: Any,
) -> MachineWorld:
    """What the decision about a machine sees; without a cloud all is there as it should be."""
    served = ServedBalancer.of(its) if its else None
    mark = of.metadata.annotations.get(MARKED_AT_ANNOTATION, "new")
    world = MachineWorld(key=of.key, machine=of, balancer=served, **changes)
    world = world.learn(granted=mark if granted else "", settled=world.look)
    return world.with_cloud(cloud, NOW) if cloud is not None else world


def balancer_world(
    of: LoadBalancer,
    cloud: LoadBalancerCloud | None = None,
    sets: Iterable[LoadBalancerSet] = (),
    refusal: Refusal | None = None,
) -> BalancerWorld:
    """What the decision about a LoadBalancer sees; without a cloud all is as it should be, or its look was refused."""
    world = BalancerWorld(key=of.key, balancer=of, sets=tuple(sets))
    if refusal is not None:
        return world.model_copy(update={"refusals": {LookAtBalancer.activity: refusal}})
    return world.with_cloud(cloud, NOW) if cloud is not None else world.learn(settled=world.look)


def set_world(of: LoadBalancerSet, *machines: LoadBalancerMachine, **changes: Any) -> SetWorld:
    """What the decision about a set sees; other machines report."""
    fleet = Fleet(reported=9, reporting=9)
    return SetWorld(key=of.key, machine_set=of, machines=machines, fleet=fleet, **changes)


def refusal(type_: ErrorType, message: str, code: str = "") -> Refusal:
    """Something was refused now."""
    return Refusal(type=type_, message=message, code=code, at=NOW)


def service(annotations: dict[str, str] | None = None, **changes: Any) -> Service:
    """A Service that is served, its annotations without their prefix, with changes merged into it."""
    body: Json = {
        "metadata": {
            "name": "shop",
            "namespace": "web",
            "finalizers": ["stackit.cloud/loadbalancer"],
            "annotations": {
                name if "/" in name else f"yawol.stackit.cloud/{name}": text
                for name, text in (annotations or {}).items()
            },
        },
        "spec": {
            "type": "LoadBalancer",
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080, "nodePort": 30080}],
        },
        "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7", "ipMode": "VIP"}]}},
    }
    return Service.model_validate(merge(body, changes))


def node(name: str, *addresses: str, ready: str = "True", **changes: Any) -> Node:
    body: Json = {
        "metadata": {"name": name},
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "addresses": [{"type": "InternalIP", "address": each} for each in addresses]
            + [{"type": "ExternalIP", "address": "198.51.100.1"}, {"type": "Hostname", "address": name}],
        },
    }
    return Node.model_validate(merge(body, changes))
