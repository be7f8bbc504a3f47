"""EC2 instances of Cluster API clusters: events of EC2, Auto Scaling, Health and Spot, and the reactions to them.

    SQS message ─► message_unwrapping ─► event_parser ─► event_routing ─► event_record
                ─► instance_lifecycle ─► actions

All kinds but InterruptionPolicy belong to Cluster API, its AWS provider or Kubernetes, so Perdure installs no
definitions of them. A lifecycle belongs to an EC2 instance or to an Auto Scaling group, not to a Kubernetes object, and
has the name of the instance or group in AWS.

| what | written by |
|---|---|
| labels `ec2-instance-state` and `ec2-instance-interruption` | the instance's workflow |
| label `asg-instance-state` | the group's workflow |
| annotation `perdure.dev/instance-events` | the workflow that writes the object's labels |
| queues and rules of a served account and region | the queue's own workflow |
| replicas and `perdure.dev/replacing` of a MachineDeployment | the instance's workflow, while it replaces a Machine |
| a Machine's deletion, a Node's cordon and Pods' evictions | the instance's workflow, where the policy asks for it |
| everything else of these objects | Cluster API, its AWS provider, the kubelet |
"""

from domain.identity import Key, Kind
from domain.instances.constants import (
    CLUSTER_GROUP,
    CLUSTER_VERSION,
    CONTROL_PLANE_GROUP,
    GROUP_WORKFLOW,
    INFRASTRUCTURE_GROUP,
    INFRASTRUCTURE_VERSION,
    INSTANCE_WORKFLOW,
    POLICY_GROUP,
    POLICY_VERSION,
    SWEEP_WORKFLOW,
    TOPOLOGY_WORKFLOW,
)

_AREA = "instances"


def _kind(name: str, group: str, version: str, plural: str = "") -> Kind:
    plural = plural or f"{name.lower()}s"
    return Kind(name=name, group=group, version=version, plural=plural, area=_AREA, lifecycle=False)


AWS_MACHINE = _kind("AWSMachine", INFRASTRUCTURE_GROUP, INFRASTRUCTURE_VERSION)
AWS_MACHINE_POOL = _kind("AWSMachinePool", INFRASTRUCTURE_GROUP, INFRASTRUCTURE_VERSION)
MACHINE = _kind("Machine", CLUSTER_GROUP, CLUSTER_VERSION)
MACHINE_DEPLOYMENT = _kind("MachineDeployment", CLUSTER_GROUP, CLUSTER_VERSION)
MACHINE_SET = _kind("MachineSet", CLUSTER_GROUP, CLUSTER_VERSION)
# A Node of Perdure's own cluster, even if other areas serve another cluster.
NODE = _kind("Node", "", "v1")

# These kinds are read to find the AWS account of a cluster's machines.
AWS_CLUSTER = _kind("AWSCluster", INFRASTRUCTURE_GROUP, INFRASTRUCTURE_VERSION)
AWS_CLUSTER_ROLE_IDENTITY = _kind(
    "AWSClusterRoleIdentity", INFRASTRUCTURE_GROUP, INFRASTRUCTURE_VERSION, "awsclusterroleidentities"
)
AWS_MANAGED_CONTROL_PLANE = _kind("AWSManagedControlPlane", CONTROL_PLANE_GROUP, INFRASTRUCTURE_VERSION)

INTERRUPTION_POLICY = _kind("InterruptionPolicy", POLICY_GROUP, POLICY_VERSION, "interruptionpolicies")

EXTERNAL_KINDS = (AWS_MACHINE, AWS_MACHINE_POOL, MACHINE, NODE)
REPORTED_KINDS = (*EXTERNAL_KINDS, MACHINE_DEPLOYMENT)

# These have no custom resources.
EC2_INSTANCE = Kind(
    name=INSTANCE_WORKFLOW, group="", version="", plural="", area=_AREA, of_cluster=False, reporter="perdure"
)
AUTO_SCALING_GROUP = Kind(name=GROUP_WORKFLOW, group="", version="", plural="", area=_AREA, of_cluster=False)
INSTANCE_SWEEP = Kind(name=SWEEP_WORKFLOW, group="", version="", plural="", area=_AREA)
THE_SWEEP = Key(kind=INSTANCE_SWEEP.name, namespace="", name="all", uid="0")

EVENT_TOPOLOGY = Kind(name=TOPOLOGY_WORKFLOW, group="", version="", plural="", area=_AREA)

KINDS = (EC2_INSTANCE, AUTO_SCALING_GROUP, INSTANCE_SWEEP, EVENT_TOPOLOGY, INTERRUPTION_POLICY)
