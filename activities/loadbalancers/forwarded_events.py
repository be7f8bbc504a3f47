"""Repeats each Event of a LoadBalancer on its Service once, even if several processes try.

The name of the copy is derived from the Event's uid or, if the Event is a warning, from its text.
"""

from __future__ import annotations

import logging

from domain.loadbalancers import SERVICE
from domain.loadbalancers.constants import LOAD_BALANCER_COMPONENT, SERVICE_COMPONENT
from domain.loadbalancers.resources import LoadBalancer
from domain.notices import NoticeType
from domain.resource import ObjectMeta
from engine.clock import now
from engine.errors import ApiError
from engine.kube import EVENT, KubeApi
from engine.kube.events import EventContent, Subject, event, lasting_name, named, record
from engine.kube.json import JsonObject, text

MOST_FORWARDED = 20_000

log = logging.getLogger(__name__)


class ForwardedEvents:
    def __init__(self, kube: KubeApi, served: KubeApi) -> None:
        self._kube = kube
        self._served = served
        self._known: dict[tuple[str, str], None] = {}  # Service and Event, by uid

    async def forward(self, service: ObjectMeta, balancer: LoadBalancer) -> None:
        """Forward the Events. The next pass retries those that could not be written."""
        meta = balancer.metadata
        selector = f"involvedObject.uid={meta.uid},source={LOAD_BALANCER_COMPONENT}"
        try:
            listing = await self._kube.list(EVENT, meta.namespace, field_selector=selector)
        except ApiError as error:
            log.info("the Events of LoadBalancer %s/%s cannot be read: %s", meta.namespace, meta.name, error.message)
            return
        subject = Subject.with_metadata(SERVICE, service)
        for found in listing.items:
            known = (service.uid, text(found, "metadata", "uid"))
            if known not in self._known and await record(self._served, _copy(subject, found)):
                if len(self._known) >= MOST_FORWARDED:
                    self._known.clear()
                self._known[known] = None


def _copy(subject: Subject, found: JsonObject) -> JsonObject:
    content = EventContent(text(found, "type"), text(found, "reason"), text(found, "message"), SERVICE_COMPONENT)
    wrong = content.type == NoticeType.WARNING
    name = lasting_name(subject, content) if wrong else named(subject, text(found, "metadata", "uid"))
    document = event(subject, content, now(), name=name)
    times = {field: text(found, field) for field in ("firstTimestamp", "lastTimestamp")}
    return document | {field: moment for field, moment in times.items() if moment}
