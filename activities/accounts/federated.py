"""Observes federated roles and accesses in Kubernetes, and annotates and deletes the accesses of a role."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from temporalio import activity

from activities.accounts.cache import Reader
from activities.activity_class import Activities
from domain.accounts import AWS_FEDERATED_ACCOUNT_ACCESS
from domain.accounts.federated import LAST_ROLE_UPDATE
from domain.accounts.federated.actions import DeleteAccesses, StampAccesses
from domain.accounts.federated.observed import (
    FederatedAccessWorld,
    FederatedRoleWorld,
    ObserveFederatedAccess,
    ObserveFederatedRole,
    SeenAccess,
)
from domain.accounts.federated.resources import AWSFederatedAccountAccess, AWSFederatedRole
from domain.identity import Key
from engine.errors import Absent, Conflict

AT_ONCE = 20


class FederatedObjects(Activities):
    def __init__(self, reader: Reader) -> None:
        self._read = reader
        self._kube = reader.kube

    @activity.defn(name=ObserveFederatedRole.activity)
    async def observe_role(self, look: ObserveFederatedRole) -> FederatedRoleWorld:
        key = look.key
        role, config = await asyncio.gather(self._read.same(AWSFederatedRole, key), self._read.config(look.seen))
        if role is None:
            return FederatedRoleWorld(key=key, exists=False)
        return FederatedRoleWorld(
            key=key,
            hold=await self._read.hold(role.metadata),
            role=role,
            config=config,
            accesses=await self._accesses(role),
        )

    @activity.defn(name=ObserveFederatedAccess.activity)
    async def observe_access(self, look: ObserveFederatedAccess) -> FederatedAccessWorld:
        key = look.key
        access, config = await asyncio.gather(
            self._read.same(AWSFederatedAccountAccess, key), self._read.config(look.seen)
        )
        if access is None:
            return FederatedAccessWorld(key=key, exists=False)
        named = access.spec.aws_federated_role
        role = None
        if named.name and named.namespace:
            role = await self._read.one(AWSFederatedRole, named.namespace, named.name)
        return FederatedAccessWorld(
            key=key,
            hold=await self._read.hold(access.metadata),
            access=access,
            config=config,
            role=role,
        )

    @activity.defn(name=StampAccesses.activity)
    async def stamp_accesses(self, action: StampAccesses) -> None:
        annotations = {LAST_ROLE_UPDATE: action.stamp}

        async def stamp(key: Key) -> None:
            await self._read.write_to(AWS_FEDERATED_ACCOUNT_ACCESS, key, {"metadata": {"annotations": annotations}})

        await _each(action.accesses, stamp)

    @activity.defn(name=DeleteAccesses.activity)
    async def delete_accesses(self, action: DeleteAccesses) -> None:
        async def delete(key: Key) -> None:
            await self._kube.delete(AWS_FEDERATED_ACCOUNT_ACCESS, key.namespace, key.name, uid=key.uid)

        await _each(action.accesses, delete)

    async def _accesses(self, role: AWSFederatedRole) -> tuple[SeenAccess, ...]:
        meta = role.metadata
        return tuple(
            SeenAccess(key=access.key, deleting=access.metadata.deleting)
            for access in await self._read.all(AWSFederatedAccountAccess)
            if (access.spec.aws_federated_role.namespace, access.spec.aws_federated_role.name)
            == (meta.namespace, meta.name)
        )


async def _each(accesses: Sequence[Key], effect: Callable[[Key], Awaitable[None]]) -> None:
    async def one(key: Key) -> None:
        try:
            await effect(key)
        except (Absent, Conflict):
            return

    for start in range(0, len(accesses), AT_ONCE):
        activity.heartbeat()
        await asyncio.gather(*(one(key) for key in accesses[start : start + AT_ONCE]))
