"""What a pass knows of one object while it runs: its relatives, its Secrets, its tenant, what 3scale has of it.

There is a subject for each kind; the table in `__init__.py` lists their files. It gathers what the kind's decision
sees beside the object, asks for the decision, and folds each answer of 3scale into what is known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar

from activities.threescale.known import View
from activities.threescale.secrets import Secrets
from domain.refusal import Refusal
from domain.resource import CustomResource
from domain.threescale.belonging import belonging
from domain.threescale.calls import Read, Resource, Write
from domain.threescale.found import Identified
from domain.threescale.holders import Holder
from domain.threescale.notes import remembered_id
from domain.threescale.providers import NoAccount, ProviderAccount, known_at, same_tenant
from domain.threescale.remote_object import One, read_one, wrote_one
from domain.threescale.resources import Tenant
from domain.threescale.resources.shared import LocalReference
from domain.threescale.work import Effect, Observed, Work
from engine.errors import ApiError
from engine.kube import JsonObject as KubeObject

R = TypeVar("R", bound=CustomResource)
T = TypeVar("T", bound=Identified)

NOT_LOOKED_FOR = NoAccount(why="not looked up yet", waits_for="")


class Subject(ABC, Generic[R]):
    """One object in one pass."""

    def __init__(self, resource: R, view: View, secrets: Secrets) -> None:
        self.resource = resource
        self.view = view
        self.secrets = secrets
        self.provider: ProviderAccount | NoAccount = NOT_LOOKED_FOR
        self._homes: dict[str, str] = {}  # addresses of siblings' tenants, by uid

    def take(self, obj: KubeObject) -> None:
        """The object as it is now."""
        self.resource = type(self.resource).model_validate(obj)

    @abstractmethod
    async def gather(self) -> None:
        """Look for what the decision sees beside the object and 3scale."""

    @staticmethod
    @abstractmethod
    def decide(observed: Any, now: datetime) -> Work:
        """The kind's decision."""

    @abstractmethod
    def observed(self) -> Observed:
        """What the kind's decision sees now."""

    def work(self, refusals: Mapping[str, Refusal], now: datetime, *, look: bool) -> Work:
        """What to do now; `look` compares with 3scale although nothing new is wanted."""
        return self.decide(self.observed().model_copy(update={"refusals": dict(refusals), "look": look}), now)

    async def find_tenant(self) -> None:
        """Its tenant, and where those siblings are to be that have not said so: one of them may be making it now."""
        self.provider = await self.secrets.account(self.resource, _reference(self.resource))
        if isinstance(self.provider, NoAccount):
            return
        for each in self.view.siblings(self.resource):
            if not _host(each):
                with suppress(ApiError):  # then only those count that name the tenant as it does
                    self._homes[each.metadata.uid] = await self.secrets.home(each, _reference(each))

    def siblings(self) -> tuple[R, ...]:
        """The others that are called as it is in 3scale, in the same tenant."""
        if isinstance(self.provider, NoAccount):
            return ()
        found = self.view.siblings(self.resource)
        return self.view.heeded(each for each in found if self._is_of_tenant(each, self.provider.url))

    def _is_of_tenant(self, other: CustomResource, url: str) -> bool:
        """As far as its status says, else as it names its tenant."""
        if home := _host(other) or self._homes.get(other.metadata.uid):
            return same_tenant(home, url)
        return other.metadata.namespace == self.namespace and _reference(other) == _reference(self.resource)

    def holders(self, others: Iterable[CustomResource]) -> tuple[Holder, ...]:
        """Those of the others that have something in its tenant; who has what this one has is heeded."""
        own, uid = self._id_of(self.resource), self.resource.metadata.uid
        found = [(each, id_) for each in others if (id_ := self._id_of(each)) and each.metadata.uid != uid]
        self.view.heeded(each for each, id_ in found if id_ == own)
        return tuple(Holder(metadata=each.metadata, id=id_) for each, id_ in found)

    def _id_of(self, resource: CustomResource) -> int:
        """What an object has in the tenant of this one."""
        return known_at(self.provider.url, _host(resource), remembered_id(resource))

    def belonging(self) -> Work | None:
        """That the object notes its Tenant, where that takes along what it has."""
        if isinstance(self.provider, NoAccount):
            return None
        token = self.provider.token
        named = self.view.heeded(self.view.referring(Tenant, f"Secret/{token.namespace}/{token.name}"))
        return belonging(self.resource, self.provider, named)

    @abstractmethod
    def read(self, read: Read, answer: object) -> None:
        """What 3scale has answered; None where there is nothing of that id."""

    @abstractmethod
    def wrote(self, write: Write, answer: object) -> None:
        """What 3scale has answered."""

    @abstractmethod
    def forget(self) -> None:
        """What was known of 3scale may not be so any more."""

    async def prepare(self, write: Write) -> None:
        """What must be sure before a write, because of what has to be kept of its answer.

        Raises:
            ApiError: it could not be kept; the write is not made.
        """

    async def keep(self, write: Write, answer: object) -> None:
        """What must not be lost of an answer, before anything else is done."""

    def known(self) -> object:
        """What the next pass may be given of 3scale (`kept.py`); None for kinds that a read tells whole."""
        return None

    def recall(self, known: object) -> None:
        """What the last pass has known, once the rest is gathered."""

    async def fetch(self, read: Read) -> object:
        """A text outside of any tenant, for kinds whose decisions ask for one."""
        raise NotImplementedError(f"{type(self).__name__} asks for no {read.path}")

    async def carry_out(self, effect: Effect) -> None:
        """Write something of the cluster that is the object's to write, for kinds whose decisions ask for that.

        Raises:
            ApiError: the API server refuses, or gives no answer.
        """
        raise NotImplementedError(f"{type(self).__name__} writes no {effect.slot}")

    @property
    def namespace(self) -> str:
        """The object's."""
        return self.resource.metadata.namespace


class SingleSubject(Subject[R], Generic[R, T]):
    """An object without parts in 3scale."""

    item: type[T]
    wrapper: ClassVar[Resource]

    def __init__(self, resource: R, view: View, secrets: Secrets) -> None:
        super().__init__(resource, view, secrets)
        self.found: One[T] = One()

    @abstractmethod
    def is_it(self, found: T) -> bool:
        """Whether one of those that 3scale has is this one, whose id is not known."""

    def read(self, read: Read, answer: object) -> None:
        """It, or all among which it may be."""
        self.found = read_one(self.item, read, answer, self.is_it)

    def wrote(self, write: Write, answer: object) -> None:
        """It is made, changed or gone."""
        self.found = wrote_one(self.item, self.wrapper, self.found, write, answer)

    def forget(self) -> None:
        """It is looked for again."""
        self.found = One()


def _host(resource: CustomResource) -> str | None:
    """The address of the tenant where it is, as its status says."""
    host: object = getattr(getattr(resource, "status", None), "provider_account_host", None)
    return str(host) if host else None


def _reference(resource: CustomResource) -> LocalReference | None:
    reference: object = getattr(getattr(resource, "spec", None), "provider_account_ref", None)
    return reference if isinstance(reference, LocalReference) and reference.name else None
