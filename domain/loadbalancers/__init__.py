"""OpenStack load balancers: LoadBalancer, LoadBalancerSet, LoadBalancerMachine of yawol.stackit.cloud, as in yawol.

A Service of type LoadBalancer becomes a LoadBalancer: a floating IP, a port that carries the virtual address, a
security group and perhaps a server group. Its machines come in sets, one set per template: a change of what machines
are made from makes a new set beside the old one, and the old one is emptied when the new one holds the address. On each
machine an agent turns the LoadBalancer's ports and endpoints into Envoy's configuration and reports in the machine's
status.

| file | says |
|---|---|
| `services/` | what a Service asks for, and what it is told |
| `balancer.py` | what to do now for a LoadBalancer: `cloud/` for OpenStack, `rollout.py` for its sets |
| `machine_set.py` | what to do now for a set: `scaling.py`, by `health.py`, `boots.py` and `fleet.py` |
| `machine/` | what to do now for a machine, and what it is given at birth |
| `envoy.py` | what Envoy is told on a machine |
| `hashes.py`, `names.py`, `migration.py` | what is derived, and what older releases left |

Who writes an object at each moment of its life:

| object | what | writer |
|---|---|---|
| Service | finalizer, ingress address, Events | the LoadBalancer's side of the Service |
| LoadBalancer | spec, `serviceName` | the Service's side, and people (`kubectl scale`) |
| LoadBalancer | revision, finalizer, status | the LoadBalancer's workflow |
| LoadBalancerSet | creation, replicas, revision, removal | the LoadBalancer's workflow; replicas also people |
| LoadBalancerSet | finalizer, status, boot failures | the set's workflow |
| LoadBalancerMachine | creation, revision, mark, removal | the set's workflow; removal also people |
| LoadBalancerMachine | finalizer, the identifiers in its status | the machine's workflow |
| all three | `drift-seen-at` | the sweep over the projects; its own workflow takes it off |
| LoadBalancerMachine | conditions and metrics in its status | the agent on the machine, as a whole list each |
"""

from functools import partial

from domain.identity import Key, Kind
from domain.loadbalancers.constants import (
    GROUP,
    LOAD_BALANCER_FINALIZER,
    MACHINE_FINALIZER,
    SERVICE_FINALIZER,
    SET_FINALIZER,
    VERSION,
)

_AREA = "loadbalancers"
_ours = partial(Kind, group=GROUP, version=VERSION, area=_AREA)

LOAD_BALANCER = _ours(name="LoadBalancer", plural="loadbalancers", finalizer=LOAD_BALANCER_FINALIZER)
LOAD_BALANCER_SET = _ours(name="LoadBalancerSet", plural="loadbalancersets", finalizer=SET_FINALIZER)
LOAD_BALANCER_MACHINE = _ours(name="LoadBalancerMachine", plural="loadbalancermachines", finalizer=MACHINE_FINALIZER)
SERVICE = Kind(
    name="Service", group="", version="v1", plural="services", area=_AREA, finalizer=SERVICE_FINALIZER, served=True
)

# No custom resource: one look at a project serves all that live there.
OPENSTACK_PROJECTS = Kind(name="OpenStackProjects", group="", version="", plural="", area=_AREA)
THE_PROJECTS = Key(kind=OPENSTACK_PROJECTS.name, namespace="", name="all", uid="0")

STANDING = (THE_PROJECTS,)
CUSTOM_KINDS = (LOAD_BALANCER, LOAD_BALANCER_SET, LOAD_BALANCER_MACHINE)
KINDS = (*CUSTOM_KINDS, SERVICE, OPENSTACK_PROJECTS)
