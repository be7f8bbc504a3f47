"""Creates the Temporal namespace of the lifecycles, its retention and search attributes.

It adds what is missing and changes at most the retention; it can be run at any time and concurrently. If the client
lacks permissions, the error says what an administrator can do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import timedelta

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, RegisterNamespaceRequest, UpdateNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from domain.model import Model
from engine.search_attributes import SEARCH_ATTRIBUTE_TYPES
from engine.temporal import unless_not_found

# How long closed lifecycles stay readable by default.
RETENTION = timedelta(days=30)
# The longest wait until all servers know a new namespace and its attributes: a server process looks for namespaces
# about every ten seconds, and for attributes each minute.
SEEN_SECONDS = 120.0
_BETWEEN_LOOKS = 0.5
_REFUSED = (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED, RPCStatusCode.UNAUTHENTICATED)

_INDEXED: Mapping[str, IndexedValueType.ValueType] = {
    "Keyword": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "KeywordList": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
    "Datetime": IndexedValueType.INDEXED_VALUE_TYPE_DATETIME,
}
SEARCH_ATTRIBUTES: dict[str, IndexedValueType.ValueType] = {
    name: _INDEXED[type_] for name, type_ in SEARCH_ATTRIBUTE_TYPES.items()
}


class NamespaceUnfit(Exception):  # noqa: N818
    """The message says what is missing or wrong in the namespace, and why."""


class Bootstrapped(Model):
    namespace: str
    created: bool = False
    retention_days: float = 0
    retention_before_days: float | None = None
    attributes_added: tuple[str, ...] = ()


async def bootstrap(client: Client, retention: timedelta | None = None) -> Bootstrapped:
    """Prepare the client's namespace for lifecycles, and wait until all servers know it.

    `retention` is for closed lifecycles; None keeps the retention of an existing namespace.

    Raises:
        NamespaceUnfit: this client lacks the right to add something, or an existing attribute conflicts.
        RPCError: Temporal did not answer.
    """
    before = await _retention(client)
    replaced: timedelta | None = None
    if before is None:
        await _register(client, retention or RETENTION)
    elif retention is not None and retention != before:
        await _keep_for(client, retention)
        replaced = before
    added = await _add_attributes(client)
    return Bootstrapped(
        namespace=client.namespace,
        created=before is None,
        retention_days=(retention or before or RETENTION) / timedelta(days=1),
        retention_before_days=replaced / timedelta(days=1) if replaced is not None else None,
        attributes_added=tuple(added),
    )


async def ensure_search_attributes(client: Client) -> Mapping[str, str]:
    """Add the missing search attributes; returns the added types by name. May run concurrently; raises RPCError."""
    known = await _attributes(client)
    missing = {name: kind for name, kind in SEARCH_ATTRIBUTES.items() if name not in known}
    if not missing:
        return {}
    try:
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing), retry=True
        )
    except RPCError as error:
        if error.status is not RPCStatusCode.ALREADY_EXISTS:
            raise
    return {name: SEARCH_ATTRIBUTE_TYPES[name] for name in missing}


async def _retention(client: Client) -> timedelta | None:
    request = DescribeNamespaceRequest(namespace=client.namespace)
    found = await unless_not_found(client.workflow_service.describe_namespace(request))
    if found is None:
        return None
    retention: timedelta = found.config.workflow_execution_retention_ttl.ToTimedelta()
    return retention


async def _register(client: Client, retention: timedelta) -> None:
    try:
        await client.workflow_service.register_namespace(
            RegisterNamespaceRequest(
                namespace=client.namespace,
                description="lifecycles of custom resources, run by Perdure",
                workflow_execution_retention_period=_duration(retention),
            )
        )
    except RPCError as error:
        if error.status in _REFUSED:
            raise NamespaceUnfit(
                f"namespace {client.namespace!r} does not exist, and these credentials may not create it "
                f"({error.message}); in Temporal Cloud, create it with `tcld namespace create` or Terraform"
            ) from error
        if error.status is not RPCStatusCode.ALREADY_EXISTS:
            raise


async def _keep_for(client: Client, retention: timedelta) -> None:
    try:
        await client.workflow_service.update_namespace(
            UpdateNamespaceRequest(
                namespace=client.namespace,
                config=NamespaceConfig(workflow_execution_retention_ttl=_duration(retention)),
            )
        )
    except RPCError as error:
        if error.status in _REFUSED:
            raise NamespaceUnfit(
                f"the retention of {client.namespace!r} cannot be changed with these credentials ({error.message}); "
                "omit the option, and set the retention where the namespace is administered"
            ) from error
        raise


async def _add_attributes(client: Client) -> list[str]:
    added: dict[str, str] = {}
    deadline = time.monotonic() + SEEN_SECONDS
    while True:
        try:
            added |= await ensure_search_attributes(client)
            known = await _attributes(client)
        except RPCError as error:
            if error.status in _REFUSED:
                raise NamespaceUnfit(_words_for_attributes(client.namespace, error.message)) from error
            if error.status is not RPCStatusCode.NOT_FOUND or time.monotonic() > deadline:
                raise
            known = {}
        if wrong := [name for name, kind in SEARCH_ATTRIBUTES.items() if known.get(name, kind) != kind]:
            listed = ", ".join(f"{name} must be {SEARCH_ATTRIBUTE_TYPES[name]}" for name in wrong)
            raise NamespaceUnfit(
                f"{client.namespace!r} has search attributes of another type: {listed}. A type cannot be changed; use "
                "a separate namespace for Perdure"
            )
        if SEARCH_ATTRIBUTES.keys() <= known.keys():
            return sorted(added)
        if time.monotonic() > deadline:
            missing = ", ".join(sorted(SEARCH_ATTRIBUTES.keys() - known.keys()))
            raise NamespaceUnfit(
                f"{SEEN_SECONDS:.0f} s after their registration, {client.namespace!r} still lacks the search "
                f"attributes {missing}"
            )
        await asyncio.sleep(_BETWEEN_LOOKS)


async def _attributes(client: Client) -> dict[str, IndexedValueType.ValueType]:
    answer = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace), retry=True
    )
    return dict(answer.custom_attributes)


def _words_for_attributes(namespace: str, refusal: str) -> str:
    commands = "; ".join(
        f"temporal operator search-attribute create --namespace {namespace} --name {name} --type {kind}"
        for name, kind in SEARCH_ATTRIBUTE_TYPES.items()
    )
    return f"no right to add search attributes to {namespace!r} ({refusal}); an administrator can: {commands}"


def _duration(of: timedelta) -> Duration:
    found = Duration()
    found.FromTimedelta(of)
    return found
