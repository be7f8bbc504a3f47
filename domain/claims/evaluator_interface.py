"""The interface of the template evaluator: questions about claims, handles and pools, and answers.

Only four pure functions render templates, in a process that can do nothing else
(`activities/claims/evaluator.py`):

    plan_claim(ClaimQuestion) -> ClaimPlan       the desired claim, and its requirements for a handle
    plan_binding(BindingQuestion) -> HandleBody  the free handle once it is bound to the claim
    plan_pool_handle(PoolQuestion) -> HandleBody a pool's new handle
    plan_handle(HandleQuestion) -> HandlePlan    a handle's resources, its status and its claim's status

Answers have complete desired objects, and the faults of templates or providers. Despite a fault, the rest is valid.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from domain.claims.domain_names import DomainNames
from domain.claims.json_objects import JsonObject
from domain.claims.lifespan_end import RequestedEnd
from domain.model import Model


class Fault(Model):
    """An error that a person must correct. `reason` is a CamelCase word for conditions and Events."""

    reason: str
    message: str


class Question(Model):
    now: datetime
    names: DomainNames
    providers: dict[str, JsonObject] = {}
    newer: bool = False  # whether the template rules of Poolboy 1.13 and later apply


class ClaimQuestion(Question):
    """A claim whose start has passed, and that is neither detached nor being deleted.

    `handle` is the claim's handle; None if it has none. In list mode, `provider_assignment` gives `assigned`, the
    provider of each resource, or the fault `unassigned`.
    """

    claim: JsonObject
    handle: JsonObject | None = None
    assigned: tuple[str, ...] = ()
    unassigned: Fault | None = None


class Halt(StrEnum):
    """Why a claim gets no handle, or why its edits do not reach its handle."""

    NONE = ""
    APPROVAL = "approval"  # pending or rejected, see the status
    INVALID = "invalid"  # refused values or templates, see the status
    FAULT = "fault"  # see `fault`


class WantedEntry(Model):
    """A resource that the claim wants. `match_ignore`: patterns of differences that the provider tolerates."""

    provider: str
    name: str = ""
    template: JsonObject = {}
    match_ignore: tuple[str, ...] = ()
    reference: JsonObject = {}  # the full reference to the provider


class ClaimPlan(Model):
    """A claim's evaluation, without that of its handle."""

    # Annotations (the init timestamp included) and labels to add to the claim.
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    resources: tuple[JsonObject, ...] | None = None  # the new `spec.resources`, complete; None if unchanged
    status: JsonObject = {}  # the new status, complete, before the handle's part is updated
    halt: Halt = Halt.NONE
    fault: Fault | None = None
    wanted: tuple[WantedEntry, ...] = ()
    wanted_pool: str = ""
    provider: str = ""  # `spec.provider.name`; empty in list mode
    # The spec of a new handle; None if no handle may be created (why: `no_creation`).
    creation: JsonObject | None = None
    no_creation: str = ""
    by_clock: bool = False  # only for an unbound or refused claim: whether the answer depends on time


class BindingQuestion(Question):
    """A claim with the status of its `ClaimPlan`, and a free handle."""

    claim: JsonObject
    handle: JsonObject
    wanted: tuple[WantedEntry, ...] = ()


class HandleBody(Model):
    """The labels to add to a handle, and its complete spec."""

    labels: dict[str, str] = {}
    spec: JsonObject = {}
    fault: Fault | None = None


class PoolQuestion(Question):
    pool: JsonObject
    handle_name: str = ""


class Requester(Model):
    user: JsonObject | None = None
    identities: tuple[JsonObject, ...] = ()


NO_REQUESTER = Requester()


class HandleQuestion(Question):
    """A handle that is not being deleted."""

    handle: JsonObject
    claim: JsonObject | None = None  # None for a free handle
    assigned: tuple[str, ...] = ()
    states: tuple[JsonObject | None, ...] = ()  # the resources' live objects, None for missing ones
    requester: Requester = NO_REQUESTER
    push: bool = False  # the claim was accepted in this pass, so its edits reach the handle
    shown: bool = True  # the claim can be written: it is neither ignored nor on hold, and no write was refused
    honoured: RequestedEnd | None = None  # the `wish` of the last answer; None if unknown
    unserved: tuple[int, ...] = ()  # indices of resources whose recorded kind is served in no version
    outdated: tuple[int, ...] = ()  # indices of resources whose kind is served only in another version
    unreadable: tuple[int, ...] = ()  # indices of resources that cannot be read


class Operations(Model):
    index: int
    patch: tuple[JsonObject, ...]


class HandlePlan(Model):
    """Apply `spec`, then `creations` (index and definition), then `updates`, and evaluate again with the new states,
    until `creations` and `updates` are empty. Then write the statuses, the handle's first. `requested_end` goes into
    the claim's `spec.lifespan.end`. With `auto_delete` or `auto_detach`, apply nothing. Evaluate again at `look_at`.
    """

    spec: JsonObject = {}
    creations: tuple[tuple[int, JsonObject], ...] = ()
    updates: tuple[Operations, ...] = ()
    handle_status: JsonObject = {}
    claim_status: JsonObject | None = None
    requested_end: str = ""
    auto_delete: bool = False
    auto_detach: bool = False
    end: datetime | None = None
    look_at: datetime | None = None
    wish: RequestedEnd | None = None
    end_was_cut: bool = False  # the claim's author must learn that the requested end was cut
    waits: tuple[str, ...] = ()  # a sentence for each waiting resource
    refused: tuple[str, ...] = ()  # a sentence for each edit of the claim that was refused
    faults: tuple[Fault, ...] = ()
    unevaluated: tuple[str, ...] = ()  # errors of checks and summaries, which are usual for new objects
    by_clock: bool = False
    by_objects: bool = True  # the definitions to create may depend on the claim, or on the handle beyond its spec
