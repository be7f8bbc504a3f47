"""EC2 instances of Cluster API clusters: events of EC2, Auto Scaling, Health and Spot, and what follows from them.

| file | says |
|---|---|
| `events.py`, `names.py` | the canonical event and its key; who an instance is |
| `message_unwrapping.py` | what an SQS message's body holds: envelopes, however they were wrapped |
| `event_parser.py`, `event_envelope.py`, `health_events.py` | an envelope as canonical events, or why it holds none |
| `event_routing.py` | whether an event is ours, and which workflows it goes to, in which order |
| `message_acknowledgement.py` | whether a message is deleted, kept or put among the dead letters |
| `event_record.py`, `event_ordering.py` | what one instance's events come to, in whatever order they arrived |
| `event_verification.py` | whether EC2 bears out what an event claims |
| `periodic_resync.py` | events that never came, made of what EC2 says |
| `interruption_causes.py`, `interruption_policy.py` | why an instance is to be given up, and what is wanted then |
| `reactions.py`, `lifecycle_hooks.py` | what is done about it |
| `event_delivery.py`, `instance_decision.py`, `actions.py`, `passes.py` | what workflows get, decide and do |
| `instance_lifecycle.py`, `observed.py` | the lifecycle: from what is observed to what is to be done now |
| `labels.py`, `auto_scaling_groups.py` | what is written on AWSMachine, Node and AWSMachinePool |
| `served_queues.py`, `queues_from_clusters.py` | the accounts, regions and queues that are served |
| `event_topology.py`, `provider_queue_takeover.py`, `permissions.py` | the desired queues, rules and policies |
| `event_topology_upkeep.py` | what of them differs from what stands in AWS, and the lifecycle that keeps them |
| `notices.py` | what is reported as Events, and on which objects |
| `replacements.py` | a replacement that is asked for before a Machine is deleted |
| `policy_selection.py` | which InterruptionPolicy applies to an instance |
| `node_termination_handler_migration.py` | values of another handler's chart as an InterruptionPolicy |
| `resources/` | InterruptionPolicy; of the other kinds the fields that are used |

All kinds but InterruptionPolicy belong to Cluster API, its AWS provider or Kubernetes: Perdure has no definitions of
them to install. None has a workflow per object: lifecycles are those of instances and of Auto Scaling groups, found by
AWS's own names of them.

| what | written by |
|---|---|
| AWSMachine, AWSMachinePool, Machine, MachineDeployment, Node | Cluster API and AWS provider, kubelet, but for |
| labels `ec2-instance-state`, `ec2-instance-interruption`, `perdure.dev/instance-events` | the instance's workflow |
| label `asg-instance-state` | the group's workflow |
| queues, dead letters and rules of the places that are served | the place's own workflow |
| replicas and `perdure.dev/replacing` of a MachineDeployment | the instance's workflow, while it replaces a Machine |
| a Machine's deletion, a Node's cordon and Pods' evictions | the instance's workflow, where policy asks for it |
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
# Of Perdure's own cluster, whichever cluster other areas serve.
NODE = _kind("Node", "", "v1")

# Read for the account of a cluster's machines.
AWS_CLUSTER = _kind("AWSCluster", INFRASTRUCTURE_GROUP, INFRASTRUCTURE_VERSION)
AWS_CLUSTER_ROLE_IDENTITY = _kind(
    "AWSClusterRoleIdentity", INFRASTRUCTURE_GROUP, INFRASTRUCTURE_VERSION, "awsclusterroleidentities"
)
AWS_MANAGED_CONTROL_PLANE = _kind("AWSManagedControlPlane", CONTROL_PLANE_GROUP, INFRASTRUCTURE_VERSION)

INTERRUPTION_POLICY = _kind("InterruptionPolicy", POLICY_GROUP, POLICY_VERSION, "interruptionpolicies")

EXTERNAL_KINDS = (AWS_MACHINE, AWS_MACHINE_POOL, MACHINE, NODE)
REPORTED_KINDS = (*EXTERNAL_KINDS, MACHINE_DEPLOYMENT)

# No custom resources stand behind these.
EC2_INSTANCE = Kind(
    name=INSTANCE_WORKFLOW, group="", version="", plural="", area=_AREA, of_cluster=False, reporter="perdure"
)
AUTO_SCALING_GROUP = Kind(name=GROUP_WORKFLOW, group="", version="", plural="", area=_AREA, of_cluster=False)
INSTANCE_SWEEP = Kind(name=SWEEP_WORKFLOW, group="", version="", plural="", area=_AREA)
THE_SWEEP = Key(kind=INSTANCE_SWEEP.name, namespace="", name="all", uid="0")

EVENT_TOPOLOGY = Kind(name=TOPOLOGY_WORKFLOW, group="", version="", plural="", area=_AREA)

KINDS = (EC2_INSTANCE, AUTO_SCALING_GROUP, INSTANCE_SWEEP, EVENT_TOPOLOGY, INTERRUPTION_POLICY)
