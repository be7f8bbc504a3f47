"""Names of the instances area: those of Cluster API and its AWS provider, and Perdure's own (`perdure.dev/`)."""

from __future__ import annotations

# Perdure's own kinds, without a custom resource.
INSTANCE_WORKFLOW = "Ec2Instance"
GROUP_WORKFLOW = "AutoScalingGroup"
SWEEP_WORKFLOW = "InstanceSweep"
TOPOLOGY_WORKFLOW = "EventTopology"

INFRASTRUCTURE_GROUP = "infrastructure.cluster.x-k8s.io"
INFRASTRUCTURE_VERSION = "v1beta2"
CLUSTER_GROUP = "cluster.x-k8s.io"
CLUSTER_VERSION = "v1beta1"
CONTROL_PLANE_GROUP = "controlplane.cluster.x-k8s.io"

POLICY_GROUP = "perdure.dev"
POLICY_VERSION = "v1alpha1"

CLUSTER_LABEL = f"{CLUSTER_GROUP}/cluster-name"
POOL_LABEL = f"{CLUSTER_GROUP}/pool-name"
DEPLOYMENT_LABEL = f"{CLUSTER_GROUP}/deployment-name"
SET_LABEL = f"{CLUSTER_GROUP}/set-name"
CONTROL_PLANE_LABEL = f"{CLUSTER_GROUP}/control-plane"
# EKS, Karpenter, kOps and eksctl set these labels. If a Node without a Machine has several of them, the first in this
# order names its node group.
NODE_GROUP_LABELS = (
    "eks.amazonaws.com/nodegroup",
    "karpenter.sh/nodepool",
    "kops.k8s.io/instancegroup",
    "alpha.eksctl.io/nodegroup-name",
)
NODE_CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"
PAUSED_ANNOTATION = f"{CLUSTER_GROUP}/paused"
# On a Machine, with any value. A MachineSet that is scaled down deletes a Machine with this annotation first.
DELETE_FIRST_ANNOTATION = f"{CLUSTER_GROUP}/delete-machine"
# On a MachineDeployment whose replicas ClusterClass, or the cluster autoscaler, sets.
TOPOLOGY_LABEL = f"topology.{CLUSTER_GROUP}/owned"
AUTOSCALER_ANNOTATIONS = (
    f"{CLUSTER_GROUP}/cluster-api-autoscaler-node-group-min-size",
    f"{CLUSTER_GROUP}/cluster-api-autoscaler-node-group-max-size",
)
# A condition. Newer controllers set it, even if the object is paused only by its Cluster's `spec.paused`.
PAUSED_CONDITION = "Paused"

# The label wakes the AWS provider's controllers; other tools compare its six values as strings.
STATE_LABEL = "ec2-instance-state"
# From the provider's architecture decision record 0005, which the provider has never implemented.
GROUP_STATE_LABEL = "asg-instance-state"
INTERRUPTION_LABEL = "ec2-instance-interruption"
EVENTS_ANNOTATION = "perdure.dev/instance-events"
LONGEST_ANNOTATION = 4096
# On a Node that Perdure cordoned; the value is the cause. Perdure does not uncordon a Node that a person cordoned.
CORDONED_ANNOTATION = "perdure.dev/cordoned"
# On a Node that Perdure tainted; the value has each taint's key and effect. Perdure does not remove taints of others.
TAINTED_ANNOTATION = "perdure.dev/tainted"
TAINT_KEY = "perdure.dev/interruption"
# A taint. Kubernetes deletes the Node's Pods and detaches their volumes, so only a Node that is shut down may get it.
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
# On a Pod that must not be evicted before the drain's time is over. The second annotation is Karpenter's.
DO_NOT_DISRUPT = ("perdure.dev/do-not-disrupt", "karpenter.sh/do-not-disrupt")

# On a Lease of Perdure's: the machines that are being disrupted, as JSON.
DISRUPTIONS_ANNOTATION = "perdure.dev/instance-disruptions"

# On a MachineDeployment: the Machines that are being replaced before they are deleted, as JSON.
REPLACING_ANNOTATION = "perdure.dev/replacing"

EC2_SOURCE = "aws.ec2"
AUTO_SCALING_SOURCE = "aws.autoscaling"
HEALTH_SOURCE = "aws.health"

STATE_CHANGE = "EC2 Instance State-change Notification"
SPOT_WARNING = "EC2 Spot Instance Interruption Warning"
REBALANCE = "EC2 Instance Rebalance Recommendation"
CAPACITY_WARNING = "EC2 Capacity Reservation Instance Interruption Warning"
LAUNCH_ACTION = "EC2 Instance-launch Lifecycle Action"
TERMINATE_ACTION = "EC2 Instance-terminate Lifecycle Action"
LAUNCH_OK = "EC2 Instance Launch Successful"
LAUNCH_FAILED = "EC2 Instance Launch Unsuccessful"
TERMINATE_OK = "EC2 Instance Terminate Successful"
TERMINATE_FAILED = "EC2 Instance Terminate Unsuccessful"
HEALTH_EVENT = "AWS Health Event"
