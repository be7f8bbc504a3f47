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
from domain.threescale.duplicate_owners import Holder
from domain.threescale.observed import Observed
from domain.threescale.provider_account import NoAccount, ProviderAccount, known_at, same_tenant
from domain.threescale.remote_ids import host_of, remembered_id
from domain.threescale.resources import Tenant
from domain.threescale.resources.shared import InTenant, RemoteResource
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
        await self.find_account(_tenant_secret(self.resource))
        if isinstance(self.provider, NoAccount):
            return
        for each in self.cache.siblings(self.resource):
            if not host_of(each):
                with suppress(ApiError):  # then only the namespaces and references are compared
                    place = (each.metadata.namespace, _tenant_secret(each))
                    self._homes[each.metadata.uid] = await self.secrets.home(*place)

    def siblings(self) -> tuple[R, ...]:
        if isinstance(self.provider, NoAccount):
            return ()
        return tuple(each for each in self.cache.siblings(self.resource) if self.is_of_tenant(each))

    def is_of_tenant(self, other: CustomResource) -> bool:
        if home := host_of(other) or self._homes.get(other.metadata.uid):
            return same_tenant(home, self.provider.url)
        same_secret = _tenant_secret(other) == _tenant_secret(self.resource)
        return other.metadata.namespace == self.namespace and same_secret

    def holders(self, others: Iterable[RemoteResource]) -> tuple[Holder, ...]:
        url, uid = self.provider.url, self.resource.metadata.uid
        found = [(each.metadata, known_at(url, host_of(each), remembered_id(each))) for each in others]
        return tuple(Holder(metadata=meta, id=id_) for meta, id_ in found if id_ and meta.uid != uid)

    def rivals(self, siblings: Iterable[RemoteResource]) -> dict[str, Any]:
        """The fields `siblings` (others of the same name) and `holders` (those siblings with an id in the tenant)."""
        return {"siblings": tuple(each.metadata for each in siblings), "holders": self.holders(siblings)}

    async def prepare(self, write: Write) -> None:
        """Check before a write that its answer can be stored. Raises ApiError if it cannot."""

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


def _tenant_secret(resource: CustomResource) -> str:
    spec: object = getattr(resource, "spec", None)
    return spec.tenant_secret if isinstance(spec, InTenant) else ""
