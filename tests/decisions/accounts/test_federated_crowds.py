"""A role's accesses are stamped and deleted in batches; a deleted access blocks no other."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from federated_objects import access
from temporalio.testing import ActivityEnvironment

from activities.accounts.cache import Reader
from activities.accounts.federated import AT_ONCE, FederatedObjects
from domain.accounts.federated import LAST_ROLE_UPDATE
from domain.accounts.federated.actions import DeleteAccesses, StampAccesses
from domain.identity import Kind
from engine.errors import Absent, Conflict, Unavailable
from engine.kube import KubeApi
from engine.settings import Settings

MANY = 2 * AT_ONCE + 5
ACCESSES = tuple(access(meta={"name": f"access-{number}", "uid": f"uid-{number}"}).key for number in range(MANY))


class Kube:
    """Notes who was written, and how many at once."""

    def __init__(self, **faults: Exception) -> None:
        self.faults = faults
        self.written: dict[str, Any] = {}
        self.under_way = self.most = 0

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Any, **_: object) -> None:
        await self._write(name, patch["metadata"])

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        await self._write(name, {"uid": uid})

    async def _write(self, name: str, what: Any) -> None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        if fault := self.faults.get(name.replace("-", "_")):
            raise fault
        self.written[name] = what


async def carry_out(kube: Kube, action: StampAccesses | DeleteAccesses) -> None:
    objects = FederatedObjects(Reader(cast("KubeApi", kube), Settings()))
    if isinstance(action, StampAccesses):
        await ActivityEnvironment().run(objects.stamp_accesses, action)
    else:
        await ActivityEnvironment().run(objects.delete_accesses, action)


STAMP = StampAccesses(accesses=ACCESSES, stamp="now", generation=1)
DELETE = DeleteAccesses(accesses=ACCESSES)


@pytest.mark.parametrize("action", [STAMP, DELETE], ids=lambda action: action.activity)
async def test_accesses_are_written_some_at_a_time(action: StampAccesses | DeleteAccesses) -> None:
    kube = Kube(access_3=Absent("gone"), access_30=Conflict("another of that name"))
    await carry_out(kube, action)
    expected: dict[str, Any] = {
        key.name: {"uid": key.uid} for key in ACCESSES if key.name not in {"access-3", "access-30"}
    }
    if action is STAMP:
        expected = {name: {**metadata, "annotations": {LAST_ROLE_UPDATE: "now"}} for name, metadata in expected.items()}
    assert kube.written == expected
    assert kube.most == AT_ONCE


@pytest.mark.parametrize("action", [STAMP, DELETE], ids=lambda action: action.activity)
async def test_a_write_that_fails_is_reported(action: StampAccesses | DeleteAccesses) -> None:
    with pytest.raises(Unavailable):
        await carry_out(Kube(access_7=Unavailable("no")), action)
