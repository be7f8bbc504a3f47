"""What a pass observes besides the object itself, and the effects that differ from kind to kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from activities.threescale.cache import ThreescaleCache
from activities.threescale.document_download import Downloads
from activities.threescale.secrets import Secrets
from domain.resource import CustomResource, ObjectMeta
from domain.threescale.actions import ClusterWrite
from domain.threescale.calls import Read, Write
from domain.threescale.duplicate_owners import Holder, holders_of, shares_tenant
from domain.threescale.observed import Observed
from domain.threescale.provider_account import NoAccount, ProviderAccount, named_secret
from domain.threescale.remote_ids import host_of, remembered_id
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
        self._homes: dict[str, str] = {}  # addresses of other objects' tenants, by uid

    @abstractmethod
    async def observed(self) -> Observed: ...

    async def common(self) -> dict[str, Any]:
        resource, provider, tenants = self.resource, self.provider, tuple[Tenant, ...]()
        if isinstance(provider, ProviderAccount):
            name = f"Secret/{provider.token.namespace}/{provider.token.name}"
            tenants = self.cache.referring(Tenant, name)
        fields = {"key": resource.key, "resource": resource, "provider": provider, "tenants": tenants}
        return {**fields, "holders": await self.holders()}

    async def find_account(self, secret: str) -> None:
        self.provider = await self.secrets.account(self.namespace, secret)

    async def find_tenant(self) -> None:
        """Find the object's tenant. For siblings (objects with the same name in 3scale), find the tenant unless their
        status names it.
        """
        await self.find_account(named_secret(self.resource))
        await self._find_homes(self.cache.siblings(self.resource))

    async def _find_homes(self, others: Iterable[CustomResource]) -> None:
        if isinstance(self.provider, NoAccount):
            return
        for each in others:
            if not host_of(each):
                with suppress(ApiError):  # after an error, only namespaces and references are compared
                    place = (each.metadata.namespace, self.secret_of(each))
                    self._homes[each.metadata.uid] = await self.secrets.home(*place)

    def secret_of(self, other: CustomResource) -> str:
        return named_secret(other)

    def siblings(self) -> tuple[ObjectMeta, ...]:
        if isinstance(self.provider, NoAccount):
            return ()
        return tuple(each.metadata for each in self.cache.siblings(self.resource) if self.is_of_tenant(each))

    def is_of_tenant(self, other: CustomResource) -> bool:
        return shares_tenant(self.resource, self.provider.url, other, self._homes.get(other.metadata.uid, ""))

    async def holders(self, *found: int) -> tuple[Holder, ...]:
        """Other objects of the tenant with this object's id in 3scale, or with one of the ids `found`."""
        resource = self.resource
        if not isinstance(resource, RemoteResource):
            return ()
        ids = {remembered_id(resource), *found}
        having = (each for id_ in ids for each in self.cache.having(type(resource), id_))
        others = [each for each in having if each.metadata.uid != resource.metadata.uid]
        await self._find_homes(others)
        return holders_of(resource, self.provider.url, filter(self.is_of_tenant, others))

    async def prepare(self, write: Write) -> None:
        """Check before a write that its answer can be stored. Raises ApiError otherwise."""

    async def keep(self, write: Write, body: object) -> dict[str, Any]:
        return {}

    async def noticed(self, read: Read, world: Observed) -> dict[str, Any]:
        """Observe related objects after a read. `world` contains the answer. Returns the fields to update."""
        return {"holders": await self.holders(world.found_id)} if world.found_id else {}

    async def fetch(self, read: Read) -> str:
        raise NotImplementedError(f"{type(self).__name__} does not fetch {read.path}")

    async def write(self, write: ClusterWrite) -> dict[str, Any]:
        raise NotImplementedError(f"{type(self).__name__} writes no {write.slot}")

    @property
    def namespace(self) -> str:
        return self.resource.metadata.namespace
