"""OpenStack load balancers: LoadBalancer, LoadBalancerSet, LoadBalancerMachine of yawol.stackit.cloud, as in yawol.

docs/loadbalancers.md describes how they work together. Each object is written by its own workflow, except:

| object | part | writer |
|---|---|---|
| LoadBalancer | spec, annotation `serviceName` | the Service's workflow, and people (`kubectl scale`) |
| LoadBalancerSet | creation, replicas, revision, deletion | the LoadBalancer's workflow; people may change replicas |
| LoadBalancerMachine | creation, revision, deletion mark, deletion | the set's workflow; people may delete a machine |
| LoadBalancer, LoadBalancerMachine | annotation `drift-seen-at` | the sweep sets it; the object's workflow removes it |
| LoadBalancerMachine | conditions and metrics in its status | the agent on the machine replaces each list as a whole |
"""

from functools import partial

from domain.identity import Key, Kind
from domain.loadbalancers.constants import (
    GROUP,
    LOAD_BALANCER_COMPONENT,
    LOAD_BALANCER_FINALIZER,
    MACHINE_FINALIZER,
    SERVICE_COMPONENT,
    SERVICE_FINALIZER,
    SET_FINALIZER,
    VERSION,
)

_AREA = "loadbalancers"
_ours = partial(Kind, group=GROUP, version=VERSION, area=_AREA, reporter=LOAD_BALANCER_COMPONENT)

LOAD_BALANCER = _ours(name="LoadBalancer", plural="loadbalancers", finalizer=LOAD_BALANCER_FINALIZER)
LOAD_BALANCER_SET = _ours(name="LoadBalancerSet", plural="loadbalancersets", finalizer=SET_FINALIZER, reporter="")
LOAD_BALANCER_MACHINE = _ours(name="LoadBalancerMachine", plural="loadbalancermachines", finalizer=MACHINE_FINALIZER)
SERVICE = Kind(
    name="Service",
    group="",
    version="v1",
    plural="services",
    area=_AREA,
    finalizer=SERVICE_FINALIZER,
    served=True,
    reporter=SERVICE_COMPONENT,
)

# Not a custom resource: one sweep over a project serves all load balancers in it.
OPENSTACK_PROJECTS = Kind(name="OpenStackProjects", group="", version="", plural="", area=_AREA)
THE_PROJECTS = Key(kind=OPENSTACK_PROJECTS.name, namespace="", name="all", uid="0")

STANDING = (THE_PROJECTS,)
CUSTOM_KINDS = (LOAD_BALANCER, LOAD_BALANCER_SET, LOAD_BALANCER_MACHINE)
KINDS = (*CUSTOM_KINDS, SERVICE, OPENSTACK_PROJECTS)
