"""Names of yawol, on which machine images, agents and clients rely; Perdure's additions come last."""

from __future__ import annotations

GROUP = "yawol.stackit.cloud"
VERSION = "v1beta1"
API_VERSION = f"{GROUP}/{VERSION}"

# The Service's finalizer is set in the served cluster, the other finalizers in Perdure's own cluster.
SERVICE_FINALIZER = "stackit.cloud/loadbalancer"
LOAD_BALANCER_FINALIZER = "yawol.stackit.cloud/controller2"
SET_FINALIZER = "stackit.cloud/loadbalancermachine"
MACHINE_FINALIZER = "yawol.stackit.cloud/controller4"

# Labels of a LoadBalancer's sets and machines, and annotations of LoadBalancer, sets and machines.
LOAD_BALANCER_LABEL = f"{GROUP}/loadbalancer"
TEMPLATE_HASH_LABEL = "lbm-template-hash"
REVISION_ANNOTATION = f"loadbalancer.{GROUP}/revision"
SERVICE_NAME_ANNOTATION = f"{GROUP}/serviceName"  # `namespace/name` of the Service, on a LoadBalancer
CREATION_TIMEOUT_ANNOTATION = f"{GROUP}/creationTimeout"  # of a machine: its boot timeout
AD_HOC_DEBUG_ANNOTATION = f"{GROUP}/adHocDebug"
AD_HOC_DEBUG_KEY_ANNOTATION = f"{GROUP}/adHocDebugSSHKey"
KEEP_FLOATING_IP_ANNOTATION = f"{GROUP}/keepFloatingIP"
KEEP_PORT_ANNOTATION = f"{GROUP}/keepPort"
KEEP_SECURITY_GROUP_ANNOTATION = f"{GROUP}/keepSecurityGroup"
LOG_LABEL_PREFIX = f"logging.{GROUP}/"  # of Services: labels of the forwarded logs

HASH_LENGTH = 16  # of every hash in names and labels

# The class that is served if none is configured.
DEFAULT_CLASS = "stackit.cloud/yawol"

# Event recorders; Events that the first one records on a LoadBalancer are forwarded to its Service.
LOAD_BALANCER_COMPONENT = "yawol-service"
SERVICE_COMPONENT = "yawol-cloud-controller"

# The key in the Secret with an OpenStack project's credentials.
CREDENTIALS_KEY = "cloudprovider.conf"

# Perdure's additions.
NOTHING_MADE_ANNOTATION = "perdure.dev/nothing-made"  # of a LoadBalancer: its project was never reached
BOOT_FAILURES_ANNOTATION = "perdure.dev/boot-failures"  # of a set: the uids of consecutive machines that did not boot
BOOT_FAILED_AT_ANNOTATION = "perdure.dev/boot-failed-at"  # of a set: when the last of these machines failed
READY_SINCE_ANNOTATION = "perdure.dev/ready-since"  # of a set without a master: when all its machines became ready
MARKED_AT_ANNOTATION = "perdure.dev/marked-for-deletion-at"  # of a machine: when it was marked for deletion
GIVEN_UP_ANNOTATION = "perdure.dev/given-up"  # of a machine: why its server can never serve
QUOTA_ANNOTATION = "perdure.dev/waits-for-quota"  # of a machine: the quota's refusal
OUTAGE_ANNOTATION = "perdure.dev/waits-for-openstack"  # of a machine without a server: OpenStack's outage
BOOTS_SINCE_ANNOTATION = "perdure.dev/boots-since"  # of a machine that waited for OpenStack: when its boot time began
DRIFT_ANNOTATION = "perdure.dev/drift-seen-at"  # of a LoadBalancer or machine: when the sweep last found drift
