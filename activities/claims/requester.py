"""The requester of a claim: its Namespace names the user, and OpenShift knows the user's identities.

Without OpenShift both look-ups answer 404, and a placeholder with the name replaces the user, as in Poolboy. Users are
read again after some minutes, at the periodic pass.
"""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import cast

from activities.claims.cache import ClaimCache
from domain.claims.constants import NAMESPACE_REQUESTER_ANNOTATION
from domain.claims.evaluator_interface import NO_REQUESTER, Requester
from domain.claims.json_objects import JsonObject, text_at, value_at
from domain.identity import Kind
from engine import kube
from engine.errors import Absent, ApiError, Denied
from engine.kube import KubeApi

USER = Kind(name="User", group="user.openshift.io", version="v1", plural="users", area="")
IDENTITY = Kind(name="Identity", group="user.openshift.io", version="v1", plural="identities", area="")
MOST_REMEMBERED = 10_000


class Requesters:
    def __init__(self, api: KubeApi, cache: ClaimCache, lifetime: timedelta) -> None:
        self._api = api
        self._cache = cache
        self._lifetime = lifetime.total_seconds()
        self._users: dict[str, tuple[float, Requester]] = {}

    async def of(self, claim: JsonObject | None) -> Requester:
        if claim is None:
            return NO_REQUESTER
        name = text_at(claim, "metadata", "namespace")
        namespace = await self._cache.find(kube.NAMESPACE, "", name)
        user = text_at(namespace, "metadata", "annotations", NAMESPACE_REQUESTER_ANNOTATION)
        return await self._user(user) if user else NO_REQUESTER

    async def _user(self, name: str) -> Requester:
        read, requester = self._users.get(name, (0.0, NO_REQUESTER))
        if read and time.monotonic() - read < self._lifetime:
            return requester
        try:
            requester = await self._read(name)
        except ApiError:
            if not read:
                raise
            return requester  # no change of the user is known, and the claim must still be reconciled
        if len(self._users) >= MOST_REMEMBERED:
            self._users.clear()
        self._users[name] = (time.monotonic(), requester)
        return requester

    async def _read(self, name: str) -> Requester:
        user = await self._get(USER, name) or {"metadata": {"name": name}, "identities": []}
        named = value_at(user, "identities")
        identities = await asyncio.gather(
            *(self._identity(str(each)) for each in (named if isinstance(named, list) else []))
        )
        return Requester(user=user, identities=tuple(identities))

    async def _identity(self, name: str) -> JsonObject:
        return await self._get(IDENTITY, name) or {"metadata": {"name": name}, "extra": {}}

    async def _get(self, kind: Kind, name: str) -> JsonObject | None:
        try:
            return cast("JsonObject", await self._api.get(kind, "", name))
        except (Absent, Denied):
            return None
