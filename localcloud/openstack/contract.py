"""The shapes of the control API before each OpenStack API; `inside/perdure_openstack` has their other side."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from domain.model import Model

Service = Literal["keystone", "placement", "glance", "neutron", "nova"]


class FaultKind(StrEnum):
    """What happens to a call that a fault matches."""

    BEFORE = "before"  # refused, nothing was done
    AFTER = "after"  # done, and refused all the same
    CUT = "cut"  # done, and the answer broken off
    DELAY = "delay"  # only late


class Fault(Model):
    """A disturbance of some calls of one service. Empty matchers match all; the first that matches takes the call."""

    id: str = ""
    kind: FaultKind = FaultKind.BEFORE
    method: str = Field(default="*", description="a name, or a pattern with * and ?")
    path: str = Field(default="", description="regular expression, searched for in the path")
    project: str = Field(default="", description="id of the caller's project; known from its token's second call on")
    containing: str = Field(default="", description="text that the query or the body has to contain")
    count: int | None = Field(default=None, ge=0, description="how many calls it takes; None for all")
    skip: int = Field(default=0, ge=0, description="how many matching calls pass first")
    probability: float = Field(default=1.0, ge=0, le=1)
    seed: int = 0
    status: int = Field(default=503, ge=400, le=599)
    type: str = Field(default="", description="Neutron's name for the error, such as OverQuota")
    message: str = "the deployment was asked to fail"
    headers: dict[str, str] = Field(default_factory=dict, description="such as Retry-After")
    delay_seconds: float = Field(default=0, ge=0)
    hits: int = Field(default=0, description="how often it struck; counted by the server")


class BootFaults(Model):
    """How servers boot and go. Patterns are regular expressions, searched for in a server's name; empty match none."""

    boot_delay: float = Field(default=0, ge=0, description="seconds in BUILD")
    boot_abort: str = Field(default="", description="ERROR after about a second")
    boot_fail: str = Field(default="", description="ERROR after three hosts have been tried")
    delete_delay: float = Field(default=0, ge=0, description="seconds in which a deleted server is still there")
    delete_fail: str = Field(default="", description="the deletion is accepted, and the server ERROR afterwards")


class CallCount(Model):
    """How often one project made one call."""

    service: Service
    method: str
    route: str
    project: str
    mutating: bool
    count: int
    errors: int
    lost: int


class Call(Model):
    """One call as the ledger remembers it. `status` is 0 where the answer was cut off."""

    service: Service
    at: float
    seconds: float
    method: str
    route: str
    path: str
    query: str
    project: str
    user_agent: str
    status: int
    mutating: bool
    fault: str


class Ledger(Model):
    """The clients' calls to all services since their start or the last reset."""

    counts: tuple[CallCount, ...]
    recent: tuple[Call, ...] = ()

    def calls(self, service: str = "*", method: str = "*", route: str = "*", project: str | None = None) -> int:
        """How often a call was made; without arguments all of them, tokens among them."""
        return sum(
            one.count
            for one in self.counts
            if service in ("*", one.service)
            and method in ("*", one.method)
            and route in ("*", one.route)
            and project in (None, one.project)
        )

    def tokens(self) -> int:
        """How often a client asked Keystone for a token."""
        return self.calls("keystone", "POST", "/v3/auth/tokens")

    def mutating(self) -> int:
        """The calls that are made to change something, whether they did or not; tokens are none."""
        return sum(one.count for one in self.counts if one.mutating)

    def by_route(self) -> dict[str, int]:
        """Counts by `nova GET /v2.1/servers/detail`, most frequent first."""
        totals: dict[str, int] = {}
        for one in self.counts:
            name = f"{one.service} {one.method} {one.route}"
            totals[name] = totals.get(name, 0) + one.count
        return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))
