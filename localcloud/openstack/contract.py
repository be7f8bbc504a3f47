"""The shapes of the control API in front of each OpenStack API; `inside/perdure_openstack` has the server side."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from domain.model import Model
from localcloud.ledger import Counter, SingleCall, most_frequent

Service = Literal["keystone", "placement", "glance", "neutron", "nova"]


class FaultKind(StrEnum):
    BEFORE = "before"  # the call has no effect and is answered with the error
    AFTER = "after"  # the call has its effect and is answered with the error
    CUT = "cut"  # the call has its effect, and its answer is cut off
    DELAY = "delay"  # the call is answered late


class Fault(Model):
    """Empty matchers match all calls; the first applicable fault wins."""

    id: str = ""
    kind: FaultKind = FaultKind.BEFORE
    method: str = Field(default="*", description="a name, or a pattern with * and ?")
    path: str = Field(default="", description="regular expression, searched for in the path")
    project: str = Field(
        default="",
        description="id of the caller's project; it is unknown at a token's first call, so this call does not match",
    )
    containing: str = Field(default="", description="text that the query or the body has to contain")
    count: int | None = Field(default=None, ge=0, description="how many calls it affects; None for all")
    skip: int = Field(default=0, ge=0, description="how many matching calls pass first")
    probability: float = Field(default=1.0, ge=0, le=1)
    seed: int = 0
    status: int = Field(default=503, ge=400, le=599)
    type: str = Field(default="", description="Neutron's name for the error, such as OverQuota")
    message: str = "a configured fault of the local deployment"
    headers: dict[str, str] = Field(default_factory=dict, description="such as Retry-After")
    delay_seconds: float = Field(default=0, ge=0)
    hits: int = Field(default=0, description="how many calls it has affected; counted by the server")


class BootFaults(Model):
    """Faults of servers' boots and deletions. Patterns are regular expressions, searched for in a server's name; an
    empty one matches none.
    """

    boot_delay: float = Field(default=0, ge=0, description="how many seconds a server stays in BUILD")
    boot_abort: str = Field(default="", description="servers that are in ERROR after about a second")
    boot_fail: str = Field(default="", description="servers that are in ERROR after Nova has tried three hosts")
    delete_delay: float = Field(default=0, ge=0, description="seconds for which a deleted server still exists")
    delete_fail: str = Field(default="", description="servers that are in ERROR after their deletion was accepted")


class CallCount(Counter):
    service: Service
    method: str
    route: str
    project: str


class Call(SingleCall):
    service: Service
    method: str
    route: str
    path: str
    query: str
    project: str
    user_agent: str
    fault: str


class Ledger(Model):
    counts: tuple[CallCount, ...]
    recent: tuple[Call, ...] = ()

    def calls(self, service: str = "*", method: str = "*", route: str = "*", project: str | None = None) -> int:
        return sum(
            one.count
            for one in self.counts
            if service in ("*", one.service)
            and method in ("*", one.method)
            and route in ("*", one.route)
            and project in (None, one.project)
        )

    def tokens(self) -> int:
        return self.calls("keystone", "POST", "/v3/auth/tokens")

    def mutating(self) -> int:
        return sum(one.count for one in self.counts if one.mutating)

    def by_route(self) -> dict[str, int]:
        return most_frequent((f"{one.service} {one.method} {one.route}", one.count) for one in self.counts)
