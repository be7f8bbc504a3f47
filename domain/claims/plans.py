"""What the passes over claims, handles and pools ask to be computed, and what they get: the border of the evaluator.

Everything that renders a template is one of four questions, each answered by a pure function in a process that can only
compute (`activities/claims/evaluator.py`):

    plan_claim(ClaimQuestion) -> ClaimPlan       what the claim's own object has to be, and which handle it needs
    plan_binding(BindingQuestion) -> BindingPlan what a free handle has to be when this claim takes it
    plan_pool_handle(PoolQuestion) -> HandleBody the handle that a pool makes
    plan_handle(HandleQuestion) -> HandlePlan    what a handle's resources, its status and its claim's status have to be

The answers are whole objects as they have to be, not changes: the pass compares them with what is there and writes
what differs. A fault of a template or a provider is part of the answer, so that the rest still happens.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import JsonValue

from domain.claims.lifespan import Wish
from domain.claims.linked import NOBODY, Requester
from domain.claims.question import Question
from domain.model import Model

JsonObject = dict[str, JsonValue]


class Fault(Model):
    """Something that a person has to mend. `reason` is a CamelCase word for conditions and Events."""

    reason: str
    message: str


# --- claims ---


class ClaimQuestion(Question):
    """A claim that is neither being deleted nor detached, whose start has come.

    `handle` is the one that holds it, None before it has one. `assigned` are the providers of the entries of
    `spec.resources` (list mode), see `assignment.assign`; `unassigned` is why there are none.
    """

    claim: JsonObject
    handle: JsonObject | None = None
    assigned: tuple[str, ...] = ()
    unassigned: Fault | None = None


class Halt(StrEnum):
    """Why a claim's pass goes no further: nothing is bound, created or pushed to its handle."""

    NONE = ""
    APPROVAL = "approval"  # pending or rejected; the status says which
    INVALID = "invalid"  # values or templates are not accepted; the status says why
    FAULT = "fault"  # see `fault`


class WantedEntry(Model):
    """One resource that the claim needs; what its provider tolerates when a free handle differs."""

    provider: str
    name: str = ""
    template: JsonObject = {}
    match_ignore: tuple[str, ...] = ()
    reference: JsonObject = {}  # the full reference to the provider


class ClaimPlan(Model):
    """What the claim has to be, and the handle that it needs while it has none.

    `annotations` and `labels` are to be added to what is there (the init timestamp among them); `resources` is the
    whole `spec.resources`, None to leave it. `status` is the whole status as it stands before a handle is bound.
    `creation` is a handle for it without name, finalizer and claim labels; None where nothing may be created, which
    `no_creation` then explains.
    """

    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    resources: tuple[JsonObject, ...] | None = None
    status: JsonObject = {}
    halt: Halt = Halt.NONE
    fault: Fault | None = None
    wanted: tuple[WantedEntry, ...] = ()
    wanted_pool: str = ""
    provider: str = ""  # the top-level one, empty in list mode
    creation: JsonObject | None = None
    no_creation: str = ""
    by_clock: bool = False  # without handle, or refused: the answer may differ merely because time passes


# --- binding ---


class BindingQuestion(Question):
    """A claim with the status that `ClaimPlan` gave, and the free handle that it takes."""

    claim: JsonObject
    handle: JsonObject
    wanted: tuple[WantedEntry, ...] = ()


class BindingPlan(Model):
    """The handle's labels to add and its whole spec once the claim has it."""

    labels: dict[str, str] = {}
    spec: JsonObject = {}
    fault: Fault | None = None


class HandleBody(Model):
    """A handle to make: labels and spec; the end is counted from the question's `now`."""

    labels: dict[str, str] = {}
    spec: JsonObject = {}
    fault: Fault | None = None


class PoolQuestion(Question):
    """A pool that needs a handle, and the name that it will have, as far as that is known."""

    pool: JsonObject
    handle_name: str = ""


# --- handles ---


class HandleQuestion(Question):
    """A handle that is not being deleted, with the live objects of its resources in the order of its entries.

    `claim` is the one that holds it, None for a free one. `push`: what the claim asks for reaches the handle, because
    the claim was accepted in this pass. `shown`: the claim's own object may be written. `honoured` is the `wish` of the
    last answer, None if it is not known. `unserved` are the resources whose recorded kind its group serves in no
    version, `outdated` those where it does in another one only; `unreadable` are those that may not be read, which says
    nothing about them. A handle that is about to be made has no uid yet: only `spec` of the answer counts then.
    """

    handle: JsonObject
    claim: JsonObject | None = None
    assigned: tuple[str, ...] = ()
    states: tuple[JsonObject | None, ...] = ()
    requester: Requester = NOBODY
    push: bool = False
    shown: bool = True
    honoured: Wish | None = None
    unserved: tuple[int, ...] = ()
    outdated: tuple[int, ...] = ()
    unreadable: tuple[int, ...] = ()


class Operations(Model):
    """A JSON Patch for one live resource, filtered."""

    index: int
    patch: tuple[JsonObject, ...]


class HandlePlan(Model):
    """What the handle, its resources and its claim have to be.

    Act in this order: `spec`; `creations` (in order, each an index with its whole definition); `updates`; then ask
    again with the new states, until there is neither of them. The statuses count then: the handle's first.
    `requested_end` is to be written into the claim's `spec.lifespan.end` (first ready with a default lifespan).
    `auto_delete` and `auto_detach` end everything else. `end` is when the handle is to be deleted, `look_at` when the
    end has to be settled again; `by_clock` says that the templates give something else as time passes.
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
    wish: Wish | None = None
    end_was_cut: bool = False  # news: tell the claim's author
    waits: tuple[str, ...] = ()  # a sentence for each resource that waits
    refused: tuple[str, ...] = ()  # claim edits that are not carried out, a sentence each
    faults: tuple[Fault, ...] = ()
    unevaluated: tuple[str, ...] = ()  # checks and summaries that gave nothing, as with young objects: for the log
    by_clock: bool = False
