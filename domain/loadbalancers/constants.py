"""Names, texts and timings of the load balancers' area, as the replaced yawol has them.

Names that the machine image, running agents or clients know are yawol's own; what Perdure adds beside them stands last
and begins with `perdure.dev/`.
"""

from __future__ import annotations

from datetime import timedelta

GROUP = "yawol.stackit.cloud"
VERSION = "v1beta1"
API_VERSION = f"{GROUP}/{VERSION}"

# Finalizers; the Service's is put on objects of the cluster that the load balancers serve.
SERVICE_FINALIZER = "stackit.cloud/loadbalancer"
LOAD_BALANCER_FINALIZER = "yawol.stackit.cloud/controller2"
SET_FINALIZER = "stackit.cloud/loadbalancermachine"
MACHINE_FINALIZER = "yawol.stackit.cloud/controller4"

# Labels of a LoadBalancer's sets and machines, and annotations of all three.
LOAD_BALANCER_LABEL = f"{GROUP}/loadbalancer"
TEMPLATE_HASH_LABEL = "lbm-template-hash"
REVISION_ANNOTATION = f"loadbalancer.{GROUP}/revision"
SERVICE_NAME_ANNOTATION = f"{GROUP}/serviceName"  # `namespace/name` of the Service, on a LoadBalancer
CREATION_TIMEOUT_ANNOTATION = f"{GROUP}/creationTimeout"  # of a machine: how long it may take to report
AD_HOC_DEBUG_ANNOTATION = f"{GROUP}/adHocDebug"
AD_HOC_DEBUG_KEY_ANNOTATION = f"{GROUP}/adHocDebugSSHKey"
KEEP_FLOATING_IP_ANNOTATION = f"{GROUP}/keepFloatingIP"
KEEP_PORT_ANNOTATION = f"{GROUP}/keepPort"
KEEP_SECURITY_GROUP_ANNOTATION = f"{GROUP}/keepSecurityGroup"
LOG_LABEL_PREFIX = f"logging.{GROUP}/"  # of Services: each is a label of the forwarded logs

HASH_LENGTH = 16  # of every hash that names or labels carry

# Which Services are served when nothing is configured.
DEFAULT_CLASS = "stackit.cloud/yawol"

# The event recorders' names; the first one's Events on a LoadBalancer are forwarded to its Service.
LOAD_BALANCER_COMPONENT = "yawol-service"
SET_COMPONENT = "LoadBalancerSet"  # on sets, and on machines that a set makes
SERVICE_COMPONENT = "yawol-cloud-controller"

# The key of the Secret with an OpenStack project's credentials.
CREDENTIALS_KEY = "cloudprovider.conf"

# Leader leases of the replaced controllers: Perdure keeps still while one is live.
SERVICE_LEASE = "4c878ae2.stackit.cloud"
LOAD_BALANCER_LEASE = "3a7ac996.stackit.cloud"
SET_LEASE = "rgp5vg43.stackit.cloud"
MACHINE_LEASE = "tanf7ges.stackit.cloud"

# How often the cloud is compared with what should be.
SWEEP_INTERVAL = timedelta(minutes=5)

# A machine's health: how old a report may be, how long a fault may last, how long a new machine may take to report, and
# how long a machine that is given up may still recover.
HEALTH_WINDOW = timedelta(seconds=180)
BOOT_TIMEOUT = timedelta(minutes=10)
DELETION_GRACE = timedelta(minutes=2)

# Rollout: how long the new machines must have held (or lacked) the virtual address before the old ones go.
MASTER_STABLE = timedelta(minutes=2)
MASTER_LACKING = timedelta(minutes=10)
MASTER_UNKNOWN = timedelta(minutes=15)

# Empty sets of former templates that are kept; yawol keeps all of them.
SETS_KEPT = 3

# Pauses before the next machine after a second machine of the same template in a row that did not boot.
FIRST_BOOT_PAUSE = timedelta(minutes=1)
LONGEST_BOOT_PAUSE = timedelta(minutes=30)

# What Perdure adds.
NOTHING_MADE_ANNOTATION = "perdure.dev/nothing-made"  # of a LoadBalancer: its project was never reached
BOOT_FAILURES_ANNOTATION = "perdure.dev/boot-failures"  # of a set: the uids of the machines in a row that did not boot
BOOT_FAILED_AT_ANNOTATION = "perdure.dev/boot-failed-at"  # of a set: when the last of them was given up
READY_SINCE_ANNOTATION = "perdure.dev/ready-since"  # of a set: when all its machines had become ready, none the master
MARKED_AT_ANNOTATION = "perdure.dev/marked-for-deletion-at"  # of a machine: since when it is given up
GIVEN_UP_ANNOTATION = "perdure.dev/given-up"  # of a machine: why its server will never serve
QUOTA_ANNOTATION = "perdure.dev/waits-for-quota"  # of a machine: what the project's quota refused
OUTAGE_ANNOTATION = "perdure.dev/waits-for-openstack"  # of a machine without a server: why OpenStack cannot make it
BOOTS_SINCE_ANNOTATION = "perdure.dev/boots-since"  # of a machine that waited for OpenStack: when its time began
DRIFT_ANNOTATION = "perdure.dev/drift-seen-at"  # of any: when the sweep last found that it differs from the cloud
