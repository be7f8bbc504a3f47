"""Reading what the area's decisions need from Kubernetes, and whether anything may be changed at all.

Changes of the ConfigMap are seen without a restart, at the next look of whoever they concern. Whether the replaced
operator still leads is asked at most once a minute per process.
"""

from __future__ import annotations

import asyncio
import time
from typing import TypeVar

from domain.accounts import ACCOUNT
from domain.accounts.config import REQUIRED_KEYS, OperatorConfig, parse_config
from domain.accounts.constants import CONFIG_KEPT, LEADER_LOCK, OPERATOR_NAMESPACE
from domain.accounts.constants import CONFIG_MAP as CONFIG_MAP_NAME
from domain.accounts.organization import ORGANIZATION
from domain.accounts.resources import Account
from domain.identity import Key, Kind
from domain.reading import read_all
from domain.resource import CustomResource, ObjectMeta
from domain.writes import JsonPatch
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

    async def one(self, model: type[R], namespace: str, name: str) -> R | None:
        """An object by its name, None if there is none."""
        try:
            return model.model_validate(await self.kube.get(model.kind_of, namespace, name))
        except Absent:
            return None

    async def same(self, model: type[R], key: Key) -> R | None:
        """The object that the key names; None if there is none, or one that was created again under its name."""
        found = await self.one(model, key.namespace, key.name)
        return found if found is not None and found.metadata.uid == key.uid else None

    async def account(self, name: str) -> Account | None:
        """An Account of the operator's namespace."""
        return await self.one(Account, OPERATOR_NAMESPACE, name)

    async def all(self, model: type[R], namespace: str = "") -> tuple[R, ...]:
        """Objects, those that can be read: one that cannot never stops the others."""
        return read_all(model, (await self.kube.list(model.kind_of, namespace)).items)[0]

    async def accounts_held_by(self, claim: Key) -> tuple[Account, ...]:
        """The Accounts that name the claim as their holder, those that can be read.

        Only they are made models of: claims ask one by one, and there may be thousands of Accounts.
        """
        listing = await self.kube.list(ACCOUNT, OPERATOR_NAMESPACE)
        return read_all(Account, [item for item in listing.items if _names(item, claim)])[0]

    async def write(self, resource: R, patch: JsonPatch, *, subresource: str = "") -> R:
        """Patch an object.

        Raises:
            Conflict: somebody else has written it since it was read.
        """
        meta = resource.metadata
        version = meta.resource_version
        answer = await self.kube.patch(
            resource.kind_of, meta.namespace, meta.name, patch, subresource=subresource, resource_version=version
        )
        return type(resource).model_validate(answer)

    async def write_to(self, kind: Kind, key: Key, patch: JsonPatch, *, subresource: str = "") -> JsonObject:
        """Patch the object that the key names, whoever has written it since."""
        body = {**patch, "metadata": {**mapping(patch, "metadata"), "uid": key.uid}}
        return await self.kube.patch(kind, key.namespace, key.name, body, subresource=subresource)

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


def _names(account: JsonObject, claim: Key) -> bool:
    spec = mapping(account, "spec")
    return text(spec, "claimLink") == claim.name and text(spec, "claimLinkNamespace") == claim.namespace
