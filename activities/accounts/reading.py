"""Reading what the area's decisions need from Kubernetes, and whether anything may be changed at all.

Changes of the ConfigMap are seen without a restart, at the next look of whoever they concern. Whether the replaced
operator still leads is asked at most once a minute per process.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TypeVar

from pydantic import ValidationError

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.config import REQUIRED_KEYS, OperatorConfig, parse_config
from domain.accounts.constants import CONFIG_KEPT, LEADER_LOCK, OPERATOR_NAMESPACE
from domain.accounts.constants import CONFIG_MAP as CONFIG_MAP_NAME
from domain.accounts.organization import ORGANIZATION
from domain.accounts.resources import Account, AccountClaim, AccountPool
from domain.identity import Key
from domain.resource import CustomResource, ObjectMeta
from engine.errors import Absent
from engine.kube import CONFIG_MAP, JsonObject, KubeApi, leader_lock_holder
from engine.kube.json import mapping, text
from engine.pauses import held
from engine.settings import Settings

LEADER_ASKED_EVERY = 60.0

R = TypeVar("R", bound=CustomResource)


class Reader:
    """Typed reads of the area's objects. One per process."""

    def __init__(self, kube: KubeApi, settings: Settings) -> None:
        self.kube = kube
        self.settings = settings
        self._leader = ""
        self._leader_asked = float("-inf")
        self._asking_leader = asyncio.Lock()
        self._config = OperatorConfig(present=False)
        self._config_read = float("-inf")

    def key(self, resource: CustomResource) -> Key:
        """The key of the object's workflow in this cluster."""
        return resource.key.model_copy(update={"cluster": self.settings.cluster})

    @property
    def organization(self) -> Key:
        """The key of the organization's workflow as this cluster's operator sees it."""
        return ORGANIZATION.model_copy(update={"cluster": self.settings.cluster})

    async def account(self, namespace: str, name: str) -> Account | None:
        """An Account, None if there is none."""
        try:
            return Account.model_validate(await self.kube.get(ACCOUNT, namespace, name))
        except Absent:
            return None

    async def claim(self, namespace: str, name: str) -> AccountClaim | None:
        """An AccountClaim, None if there is none."""
        try:
            return AccountClaim.model_validate(await self.kube.get(ACCOUNT_CLAIM, namespace, name))
        except Absent:
            return None

    async def pool(self, namespace: str, name: str) -> AccountPool | None:
        """An AccountPool, None if there is none."""
        try:
            return AccountPool.model_validate(await self.kube.get(ACCOUNT_POOL, namespace, name))
        except Absent:
            return None

    async def accounts(self, namespace: str = "") -> tuple[Account, ...]:
        """Accounts, those that can be read: one that cannot never stops the others."""
        listing = await self.kube.list(ACCOUNT, namespace)
        return tuple(_readable(Account, listing.items))

    async def accounts_held_by(self, claim: Key) -> tuple[Account, ...]:
        """The Accounts that name the claim as their holder, those that can be read.

        Only they are made models of: claims ask one by one, and there may be thousands of Accounts.
        """
        listing = await self.kube.list(ACCOUNT, OPERATOR_NAMESPACE)
        return tuple(_readable(Account, [item for item in listing.items if _names(item, claim)]))

    async def claims(self) -> tuple[AccountClaim, ...]:
        """Every AccountClaim that can be read."""
        listing = await self.kube.list(ACCOUNT_CLAIM)
        return tuple(_readable(AccountClaim, listing.items))

    async def pools(self) -> tuple[AccountPool, ...]:
        """Every AccountPool that can be read."""
        listing = await self.kube.list(ACCOUNT_POOL, OPERATOR_NAMESPACE)
        return tuple(_readable(AccountPool, listing.items))

    async def config(self, *, fresh: bool = True) -> OperatorConfig:
        """The operator's ConfigMap; unless `fresh`, one read within seconds does if it lacks nothing.

        Old values can only delay: what is missing is always read anew, whoever was refused for an old value looks again
        before it tries again, and the watcher wakes those concerned by a change once more when it is sure to be seen.
        """
        recent = time.monotonic() - self._config_read < CONFIG_KEPT.total_seconds()
        if not fresh and recent and self._config.present and not self._config.missing(*REQUIRED_KEYS):
            return self._config
        began = time.monotonic()
        self._config = await self._read_config()
        self._config_read = began
        return self._config

    async def _read_config(self) -> OperatorConfig:
        try:
            found = await self.kube.get(CONFIG_MAP, OPERATOR_NAMESPACE, CONFIG_MAP_NAME)
        except Absent:
            return parse_config(None)
        return parse_config({name: str(value) for name, value in mapping(found, "data").items()})

    async def hold(self, meta: ObjectMeta) -> str:
        """Why nothing may be changed on behalf of this object now, empty if it may."""
        if reason := held(ACCOUNT.area, meta.annotations, self.settings):
            return reason
        if leader := await self._foreign_leader():
            return f"the aws-account-operator still leads ({leader}): scale it down and remove {LEADER_LOCK}"
        return ""

    async def _foreign_leader(self) -> str:
        async with self._asking_leader:  # one asks for all who come meanwhile
            if time.monotonic() - self._leader_asked >= LEADER_ASKED_EVERY:
                self._leader = await leader_lock_holder(self.kube, OPERATOR_NAMESPACE, LEADER_LOCK)
                self._leader_asked = time.monotonic()
            return self._leader


def same_object(found: Account | AccountClaim | AccountPool | None, key: Key) -> bool:
    """True if this is the object that the key names, not one recreated under its name."""
    return found is not None and found.metadata.uid == key.uid


def _names(account: JsonObject, claim: Key) -> bool:
    spec = mapping(account, "spec")
    return text(spec, "claimLink") == claim.name and text(spec, "claimLinkNamespace") == claim.namespace


def _readable(model: type[R], items: Sequence[JsonObject]) -> list[R]:
    readable: list[R] = []
    for item in items:
        try:
            readable.append(model.model_validate(item))
        except ValidationError:
            continue
    return readable
