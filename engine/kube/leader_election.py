"""Leases: electing one of several processes, and detecting whether another operator leads.

The holder renews its Lease every third of the Lease's duration. Another process takes the Lease if it has seen no
renewal for that duration, by its own monotonic clock. A holder that renews late keeps a Lease that no process took.

While no other process waits for it, a Lease lasts a minute. A waiting process announces itself in an annotation. For
the next ten minutes, each renewal is for 11 s only, so that a killed holder is replaced in 12 s.

A replaced operator holds a Lease, or a ConfigMap with the annotation `control-plane.alpha.kubernetes.io/leader`, or
(operator-sdk's leader-for-life) a ConfigMap owned by the leader's Pod. Its clock may differ from ours, so a Lease
or annotation counts as live for a minute longer than it says.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

from domain.built_in_kinds import CONFIG_MAP, LEASE, POD
from domain.resource import parse_timestamp
from engine.errors import Absent, ApiError, Conflict, unless_absent
from engine.kube.api import KubeApi, WatchEvent
from engine.kube.json import JsonObject, at, mapping, sequence, text

LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader"
CLOCK_TOLERANCE = timedelta(minutes=1)

# The Lease's annotation with the identity of a process that waits for the Lease.
STANDBY = "perdure.dev/standby"

LEASE_DURATION = timedelta(seconds=11)
LONE_LEASE_DURATION = timedelta(minutes=1)
# How long a holder assumes that a process which has announced itself still waits.
STANDBY_FOR = timedelta(minutes=10)
# The duration of a Lease that names none: client-go's default.
_DEFAULT_LEASE = timedelta(seconds=15)
# The longest duration that a Lease can have. The annotation of a ConfigMap may say more.
_LONGEST_SECONDS = 2**31 - 1
_RELEASE_WITHIN = timedelta(seconds=5)
_ENDED = ("Failed", "Succeeded")  # phases of a Pod that has ended

Annotations = Callable[[], Mapping[str, str]]

log = logging.getLogger(__name__)


class LeadershipLost(Exception):  # noqa: N818 - an event, not a fault
    pass


class LeaderElection:
    """One process's part in the election.

    After `acquire`, `hold` must run: it renews the Lease, and raises when the Lease is lost. `release` lets the next
    process lead at once. Each renewal also writes annotations for the next leader.
    """

    def __init__(
        self,
        api: KubeApi,
        namespace: str,
        name: str,
        identity: str,
        *,
        lease: timedelta = LEASE_DURATION,
        lone: timedelta = LONE_LEASE_DURATION,
        retry: timedelta = timedelta(seconds=1),
    ) -> None:
        """The Lease's duration is `lease` at first and while other processes wait, otherwise `lone`."""
        self._api = api
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._lease = lease
        self._lone = lone
        self._retry = retry
        self._contended_until = 0.0
        self._annotations: Annotations = dict
        self._seen: JsonObject = {}
        self._seen_at = 0.0
        self.trouble = ""  # why the Lease can be neither taken nor waited for
        self.leader = ""  # the holder that this process waits for; empty if it has not asked yet or leads

    def annotation(self, name: str) -> str:
        return text(self._seen, "metadata", "annotations", name)

    async def acquire(self) -> None:
        while not await self._taken():
            holder = self._holder
            if holder and holder != self.leader:
                log.info("waiting for the lease %s/%s, held by %s", self._namespace, self._name, holder)
                self.leader = holder
            await self._freed()
        self.leader = ""
        log.info("this process leads: it holds the lease %s/%s as %s", self._namespace, self._name, self._identity)

    async def hold(self, annotations: Annotations = dict) -> None:
        """Renew until another process holds the Lease; raises LeadershipLost."""
        self._annotations = annotations
        renewed, before = True, self._lease
        while True:
            # Waiting processes announce themselves once they see the first long Lease, so the pause after it is short.
            current = lease_duration(self._seen)
            pause, before = min(before, current) / 3, current
            await asyncio.sleep((pause if renewed else self._retry).total_seconds())
            try:
                # A renewal whose answer is lost is sent again before the Lease runs out.
                async with asyncio.timeout((self._lease / 3).total_seconds()):
                    renewed = await self._renewed()
            except TimeoutError:
                log.warning("the lease %s/%s was not renewed in time, trying again", self._namespace, self._name)
                renewed = False

    async def release(self) -> None:
        """Give the Lease up; if the answer to the last renewal was lost, read the Lease first."""
        if self._holder != self._identity:
            return
        try:
            async with asyncio.timeout(_RELEASE_WITHIN.total_seconds()):
                try:
                    await self._give_back()
                except Conflict:
                    self._observe(await self._read())
                    if self._holder == self._identity:
                        await self._give_back()
        except (ApiError, TimeoutError) as error:
            log.info("the lease was not released: %s", error)

    @property
    def _holder(self) -> str:
        return text(self._seen, "spec", "holderIdentity")

    @property
    def _duration(self) -> timedelta:
        return self._lease if time.monotonic() < self._contended_until else self._lone

    @property
    def _unannounced(self) -> bool:
        """Whether the holder renews a long Lease because it knows of no process that waits."""
        return lease_duration(self._seen) > self._lease and not self.annotation(STANDBY)

    async def _taken(self) -> bool:
        try:
            self._observe(await self._read())
            self.trouble = ""
            if not self._free():
                if self._unannounced:
                    self._observe(await self._announced())
                return False
            self._observe(await self._write(self._seen, self._identity, self._lease))
        except Conflict:  # another process was quicker
            return False
        except ApiError as error:
            if not self.trouble:
                log.warning("the lease cannot be taken: %s", error)
            self.trouble = f"the lease {self._namespace}/{self._name} cannot be taken: {error.message}"
            return False
        return True

    async def _freed(self) -> None:
        """Wait until the Lease is released or expires, or shows that its holder knows of no waiting process."""
        try:
            async with asyncio.timeout(max(self._expires_in(), self._retry.total_seconds())) as limit:
                async with aclosing(self._changes()) as changes:
                    async for change in changes:
                        if change.type == "BOOKMARK":
                            continue
                        self._observe(change.object if change.type != "DELETED" else {})
                        if self._free() or self._unannounced:
                            return
                        self.trouble = ""
                        limit.reschedule(asyncio.get_running_loop().time() + self._expires_in())
        except TimeoutError:
            return
        except ApiError as error:
            log.info("the lease cannot be watched: %s", error)
        await asyncio.sleep(self._retry.total_seconds())

    def _changes(self) -> AsyncGenerator[WatchEvent, None]:
        return self._api.watch(
            LEASE,
            self._namespace,
            resource_version=text(self._seen, "metadata", "resourceVersion"),
            field_selector=f"metadata.name={self._name}",
        )

    async def _renewed(self) -> bool:
        """Renew the Lease at the version last seen; False if the API server fails. Raises LeadershipLost."""
        try:
            try:
                renewed = await self._write(self._seen, self._identity, self._duration)
            except (Absent, Conflict):
                # Another client wrote or deleted the Lease, or the answer to our last renewal was lost.
                self._observe(await self._read())
                if self._holder not in ("", self._identity):
                    raise LeadershipLost(
                        f"the lease {self._namespace}/{self._name} is held by {self._holder}"
                    ) from None
                if self.annotation(STANDBY):
                    self._contended_until = time.monotonic() + STANDBY_FOR.total_seconds()
                renewed = await self._write(self._seen, self._identity, self._duration)
            self._observe(renewed)
        except ApiError as error:
            log.warning("the lease cannot be renewed: %s", error)
            return False
        return True

    async def _give_back(self) -> None:
        self._observe(await self._write(self._seen, holder="", lease=timedelta(seconds=1)))

    async def _read(self) -> JsonObject:
        return await unless_absent(self._api.get(LEASE, self._namespace, self._name)) or {}

    def _observe(self, lease: JsonObject) -> None:
        # Only a changed spec counts: an announcement is no renewal.
        if at(lease, "spec") != at(self._seen, "spec"):
            self._seen_at = time.monotonic()
        self._seen = lease

    def _free(self) -> bool:
        return self._holder in ("", self._identity) or self._expires_in() <= 0

    def _expires_in(self) -> float:
        return self._seen_at + lease_duration(self._seen).total_seconds() - time.monotonic()

    async def _announced(self) -> JsonObject:
        """Announce this process in the Lease. At its next renewal the holder gets a conflict and reads the Lease."""
        annotations = {**mapping(self._seen, "metadata", "annotations"), STANDBY: self._identity}
        metadata = {**mapping(self._seen, "metadata"), "annotations": annotations}
        return await self._api.replace(LEASE, self._namespace, self._name, {**self._seen, "metadata": metadata})

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
        annotations = {
            name: value for name, value in mapping(current, "metadata", "annotations").items() if name != STANDBY
        }
        metadata: JsonObject = {
            "name": self._name,
            "namespace": self._namespace,
            "annotations": {**annotations, **self._annotations()},
        }
        if not current:
            return await self._api.create(LEASE, {"metadata": metadata, "spec": spec}, self._namespace)
        metadata["resourceVersion"] = at(current, "metadata", "resourceVersion")
        return await self._api.replace(LEASE, self._namespace, self._name, {"metadata": metadata, "spec": spec})


def lease_duration(lease: JsonObject) -> timedelta:
    seconds = at(lease, "spec", "leaseDurationSeconds")
    if not isinstance(seconds, int) or seconds <= 0:
        return _DEFAULT_LEASE
    return timedelta(seconds=min(seconds, _LONGEST_SECONDS))


def lease_is_live(lease: JsonObject, now: datetime) -> bool:
    """Whether the Lease is held, judged by its own times."""
    renewed = parse_timestamp(text(lease, "spec", "renewTime"))
    held = bool(text(lease, "spec", "holderIdentity"))
    return held and renewed is not None and now - renewed < lease_duration(lease) + CLOCK_TOLERANCE


async def leader_lock_holder(api: KubeApi, namespace: str, name: str) -> str:
    """The holder of this Lease or ConfigMap; empty if there is none. On an ApiError the caller must not act."""
    now = datetime.now(UTC)
    lease = await unless_absent(api.get(LEASE, namespace, name))
    if lease is not None and lease_is_live(lease, now):
        return text(lease, "spec", "holderIdentity")
    lock = await unless_absent(api.get(CONFIG_MAP, namespace, name))
    return "" if lock is None else _annotated_leader(lock, now) or await _leader_for_life(api, namespace, lock)


def _annotated_leader(lock: JsonObject, now: datetime) -> str:
    try:
        record = json.loads(text(lock, "metadata", "annotations", LEADER_ANNOTATION) or "{}")
    except ValueError:
        return ""
    as_lease: JsonObject = {"spec": record}
    return text(record, "holderIdentity") if lease_is_live(as_lease, now) else ""


async def _leader_for_life(api: KubeApi, namespace: str, lock: JsonObject) -> str:
    for owner in sequence(lock, "metadata", "ownerReferences"):
        if text(owner, "kind") != "Pod":
            continue
        pod = await unless_absent(api.get(POD, namespace, text(owner, "name")))
        its = pod is not None and text(pod, "metadata", "uid") == text(owner, "uid")
        if its and text(pod, "status", "phase") not in _ENDED:
            return f"pod {text(owner, 'name')}"
    return ""
