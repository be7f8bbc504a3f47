"""Typed reads and writes of the area's Kubernetes objects, and whether anything may be changed.

The ConfigMap, pools and Accounts are read from a cache, which is at least as new as the change that woke the lifecycle.
The replaced operator's leader lock is checked at most once a minute per process.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import TypeVar

from domain.accounts import ACCOUNT, ACCOUNT_POOL
from domain.accounts.config import OperatorConfig, parse_config
from domain.accounts.constants import CLAIM_UID_ANNOTATION, LEADER_LOCK, OPERATOR_NAMESPACE
from domain.accounts.constants import CONFIG_MAP as CONFIG_MAP_NAME
from domain.accounts.organization import ORGANIZATION
from domain.accounts.resources import Account, AccountPool
from domain.control_annotations import retry_wanted
from domain.identity import Key, Kind
from domain.model import Model
from domain.reading import read_all
from domain.resource import CustomResource, ObjectMeta
from domain.writes import JsonPatch
from engine.errors import unless_absent
from engine.kube import CONFIG_MAP, JsonObject, KubeApi, leader_lock_holder
from engine.kube.informer_cache import Mirror, Store, reached
from engine.kube.json import at, mapping, text
from engine.kube.reflector import Followed
from engine.pauses import held
from engine.settings import Settings

LEADER_ASKED_EVERY = 60.0
ALL_ACCOUNTS = Followed(ACCOUNT)
ALL_POOLS = Followed(ACCOUNT_POOL)
THE_CONFIG_MAP = Followed(CONFIG_MAP, OPERATOR_NAMESPACE, field_selector=f"metadata.name={CONFIG_MAP_NAME}")

R = TypeVar("R", bound=CustomResource)


class Reader:
    """One per process. Without a store, all reads go to the API server."""

    def __init__(self, kube: KubeApi, settings: Settings, store: Store | None = None) -> None:
        self.kube = kube
        self.settings = settings
        self._leader = ""
        self._leader_asked = float("-inf")
        self._asking_leader = asyncio.Lock()
        self._config_map = store.follow(THE_CONFIG_MAP) if store else None
        self._accounts = store.follow(ALL_ACCOUNTS) if store else None
        self._pools = store.follow(ALL_POOLS) if store else None
        self._parsed: tuple[JsonObject | None, OperatorConfig] = (None, parse_config(None))

    def key(self, resource: CustomResource) -> Key:
        return resource.key.model_copy(update={"cluster": self.settings.cluster})

    @property
    def organization(self) -> Key:
        return ORGANIZATION.model_copy(update={"cluster": self.settings.cluster})

    async def one(self, model: type[R], namespace: str, name: str) -> R | None:
        found = await unless_absent(self.kube.get(model.kind_of, namespace, name))
        return None if found is None else model.model_validate(found)

    async def same(self, model: type[R], key: Key) -> R | None:
        """The object with the key's uid; None if it does not exist, or was created again."""
        found = await self.one(model, key.namespace, key.name)
        return found if found is not None and found.metadata.uid == key.uid else None

    async def pool(self, key: Key, seen: Mapping[str, str]) -> AccountPool | None:
        mirror = await _as_new_as(self._pools, seen)
        cached = None if mirror is None else mirror.get(key.namespace, key.name)
        if cached is None or text(cached, "metadata", "uid") != key.uid:
            return await self.same(AccountPool, key)
        pool = AccountPool.model_validate(cached)
        return await self.same(AccountPool, key) if retry_wanted(pool.metadata) else pool

    async def has_pool(self, name: str, seen: Mapping[str, str]) -> bool:
        mirror = await _as_new_as(self._pools, seen)
        cached = None if mirror is None else mirror.get(OPERATOR_NAMESPACE, name)
        return cached is not None or await self.one(AccountPool, OPERATOR_NAMESPACE, name) is not None

    async def account(self, name: str) -> Account | None:
        return await self.one(Account, OPERATOR_NAMESPACE, name)

    async def all(self, model: type[R], namespace: str = "") -> tuple[R, ...]:
        """All objects that can be parsed. A malformed object is left out, so that it does not block others."""
        return read_all(model, (await self.kube.list(model.kind_of, namespace)).items)[0]

    async def accounts(
        self, seen: Mapping[str, str] | None, namespace: str = "", having: Iterable[str] = ()
    ) -> tuple[Account, ...]:
        """All Accounts that can be parsed, from the cache. They are read from the API server if `seen` is None, or if
        the cache is older than `seen` or lacks one of the names in `having`.
        """
        mirror = await _as_new_as(self._accounts, seen)
        if mirror is None or any(mirror.get(namespace, name) is None for name in having):
            return await self.all(Account, namespace)
        found = mirror.all()
        if namespace:
            found = (item for item in found if text(item, "metadata", "namespace") == namespace)
        return read_all(Account, found)[0]

    @property
    def accounts_version(self) -> str:
        return self._accounts.newest if self._accounts is not None else ""

    async def accounts_held_by(self, claim: Key) -> tuple[Account, ...]:
        """The Accounts that name the claim as their holder. Only these are parsed, because there may be thousands."""
        listing = await self.kube.list(ACCOUNT, OPERATOR_NAMESPACE)
        return read_all(Account, [item for item in listing.items if _names(item, claim)])[0]

    async def customers_beside(self, claim: Key) -> bool:
        """Whether other claims of the claim's namespace have customers' Accounts. The Accounts are not parsed."""
        mirror = await _as_new_as(self._accounts, {})
        items = mirror.all() if mirror is not None else (await self.kube.list(ACCOUNT, OPERATOR_NAMESPACE)).items
        specs = (mapping(item, "spec") for item in items if at(item, "spec", "byoc") is True)
        named = ((text(spec, "claimLinkNamespace"), text(spec, "claimLink")) for spec in specs)
        return any(namespace == claim.namespace and name != claim.name for namespace, name in named)

    async def write(self, resource: R, patch: JsonPatch, *, subresource: str = "") -> R:
        """Patch the object; raises Conflict if it has been written since it was read."""
        meta = resource.metadata
        version = meta.resource_version
        answer = await self.kube.patch(
            resource.kind_of, meta.namespace, meta.name, patch, subresource=subresource, resource_version=version
        )
        self.wrote(resource.kind_of, answer)
        return type(resource).model_validate(answer)

    async def write_status(self, resource: R, status: Model, **cleared: None) -> R:
        """Patch the object's status, and remove the fields in `cleared`. Raises Conflict as `write` does."""
        shown = {**status.model_dump(mode="json", exclude_none=True), **cleared}
        return await self.write(resource, {"status": shown}, subresource="status")

    async def write_to(self, kind: Kind, key: Key, patch: JsonPatch, *, subresource: str = "") -> JsonObject:
        body = {**patch, "metadata": {**mapping(patch, "metadata"), "uid": key.uid}}
        answer = await self.kube.patch(kind, key.namespace, key.name, body, subresource=subresource)
        self.wrote(kind, answer)
        return answer

    async def write_config(self, data: dict[str, str]) -> None:
        answer = await self.kube.patch(CONFIG_MAP, OPERATOR_NAMESPACE, CONFIG_MAP_NAME, {"data": data})
        self.wrote(CONFIG_MAP, answer)

    def wrote(self, kind: Kind, answer: JsonObject) -> None:
        for mirror in (self._accounts, self._pools, self._config_map):
            if mirror is not None and mirror.followed.kind == kind:
                mirror.learn(answer)

    async def config(self, seen: Mapping[str, str] | None = None) -> OperatorConfig:
        """The ConfigMap, at least as new as the versions `seen`. If `seen` is None, it is read from the API server."""
        mirror = await _as_new_as(self._config_map, seen)
        if mirror is not None:
            return self._parse(mirror.get(OPERATOR_NAMESPACE, CONFIG_MAP_NAME))
        return self._parse(await unless_absent(self.kube.get(CONFIG_MAP, OPERATOR_NAMESPACE, CONFIG_MAP_NAME)))

    def _parse(self, found: JsonObject | None) -> OperatorConfig:
        if found is not self._parsed[0]:
            data = None if found is None else {name: str(value) for name, value in mapping(found, "data").items()}
            self._parsed = (found, parse_config(data))
        return self._parsed[1]

    async def hold(self, meta: ObjectMeta) -> str:
        """Why nothing may be changed now; empty if changes are allowed."""
        if reason := held(ACCOUNT.area, meta.annotations, self.settings):
            return reason
        if leader := await self._foreign_leader():
            return f"the aws-account-operator still leads ({leader}): scale it down and remove {LEADER_LOCK}"
        return ""

    async def _foreign_leader(self) -> str:
        async with self._asking_leader:  # one request serves all callers that arrive meanwhile
            if time.monotonic() - self._leader_asked >= LEADER_ASKED_EVERY:
                self._leader = await leader_lock_holder(self.kube, OPERATOR_NAMESPACE, LEADER_LOCK)
                self._leader_asked = time.monotonic()
            return self._leader


async def _as_new_as(mirror: Mirror | None, seen: Mapping[str, str] | None) -> Mirror | None:
    if mirror is None or seen is None or not mirror.listed or not await reached((mirror,), seen):
        return None
    return None if mirror.trouble else mirror


def _names(account: JsonObject, claim: Key) -> bool:
    spec = mapping(account, "spec")
    if not text(spec, "claimLink"):
        return bool(claim.uid) and text(account, "metadata", "annotations", CLAIM_UID_ANNOTATION) == claim.uid
    return text(spec, "claimLink") == claim.name and text(spec, "claimLinkNamespace") == claim.namespace
