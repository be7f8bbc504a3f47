"""Calls of 3scale's Account Management API, as decisions ask for them.

A decision names what it has to read (`Read`) and what it wants written (`Write`). The pass makes the calls one after
the other and folds each answer into what is known of 3scale (`apply_response.py`); at the first refusal it stops, notes
it, and decides again. So a decision never needs a look after a write: the answers carry the ids. After no
answer, and where something is absent that was known, what is known is given up and read again.

An answer can get lost after its effect. A creation therefore bears its natural key: before it is tried again the list
at its path is read and searched for it. What a Secret holds is named, not carried: it is put in where the call is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar, Literal

from domain.model import Model
from domain.schema import Json


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


class Read(Model):
    """One list or object. `of` is the id of what it belongs to where several are read (plans, used backends).

    `path` is below `api_of` the resource, without `.json`; of a text it is its whole address.
    """

    activity: ClassVar[str] = "threescale.read"

    resource: Resource
    path: str
    of: int = 0
    paged: bool = False
    query: dict[str, str] = {}

    @property
    def summary(self) -> str:
        """For the timeline; what stands behind the question mark of an address may be a secret."""
        return f"read {self.path.partition('?')[0]}"


# What 3scale says of a name or value that something else has.
TAKEN = "has already been taken"


class Write(Model):
    """One effect.

    Attributes:
        resource: what is written.
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

    resource: Resource
    method: Literal["POST", "PUT", "PATCH", "DELETE"]
    path: str
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


def unless_refused(writes: Iterable[Write], refused: Iterable[str]) -> tuple[Write, ...]:
    """Those that may be tried now, of which no slot is refused."""
    slots = set(refused)
    return tuple(write for write in writes if write.slot not in slots)
