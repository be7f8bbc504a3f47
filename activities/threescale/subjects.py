"""What a pass observes besides the object itself, and the effects that differ from kind to kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from activities.threescale.cache import ThreescaleCache
from activities.threescale.secrets import Secrets
from domain.resource import CustomResource
from domain.threescale.actions import ClusterWrite
from domain.threescale.calls import Read, Write
from domain.threescale.duplicate_owners import Holder
from domain.threescale.observed import Observed
from domain.threescale.provider_account import NoAccount, ProviderAccount, known_at, same_tenant
from domain.threescale.remote_ids import remembered_id
from domain.threescale.resources import Tenant
from domain.threescale.resources.shared import LocalReference
from engine.errors import ApiError

R = TypeVar("R", bound=CustomResource)

NOT_LOOKED_FOR = NoAccount(why="not looked up yet", waits_for="")


class Subject(ABC, Generic[R]):
    def __init__(self, resource: R, cache: ThreescaleCache, secrets: Secrets) -> None:
        self.resource = resource
        self.cache = cache
        self.secrets = secrets
        self.provider: ProviderAccount | NoAccount = NOT_LOOKED_FOR
        self._homes: dict[str, str] = {}  # addresses of siblings' tenants, by uid

    @abstractmethod
    async def observed(self) -> Observed: ...
    def common(self) -> dict[str, Any]:
        provider, tenants = self.provider, tuple[Tenant, ...]()
        if isinstance(provider, ProviderAccount):
            name = f"Secret/{provider.token.namespace}/{provider.token.name}"
            tenants = self.cache.referring(Tenant, name)
        return {"key": self.resource.key, "resource": self.resource, "provider": provider, "tenants": tenants}

    async def find_tenant(self) -> None:
        """Find the object's tenant, and the tenants of siblings whose status names no tenant."""
        self.provider = await self.secrets.account(self.resource, _reference(self.resource))
        if isinstance(self.provider, NoAccount):
            return
        for each in self.cache.siblings(self.resource):
            if not _host(each):
                with suppress(ApiError):  # then only the namespaces and references are compared
                    self._homes[each.metadata.uid] = await self.secrets.home(each, _reference(each))

    def siblings(self) -> tuple[R, ...]:
        if isinstance(self.provider, NoAccount):
            return ()
        return tuple(each for each in self.cache.siblings(self.resource) if self.is_of_tenant(each))

    def is_of_tenant(self, other: CustomResource) -> bool:
        if home := _host(other) or self._homes.get(other.metadata.uid):
            return same_tenant(home, self.provider.url)
        return other.metadata.namespace == self.namespace and _reference(other) == _reference(self.resource)

    def holders(self, others: Iterable[CustomResource]) -> tuple[Holder, ...]:
        uid = self.resource.metadata.uid
        found = [(each, id_) for each in others if (id_ := self._id_of(each)) and each.metadata.uid != uid]
        return tuple(Holder(metadata=each.metadata, id=id_) for each, id_ in found)

    def _id_of(self, resource: CustomResource) -> int:
        return known_at(self.provider.url, _host(resource), remembered_id(resource))

    async def prepare(self, write: Write) -> None:
        """Check before a write that its answer can be stored. Raises ApiError if it cannot."""

    async def keep(self, write: Write, body: object) -> dict[str, Any]:
        return {}

    async def noticed(self, read: Read, body: object) -> dict[str, Any]:
        """Return the fields of the world to update after the answer to a read: related objects that now count."""
        return {}

    async def fetch(self, read: Read) -> str:
        raise NotImplementedError(f"{type(self).__name__} asks for no {read.path}")

    async def write(self, write: ClusterWrite) -> dict[str, Any]:
        raise NotImplementedError(f"{type(self).__name__} writes no {write.slot}")

    @property
    def namespace(self) -> str:
        return self.resource.metadata.namespace


def _host(resource: CustomResource) -> str | None:
    host: object = getattr(getattr(resource, "status", None), "provider_account_host", None)
    return str(host) if host else None


def _reference(resource: CustomResource) -> LocalReference | None:
    reference: object = getattr(getattr(resource, "spec", None), "provider_account_ref", None)
    return reference if isinstance(reference, LocalReference) and reference.name else None
