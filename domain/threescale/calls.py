"""Calls to 3scale's Account Management API, as decisions request them.

A response updates the collected state of 3scale (`apply_response.py`). After a lost response the state is read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, ClassVar, Literal

from pydantic import ValidationError

from domain.decision import Action, Queue
from domain.model import Model
from domain.refusal import FIRST_RETRY, LONGEST_RETRY, ErrorType, Refusal, UnusableAnswerError
from domain.schema import Json
from domain.threescale.normalize import shown
from domain.threescale.refused_calls import with_pause
from domain.threescale.remote_state import UnexpectedAnswerError


class Resource(StrEnum):
    SERVICE = "service"
    BACKEND = "backend_api"
    METRIC = "metric"
    METHOD = "method"
    RULE = "mapping_rule"
    USAGE = "backend_usage"
    PLAN = "application_plan"
    LIMIT = "limit"
    PRICING_RULE = "pricing_rule"
    PROXY = "proxy"
    CHAIN = "policies_config"
    FLOW = "oidc_configuration"
    ACCOUNT = "account"
    USER = "user"
    APPLICATION = "application"
    KEY = "key"
    DOCUMENT = "api_doc"
    POLICY = "policy"
    CONFIG = "proxy_config"
    TENANT = "signup"
    TEXT = "text"  # a document at an arbitrary address, not an API call (`document_sources.py`)


def api_of(resource: Resource) -> str:
    """The path of the Master API for tenants, of the Account Management API for everything else."""
    return "/master/api" if resource is Resource.TENANT else "/admin/api"


class SecretKey(Model):
    namespace: str
    name: str
    key: str


class Answer(Model):
    body: Any = None  # JSON; None if the object of a read does not exist, or if the answer to a write has no content
    beside: dict[str, Any] = {}  # further fields of the world that the answer changes


class Call(Action):
    """A call to 3scale. If it is `unsure`, an earlier response may have been lost: lists read by other passes are not
    used, and a creation first searches for its result.
    """

    queue: ClassVar[str] = Queue.THREESCALE
    result: ClassVar[type[Model] | None] = Answer
    first_retry: ClassVar[timedelta] = FIRST_RETRY
    longest_retry: ClassVar[timedelta] = LONGEST_RETRY
    outdates: ClassVar[bool] = False

    resource: Resource
    method: str
    path: str
    unsure: bool = False

    def fold(self, world: Any, result: Model | None) -> Any:
        answer = result if isinstance(result, Answer) else Answer()
        try:
            return self.learn(world.beside(answer.beside), answer.body)
        except (UnexpectedAnswerError, ValidationError) as error:
            raise UnusableAnswerError(unexpected(self.named(world.provider.url), error)) from None

    def learn(self, world: Any, body: object) -> Any:
        raise NotImplementedError

    def named(self, tenant: str) -> str:
        return named(self.method, self.path, tenant)

    def refuse(self, world: Any, refusal: Refusal) -> Any:
        """Discard the collected state of 3scale if it may be wrong. A refusal is not recorded if it may have been
        caused by outdated state from the previous pass.
        """
        by_what_was_kept = world.recalled and refusal.type in _BY_WHAT_WAS_KEPT
        if by_what_was_kept or refusal.type in _FORGETTING:
            world = world.forget()
        world = world.model_copy(update={"unsure": True, "recalled": False})
        return world if by_what_was_kept else super().refuse(world, refusal)


# Refusals after which the collected state may be wrong: absent object, concurrent change, no response.
_FORGETTING = frozenset({ErrorType.ABSENT, ErrorType.CONFLICT, ErrorType.UNAVAILABLE})
# Refusals that outdated state from the previous pass may have caused.
_BY_WHAT_WAS_KEPT = frozenset({ErrorType.INVALID, ErrorType.DENIED})


class Read(Call):
    """A read of a list or an object. `of` is the id of the object or, for a list, of its parent (a plan or a used
    backend); 0 if the path has no such id.

    `path` is relative to `api_of(resource)`, without `.json`. For a document outside of 3scale it is the URL.
    """

    activity: ClassVar[str] = "threescale.read"

    method: Literal["GET"] = "GET"
    of: int = 0
    paged: bool = False
    query: dict[str, str] = {}

    @property
    def slot(self) -> str:
        return shown(self.path)  # the URL of a text may contain secrets

    @property
    def summary(self) -> str:
        return f"read {self.slot}"

    def refuse(self, world: Any, refusal: Refusal) -> Any:
        if refusal.type is ErrorType.UNAVAILABLE:  # an unanswered read changes nothing
            return Action.refuse(self, world, refusal)
        return super().refuse(world, refusal)

    def learn(self, world: Any, body: object) -> Any:
        return world.read(self, body)


class Write(Call):
    """A call that changes something. `path` is relative to `api_of(resource)`, without `.json`."""

    activity: ClassVar[str] = "threescale.write"

    method: Literal["POST", "PUT", "PATCH", "DELETE"]
    id: int = 0  # the id of the changed or deleted object; 0 for a creation
    of: int = 0  # the parent's id
    fields: dict[str, Json] = {}
    secrets: dict[str, SecretKey] = {}
    key: dict[str, Json] = {}  # the natural key of a creation
    others: tuple[int, ...] = ()  # ids of entries that match the natural key but are not the result of the creation
    about: str = ""
    deploys: str = ""  # the digest of the configuration that the call deploys to staging; empty if it deploys none

    @property
    def slot(self) -> str:
        """The key under which the call's refusals are stored; the same in every pass."""
        return f"{self.method} {self.path} {self.about}".strip()

    @property
    def summary(self) -> str:
        verb = {"POST": "create", "DELETE": "delete"}.get(self.method, "change")
        return f"{verb} {self.resource.value} {self.about or self.id or ''}".strip()

    def learn(self, world: Any, body: object) -> Any:
        return world.wrote(self, body)

    def refuse(self, world: Any, refusal: Refusal) -> Any:
        # 3scale also refuses to change a policy while a product's chain uses the policy.
        may_be_in_use = self.method == "DELETE" or (self.method, self.resource) == ("PUT", Resource.POLICY)
        return super().refuse(world, refusal if may_be_in_use else with_pause(refusal))


def named(method: str, path: str, tenant: str) -> str:
    return f"3scale {method} {path} at {tenant}"


_SHAPE = "Check that the address is that of 3scale's Account Management API, and that no proxy answers instead."


def unexpected(call: str, error: ValueError) -> str:
    """The message about an unexpected answer. It contains no values, because they may be secret."""
    problems = [str(error)]
    if isinstance(error, ValidationError):
        problems = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_input=False)]
    return f"{call}: an answer of an unexpected shape ({shortened('; '.join(problems))}). {_SHAPE}"


_LONGEST_MESSAGE = 500


def shortened(words: str) -> str:
    message = " ".join(words.split())
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}..."


class Sync(Model):
    """The next calls; reads come before writes. `missing` names what 3scale lacks, such as metrics of backends."""

    reads: tuple[Read, ...] = ()
    writes: tuple[Write, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        return not (self.reads or self.writes or self.missing)


def read_entry(resource: Resource, path: str, id_: int, *, paged: bool = False) -> Read:
    """The read of the entry with this id in the list at `path`; of the whole list if the id is 0."""
    if id_:
        return Read(resource=resource, path=f"{path}/{id_}", of=id_)
    return Read(resource=resource, path=path, paged=paged)


def creation(
    resource: Resource,
    path: str,
    fields: Mapping[str, Json],
    key: Mapping[str, Json],
    about: str,
    *,
    of: int = 0,
    secrets: Mapping[str, SecretKey] | None = None,
) -> Write:
    return Write(
        resource=resource,
        method="POST",
        path=path,
        of=of,
        fields={name: value for name, value in fields.items() if value is not None},
        secrets=dict(secrets or {}),
        key=dict(key),
        about=about,
    )


def change(
    resource: Resource, path: str, id_: int, fields: dict[str, Json], about: str, *, of: int = 0, event: str = ""
) -> Write:
    """The change of the entry with this id in the list at `path`, or an `event` that changes its state."""
    where = f"{path}/{id_}/{event}" if event else f"{path}/{id_}"
    return Write(resource=resource, method="PUT", path=where, id=id_, of=of, fields=fields, about=about)


def deletion(resource: Resource, path: str, id_: int, about: str = "", *, of: int = 0) -> Write:
    return Write(resource=resource, method="DELETE", path=f"{path}/{id_}", id=id_, of=of, about=about)


def unless_refused(writes: Iterable[Write], refused: Iterable[str]) -> tuple[Write, ...]:
    slots = set(refused)
    return tuple(write for write in writes if write.slot not in slots)
