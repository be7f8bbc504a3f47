"""The evaluator's interface: questions of the passes over claims, handles and pools, and answers.

Everything that renders templates is one of four pure functions, in a process that can only compute
(`activities/claims/evaluator.py`):

    plan_claim(ClaimQuestion) -> ClaimPlan       the claim's wanted object, and its requirements for a handle
    plan_binding(BindingQuestion) -> BindingPlan the free handle after this claim's binding
    plan_pool_handle(PoolQuestion) -> HandleBody a pool's new handle
    plan_handle(HandleQuestion) -> HandlePlan    a handle's resources, its status and its claim's status

Answers are whole wanted objects, with the faults of templates or providers, so that the rest still happens.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import JsonValue

from domain.claims.lifespan import RequestedEnd
from domain.claims.linked_providers import NO_REQUESTER, Requester
from domain.claims.question import Question
from domain.model import Model

JsonObject = dict[str, JsonValue]


class Fault(Model):
    """An error that a person must correct. `reason` is a CamelCase word for conditions and Events."""

    reason: str
    message: str


class ClaimQuestion(Question):
    """A started claim that is neither being deleted nor detached.

    `handle` is the one that holds it. `assigned` comes from `assignment.assign` (list mode); `unassigned` is its fault.
    """

    claim: JsonObject
    handle: JsonObject | None = None
    assigned: tuple[str, ...] = ()
    unassigned: Fault | None = None


class Halt(StrEnum):
    """Why nothing is bound, created or pushed to the claim's handle."""

    NONE = ""
    APPROVAL = "approval"  # pending or rejected, see the status
    INVALID = "invalid"  # refused values or templates, see the status
    FAULT = "fault"  # see `fault`


class WantedEntry(Model):
    """A resource that the claim wants. `match_ignore` are the differences that the provider tolerates."""

    provider: str
    name: str = ""
    template: JsonObject = {}
    match_ignore: tuple[str, ...] = ()
    reference: JsonObject = {}  # the full reference to the provider


class ClaimPlan(Model):
    """The evaluation of a claim before it has a handle."""

    # `annotations`, `labels`: to be added (including the init timestamp).
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    resources: tuple[JsonObject, ...] | None = None  # the complete `spec.resources`; None leaves it
    status: JsonObject = {}  # the complete status before binding
    halt: Halt = Halt.NONE
    fault: Fault | None = None
    wanted: tuple[WantedEntry, ...] = ()
    wanted_pool: str = ""
    provider: str = ""  # the top-level one; empty in list mode
    # A new handle without name, finalizer and claim labels; None if forbidden, for the reason `no_creation`.
    creation: JsonObject | None = None
    no_creation: str = ""
    by_clock: bool = False  # unbound or refused: the answer depends on time


class BindingQuestion(Question):
    """A claim with the status of its `ClaimPlan`, and a free handle."""

    claim: JsonObject
    handle: JsonObject
    wanted: tuple[WantedEntry, ...] = ()


class BindingPlan(Model):
    """Labels to be added, and the complete spec."""

    labels: dict[str, str] = {}
    spec: JsonObject = {}
    fault: Fault | None = None


class HandleBody(Model):
    labels: dict[str, str] = {}
    spec: JsonObject = {}
    fault: Fault | None = None


class PoolQuestion(Question):
    pool: JsonObject
    handle_name: str = ""


class HandleQuestion(Question):
    """A handle that is not being deleted."""

    handle: JsonObject
    claim: JsonObject | None = None  # None for a free handle
    assigned: tuple[str, ...] = ()
    states: tuple[JsonObject | None, ...] = ()  # the live objects of its entries
    requester: Requester = NO_REQUESTER
    push: bool = False  # the claim was accepted in this pass, so its requests reach the handle
    shown: bool = True  # the claim's own object may be written
    honoured: RequestedEnd | None = None  # the `wish` of the last answer; None if unknown
    unserved: tuple[int, ...] = ()  # resources whose recorded kind is served in no version
    outdated: tuple[int, ...] = ()  # resources whose kind is served only in another version
    unreadable: tuple[int, ...] = ()  # resources that may not be read


class Operations(Model):
    index: int
    patch: tuple[JsonObject, ...]


class HandlePlan(Model):
    """The wanted handle, resources and claim.

    Apply in this order: `spec`; `creations` (index and definition); `updates`; then evaluate again with the new states,
    until both are empty. Then write the statuses, the handle's first. `requested_end` goes into the claim's
    `spec.lifespan.end`. With `auto_delete` or `auto_detach` nothing else is applied. Evaluate again at `look_at`.
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
    end_was_cut: bool = False  # news for the claim's author
    waits: tuple[str, ...] = ()  # a sentence for each waiting resource
    refused: tuple[str, ...] = ()  # refused claim edits, a sentence each
    faults: tuple[Fault, ...] = ()
    unevaluated: tuple[str, ...] = ()  # failed checks and summaries, as with young objects: for the log
    by_clock: bool = False
    by_objects: bool = (
        True  # the definitions to create may depend on fields of claim and handle beside the handle's spec
    )
