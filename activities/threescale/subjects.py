"""What a pass observes besides the object itself, and the effects that differ from kind to kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from activities.threescale.cache import ThreescaleCache
from activities.threescale.document_download import Downloads
from activities.threescale.secrets import Secrets
from domain.resource import CustomResource
from domain.threescale.actions import ClusterWrite
from domain.threescale.calls import Read, Write
from domain.threescale.duplicate_owners import holders_of, shares_tenant
from domain.threescale.observed import Observed
from domain.threescale.provider_account import NoAccount, ProviderAccount, named_secret
from domain.threescale.remote_ids import host_of
from domain.threescale.resources import Tenant
from domain.threescale.resources.shared import RemoteResource
from engine.errors import ApiError
from engine.kube import KubeApi

R = TypeVar("R", bound=CustomResource)

NOT_LOOKED_FOR = NoAccount(why="not looked up yet", waits_for="")


class Subject(ABC, Generic[R]):
    def __init__(
        self, resource: R, cache: ThreescaleCache, secrets: Secrets, downloads: Downloads, kube: KubeApi
    ) -> None:
        self.resource = resource
        self.cache = cache
        self.secrets = secrets
        self.downloads = downloads
        self.kube = kube
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

    async def find_account(self, secret: str) -> None:
        self.provider = await self.secrets.account(self.namespace, secret)

    async def find_tenant(self) -> None:
        """Find the object's tenant, and the tenants of siblings whose status names no tenant."""
        await self.find_account(named_secret(self.resource))
        if isinstance(self.provider, NoAccount):
            return
        for each in self.cache.siblings(self.resource):
            if not host_of(each):
                with suppress(ApiError):  # then only the namespaces and references are compared
                    place = (each.metadata.namespace, named_secret(each))
                    self._homes[each.metadata.uid] = await self.secrets.home(*place)

    def siblings(self) -> tuple[R, ...]:
        if isinstance(self.provider, NoAccount):
            return ()
        return tuple(each for each in self.cache.siblings(self.resource) if self.is_of_tenant(each))

    def is_of_tenant(self, other: CustomResource) -> bool:
        return shares_tenant(self.resource, self.provider.url, other, self._homes.get(other.metadata.uid, ""))

    def rivals(self, siblings: Iterable[RemoteResource]) -> dict[str, Any]:
        """The fields `siblings` (others of the same name) and `holders` (those siblings with an id in the tenant)."""
        holders = holders_of(self.resource, self.provider.url, siblings)
        return {"siblings": tuple(each.metadata for each in siblings), "holders": holders}

    async def prepare(self, write: Write) -> None:
        """Check before a write that its answer can be stored. Raises ApiError otherwise."""

    async def keep(self, write: Write, body: object) -> dict[str, Any]:
        return {}

    async def noticed(self, read: Read, body: object) -> dict[str, Any]:
        """Observe related objects after the answer to a read. Returns the fields of the world to update."""
        return {}

    async def fetch(self, read: Read) -> str:
        raise NotImplementedError(f"{type(self).__name__} does not fetch {read.path}")

    async def write(self, write: ClusterWrite) -> dict[str, Any]:
        raise NotImplementedError(f"{type(self).__name__} writes no {write.slot}")

    @property
    def namespace(self) -> str:
        return self.resource.metadata.namespace
