"""Poolboy's names and values, which Perdure keeps; those that contain its domain are in `domain_names.py`."""

from __future__ import annotations

from datetime import timedelta

VERSION = "v1"

# Set by OpenShift: the user who requested the Namespace.
NAMESPACE_REQUESTER_ANNOTATION = "openshift.io/requester"

# The field manager of writes to managed resources. It is not Perdure's usual one, because a managed resource may have a
# lifecycle in Perdure (an AccountClaim), which these writes must wake.
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

# As in the Events of Poolboy 1.16 and later.
EVENT_COMPONENT = "poolboy"
LIFESPAN_EVENT_ACTION = "LifespanChange"
LIFESPAN_END_CHANGED = "Lifespan end changed"
LIFESPAN_END_CLEARED = "Lifespan end cleared"

HANDLE_NAME_PREFIX = "guid-"
HANDLE_SUFFIX_LENGTH = 5

DEFAULT_ALLOWED_OPS = ("add", "remove", "replace")

# A free handle whose end is nearer than this is not bound.
NEAR_EXPIRY = timedelta(seconds=120)

# How often Poolboy polled pools.
MANAGE_POOLS_INTERVAL = timedelta(seconds=10)

# Poolboy's variables that have no effect; one log line names those that are set.
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
