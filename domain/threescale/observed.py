"""The input of decisions on 3scale objects, and the decisions that kinds share.

3scale's state is collected during the pass: each call adds its response to the world (`calls.py`), and a new
observation keeps the collected state. Actions run in order; after a refusal the remaining actions do not run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Self

from domain.decision import Action, Decision, Outcome, World, earliest
from domain.identity import Kind
from domain.model import Model
from domain.refusal import Refusal
from domain.resource import CustomResource, ObjectMeta
from domain.schema import JsonObject
from domain.threescale import DEVELOPER_ACCOUNT
from domain.threescale.actions import ClusterWrite, DeleteObject, DropFinalizer, PatchObject, ShowStatus
from domain.threescale.calls import Read, Resource, Sync, Write, unless_refused
from domain.threescale.conditions import INVALID, ORPHAN, WAITING, Situation, SyncState, conditions, in_sync
from domain.threescale.digests import digests_of, remembering
from domain.threescale.duplicate_owners import Holder, holder_of, seniority
from domain.threescale.idempotent_creations import begun_no_more, creating
from domain.threescale.orphan_backoff import next_look, waiting_since
from domain.threescale.provider_account import NoAccount, ProviderAccount, known_at, same_tenant
from domain.threescale.refused_calls import held, situation_of
from domain.threescale.remote_ids import combined, host_of, identified, remembered_id
from domain.threescale.remote_object import One, read_one, wrote_one
from domain.threescale.remote_state import Identified, UnexpectedAnswerError
from domain.threescale.resources import Tenant
from domain.threescale.resources.shared import HITS, Conditions, Digests, RemoteResource
from domain.writes import JsonPatch, difference


class Phase(StrEnum):
    NEW = "New"
    SYNCING = "Syncing"
    SYNCED = "Synced"
    ORPHAN = "Orphan"
    INVALID = "Invalid"
    FAILED = "Failed"
    DELETING = "Deleting"
    GONE = "Gone"


class Memory(Model):
    retried: str = ""  # the token of the retry for which refusals were dropped, until that retry completes
    begun: bool = False  # True if a pass has written to 3scale, and the object has not been in sync since
    next_sweep: datetime | None = None
    sweeps: int = 0  # the number of sweeps so far; it selects the objects that are compared completely
    compare_at: datetime | None = None  # when to compare with 3scale, after a write based on cached state


class Unreadable(World):
    problem: str


_LOOK = "observe again"
_LATE_LISTS = 4  # after this many lists of metrics without `hits`, the list is believed, and `hits` is created
_ANNOTATED_AGAIN = timedelta(minutes=1)  # how long after a wake a changed id annotation is corrected
_PHASES = {
    SyncState.FINE: Phase.SYNCED,
    SyncState.WAITING: Phase.ORPHAN,
    SyncState.INVALID: Phase.INVALID,
    SyncState.FAILED: Phase.FAILED,
    SyncState.SYNCING: Phase.SYNCING,
}
_OUTCOMES = {
    Phase.SYNCED: Outcome.SETTLED,
    Phase.ORPHAN: Outcome.WAITING,
    Phase.INVALID: Outcome.WAITING,
    Phase.FAILED: Outcome.WAITING,
    Phase.GONE: Outcome.GONE,
}


class Blocker(Model):
    state: SyncState
    message: str
    waits_for: tuple[str, ...] = ()


def waiting(message: str, *waits_for: str) -> Blocker:
    """A blocker: something else must be created or removed first."""
    return Blocker(state=SyncState.WAITING, message=message, waits_for=waits_for)


def invalid(message: str, *waits_for: str) -> Blocker:
    """A blocker: the spec, or an object that it references, is faulty."""
    return Blocker(state=SyncState.INVALID, message=message, waits_for=waits_for)


def failed(message: str, *waits_for: str) -> Blocker:
    """A blocker: something must be corrected outside the object."""
    return Blocker(state=SyncState.FAILED, message=message, waits_for=waits_for)


def outcome_of(phase: str, actions: tuple[Action, ...]) -> Outcome:
    return _OUTCOMES.get(Phase(phase)) or (Outcome.WORKING if actions else Outcome.WAITING)


def acts(phase: Phase, why: str, *actions: Action, **more: Any) -> Decision:
    then = _LOOK if more.get("deadline") else ""
    return Decision(phase=phase, outcome=outcome_of(phase, actions), why=why, actions=actions, at_deadline=then, **more)


class Observed(World):
    # The fields with 3scale's state. Calls fill these fields; an observation of the cluster does not.
    learnt: ClassVar[tuple[str, ...]] = ("found",)

    resource: CustomResource
    provider: ProviderAccount | NoAccount
    known: Memory = Memory()
    tenants: tuple[Tenant, ...] = ()
    siblings: tuple[ObjectMeta, ...] = ()  # other objects of the kind with the same name in 3scale and the same tenant
    holders: tuple[Holder, ...] = ()  # other objects of the kind and tenant with the id that is known or was found
    look: bool = False  # True if the object must be compared with 3scale even if its digests are unchanged
    retry: str = ""  # the token of a person's retry that is not complete; empty if there is none
    drops_refusals: bool = False  # earlier refusals are dropped, because the pass was woken or has a new retry
    recalled: bool = False  # the state of 3scale comes from the previous pass
    slot_held_for: timedelta | None = None  # the time since the first call of the pass; None before that call
    reported_in_sync: bool = False  # True if this long pass has reported InSync, or need not report it
    mute: bool = False  # the API server refuses the object's status, so it is not written
    # The last status patch of the pass. It is not repeated: the replaced operator's CRDs drop some of our fields.
    shown_last: JsonPatch = {}
    unwritable: str = ""  # why the API server refuses the spec with defaults

    @property
    def known_id(self) -> int:
        """The remembered id; 0 if there is none, or if it belongs to another tenant or an older object."""
        resource: Any = self.resource
        id_ = known_at(self.provider.url, host_of(resource), remembered_id(resource))
        if resource.remote_id:
            return id_
        # The annotation may be a copy from the manifest of another object, even of one that is being deleted.
        having = [resource.metadata, *(each.metadata for each in self.holders if each.id == id_)]
        return id_ if min(having, key=seniority) == resource.metadata else 0

    @property
    def found_id(self) -> int:
        """The id of the found entry; 0 if none."""
        return 0

    def decide(self, now: datetime) -> Decision:
        raise NotImplementedError

    def read(self, read: Read, body: object) -> Self:
        raise NotImplementedError(f"{type(self).__name__} does not request {read.path}")

    def wrote(self, write: Write, body: object) -> Self:
        raise NotImplementedError(f"{type(self).__name__} writes no {write.path}")

    def forget(self) -> Self:
        return self.model_copy(update={name: type(self).model_fields[name].default for name in self.learnt})

    def remembered(self) -> object:
        """3scale's state for the next pass; None if unknown, or if one read shows the object completely."""
        return None

    def recalling(self, remembered: object) -> Self:
        return self

    def recall(self, before: World) -> Self:
        world = super().recall(before)  # type: ignore[arg-type]
        if isinstance(before, Observed):
            kept = {"recalled", "mute", *self.learnt} & type(before).model_fields.keys()
            return world.beside({name: getattr(before, name) for name in kept})
        return world.model_copy(update={"refusals": {}}) if self.drops_refusals else world

    def stored(self, obj: JsonObject) -> Self:
        return self.model_copy(update={"resource": type(self.resource).model_validate(obj)})

    def beside(self, fields: Mapping[str, Any]) -> Self:
        return self.model_copy(update=dict(fields)) if fields else self

    # --- decisions ---

    def begins(self, now: datetime, defaults: JsonPatch | None = None) -> Decision | None:
        """The decision if the object lacks finalizer, defaults or tenant; otherwise None."""
        patch = finalizer_set(self.resource) | ({"spec": defaults} if defaults else {})
        if patch:
            return acts(Phase.NEW, "set its finalizer and defaults", *self.patched(patch))
        return self.without_account(now)

    def without_account(self, now: datetime) -> Decision | None:
        if not isinstance(self.provider, NoAccount):
            return None
        blocker = waiting(self.provider.why, self.provider.waits_for)
        return self.blocked(blocker, now)

    def taken(self, now: datetime, fields: Mapping[str, object] | None = None) -> Decision | None:
        """The decision if the found entry belongs to another object."""
        # Of objects with the same name the oldest gets the entry.
        namesakes = {each.uid for each in self.siblings}
        others = [each for each in self.holders if each.metadata.uid not in namesakes]
        other = holder_of(self.found_id, others) if self.found_id != self.known_id else None
        if other is None:
            return None
        resource: Any = self.resource
        kind, what = resource.kind_of.name, resource.counterpart.format(self.found_id)
        message = f"{kind} {other.namespace}/{other.name} already manages {what}"
        blocker = invalid(message, f"{kind}/{other.namespace}/{other.name}")
        # The other object may have another name, so its deletion wakes this object only by chance.
        return self.blocked(blocker, now, fields, until=self.observe_again_at(INVALID, now))

    def patched(self, patch: JsonPatch) -> tuple[PatchObject, ...]:
        return (PatchObject(**self.own(patch)),) if patch else ()

    def shown(self, status: JsonPatch) -> tuple[ShowStatus, ...]:
        return (ShowStatus(**self.own({"status": status})),) if status and status != self.shown_last else ()

    def deleted(self, why: str, phase: Phase = Phase.DELETING) -> Decision:
        return acts(phase, why, DeleteObject(key=self.key))

    def observe_again_at(self, condition: str, now: datetime) -> datetime:
        resource: Any = self.resource
        since = waiting_since(resource.status.conditions, condition, now)
        return next_look(since, now, resource.metadata.uid)

    def reported(self, situation: Situation, now: datetime, fields: Mapping[str, object]) -> JsonPatch:
        """The status patch with `situation` and `fields` (by their names in the model); empty if nothing changes."""
        resource: Any = self.resource
        before = resource.status
        known = {} if _stays_behind(resource, fields) else fields
        changed = {**known, "conditions": conditions(resource.kind_of, situation, before.conditions, now)}
        if "observed_generation" in type(before).model_fields:
            changed["observed_generation"] = resource.metadata.generation
        return status_patch(resource, changed)

    def blocked(
        self,
        blocker: Blocker,
        now: datetime,
        fields: Mapping[str, object] | None = None,
        *,
        phase: Phase | None = None,
        until: datetime | None = None,
    ) -> Decision:
        """Show the blocker and make no call. A waiting object is observed again after growing pauses."""
        situation = Situation(state=blocker.state, message=blocker.message)
        if blocker.state is SyncState.WAITING:
            until = self.observe_again_at(_waits(self.resource.kind_of), now)
        return acts(
            phase or _PHASES[blocker.state],
            blocker.message,
            *self.shown(self.reported(situation, now, fields or {})),
            waits_for=blocker.waits_for,
            deadline=until,
        )

    def as_refused(
        self,
        refusals: Mapping[str, Refusal],
        now: datetime,
        fields: Mapping[str, object] | None = None,
        phase: Phase | None = None,
    ) -> Decision:
        """Show the refusals as the object's state until the first refused call may be retried."""
        situation = situation_of(refusals.values())
        return acts(
            phase or _PHASES[situation.state],
            situation.message,
            *self.shown(self.reported(situation, now, fields or {})),
            deadline=earliest([each.retry_at for each in refusals.values()]),
            blocked=tuple(refusals),
        )

    def writes_cluster(
        self,
        writes: tuple[ClusterWrite, ...],
        why: str,
        now: datetime,
        fields: Mapping[str, object] | None = None,
    ) -> Decision:
        """While a write is refused, the refusal is shown as the object's state."""
        refused = {each.slot: self.refusals[each.slot] for each in writes if each.slot in self.refusals}
        if held(refused, now):
            return self.as_refused(refused, now, fields)
        return acts(Phase.SYNCING, why, *writes)

    def fine(
        self,
        now: datetime,
        fields: Mapping[str, object],
        *,
        digests: Digests | None = None,
        why: str = "in sync with 3scale",
    ) -> Decision:
        """Report the object as in sync, and store `digests` in its status."""
        resource, patch, later = self.resource, JsonPatch(), None
        if isinstance(resource, RemoteResource):
            patch = identified(resource, fields.get(resource.id_field) or resource.remote_id)
        if digests is None and patch and self.drops_refusals:
            # A program that removes the annotation at each change must not wake this pass at once, again and again.
            patch, later = {}, now + _ANNOTATED_AGAIN
        if digests is not None:
            patch = combined(begun_no_more(resource.metadata), patch)
            fields = {**fields, **remembering(resource, digests)}
        status = self.reported(Situation(state=SyncState.FINE), now, fields)
        # The status is written first, because the patch removes the record of the creation.
        return acts(Phase.SYNCED, why, *self.shown(status), *self.patched(patch), deadline=later)

    def attempted(
        self, sync: Sync, now: datetime, *, marked: bool = True
    ) -> tuple[Decision | None, dict[str, Refusal]]:
        """Return the decision with the next calls (None if no call is left) and the refusals of the sync's calls.

        If `marked` is False (the kind has no mark in 3scale), an annotation records a creation before its call.
        """
        refused = blocking(sync, self.refusals)
        slots = held(refused, now)
        writes = unless_refused(sync.writes, slots)
        creation = None if marked else next((each for each in writes if each.key), None)
        made = creation and creating(self.resource.metadata, creation.key, creation.others, creation.of)
        return calls(sync.model_copy(update={"writes": writes}), slots, *self.patched(made or {})), refused

    def compared(self, sync: Sync, now: datetime, fields: Mapping[str, object], digests: Digests) -> Decision:
        decision, refused = self.attempted(sync, now, marked=False)
        if decision is not None:
            return decision
        return self.as_refused(refused, now, fields) if refused else self.fine(now, fields, digests=digests)

    def released(self, why: str, left: tuple[str, ...]) -> Decision:
        meta, finalizer = self.resource.metadata, self.resource.kind_of.finalizer
        patch: JsonPatch = {"metadata": {"finalizers": meta.finalizers_without(finalizer)}}
        return acts(Phase.DELETING, why, DropFinalizer(**self.own(patch), left=left))

    def own(self, patch: JsonPatch) -> dict[str, Any]:
        return {"key": self.key, "patch": patch, "resource_version": self.resource.metadata.resource_version}


class ObservedOne(Observed):
    item: ClassVar[type[Identified]]
    wrapper: ClassVar[Resource]

    found: One[Any] = One()

    @property
    def found_id(self) -> int:
        return self.found.item.id if self.found.item else 0

    def is_it(self, found: Any) -> bool:
        """Whether the found entry belongs to this object; called for entries of a list, not for a read by id."""
        raise NotImplementedError

    def read(self, read: Read, body: object) -> Self:
        return self.beside({"found": read_one(self.item, read, body, self.is_it)})

    def wrote(self, write: Write, body: object) -> Self:
        return self.beside({"found": wrote_one(self.item, self.wrapper, self.found, write, body)})


class ObservedOwner(Observed):
    """A Product or a Backend, which own metrics and mapping rules in 3scale."""

    listed: ClassVar[Resource]
    path: ClassVar[str]

    resource: Any
    found: Any  # empty at first, or what the previous pass of this process stored

    @property
    def found_id(self) -> int:
        return self.found.entry.id if self.found.entry else 0

    def finding(self, read: Read, found: Any) -> Self:
        """Raises UnexpectedAnswerError if a new Product's or Backend's list of metrics lacks `hits`. 3scale always
        creates `hits`, so the list is probably outdated. After several such errors, the list is believed.
        """
        refusal, its_metrics = self.refusals.get(read.slot), read.resource is Resource.METRIC and not read.of
        new = not digests_of(self.resource).synced and (refusal is None or refusal.attempts < _LATE_LISTS)
        if new and its_metrics and not any(each.system_name.partition(".")[0] == HITS for each in found.metrics):
            raise UnexpectedAnswerError(f"the list of metrics lacks {HITS}")
        return self.beside({"found": found})


# --- parts ---


def finalizer_set(resource: CustomResource) -> JsonPatch:
    meta, finalizer = resource.metadata, resource.kind_of.finalizer
    return {} if finalizer in meta.finalizers else {"metadata": {"finalizers": [*meta.finalizers, finalizer]}}


def status_patch(resource: Any, changed: Mapping[str, object]) -> JsonPatch:
    return difference(resource.status, resource.status.model_copy(update=changed))


def status_in_sync(resource: Any, why: str, now: datetime) -> JsonPatch:
    """The status patch with the condition InSync; empty if the object is being deleted."""
    if resource.metadata.deleting:
        return {}
    return status_patch(resource, {"conditions": in_sync(resource.kind_of, why, resource.status.conditions, now)})


def _stays_behind(resource: CustomResource, fields: Mapping[str, object]) -> bool:
    """Whether the object moves to a tenant where it has no id yet. Its status then keeps the old address and id."""
    host, before = fields.get("provider_account_host"), host_of(resource)
    if not isinstance(resource, RemoteResource) or not before or same_tenant(before, str(host or before)):
        return False
    has_id = bool(resource.remote_id) or resource.id_annotation in resource.metadata.annotations
    return has_id and not fields.get(resource.id_field)


def _waits(kind: Kind) -> str:
    return WAITING if kind == DEVELOPER_ACCOUNT else ORPHAN


def blocking(sync: Sync, refusals: Mapping[str, Refusal]) -> dict[str, Refusal]:
    slots = {each.slot for each in (*sync.writes, *sync.reads)}
    return {slot: refusal for slot, refusal in refusals.items() if slot in slots}


def calls(sync: Sync, slots: Iterable[str], *before: Action, phase: Phase = Phase.SYNCING) -> Decision | None:
    refused = set(slots)
    reads = tuple(each for each in sync.reads if each.slot not in refused)
    if reads:
        return acts(phase, "; ".join(each.summary for each in reads), *reads)
    if not sync.writes:
        return None
    return acts(phase, "; ".join(each.summary for each in sync.writes), *before, *sync.writes)


def is_true(conditions_: Conditions, type_: str) -> bool:
    return any(each.type == type_ and each.status == "True" for each in conditions_)
