"""What a pass observes of one object beside itself: its relatives, its Secrets, its tenant.

There is a subject for each kind; the table in `__init__.py` lists their files. It also does what is the kind's own of
the effects: other objects of the cluster that it writes, and what must not be lost of an answer of 3scale.
"""

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
from domain.threescale.holders import Holder
from domain.threescale.notes import remembered_id
from domain.threescale.observed import Observed
from domain.threescale.providers import NoAccount, ProviderAccount, known_at, same_tenant
from domain.threescale.resources import Tenant
from domain.threescale.resources.shared import LocalReference
from engine.errors import ApiError

R = TypeVar("R", bound=CustomResource)

NOT_LOOKED_FOR = NoAccount(why="not looked up yet", waits_for="")


class Subject(ABC, Generic[R]):
    """One object as a pass observes it."""

    def __init__(self, resource: R, cache: ThreescaleCache, secrets: Secrets) -> None:
        self.resource = resource
        self.cache = cache
        self.secrets = secrets
        self.provider: ProviderAccount | NoAccount = NOT_LOOKED_FOR
        self._homes: dict[str, str] = {}  # addresses of siblings' tenants, by uid

    @abstractmethod
    async def observed(self) -> Observed:
        """What the kind's decision sees."""

    def common(self) -> dict[str, Any]:
        """What the decisions of all kinds see."""
        provider, tenants = self.provider, tuple[Tenant, ...]()
        if isinstance(provider, ProviderAccount):
            name = f"Secret/{provider.token.namespace}/{provider.token.name}"
            tenants = self.cache.referring(Tenant, name)
        return {"key": self.resource.key, "resource": self.resource, "provider": provider, "tenants": tenants}

    async def find_tenant(self) -> None:
        """Its tenant, and where those siblings are to be that have not said so: one of them may be making it now."""
        self.provider = await self.secrets.account(self.resource, _reference(self.resource))
        if isinstance(self.provider, NoAccount):
            return
        for each in self.cache.siblings(self.resource):
            if not _host(each):
                with suppress(ApiError):  # then only those count that name the tenant as it does
                    self._homes[each.metadata.uid] = await self.secrets.home(each, _reference(each))

    def siblings(self) -> tuple[R, ...]:
        """The others that are called as it is in 3scale, in the same tenant."""
        if isinstance(self.provider, NoAccount):
            return ()
        return tuple(each for each in self.cache.siblings(self.resource) if self.is_of_tenant(each))

    def is_of_tenant(self, other: CustomResource) -> bool:
        """Whether another is in the same tenant, as far as its status says, else as it names its tenant."""
        if home := _host(other) or self._homes.get(other.metadata.uid):
            return same_tenant(home, self.provider.url)
        return other.metadata.namespace == self.namespace and _reference(other) == _reference(self.resource)

    def holders(self, others: Iterable[CustomResource]) -> tuple[Holder, ...]:
        """Those of the others that have something in its tenant."""
        uid = self.resource.metadata.uid
        found = [(each, id_) for each in others if (id_ := self._id_of(each)) and each.metadata.uid != uid]
        return tuple(Holder(metadata=each.metadata, id=id_) for each, id_ in found)

    def _id_of(self, resource: CustomResource) -> int:
        """What an object has in the tenant of this one."""
        return known_at(self.provider.url, _host(resource), remembered_id(resource))

    async def prepare(self, write: Write) -> None:
        """What must be sure before a write, because of what has to be kept of its answer.

        Raises:
            ApiError: it could not be kept; the write is not made.
        """

    async def keep(self, write: Write, body: object) -> dict[str, Any]:
        """What must not be lost of an answer, before anything else is done; what the world shows of that, by fields."""
        return {}

    async def noticed(self, read: Read, body: object) -> dict[str, Any]:
        """What of the relatives counts with an answer, by fields of the world."""
        return {}

    async def fetch(self, read: Read) -> str:
        """A text outside of any tenant, for kinds whose decisions ask for one."""
        raise NotImplementedError(f"{type(self).__name__} asks for no {read.path}")

    async def write(self, write: ClusterWrite) -> dict[str, Any]:
        """Write something of the cluster that is the object's to write; what the world shows then, by fields.

        Raises:
            ApiError: the API server refuses, or gives no answer.
        """
        raise NotImplementedError(f"{type(self).__name__} writes no {write.slot}")

    @property
    def namespace(self) -> str:
        """The object's."""
        return self.resource.metadata.namespace


def _host(resource: CustomResource) -> str | None:
    """The address of the tenant where it is, as its status says."""
    host: object = getattr(getattr(resource, "status", None), "provider_account_host", None)
    return str(host) if host else None


def _reference(resource: CustomResource) -> LocalReference | None:
    reference: object = getattr(getattr(resource, "spec", None), "provider_account_ref", None)
    return reference if isinstance(reference, LocalReference) and reference.name else None
