"""The shapes of the control API under `/perdure/`: settings, faults, ledger, tenants, world.

Both sides import them: the server to answer, `control.ThreescaleControl` to ask. Nothing here knows the server.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from localcloud.faults import Disturbance

JsonObject: TypeAlias = dict[str, JsonValue]

# The tenant that exists from the first start, and what opens it and the master: both open nothing but the simulator.
DEFAULT_TENANT = "3scale"
DEFAULT_TOKEN = "perdure-local-tenant-token"  # noqa: S105
DEFAULT_MASTER_TOKEN = "perdure-local-master-token"  # noqa: S105
DOMAIN = "3scale.localhost"

ALL_SCOPES = ("account_management", "policy_registry", "finance", "stats", "cms")

# A request with this header is answered as any other, but neither counted nor disturbed: the world changes behind the
# back of whoever is tested.
UNSEEN_HEADER = "Perdure-Unseen"

Seconds = Annotated[float, Field(ge=0)]


class Model(BaseModel):
    """A frozen shape that refuses names it does not know: a misspelt setting must not pass silently."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Config(Model):
    """Everything about the simulated 3scale that a test may want otherwise; the defaults are quick and friendly."""

    latency_ms: float = Field(default=0, ge=0, description="added to every call")
    page_size: int | None = Field(default=None, ge=1, description="most entries on a page, whatever the client asks")
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
    """What happens to a call that a fault matches."""

    REFUSE = "refuse"  # answered with `status`, nothing was done
    REFUSE_AFTER = "refuse-after"  # done, and answered with `status` all the same
    BEFORE = "before"  # the connection is closed, nothing was done
    AFTER = "after"  # done, then the connection is closed: the answer is lost
    CUT = "cut"  # done, and the answer broken off in its middle
    DELAY = "delay"  # only late; `late_answer` says whether the effect comes before or after the wait
    HANG = "hang"  # not answered until the fault is lifted; `late_answer` says whether it was done


class Fault(Disturbance):
    """A disturbance of some calls. Empty matchers match all."""

    kind: FaultKind = FaultKind.REFUSE
    tenant: str = Field(default="", description="the tenant's name; `master` for the master")
    method: str = Field(default="*", description="a name, or a pattern with * and ?")
    path: str = Field(default="", description="regular expression, searched for in the path")
    containing: str = Field(default="", description="text that the query or the body has to contain")
    status: int = Field(default=503, ge=200, le=599)
    body: str | None = Field(default=None, description="instead of what 3scale or what stands before it says")
    headers: dict[str, str] = Field(default_factory=dict, description="such as Retry-After")
    delay_seconds: Seconds = 0
    late_answer: bool = Field(default=True, description="a delay or hang holds back the answer, the effect happened")


class CallCount(Model):
    """How often one call was made in one tenant."""

    tenant: str
    method: str
    route: str
    mutating: bool
    count: int
    errors: int
    lost: int


class Call(Model):
    """One call as the ledger remembers it. `status` is 0 where no answer, or half of one, was sent."""

    at: float
    seconds: float
    tenant: str
    method: str
    route: str
    path: str
    query: str = Field(description="without credentials")
    status: int
    mutating: bool
    fault: str = ""


class Ledger(Model):
    """The calls since the start or the last reset. Calls of the control API are not counted."""

    since: float
    counts: tuple[CallCount, ...]
    recent: tuple[Call, ...] = ()

    def calls(self, method: str = "*", route: str = "*", tenant: str | None = None) -> int:
        """How often a call was made; without arguments all of them."""
        return sum(
            one.count
            for one in self.counts
            if method in ("*", one.method) and route in ("*", one.route) and tenant in (None, one.tenant)
        )

    def mutating(self, tenant: str | None = None) -> int:
        """The calls that are made to change something, whether they did or not."""
        return sum(one.count for one in self.counts if one.mutating and tenant in (None, one.tenant))

    def reading(self, tenant: str | None = None) -> int:
        """The others."""
        return self.calls(tenant=tenant) - self.mutating(tenant)

    def by_route(self) -> dict[str, int]:
        """Counts by `GET /admin/api/services/{service}`, most frequent first."""
        totals: dict[str, int] = {}
        for one in self.counts:
            name = f"{one.method} {one.route}"
            totals[name] = totals.get(name, 0) + one.count
        return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))


class TokenRecord(Model):
    """What opens a tenant."""

    value: str
    name: str
    scopes: tuple[str, ...]
    permission: str


class TenantRecord(Model):
    """A tenant, or the master."""

    id: int
    name: str
    state: str
    url: str
    host: str = Field(description="the host name that leads to it on every port of the simulator")
    tokens: tuple[TokenRecord, ...]

    @property
    def token(self) -> str:
        """One that may do everything; the first otherwise."""
        full = [token.value for token in self.tokens if set(ALL_SCOPES) <= {*token.scopes} and token.permission == "rw"]
        return full[0] if full else self.tokens[0].value


class TenantWish(Model):
    """A tenant to make, as the master API would."""

    name: str = Field(min_length=1)


class TokenWish(Model):
    """A token to make."""

    name: str = "made by a test"
    scopes: tuple[str, ...] = ALL_SCOPES
    permission: str = Field(default="rw", pattern="^(ro|rw)$")


class TenantWorld(Model):
    """What a tenant holds, table by table, as it is stored."""

    name: str
    tables: dict[str, tuple[JsonObject, ...]]

    def count(self, table: str) -> int:
        """How many rows."""
        return len(self.tables.get(table, ()))


class Health(Model):
    """That it serves."""

    pid: int
    started: float
    tenant: str
    url: str
