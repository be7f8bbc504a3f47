"""Names, texts and timings of the claims area, as the replaced Poolboy has them.

The API group is configurable there, and every label, annotation and finalizer derives from it; so it is here
(`domain/operator_domain.py`). All processes of one installation must be given the same one, and `perdure crds` renders
the definitions for it.
"""

from __future__ import annotations

import re
from datetime import timedelta

from domain.operator_domain import current

VERSION = "v1"

DOMAIN = current()
GROUP = DOMAIN
API_VERSION = f"{DOMAIN}/{VERSION}"

# The bare domain, without a path part; on handles made for claims it is there from birth, and alone.
FINALIZER = DOMAIN
# What Poolboy 1.14 to 1.17 left in its multi-pod mode: cleared on deletion, never written.
FORMER_FINALIZERS = (f"{DOMAIN}/handler",)
OUR_FINALIZERS = (FINALIZER, *FORMER_FINALIZERS)

# Labels.
IGNORE_LABEL = f"{DOMAIN}/ignore"  # its presence counts, whatever the value: the object is left alone completely
CLAIM_NAME_LABEL = f"{DOMAIN}/resource-claim-name"
CLAIM_NAMESPACE_LABEL = f"{DOMAIN}/resource-claim-namespace"
POOL_NAME_LABEL = f"{DOMAIN}/resource-pool-name"
POOL_NAMESPACE_LABEL = f"{DOMAIN}/resource-pool-namespace"
POOL_SCALING_NAME_LABEL = f"{DOMAIN}/resource-pool-scaling-name"
HANDLER_INDEX_LABEL = f"{DOMAIN}/resource-handler-idx"  # the shard of a former installation; read by nobody here

# Annotations of claims.
INIT_TIMESTAMP_ANNOTATION = f"{DOMAIN}/resource-claim-init-timestamp"  # its presence means: defaults are applied
POOL_NAME_ANNOTATION = f"{DOMAIN}/resource-pool-name"  # set by users: bind to handles of that pool only

# Annotations of managed resources. The claim's and the pool's are there while the handle has one.
RESOURCE_PROVIDER_NAME_ANNOTATION = f"{DOMAIN}/resource-provider-name"
RESOURCE_PROVIDER_NAMESPACE_ANNOTATION = f"{DOMAIN}/resource-provider-namespace"
RESOURCE_HANDLE_NAME_ANNOTATION = f"{DOMAIN}/resource-handle-name"
RESOURCE_HANDLE_NAMESPACE_ANNOTATION = f"{DOMAIN}/resource-handle-namespace"
RESOURCE_HANDLE_UID_ANNOTATION = f"{DOMAIN}/resource-handle-uid"
RESOURCE_INDEX_ANNOTATION = f"{DOMAIN}/resource-index"
RESOURCE_CLAIM_NAME_ANNOTATION = f"{DOMAIN}/resource-claim-name"
RESOURCE_CLAIM_NAMESPACE_ANNOTATION = f"{DOMAIN}/resource-claim-namespace"
RESOURCE_POOL_NAME_ANNOTATION = f"{DOMAIN}/resource-pool-name"
RESOURCE_POOL_NAMESPACE_ANNOTATION = f"{DOMAIN}/resource-pool-namespace"
REQUESTER_USER_ANNOTATION = f"{DOMAIN}/resource-requester-user"
REQUESTER_EMAIL_ANNOTATION = f"{DOMAIN}/resource-requester-email"
REQUESTER_NAME_ANNOTATION = f"{DOMAIN}/resource-requester-name"
REQUESTER_PREFERRED_USERNAME_ANNOTATION = f"{DOMAIN}/resource-requester-preferred-username"
HANDLE_DELETED_ANNOTATION = f"{DOMAIN}/resource-handle-deleted"  # a timestamp, written just before the deletion
# The one update filter that every provider has: these annotations are kept current whatever the provider allows.
OWN_ANNOTATIONS_PATH = rf"/metadata/annotations/{re.escape(DOMAIN)}~1resource-.*"

# Not the operator's: who asked for the claim's Namespace (OpenShift writes it).
NAMESPACE_REQUESTER_ANNOTATION = "openshift.io/requester"

# Under which handles write the objects that they manage. It is another one than that of Perdure's other writes: such an
# object may have a lifecycle of its own here (an AccountClaim, another ResourceClaim), to which those writes are news,
# as its status is to the handle.
RESOURCE_FIELD_MANAGER = "perdure-handles"

# Texts that clients compare.
APPROVAL_PENDING_MESSAGE = "Approval pending."
CHECK_FAILED = "Validation check failed: {name}"
CHECK_RAISED = 'Validation check "{name}" failed with exception: {error}'
PARAMETER_IMMUTABLE = "Parameter {name} is immutable."
PARAMETER_SCHEMA_FAILED = "Parameter {name} schema validation failed: {error}"
PARAMETER_CHECK_FAILED = "Parameter {name} failed check: {check}"
PARAMETER_CHECK_RAISED = "Parameter {name} exception on check {check}: {error}"
PARAMETER_REQUIRED = "Parameter {name} is required."
PARAMETER_UNKNOWN = "No such parameter {name}."

# Kubernetes Events about lifespans, as Poolboy 1.16 on posts them.
EVENT_COMPONENT = "poolboy"
LIFESPAN_EVENT_ACTION = "LifespanChange"
LIFESPAN_END_CHANGED = "Lifespan end changed"
LIFESPAN_END_CLEARED = "Lifespan end cleared"

# Handles and what they manage.
HANDLE_NAME_PREFIX = "guid-"
HANDLE_SUFFIX_LENGTH = 5

DEFAULT_ALLOWED_OPS = ("add", "remove", "replace")

# A handle that ends sooner than this is bound by no claim.
NEAR_EXPIRY = timedelta(seconds=120)

# The defaults of Poolboy's intervals. Here they are upper bounds: events are noticed when they happen, and only
# templates that depend on time are rendered anew at the handles' interval.
MANAGE_CLAIMS_INTERVAL = timedelta(seconds=60)
MANAGE_HANDLES_INTERVAL = timedelta(seconds=60)
MANAGE_POOLS_INTERVAL = timedelta(seconds=10)
RESOURCE_REFRESH_INTERVAL = timedelta(seconds=600)
# One slow look covers what is not watched, such as the requester of a namespace.
SAFETY_RESYNC = timedelta(minutes=10)

# Poolboy's variables about its own processes and endpoints: accepted, and said in one log line to be without effect.
IGNORED_VARIABLES = (
    "KOPF_OPTIONS",
    "METRICS_ENABLED",
    "METRICS_PORT",
    "OPERATOR_MODE",
    "OPERATOR_VERSION",
    "RESOURCE_HANDLER_COUNT",
    "RESOURCE_HANDLER_IDX",
    "RESOURCE_HANDLER_RESOURCES",
    "RESOURCE_WATCH_RESOURCES",
    "WATCH_NAME",
)
