"""Creates ResourceWatches: objects that show which resources are watched for handles. No decision reads them.

Poolboy (1.14 on) creates one per apiVersion, kind and namespace of managed resources, and deletes none. The leading
watcher creates missing ResourceWatches under Poolboy's names, so that listing them stays informative.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import time
from collections.abc import Iterator
from functools import partial
from typing import cast

from domain.claims import RESOURCE_HANDLE, RESOURCE_WATCH
from domain.relations import Scope
from engine.errors import ApiError, Conflict, Invalid
from engine.kube.api import KubeApi
from engine.kube.json import JsonObject, text
from engine.settings import Settings
from starters.watch.background_tasks import Duty
from starters.watch.projection import Projection
from starters.watch.projection_index import Index

AREA = "claims"

ROUND = 5.0
# Seconds. Each namespace of claims needs its own ResourceWatches: writing them must not delay what people wait for.
BETWEEN_WRITES = 0.2
AFTER_FAILURE = 300.0
# Seconds until a deleted ResourceWatch is noticed.
LIST_AGAIN = 600.0

MANAGED_BY = {"app.kubernetes.io/managed-by": "perdure"}

_NAME_SUFFIX_LENGTH = 12

logger = logging.getLogger(__name__)


async def keep_views(namespace: str, api: KubeApi, index: Index) -> None:
    there: set[str] = set()
    listed = float("-inf")
    while True:
        await asyncio.sleep(ROUND)
        try:
            wanted = wanted_views(index)
            if wanted.keys() - there and time.monotonic() - listed > LIST_AGAIN:
                there = await _existing(api, namespace)
                listed = time.monotonic()
            for name in sorted(wanted.keys() - there):
                await _make(api, namespace, name, wanted[name])
                there.add(name)
                await asyncio.sleep(BETWEEN_WRITES)
            if time.monotonic() - listed > LIST_AGAIN:
                there = set()
        except ApiError as error:
            logger.info("the ResourceWatches are incomplete, trying again in some minutes: %s", error)
            await asyncio.sleep(AFTER_FAILURE)


def duties_for(settings: Settings) -> tuple[Duty, ...]:
    return (partial(keep_views, settings.claims_namespace),)


def wanted_views(index: Index) -> dict[str, JsonObject]:
    """The ResourceWatches' specs by name, one per kind and namespace of handles' resources."""
    views: dict[str, JsonObject] = {}
    for handle in index.all(RESOURCE_HANDLE.name):
        for api_version, kind, namespace in _recorded(handle):
            spec: JsonObject = {"apiVersion": api_version, "kind": kind}
            where: JsonObject = {"namespace": namespace} if namespace else {}
            views[watch_name(api_version, kind, namespace)] = {**spec, **where}
    return views


def _recorded(handle: Projection) -> Iterator[tuple[str, str, str]]:
    for (relation, _), shown in handle.shown.items():
        if relation.watched and relation.watched.scope is Scope.KIND:
            for api_version, kind, namespace, name in cast(tuple[tuple[str, str, str, str], ...], shown.names):
                if name:
                    yield api_version, kind, namespace


def watch_name(api_version: str, kind: str, namespace: str = "") -> str:
    digest = hashlib.sha256(f"{api_version}:{kind}:{namespace}".encode()).digest()
    name = base64.urlsafe_b64encode(digest).decode().translate({ord(char): None for char in "=-_"}).lower()
    return f"{namespace or 'cluster'}-{name[:_NAME_SUFFIX_LENGTH]}"


async def _existing(api: KubeApi, namespace: str) -> set[str]:
    listing = await api.list(RESOURCE_WATCH, namespace)
    return {text(view, "metadata", "name") for view in listing.items}


async def _make(api: KubeApi, namespace: str, name: str, spec: JsonObject) -> None:
    try:
        await api.create(RESOURCE_WATCH, {"metadata": {"name": name, "labels": MANAGED_BY}, "spec": spec}, namespace)
    except Conflict:
        logger.debug("ResourceWatch %s exists already", name)
    except Invalid as error:  # the namespace is from a claim's template
        logger.info("ResourceWatch %s is not created: %s", name, error)
