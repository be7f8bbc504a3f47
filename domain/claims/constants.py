"""Poolboy's names and values, which Perdure keeps; those that contain OPERATOR_DOMAIN are in `domain_names.py`."""

from __future__ import annotations

from datetime import timedelta

VERSION = "v1"

# Set by OpenShift: the user who requested the Namespace.
NAMESPACE_REQUESTER_ANNOTATION = "openshift.io/requester"

# The field manager of writes to managed resources. It is not Perdure's usual one, because a managed resource may have a
# lifecycle in Perdure (an AccountClaim), which these writes must wake.
RESOURCE_FIELD_MANAGER = "perdure-handles"

# Clients compare this text.
APPROVAL_PENDING_MESSAGE = "Approval pending."

# As in the Events of Poolboy 1.16 and later.
EVENT_COMPONENT = "poolboy"

HANDLE_NAME_PREFIX = "guid-"
HANDLE_SUFFIX_LENGTH = 5

DEFAULT_ALLOWED_OPS = ("add", "remove", "replace")

# How often Poolboy polled pools.
MANAGE_POOLS_INTERVAL = timedelta(seconds=10)

# Poolboy's environment variables that have no effect here; one log line names those that are set.
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
