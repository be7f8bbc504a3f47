"""Leases: electing one of several processes, and seeing whether another operator leads.

The election follows client-go: a Lease names its holder and is renewed every 2 s; others take it once they have seen it
unchanged for its 15 s by their own monotonic clock (the clocks of different machines are never compared); a holder that
could not renew for 10 s has lost and must stop before anybody else may start. The holder is expected to exit then.

The replaced operators elect in three ways: a Lease, the older annotation `control-plane.alpha.kubernetes.io/leader` on
a ConfigMap, and operator-sdk's leader-for-life, a ConfigMap owned by the leader's Pod. Perdure does not act on a kind
while one of them is held; since that compares another machine's clock with ours, a lock counts as live for a minute
longer than it says.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from domain.resource import parse_timestamp
from engine.errors import Absent, ApiError
from engine.kube.api import KubeApi
from engine.kube.json import JsonObject, at, mapping, sequence, text
from engine.kube.kinds import CONFIG_MAP, LEASE, POD

LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader"
CLOCK_TOLERANCE = timedelta(minutes=1)

_DEFAULT_LEASE = timedelta(seconds=15)
_ENDED = ("Failed", "Succeeded")  # phases of a Pod that does nothing any more

Annotations = Callable[[], Mapping[str, str]]

log = logging.getLogger(__name__)


class LeadershipLost(Exception):  # noqa: N818 - an event, not a fault
    """The Lease could not be renewed in time; somebody else may lead from now on."""


class LeaderElection:
    """One process's part in the election.

    `acquire` returns once this process leads; from then on `hold` must run, and raises when the Lease is lost.
    `release` lets the next one lead at once. Annotations written along with each renewal tell the next leader what this
    one knew, at no further request.
    """

    def __init__(
        self,
        api: KubeApi,
        namespace: str,
        name: str,
        identity: str,
        *,
        lease: timedelta = _DEFAULT_LEASE,
        renew_within: timedelta = timedelta(seconds=10),
        retry: timedelta = timedelta(seconds=2),
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._lease = lease
        self._renew_within = renew_within
        self._retry = retry
        self._annotations: Annotations = dict
        self._seen: JsonObject = {}
        self._seen_at = 0.0

    def annotation(self, name: str) -> str:
        """An annotation of the Lease as it was read last, empty if it has none of that name."""
        return text(self._seen, "metadata", "annotations", name)

    async def acquire(self) -> None:
        """Wait until this process leads."""
        waiting_for = ""
        while not await self._tried():
            holder = text(self._seen, "spec", "holderIdentity")
            if holder and holder != waiting_for:
                log.info("waiting for the lease %s/%s, held by %s", self._namespace, self._name, holder)
                waiting_for = holder
            await asyncio.sleep(self._retry.total_seconds())
        log.info("leading by the lease %s/%s as %s", self._namespace, self._name, self._identity)

    async def hold(self, annotations: Annotations = dict) -> None:
        """Renew the Lease for ever, each time with the annotations as they are then.

        Raises:
            LeadershipLost: it was not renewed within `renew_within`.
        """
        self._annotations = annotations
        renewed = time.monotonic()
        while True:
            await asyncio.sleep(self._retry.total_seconds())
            left = renewed + self._renew_within.total_seconds() - time.monotonic()
            try:
                async with asyncio.timeout(max(left, 0)):
                    held = await self._tried()
            except TimeoutError:
                held = False
            if held:
                renewed = time.monotonic()
            elif time.monotonic() >= renewed + self._renew_within.total_seconds():
                raise LeadershipLost(f"the lease {self._namespace}/{self._name} was not renewed in time")

    async def release(self) -> None:
        """Give the Lease back, if it is ours."""
        if text(self._seen, "spec", "holderIdentity") != self._identity:
            return
        try:
            await self._write(self._seen, holder="", lease=timedelta(seconds=1))
        except ApiError as error:
            log.info("the lease was not given back: %s", error)

    async def _tried(self) -> bool:
        """Take or renew the Lease; False if it is another's, or nobody could be asked."""
        try:
            current = await self._api.get(LEASE, self._namespace, self._name)
        except Absent:
            current = {}
        except ApiError as error:
            log.warning("the lease cannot be read: %s", error)
            return False
        self._observe(current)
        if not self._free(current):
            return False
        try:
            self._observe(await self._write(current, self._identity, self._lease))
        except ApiError as error:
            log.info("the lease cannot be written: %s", error)
            return False
        return True

    def _observe(self, lease: JsonObject) -> None:
        if at(lease, "metadata", "resourceVersion") != at(self._seen, "metadata", "resourceVersion"):
            self._seen_at = time.monotonic()
        self._seen = lease

    def _free(self, lease: JsonObject) -> bool:
        holder = text(lease, "spec", "holderIdentity")
        if holder in ("", self._identity):
            return True
        return time.monotonic() >= self._seen_at + lease_duration(lease).total_seconds()

    async def _write(self, current: JsonObject, holder: str, lease: timedelta) -> JsonObject:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        same = text(current, "spec", "holderIdentity") == holder
        turns = at(current, "spec", "leaseTransitions")
        spec: JsonObject = {
            "holderIdentity": holder,
            "leaseDurationSeconds": max(1, int(lease.total_seconds())),
            "acquireTime": (text(current, "spec", "acquireTime") if same else "") or now,
            "renewTime": now,
            "leaseTransitions": (turns if isinstance(turns, int) else 0)
            + (1 if current and holder and not same else 0),
        }
        metadata: JsonObject = {
            "name": self._name,
            "namespace": self._namespace,
            "annotations": {**mapping(current, "metadata", "annotations"), **self._annotations()},
        }
        if not current:
            return await self._api.create(LEASE, {"metadata": metadata, "spec": spec}, self._namespace)
        metadata["resourceVersion"] = at(current, "metadata", "resourceVersion")
        return await self._api.replace(LEASE, self._namespace, self._name, {"metadata": metadata, "spec": spec})


def lease_duration(lease: JsonObject) -> timedelta:
    """How long a Lease is held without being renewed."""
    seconds = at(lease, "spec", "leaseDurationSeconds")
    return timedelta(seconds=seconds) if isinstance(seconds, int) and seconds > 0 else _DEFAULT_LEASE


def lease_is_live(lease: JsonObject, now: datetime) -> bool:
    """Whether somebody holds a Lease, judged by its own times."""
    renewed = parse_timestamp(text(lease, "spec", "renewTime"))
    held = bool(text(lease, "spec", "holderIdentity"))
    return held and renewed is not None and now < renewed + lease_duration(lease) + CLOCK_TOLERANCE


async def leader_lock_is_live(api: KubeApi, namespace: str, name: str) -> bool:
    """Whether another operator leads by this Lease or ConfigMap."""
    return bool(await leader_lock_holder(api, namespace, name))


async def leader_lock_holder(api: KubeApi, namespace: str, name: str) -> str:
    """Who leads by this Lease or ConfigMap, empty if nobody does.

    Raises:
        ApiError: it could not be found out; not to know is no permission to act.
    """
    now = datetime.now(UTC)
    try:
        lease = await api.get(LEASE, namespace, name)
        if lease_is_live(lease, now):
            return text(lease, "spec", "holderIdentity")
    except Absent:
        pass
    try:
        lock = await api.get(CONFIG_MAP, namespace, name)
    except Absent:
        return ""
    return _annotated_leader(lock, now) or await _leader_for_life(api, namespace, lock)


def _annotated_leader(lock: JsonObject, now: datetime) -> str:
    try:
        record = json.loads(text(lock, "metadata", "annotations", LEADER_ANNOTATION) or "{}")
    except ValueError:
        return ""
    as_lease: JsonObject = {"spec": record}
    return text(record, "holderIdentity") if lease_is_live(as_lease, now) else ""


async def _leader_for_life(api: KubeApi, namespace: str, lock: JsonObject) -> str:
    """The Pod that owns the ConfigMap, while it is there and has not ended."""
    for owner in sequence(lock, "metadata", "ownerReferences"):
        if text(owner, "kind") != "Pod":
            continue
        try:
            pod = await api.get(POD, namespace, text(owner, "name"))
        except Absent:
            continue
        if text(pod, "metadata", "uid") == text(owner, "uid") and text(pod, "status", "phase") not in _ENDED:
            return f"pod {text(owner, 'name')}"
    return ""
