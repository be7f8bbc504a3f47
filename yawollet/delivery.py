"""Which resources the agent serves to Envoy, and which Envoy has refused.

    wanted ──► proposed ──accepted──► good (saved on disk)
                  │
                  └────refused──► set aside: its last accepted form is served instead, or none
                                       │
                                       └── proposed again when it changes, or by the first pass after
                                           30 s, 1, 2, ... 10 minutes

Envoy's reason names the refused resources ("Error adding/updating listener(s) TCP-80: ..."); Envoy has accepted the
other resources. If the reason has no names, every resource that was new counts as refused. The cause may lie outside of
the resource, such as a port that another process uses, so the resource is proposed again.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from domain.loadbalancers.envoy import CLUSTER_TYPE, LISTENER_TYPE, EnvoyConfiguration
from domain.model import Model
from domain.schema import Document
from yawollet.messages import TYPES
from yawollet.snapshot import Resources, Snapshot

FIRST_PAUSE = timedelta(seconds=30)
LONGEST_PAUSE = timedelta(minutes=10)


class Refused(Model):
    document: Document
    reason: str
    times: int
    again_at: datetime


class Delivery:
    def __init__(self, saved: Snapshot | None = None) -> None:
        self.served = saved
        self._good: dict[str, Resources] = {each: dict(saved.of(each)) if saved else {} for each in TYPES}
        self._refused: dict[str, dict[str, Refused]] = {each: {} for each in TYPES}
        self._accepted: dict[str, int] = {}  # by type, the last version that Envoy accepted as a whole

    @property
    def settled(self) -> bool:
        return self.served is not None and all(self._accepted.get(each) == self.served.version for each in TYPES)

    @property
    def refusals(self) -> list[str]:
        return list(dict.fromkeys(each.reason for part in self._refused.values() for each in part.values()))

    def want(self, configuration: EnvoyConfiguration, now: datetime) -> Snapshot | None:
        """The snapshot to serve; None if it is served already."""
        clusters = self._servable(CLUSTER_TYPE, configuration.clusters, now)
        listeners = self._servable(LISTENER_TYPE, configuration.listeners, now)
        before = self.served
        if before is not None and (before.clusters, before.listeners) == (clusters, listeners):
            return None
        version = before.version + 1 if before else 1
        self.served = Snapshot(version=version, clusters=clusters, listeners=listeners)
        return self.served

    def taken(self, type_url: str, version: int) -> None:
        if self.served is None or version != self.served.version or type_url not in TYPES:
            return
        self._accepted[type_url] = version
        good = self._good[type_url] = dict(self.served.of(type_url))
        for name, refused in tuple(self._refused[type_url].items()):
            if good.get(name) == refused.document:
                del self._refused[type_url][name]

    def refuse(self, type_url: str, version: int, reason: str, now: datetime) -> None:
        if self.served is None or version != self.served.version or type_url not in TYPES:
            return
        sent, good, refused = self.served.of(type_url), self._good[type_url], self._refused[type_url]
        named = [name for name in sent if _names(reason, name)]
        new = [name for name in sent if sent[name] != good.get(name)]
        for name in named or new or list(sent):
            before = refused.get(name)
            times = before.times + 1 if before and before.document == sent[name] else 1
            pause = min(FIRST_PAUSE * 2 ** min(times - 1, 10), LONGEST_PAUSE)
            refused[name] = Refused(document=sent[name], reason=reason, times=times, again_at=now + pause)
            if good.get(name) == sent[name]:
                del good[name]

    def _servable(self, type_url: str, wanted: Resources, now: datetime) -> Resources:
        good, refused = self._good[type_url], self._refused[type_url]
        for name in tuple(refused):
            if wanted.get(name) != refused[name].document:
                del refused[name]
        found: Resources = {}
        for name, document in wanted.items():
            aside = refused.get(name)
            if aside is None or now >= aside.again_at:
                found[name] = document
            elif name in good:
                found[name] = good[name]
        return found


def _names(reason: str, name: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", reason) is not None
