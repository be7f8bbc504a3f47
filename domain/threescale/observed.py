"""What a decision on an object of 3scale sees, how the object stands, and what is to be done for it.

    the object ─► other objects of the cluster ─► its status ─► reads, or writes of 3scale

An observation shows the object, its referents and its tenant. What 3scale has of it is learnt in the pass: each call
folds its answer into the world (`calls.py`), and an observation in the middle of the pass keeps that.

A decision asks for reads, or for writes, or says how the object stands; its actions are carried out in this order, and
the first refusal ends them. A refusal of 3scale is remembered by its slot: until it may be tried again the rest
continues without it, and the object stands as the refusal says. An object that its spec or a missing referent blocks
makes no call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Self, TypeVar

from domain.decision import Action, Decision, Outcome, World, earliest
from domain.identity import Kind
from domain.model import Model
from domain.refusal import ErrorType, Refusal
from domain.resource import CustomResource
from domain.schema import JsonObject
from domain.threescale import DEVELOPER_ACCOUNT
from domain.threescale.actions import (
    ClusterWrite,
    DeleteObject,
    DropFinalizer,
    PatchObject,
    ShowStatus,
)
from domain.threescale.calls import Read, Resource, Write, unless_refused
from domain.threescale.conditions import ORPHAN, WAITING, Situation, Standing, conditions, in_sync
from domain.threescale.digests import begun_no_more, creating, remembering, retained
from domain.threescale.found import Identified
from domain.threescale.holders import Holder, holder_of
from domain.threescale.notes import ID_ANNOTATIONS, OWN_IDS, combined, identified, remembered_id
from domain.threescale.orphans import next_look, waiting_since
from domain.threescale.product_sync import Sync
from domain.threescale.providers import NoAccount, ProviderAccount, known_at, same_tenant
from domain.threescale.remote_object import One, read_one, wrote_one
from domain.threescale.resources import Tenant
from domain.threescale.resources.shared import Conditions, Digests
from domain.writes import JsonPatch, difference

T = TypeVar("T", bound=Identified)


class Phase(StrEnum):
    """Where an object stands."""

    NEW = "New"
    SYNCING = "Syncing"
    SYNCED = "Synced"
    ORPHAN = "Orphan"
    INVALID = "Invalid"
    FAILED = "Failed"
    DELETING = "Deleting"
    GONE = "Gone"


class Memory(Model):
    """What a pass leaves for the next one, beside its refusals; of the sweep, when it is to come.

    Attributes:
        retried: the person's retry for which refusals have been dropped, as long as it has not come to anything.
        begun: something was written to 3scale, and the object was not in step since.
        next_sweep: when the sweep is due.
        sweeps: how many were made; whose turn it is to be compared in full follows from that.
        compare_at: when the object is compared with 3scale after a change that was written from memory.
    """

    retried: str = ""
    begun: bool = False
    next_sweep: datetime | None = None
    sweeps: int = 0
    compare_at: datetime | None = None


class Unreadable(World):
    """An object that is not as its definition says."""

    problem: str


_LOOK = "observe again"
_PHASES = {
    Standing.FINE: Phase.SYNCED,
    Standing.WAITING: Phase.ORPHAN,
    Standing.INVALID: Phase.INVALID,
    Standing.FAILED: Phase.FAILED,
    Standing.SYNCING: Phase.SYNCING,
}
_OUTCOMES = {
    Phase.SYNCED: Outcome.SETTLED,
    Phase.ORPHAN: Outcome.WAITING,
    Phase.INVALID: Outcome.WAITING,
    Phase.FAILED: Outcome.WAITING,
    Phase.GONE: Outcome.GONE,
}


class Blocker(Model):
    """Why an object cannot be synced now, without asking 3scale."""

    standing: Standing
    message: str
    waits_for: tuple[str, ...] = ()


def waiting(message: str, *waits_for: str) -> Blocker:
    """Something that has to come or to go."""
    return Blocker(standing=Standing.WAITING, message=message, waits_for=waits_for)


def invalid(message: str, *waits_for: str) -> Blocker:
    """A fault of the spec, or of what it refers to."""
    return Blocker(standing=Standing.INVALID, message=message, waits_for=waits_for)


def failed(message: str, *waits_for: str) -> Blocker:
    """Something that somebody else has to mend."""
    return Blocker(standing=Standing.FAILED, message=message, waits_for=waits_for)


class Leaving(Model):
    """An object that is being deleted: what it would take along.

    Attributes:
        look: how it is found where its id is not known; None where it is known or not looked for.
        write: the deletion; None where nothing is left in 3scale.
        holders: others of its kind that have something in the tenant, which may be the same.
        blocker: what has to stop using it before; None if nothing.
    """

    look: Read | None = None
    write: Write | None = None
    holders: tuple[Holder, ...] = ()
    blocker: Blocker | None = None


def outcome_of(phase: str, actions: tuple[Action, ...]) -> Outcome:
    """How an object in the phase stands, for lists."""
    return _OUTCOMES.get(Phase(phase)) or (Outcome.WORKING if actions else Outcome.WAITING)


def acts(phase: Phase, why: str, *actions: Action, **more: Any) -> Decision:
    """That these are to be done, in this order."""
    then = _LOOK if more.get("deadline") else ""
    return Decision(phase=phase, outcome=outcome_of(phase, actions), why=why, actions=actions, at_deadline=then, **more)


def stands(phase: Phase, why: str, **more: Any) -> Decision:
    """That nothing is to be done."""
    return acts(phase, why, **more)


class Observed(World):
    """What a decision sees besides what its kind adds.

    Attributes:
        resource: the object.
        provider: its tenant.
        tenants: Tenants that name the Secret of its tenant.
        look: compare with 3scale although nothing new is wanted: the sweep found a difference, or a person asks.
        retry: a person's retry that has not come to anything yet, empty if there is none.
        drops_refusals: the pass was woken, or a person's retry is new.
        recalled: what the last pass has kept is taken for what 3scale has.
        seated_for: the time since the first call, None before it.
        told_in_sync: the object shows that the sync lasts, or need not.
        mute: the API server refuses its status.
        unwritable: why the API server refuses its spec with the defaults, empty if it does not.
    """

    # The fields with what 3scale has, which an observation does not show.
    learnt: ClassVar[tuple[str, ...]] = ("found",)

    resource: CustomResource
    provider: ProviderAccount | NoAccount
    known: Memory = Memory()
    tenants: tuple[Tenant, ...] = ()
    look: bool = False
    retry: str = ""
    drops_refusals: bool = False
    recalled: bool = False
    seated_for: timedelta | None = None
    told_in_sync: bool = False
    mute: bool = False
    unwritable: str = ""

    @property
    def known_id(self) -> int:
        """What its tenant has told, as status or annotation say; 0 if it has none there."""
        host = getattr(getattr(self.resource, "status", None), "provider_account_host", None)
        return known_at(self.provider.url, host, remembered_id(self.resource))

    def decide(self, now: datetime) -> Decision:
        """The kind's decision."""
        raise NotImplementedError

    def read(self, read: Read, body: object) -> Self:
        """The world with what 3scale has answered; None where there is nothing of that id."""
        raise NotImplementedError(f"{type(self).__name__} asks for no {read.path}")

    def wrote(self, write: Write, body: object) -> Self:
        """The world with what 3scale has answered."""
        raise NotImplementedError(f"{type(self).__name__} writes no {write.path}")

    def forget(self) -> Self:
        """The world where what was known of 3scale may not be so any more."""
        return self.model_copy(update={name: type(self).model_fields[name].default for name in self.learnt})

    def kept(self) -> object:
        """What the next pass may be given of 3scale; None for kinds that a read shows whole, and where it is not."""
        return None

    def recalling(self, kept: object) -> Self:
        """The world with what the last pass has kept, where that still counts."""
        return self

    def recall(self, before: World) -> Self:
        """This new observation with what is known."""
        refusals = {} if self.drops_refusals else before.refusals
        changes: dict[str, object] = {"refusals": refusals, "known": before.known}
        if isinstance(before, Observed):
            names = ("recalled", "mute", *self.learnt)
            changes |= {"refusals": before.refusals, **{name: getattr(before, name) for name in names}}
        return self.model_copy(update=changes)

    def stored(self, obj: JsonObject) -> Self:
        """The world with its object as the API server has answered it."""
        return self.model_copy(update={"resource": type(self.resource).model_validate(obj)})

    def beside(self, fields: Mapping[str, Any]) -> Self:
        """The world where these fields have changed."""
        return self.model_copy(update=dict(fields)) if fields else self

    # --- how it stands, and what is to be done ---

    def begins(
        self, leaving: Callable[[Any], Leaving], now: datetime, defaults: JsonPatch | None = None
    ) -> Decision | None:
        """What comes first: it goes, it is taken in hand, its tenant is not known; None if nothing does.

        Args:
            leaving: what it would take along.
            now: the present.
            defaults: what its spec leaves open.
        """
        if self.resource.metadata.deleting:
            return self.deprovision(leaving(self), now)
        patch = finalizer_set(self.resource) | ({"spec": defaults} if defaults else {})
        if patch:
            return acts(Phase.NEW, "set its finalizer and defaults", *self.patched(patch))
        return self.without_account(now)

    def without_account(self, now: datetime) -> Decision | None:
        """The tenant is not known: nothing can be called; None where it is."""
        if not isinstance(self.provider, NoAccount):
            return None
        blocker = waiting(self.provider.why, self.provider.waits_for)
        return self.blocked(blocker, now)

    def patched(self, patch: JsonPatch) -> tuple[PatchObject, ...]:
        """The patch of the object, if there is anything to patch."""
        return (PatchObject(**self.own(patch)),) if patch else ()

    def shown(self, status: JsonPatch) -> tuple[ShowStatus, ...]:
        """The same for its status."""
        return (ShowStatus(**self.own({"status": status})),) if status else ()

    def deleted(self, why: str, phase: Phase = Phase.DELETING) -> Decision:
        """The object is to be deleted."""
        return acts(phase, why, DeleteObject(key=self.key))

    def looked_at_again(self, condition: str, now: datetime) -> datetime:
        """When to observe again what waits since the condition is True."""
        resource: Any = self.resource
        since = waiting_since(resource.status.conditions, condition, now)
        return next_look(since, now, resource.metadata.uid)

    def reported(self, situation: Situation, now: datetime, fields: Mapping[str, object]) -> JsonPatch:
        """The patch of its status, by the names of the model's fields; empty if it says so already."""
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
        """The object waits, with no call to 3scale; an orphan is observed again after growing pauses."""
        situation = Situation(standing=blocker.standing, message=blocker.message)
        if blocker.standing is Standing.WAITING:
            until = self.looked_at_again(_waits(self.resource.kind_of), now)
        return acts(
            phase or _PHASES[blocker.standing],
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
        """The object stands as the refusals say, until the first may be tried again."""
        situation = situation_of(refusals.values())
        return acts(
            phase or _PHASES[situation.standing],
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
        """Writes of other objects; as long as one was refused, how the object stands because of it."""
        standing = {each.slot: self.refusals[each.slot] for each in writes if each.slot in self.refusals}
        if held(standing, now):
            return self.as_refused(standing, now, fields)
        return acts(Phase.SYNCING, why, *writes)

    def fine(
        self,
        now: datetime,
        fields: Mapping[str, object],
        *,
        digests: Digests | None = None,
        why: str = "in sync with 3scale",
    ) -> Decision:
        """3scale has all that is wanted; `digests` is what the object remembers of that from now on."""
        resource, patch = self.resource, JsonPatch()
        if digests is not None:
            own_id = fields.get(OWN_IDS[resource.kind_of.name])
            patch = combined(begun_no_more(resource.metadata), identified(resource, own_id))
            fields = {**fields, **remembering(resource, digests)}
        status = self.reported(Situation(standing=Standing.FINE), now, fields)
        return acts(Phase.SYNCED, why, *self.patched(patch), *self.shown(status))

    def attempted(
        self, sync: Sync, now: datetime, *, marked: bool = True
    ) -> tuple[Decision | None, dict[str, Refusal]]:
        """The calls of an object without parts that are to be made now, if any can; and the refusals in their way.

        The creation of what carries no mark in 3scale is noted before (`digests.py`).
        """
        standing = blocking(sync, self.refusals)
        slots = held(standing, now)
        writes = unless_refused(sync.writes, slots)
        creation = None if marked else next((each for each in writes if each.key), None)
        noted = creating(self.resource.metadata, creation.key, creation.others) if creation else {}
        return calls(sync.model_copy(update={"writes": writes}), slots, *self.patched(noted)), standing

    def compared(self, sync: Sync, now: datetime, fields: Mapping[str, object], digests: Digests) -> Decision:
        """What is left to do for an object without parts that carries no mark in 3scale, else how it stands."""
        decision, standing = self.attempted(sync, now, marked=False)
        if decision is not None:
            return decision
        return self.as_refused(standing, now, fields) if standing else self.fine(now, fields, digests=digests)

    def deprovision(self, leaving: Leaving, now: datetime) -> Decision:
        """What to do for an object that is being deleted.

        One that shall stay in 3scale, one whose tenant's Secret is gone (it is disconnected), and one that has the same
        there as another that stays, go without a call. A Secret that is there and lacks something is in somebody's
        hands: what is known to be in 3scale waits for that.
        """
        resource, provider = self.resource, self.provider
        meta, outside = resource.metadata, resource.outside
        if resource.kind_of.finalizer not in meta.finalizers:
            return stands(Phase.GONE, "it has released everything")
        if retained(meta):
            return self.released("it stays in 3scale, as its annotation says", outside)
        if isinstance(provider, NoAccount):
            if provider.incomplete and outside:
                waits = waiting(provider.why, provider.waits_for)
                return self.blocked(waits, now, phase=Phase.DELETING)
            return self.released(f"disconnected from 3scale: {provider.why}", outside)
        other = holder_of(leaving.write.id, leaving.holders) if leaving.write else None
        if other is not None:
            why = f"{resource.kind_of.name} {other.namespace}/{other.name} manages the same object in 3scale"
            return self.released(why, outside)
        if leaving.blocker is not None:
            return self.blocked(leaving.blocker, now, phase=Phase.DELETING)
        if leaving.look is not None:
            sync = Sync(reads=(leaving.look,))
        else:
            sync = Sync(writes=(leaving.write,) if leaving.write else ())
        if sync.done:
            return self.released("nothing of it is left in 3scale", ())
        standing = {slot: each for slot, each in blocking(sync, self.refusals).items() if each.retry_at > now}
        if standing:
            return self.as_refused(standing, now, phase=Phase.DELETING)
        return acts(Phase.DELETING, "delete it from 3scale", *sync.reads, *sync.writes)

    def released(self, why: str, left: tuple[str, ...]) -> Decision:
        """Nothing is left to do, and the object may go; `left` is what stays."""
        meta, finalizer = self.resource.metadata, self.resource.kind_of.finalizer
        patch: JsonPatch = {"metadata": {"finalizers": meta.finalizers_without(finalizer)}}
        return acts(Phase.DELETING, why, DropFinalizer(**self.own(patch), left=left))

    def own(self, patch: JsonPatch) -> dict[str, Any]:
        """What every write of the object says of it."""
        return {"key": self.key, "patch": patch, "resource_version": self.resource.metadata.resource_version}


class ObservedOne(Observed):
    """What a decision sees of an object without parts in 3scale."""

    item: ClassVar[type[Identified]]
    wrapper: ClassVar[Resource]

    found: One[Any] = One()

    def is_it(self, found: Any) -> bool:
        """Whether one of those that 3scale has is this one, whose id is not known."""
        raise NotImplementedError

    def read(self, read: Read, body: object) -> Self:
        """It, or all among which it may be."""
        return self.beside({"found": read_one(self.item, read, body, self.is_it)})

    def wrote(self, write: Write, body: object) -> Self:
        """It is made, changed or gone."""
        return self.beside({"found": wrote_one(self.item, self.wrapper, self.found, write, body)})


# --- parts ---


def finalizer_set(resource: CustomResource) -> JsonPatch:
    """The patch that sets the finalizer; empty if it is there."""
    meta, finalizer = resource.metadata, resource.kind_of.finalizer
    return {} if finalizer in meta.finalizers else {"metadata": {"finalizers": [*meta.finalizers, finalizer]}}


def status_patch(resource: Any, changed: Mapping[str, object]) -> JsonPatch:
    """The patch that sets these fields of its status; empty if they are so."""
    return difference(resource.status, resource.status.model_copy(update=changed))


def status_in_sync(resource: Any, why: str, now: datetime) -> JsonPatch:
    """The patch of the status of an object whose sync lasts; what goes keeps its own."""
    if resource.metadata.deleting:
        return {}
    return status_patch(resource, {"conditions": in_sync(resource.kind_of, why, resource.status.conditions, now)})


def _stays_behind(resource: CustomResource, fields: Mapping[str, object]) -> bool:
    """Whether its tenant is another one now, where it has no id yet: the address stays that of the id that it has."""
    own, host = OWN_IDS.get(resource.kind_of.name), fields.get("provider_account_host")
    status: object = getattr(resource, "status", None)
    before = getattr(status, "provider_account_host", None)
    if own is None or not before or same_tenant(before, str(host or before)):
        return False
    has_id = (
        bool(getattr(status, own)) or ID_ANNOTATIONS.get(resource.kind_of.name, "") in resource.metadata.annotations
    )
    return has_id and not fields.get(own)


def _waits(kind: Kind) -> str:
    return WAITING if kind == DEVELOPER_ACCOUNT else ORPHAN


def situation_of(refusals: Iterable[Refusal]) -> Situation:
    """How an object stands that 3scale has refused something, in an order that does not depend on theirs."""
    listed = sorted(refusals, key=lambda each: each.message)
    invalid = any(each.type is ErrorType.INVALID for each in listed)
    message = "; ".join(dict.fromkeys(each.message for each in listed))
    return Situation(standing=Standing.INVALID if invalid else Standing.FAILED, message=message)


def held(refusals: Mapping[str, Refusal], now: datetime) -> tuple[str, ...]:
    """The slots that are not tried yet."""
    return tuple(slot for slot, refusal in refusals.items() if refusal.retry_at > now)


def blocking(sync: Sync, refusals: Mapping[str, Refusal]) -> dict[str, Refusal]:
    """Those refusals that stand in the way of what is still wanted."""
    slots = {each.slot for each in (*sync.writes, *sync.reads)}
    return {slot: refusal for slot, refusal in refusals.items() if slot in slots}


def calls(sync: Sync, slots: Iterable[str], *before: Action, phase: Phase = Phase.SYNCING) -> Decision | None:
    """The calls that are to be made now, after what comes before writes; None if there are none."""
    refused = set(slots)
    reads = tuple(each for each in sync.reads if each.slot not in refused)
    if reads:
        return acts(phase, "; ".join(each.summary for each in reads), *reads)
    if not sync.writes:
        return None
    return acts(phase, "; ".join(each.summary for each in sync.writes), *before, *sync.writes)


def lets_go(
    leaving: Leaving, found: One[T], known_id: int, look: Read | None, deletion: Callable[[int], Write]
) -> Leaving:
    """How an object without parts leaves 3scale: by its id, and by what a creation may have made that it has begun.

    Args:
        leaving: the rest of it.
        found: what is known of 3scale.
        known_id: the id that it remembers, 0 if none.
        look: where that is found; None where it has begun none, or what is found may be another's.
        deletion: the call, by the id.
    """
    if look is not None and holder_of(known_id, leaving.holders):
        known_id = 0  # another's: what it has begun is to be its own
    if known_id and (found.untouched or (look is None and not found.lost)):
        return leaving.model_copy(update={"write": deletion(known_id)})
    if look is None:
        return leaving
    if not found.looked:
        return leaving.model_copy(update={"look": look})
    return leaving.model_copy(update={"write": deletion(found.item.id)}) if found.item else leaving


def is_true(conditions_: Conditions, type_: str) -> bool:
    """Whether the condition of that type is True."""
    return any(each.type == type_ and each.status == "True" for each in conditions_)
