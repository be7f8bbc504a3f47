"""When a leader has lost its Lease: another one holds it. Being late is not enough."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import cast

import pytest

from domain.identity import Kind
from engine.errors import Conflict, Unavailable
from engine.kube import KubeApi, LeaderElection, LeadershipLost
from engine.kube.json import JsonObject


class LeaseServer:
    """A Lease whose API server does not answer some of the renewals."""

    def __init__(self) -> None:
        self.lease: JsonObject = {}
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
        self.renewed.set()
        return self.written(obj)

    async def create(self, kind: Kind, obj: JsonObject, namespace: str) -> JsonObject:
        return self.written(obj)

    def written(self, obj: JsonObject) -> JsonObject:
        version = str(self.renewals + 1)
        self.lease = {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}}  # type: ignore[dict-item]
        return self.lease


def election(server: LeaseServer) -> LeaderElection:
    moment = timedelta(seconds=0.003)
    return LeaderElection(cast("KubeApi", server), "perdure", "lock", "me", lease=moment, retry=moment)


async def test_a_leader_that_nobody_has_followed_goes_on_after_an_outage() -> None:
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


async def test_a_leader_that_another_one_has_followed_is_told() -> None:
    server = LeaseServer()
    me = election(server)
    await me.acquire()
    server.lease = {"metadata": {"resourceVersion": "next"}, "spec": {"holderIdentity": "another"}}
    with pytest.raises(LeadershipLost):
        await asyncio.wait_for(me.hold(), 10)
