"""The models of the control API under `/perdure/`, importable without the server."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from localcloud.faults import Disturbance
from localcloud.ledger import Counter, SingleCall, most_frequent

JsonObject: TypeAlias = dict[str, JsonValue]

# The tenant that the first start creates, and the fixed tokens of this tenant and of the master.
DEFAULT_TENANT = "3scale"
DEFAULT_TOKEN = "perdure-local-tenant-token"  # noqa: S105
DEFAULT_MASTER_TOKEN = "perdure-local-master-token"  # noqa: S105
DOMAIN = "3scale.localhost"

ALL_SCOPES = ("account_management", "policy_registry", "finance", "stats", "cms")

# Requests with this header are answered normally, but not counted or disturbed. With such requests, tests change the
# world unnoticed by the tested client.
UNSEEN_HEADER = "Perdure-Unseen"

Seconds = Annotated[float, Field(ge=0)]


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Config(Model):
    latency_ms: float = Field(default=0, ge=0, description="added to every call")
    page_size: int | None = Field(default=None, ge=1, description="the most entries that a page can have")
    deletion_seconds: Seconds = Field(
        default=0, description="how long a deleted product or backend still holds its system name"
    )
    stale_list_seconds: Seconds = Field(default=0, description="how long lists do not show what was just created")
    clock_skew_seconds: float = Field(default=0, description="added to created_at and updated_at")
    service_limit: int | None = Field(default=None, ge=0, description="products a tenant may have; None for no limit")
    tenant_token_scopes: tuple[str, ...] = Field(
        default=ALL_SCOPES, description="scopes of the token that a new tenant is created with"
    )
    unresolved_invoices: tuple[int, ...] = Field(
        default=(), description="ids of accounts that cannot be deleted because of their invoices"
    )
    recent_calls: int = Field(default=2000, ge=0, description="how many single calls the ledger keeps")


class FaultKind(StrEnum):
    REFUSE = "refuse"  # answered with `status`, without effect
    REFUSE_AFTER = "refuse-after"  # answered with `status`, although the effect happened
    BEFORE = "before"  # the connection is closed before any effect
    AFTER = "after"  # the effect happens, then the connection is closed: the answer is lost
    CUT = "cut"  # the effect happens, and the answer is interrupted
    DELAY = "delay"  # answered late; with `late_answer` the effect happens before the wait, otherwise after it
    HANG = "hang"  # not answered until the fault is removed; the effect happens only with `late_answer`


class Fault(Disturbance):
    kind: FaultKind = FaultKind.REFUSE
    tenant: str = Field(default="", description="the tenant's name; `master` for the master")
    method: str = Field(default="*", description="a name, or a pattern with * and ?")
    path: str = Field(default="", description="regular expression, searched for in the path")
    containing: str = Field(default="", description="text that the query or the body has to contain")
    status: int = Field(default=503, ge=200, le=599)
    body: str | None = Field(
        default=None, description="the body to answer with; by default what 3scale, or a proxy before it, would answer"
    )
    headers: dict[str, str] = Field(default_factory=dict, description="such as Retry-After")
    delay_seconds: Seconds = 0
    late_answer: bool = Field(default=True, description="a delay or hang holds back only the answer, not the effect")


class CallCount(Counter):
    tenant: str
    method: str
    route: str


class Call(SingleCall):
    tenant: str
    method: str
    route: str
    path: str
    query: str = Field(description="without credentials")
    fault: str = ""


class Ledger(Model):
    since: float
    counts: tuple[CallCount, ...]
    recent: tuple[Call, ...] = ()

    def calls(self, method: str = "*", route: str = "*", tenant: str | None = None) -> int:
        return sum(
            one.count
            for one in self.counts
            if method in ("*", one.method) and route in ("*", one.route) and tenant in (None, one.tenant)
        )

    def mutating(self, tenant: str | None = None) -> int:
        return sum(one.count for one in self.counts if one.mutating and tenant in (None, one.tenant))

    def reading(self, tenant: str | None = None) -> int:
        return self.calls(tenant=tenant) - self.mutating(tenant)

    def by_route(self) -> dict[str, int]:
        return most_frequent((f"{one.method} {one.route}", one.count) for one in self.counts)


class TokenRecord(Model):
    value: str
    name: str
    scopes: tuple[str, ...]
    permission: str


class TenantRecord(Model):
    id: int
    name: str
    state: str
    url: str
    host: str = Field(description="the host name that reaches this tenant on every port of the simulator")
    tokens: tuple[TokenRecord, ...]

    @property
    def token(self) -> str:
        full = [token.value for token in self.tokens if set(ALL_SCOPES) <= {*token.scopes} and token.permission == "rw"]
        return full[0] if full else self.tokens[0].value


class TenantWish(Model):
    name: str = Field(min_length=1)


class TokenWish(Model):
    name: str = "created by a test"
    scopes: tuple[str, ...] = ALL_SCOPES
    permission: str = Field(default="rw", pattern="^(ro|rw)$")


class TenantWorld(Model):
    name: str
    tables: dict[str, tuple[JsonObject, ...]]

    def count(self, table: str) -> int:
        return len(self.tables.get(table, ()))


class Health(Model):
    pid: int
    started: float
    tenant: str
    url: str
