"""The names and values of the replaced Poolboy; those with its domain are in `domain_names.py`."""

from __future__ import annotations

from datetime import timedelta

VERSION = "v1"

# OpenShift's: the requester of the Namespace.
NAMESPACE_REQUESTER_ANNOTATION = "openshift.io/requester"

# For handles' writes to managed resources. It differs from Perdure's other field manager, because such a resource may
# have its own lifecycle here (an AccountClaim), for which those writes are news.
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

# As Poolboy 1.16 on posts them.
EVENT_COMPONENT = "poolboy"
LIFESPAN_EVENT_ACTION = "LifespanChange"
LIFESPAN_END_CHANGED = "Lifespan end changed"
LIFESPAN_END_CLEARED = "Lifespan end cleared"

HANDLE_NAME_PREFIX = "guid-"
HANDLE_SUFFIX_LENGTH = 5

DEFAULT_ALLOWED_OPS = ("add", "remove", "replace")

# A handle that expires sooner is not bound.
NEAR_EXPIRY = timedelta(seconds=120)

# Poolboy's intervals. Here they are upper bounds: events are handled at once, and only time-dependent templates are
# rendered at the handles' interval.
MANAGE_CLAIMS_INTERVAL = timedelta(seconds=60)
MANAGE_HANDLES_INTERVAL = timedelta(seconds=60)
MANAGE_POOLS_INTERVAL = timedelta(seconds=10)
RESOURCE_REFRESH_INTERVAL = timedelta(seconds=600)
# Covers what is not watched, such as the requester of a namespace.
SAFETY_RESYNC = timedelta(minutes=10)

# Accepted and ignored, with one log line.
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
