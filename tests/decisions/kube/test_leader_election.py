"""When a leader has lost its Lease (another process holds it), and how long its Lease lasts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from domain.identity import Kind
from domain.resource import timestamp
from engine.errors import Conflict, Unavailable
from engine.kube import KubeApi, LeaderElection, LeadershipLost
from engine.kube.api import WatchEvent
from engine.kube.json import JsonObject, at, text
from engine.kube.leader_election import STANDBY, lease_is_live


class LeaseServer:
    """A Lease whose API server does not answer some of the renewals."""

    def __init__(self) -> None:
        self.lease: JsonObject = {}
        self.durations: list[object] = []  # seconds, of each renewal
        self.unanswered = 0
        self.renewals = 0
        self.renewed = asyncio.Event()

    async def get(self, kind: Kind, namespace: str, name: str) -> JsonObject:
        return self.lease

    async def replace(self, kind: Kind, namespace: str, name: str, obj: JsonObject) -> JsonObject:
        if self.unanswered:
            self.unanswered -= 1
            raise Unavailable("no answer")
        if obj["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:  # type: ignore[index,call-overload]
            raise Conflict("it was changed")
        self.renewals += 1
        self.durations.append(at(obj, "spec", "leaseDurationSeconds"))
        self.renewed.set()
        return self.written(obj)

    async def watch(self, kind: Kind, namespace: str, **requested: str) -> AsyncIterator[WatchEvent]:
        raise Unavailable("no watch")
        yield

    async def create(self, kind: Kind, obj: JsonObject, namespace: str) -> JsonObject:
        return self.written(obj)

    def written(self, obj: JsonObject) -> JsonObject:
        version = str(self.renewals + 1)
        self.lease = {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}}  # type: ignore[dict-item]
        return self.lease


def election(server: LeaseServer, name: str = "me", lease: float = 0.003, lone: float = 60) -> LeaderElection:
    return LeaderElection(
        cast("KubeApi", server),
        "perdure",
        "lock",
        name,
        lease=timedelta(seconds=lease),
        lone=timedelta(seconds=lone),
        retry=timedelta(seconds=0.003),
    )


async def until(server: LeaseServer, renewals: int) -> None:
    async with asyncio.timeout(10):
        while server.renewals < renewals:
            server.renewed.clear()
            await server.renewed.wait()


async def test_a_leader_without_a_successor_goes_on_after_an_outage() -> None:
    server = LeaseServer()
    me = election(server)
    await me.acquire()
    server.unanswered = 20  # much longer than the lease
    holding = asyncio.create_task(me.hold())
    renewing = asyncio.create_task(server.renewed.wait())
    await asyncio.wait([holding, renewing], timeout=10, return_when=asyncio.FIRST_COMPLETED)
    assert renewing.done()
    assert not holding.done()
    holding.cancel()


async def test_a_leader_that_was_succeeded_is_notified() -> None:
    server = LeaseServer()
    me = election(server)
    await me.acquire()
    server.lease = {"metadata": {"resourceVersion": "next"}, "spec": {"holderIdentity": "another"}}
    with pytest.raises(LeadershipLost):
        await asyncio.wait_for(me.hold(), 10)


async def test_a_lease_lasts_longer_while_no_other_process_waits_for_it() -> None:
    server = LeaseServer()
    me = election(server)
    await me.acquire()
    assert at(server.lease, "spec", "leaseDurationSeconds") == 1
    holding = asyncio.create_task(me.hold())
    await until(server, 2)
    await asyncio.sleep(0.05)  # many times the short Lease
    assert server.durations == [60, 60]
    holding.cancel()


async def test_a_process_that_waits_for_a_long_lease_makes_the_holder_renew_a_short_one() -> None:
    server = LeaseServer()
    me, next_one = (election(server, name, lease=1, lone=2) for name in ("me", "next"))
    await me.acquire()
    holding = asyncio.create_task(me.hold())
    await until(server, 1)
    waiting = asyncio.create_task(next_one.acquire())
    await until(server, 5)
    assert server.durations == [2, 2, 1, 1, 1]  # the second is the announcement
    assert text(server.lease, "spec", "holderIdentity") == "me"
    assert text(server.lease, "metadata", "annotations", STANDBY) == ""
    holding.cancel()
    waiting.cancel()


async def test_an_announcement_is_made_once_and_prolongs_no_lease_of_a_dead_holder() -> None:
    server = LeaseServer()
    spec: JsonObject = {"holderIdentity": "dead", "leaseDurationSeconds": 2}
    server.lease = {"metadata": {"resourceVersion": "1"}, "spec": spec}
    began = time.monotonic()
    await asyncio.wait_for(election(server).acquire(), 10)
    assert time.monotonic() - began >= 2
    assert server.renewals == 2  # the announcement, and taking it


@pytest.mark.parametrize("seconds", [10**9, 10**12, 10**30])
@pytest.mark.parametrize("later", [timedelta(days=365), timedelta(days=365 * 5000)])
def test_a_lock_with_an_absurd_duration_is_held_for_decades(seconds: int, later: timedelta) -> None:
    renewed = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
    lock: JsonObject = {
        "spec": {"holderIdentity": "other", "leaseDurationSeconds": seconds, "renewTime": timestamp(renewed)}
    }
    assert lease_is_live(lock, renewed + later) is (later < timedelta(days=20_000))
