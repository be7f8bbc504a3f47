"""Texts and timings of the claims area, as the replaced Poolboy has them; names under its domain: `domain_names.py`."""

from __future__ import annotations

from datetime import timedelta

VERSION = "v1"

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
