"""Kubernetes Events (core/v1), as people read them in `kubectl describe`; the API server keeps them for an hour.

An Event that must not be repeated after a restart gets a name derived from its content (`named`), so the API server
refuses the second one.
"""

from __future__ import annotations

import hashlib
import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from domain.built_in_kinds import EVENT
from domain.identity import Kind, all_kinds, reported_kinds
from domain.notices import Notice
from domain.refusal import without_request
from domain.resource import EVENTS_KEPT, ObjectMeta, timestamp
from domain.writes import RecordEvents
from engine.errors import ApiError, Conflict
from engine.kube.api import KubeApi
from engine.kube.json import JsonObject, text
from engine.kube.workload_clusters import workload

# The API server's limits: 1024 characters of a message, 253 of a name.
LONGEST_MESSAGE = 1024
_LONGEST_PREFIX = 200
_DIGEST = 16
# How many Events are remembered at most. A forgotten Event is only sent once more, and refused as a duplicate.
MOST_REMEMBERED = 5_000

log = logging.getLogger(__name__)


class Subject(NamedTuple):
    kind: Kind
    namespace: str
    name: str
    uid: str
    resource_version: str = ""

    @classmethod
    def of(cls, kind: Kind, obj: JsonObject) -> Subject:
        read = (text(obj, "metadata", field) for field in ("namespace", "name", "uid", "resourceVersion"))
        return cls(kind, *read)

    @classmethod
    def with_metadata(cls, kind: Kind, meta: ObjectMeta) -> Subject:
        return cls(kind, meta.namespace, meta.name, meta.uid, meta.resource_version)


class EventContent(NamedTuple):
    """What an Event says. `type` is Normal or Warning, `component` the reporter, `host` the reporter's machine."""

    type: str
    reason: str
    message: str
    component: str
    action: str = ""
    host: str = ""


def event(subject: Subject, content: EventContent, moment: datetime, *, name: str = "") -> JsonObject:
    """The Event; without a `name` the API server generates one."""
    at, prefix = timestamp(moment), subject.name[:_LONGEST_PREFIX]
    # Events about cluster-scoped objects go to `default`, as in Kubernetes.
    namespace = subject.namespace or "default"
    involved = {
        "apiVersion": subject.kind.api_version,
        "kind": subject.kind.name,
        "namespace": subject.namespace,
        "name": subject.name,
        "uid": subject.uid,
    }
    return {
        "metadata": {"namespace": namespace, **({"name": name} if name else {"generateName": f"{prefix}."})},
        "involvedObject": involved | _if_given(resourceVersion=subject.resource_version),
        "type": content.type,
        "reason": content.reason,
        "message": content.message[:LONGEST_MESSAGE],
        **_if_given(action=content.action),
        "source": {"component": content.component} | _if_given(host=content.host),
        "reportingComponent": content.component,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


def named(subject: Subject, *what: str) -> str:
    """A name that is equal for equal content about the same object."""
    digest = hashlib.sha256("\n".join((subject.uid, *what)).encode()).hexdigest()
    return f"{subject.name[:_LONGEST_PREFIX]}.{digest[:_DIGEST]}"


def lasting_name(subject: Subject, content: EventContent) -> str:
    """A name from reason and message, without request ids."""
    return named(subject, content.reason, without_request(content.message[:LONGEST_MESSAGE]))


async def record(api: KubeApi, content: JsonObject) -> bool:
    """Record the Event; returns whether it exists now. A failure is only logged."""
    namespace, name = text(content, "metadata", "namespace"), text(content, "involvedObject", "name")
    try:
        await api.create(EVENT, content, namespace)
    except Conflict:
        return True  # recorded before, under the same name
    except ApiError as error:
        log.info(
            "no Event was written about %s %s/%s: %s",
            text(content, "involvedObject", "kind"),
            namespace,
            name,
            error.message,
        )
        return False
    return True


async def record_events(action: RecordEvents, kube: KubeApi, served: KubeApi | None = None) -> None:
    """Record each Event in its object's own cluster; failures are only logged."""
    by_cluster: defaultdict[str, list[Notice]] = defaultdict(list)
    for notice in action.notices:
        by_cluster[notice.cluster].append(notice)
    for cluster, notices in by_cluster.items():
        namespace, _, name = cluster.partition("/")
        try:
            async with workload(kube, namespace, name) as api:
                await _record_each(action, notices, api, served if api is kube else None)
        except ApiError as error:
            log.info("no Events were written in the cluster %s: %s", cluster, error.message)


async def _record_each(
    action: RecordEvents, notices: Sequence[Notice], kube: KubeApi, served: KubeApi | None = None
) -> None:
    reporter = all_kinds()[action.key.kind].reporter or action.key.kind
    for notice in notices:
        about = notice.about or action.key
        kind = reported_kinds()[about.kind]
        api = served if kind.served and served is not None else kube
        subject = Subject(kind.under(api.operator_domain), about.namespace, about.name, about.uid)
        content = EventContent(notice.type.value, notice.reason, notice.message, reporter, notice.action)
        name = "" if notice.each_time else lasting_name(subject, content)
        await record(api, event(subject, content, action.at, name=name))


class EventDeduplicator:
    """Writes no Event that exists already, even after a restart: an Event's name derives from its content.

    Recent Events are remembered, so frequent observations cost no request. If an Event still applies after the API
    server has deleted it, it is written again.
    """

    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._recorded: dict[tuple[str, str, str], datetime] = {}

    async def record_once(self, subject: Subject, event_content: EventContent, moment: datetime) -> None:
        content = (subject.uid, event_content.reason, without_request(event_content.message))
        before = self._recorded.get(content)
        if before is not None and moment - before < EVENTS_KEPT:
            return
        if len(self._recorded) >= MOST_REMEMBERED:
            self._recorded.clear()
        self._recorded[content] = moment
        await record(self._api, event(subject, event_content, moment, name=lasting_name(subject, event_content)))


def _if_given(**fields: str) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value}
