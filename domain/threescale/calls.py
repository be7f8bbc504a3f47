"""Calls of 3scale's Account Management API, as decisions ask for them.

A decision names what it has to read (`Read`) and what it wants written (`Write`). The pass makes the calls one after
the other, and each folds its answer into what is known of 3scale (`apply_response.py`). So a decision never needs a
look after a write: the answers carry the ids. After no answer, and where something is absent that was known, what is
known is given up and read again.

An answer can get lost after its effect. A creation therefore bears its natural key: before it is tried again the list
at its path is read and searched for it. What a Secret holds is named, not carried: it is put in where the call is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum
from typing import Any, ClassVar, Literal

from pydantic import ValidationError

from domain.decision import Action, Queue
from domain.model import Model
from domain.refusal import FIRST_RETRY, LONGEST_RETRY, ErrorType, Refusal, UnusableAnswerError
from domain.schema import Json
from domain.threescale.found import UnexpectedAnswerError


class Resource(StrEnum):
    """What a call speaks of; the value is the name under which 3scale wraps one of them."""

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
    TEXT = "text"  # a document of an address of its own, which is no call of 3scale (`texts.py`)


def api_of(resource: Resource) -> str:
    """Below which part of the address a resource is: tenants are the master's, all else is the tenant's own."""
    return "/master/api" if resource is Resource.TENANT else "/admin/api"


class SecretKey(Model):
    """A value in a Secret."""

    namespace: str
    name: str
    key: str


class Answer(Model):
    """What 3scale has answered.

    Attributes:
        body: as JSON; None of a read for nothing of that id, of a write for no content.
        beside: what else the world shows from now on, by its fields.
    """

    body: Any = None
    beside: dict[str, Any] = {}


class Call(Action):
    """A call of the object's tenant.

    `unsure`: an answer was lost, so lists are read freshly, and what a creation may have made is looked up before.
    """

    queue: ClassVar[str] = Queue.THREESCALE
    result: ClassVar[type[Model] | None] = Answer
    first_retry: ClassVar[timedelta] = FIRST_RETRY
    longest_retry: ClassVar[timedelta] = LONGEST_RETRY
    outdates: ClassVar[bool] = False

    resource: Resource
    path: str
    unsure: bool = False

    def fold(self, world: Any, result: Model | None) -> Any:
        """What is known of 3scale after the answer."""
        answer = result if isinstance(result, Answer) else Answer()
        try:
            return self.learn(world.beside(answer.beside), answer.body)
        except (UnexpectedAnswerError, ValidationError) as error:
            raise UnusableAnswerError(unexpected(self.named(world.provider.url), error)) from None

    def learn(self, world: Any, body: object) -> Any:
        """The world with the answer."""
        raise NotImplementedError

    def named(self, tenant: str) -> str:
        """The call, for messages."""
        raise NotImplementedError

    def refuse(self, world: Any, refusal: Refusal) -> Any:
        """What was known may not be so any more. What is at odds with what the last pass has kept is no refusal yet."""
        by_what_was_kept = world.recalled and refusal.type in _BY_WHAT_WAS_KEPT
        if by_what_was_kept or refusal.type in _FORGETTING:
            world = world.forget()
        world = world.model_copy(update={"unsure": True, "recalled": False})
        return world if by_what_was_kept else super().refuse(world, refusal)


# What was known is not so, or may not be: absent, changed at the same time, no answer.
_FORGETTING = frozenset({ErrorType.ABSENT, ErrorType.CONFLICT, ErrorType.UNAVAILABLE})
# What 3scale may say only because it has something else than was kept.
_BY_WHAT_WAS_KEPT = frozenset({ErrorType.INVALID, ErrorType.DENIED})
# What 3scale refuses as invalid waits for a change; it is tried again once after an hour, and then once a day.
UNTIL_CHANGED = timedelta(hours=1)
LATER_UNTIL_CHANGED = timedelta(days=1)


class Read(Call):
    """One list or object. `of` is the id of what it belongs to where several are read (plans, used backends).

    `path` is below `api_of` the resource, without `.json`; of a text it is its whole address.
    """

    activity: ClassVar[str] = "threescale.read"

    of: int = 0
    paged: bool = False
    query: dict[str, str] = {}

    @property
    def slot(self) -> str:
        """One for each path."""
        return self.path

    @property
    def summary(self) -> str:
        """For the timeline; what stands behind the question mark of an address may be a secret."""
        return f"read {self.path.partition('?')[0]}"

    def learn(self, world: Any, body: object) -> Any:
        """What is known after the read."""
        return world.read(self, body)

    def named(self, tenant: str) -> str:
        """The call, for messages."""
        return named("GET", self.path, tenant)


# What 3scale says of a name or value that something else has.
TAKEN = "has already been taken"


class Write(Call):
    """One effect.

    Attributes:
        method: of HTTP.
        path: below `api_of` the resource, without `.json`.
        id: of what is changed or deleted, 0 for what is made.
        of: the id of what it belongs to, where folding the answer needs it (limits: the plan).
        fields: what is sent.
        secrets: fields that a Secret holds.
        key: by which a creation is found again.
        others: ids of what may bear the same key, and belongs to other objects.
        about: what people call it.
        deploys: the gateway's configuration that the sandbox has once this is done, empty if none.
    """

    activity: ClassVar[str] = "threescale.write"

    method: Literal["POST", "PUT", "PATCH", "DELETE"]
    id: int = 0
    of: int = 0
    fields: dict[str, Json] = {}
    secrets: dict[str, SecretKey] = {}
    key: dict[str, Json] = {}
    others: tuple[int, ...] = ()
    about: str = ""
    deploys: str = ""

    @property
    def slot(self) -> str:
        """By which its refusals are remembered: the same effect tried again has the same."""
        return f"{self.method} {self.path} {self.about}".strip()

    @property
    def summary(self) -> str:
        """A line for `plan` and the timeline, without any value."""
        verb = {"POST": "create", "DELETE": "delete"}.get(self.method, "change")
        return f"{verb} {self.resource.value} {self.about or self.id or ''}".strip()

    def learn(self, world: Any, body: object) -> Any:
        """What is known after the write."""
        return world.wrote(self, body)

    def named(self, tenant: str) -> str:
        """The call, for messages."""
        return named(self.method, self.path, tenant)

    def refuse(self, world: Any, refusal: Refusal) -> Any:
        """The same would be refused again until the object changes, which drops this, or 3scale's own settings do.

        A name that is taken may become free at any time, and so may what keeps something from its deletion.
        """
        if refusal.type is ErrorType.INVALID and self.method != "DELETE" and TAKEN not in refusal.message:
            pause = UNTIL_CHANGED if refusal.attempts == 1 else LATER_UNTIL_CHANGED
            refusal = refusal.model_copy(update={"pause": pause})
        return super().refuse(world, refusal)


def named(method: str, path: str, tenant: str) -> str:
    """A call, for messages."""
    return f"3scale {method} {path} at {tenant}"


_SHAPE = "Check that the address is that of 3scale's Account Management API, and that no proxy answers for it."


def unexpected(call: str, error: ValueError) -> str:
    """What is wrong with an answer; the message names fields, and repeats none of their values: they may be secret."""
    problems = [str(error)]
    if isinstance(error, ValidationError):
        problems = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_input=False)]
    return f"{call}: an answer of an unexpected shape ({shortened('; '.join(problems))}). {_SHAPE}"


_LONGEST_MESSAGE = 500


def shortened(words: str) -> str:
    """The words in one line, with an end."""
    told = " ".join(words.split())
    return told if len(told) <= _LONGEST_MESSAGE else f"{told[:_LONGEST_MESSAGE]}..."


def creation(resource: Resource, path: str, fields: dict[str, Json], key: dict[str, Json], about: str) -> Write:
    """What makes one; fields that say nothing are not sent."""
    sent = {name: value for name, value in fields.items() if value is not None}
    return Write(resource=resource, method="POST", path=path, fields=sent, key=key, about=about)


def change(resource: Resource, path: str, id_: int, fields: dict[str, Json], about: str) -> Write:
    """What changes the one with this id; `path` is its list's."""
    return Write(resource=resource, method="PUT", path=f"{path}/{id_}", id=id_, fields=fields, about=about)


def deletion(resource: Resource, path: str, id_: int, about: str = "") -> Write:
    """What deletes the one with this id; `path` is its list's."""
    return Write(resource=resource, method="DELETE", path=f"{path}/{id_}", id=id_, about=about)


def unless_refused(writes: Iterable[Write], refused: Iterable[str]) -> tuple[Write, ...]:
    """Those that may be tried now, of which no slot is refused."""
    slots = set(refused)
    return tuple(write for write in writes if write.slot not in slots)
