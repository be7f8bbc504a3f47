"""What to do for one object now, and how its status reports it; shared by the decisions of all kinds.

    patch ─► effects (other objects of the cluster) ─► status ─► reads, or writes

A decision asks for reads, or for writes, or says how the object stands. A refusal of 3scale is remembered by its slot:
until it may be tried again the rest continues without it, and the object stands as the refusal says. An object that its
spec or a missing referent blocks makes no call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from domain.decision import earliest
from domain.identity import Kind
from domain.model import Model
from domain.refusal import ErrorType, Refusal
from domain.resource import ObjectMeta
from domain.threescale import DEVELOPER_ACCOUNT
from domain.threescale.calls import Read, Write, unless_refused
from domain.threescale.conditions import ORPHAN, WAITING, Situation, Standing, conditions, in_sync
from domain.threescale.digests import begun_no_more, creating, remembering, retained
from domain.threescale.found import Identified
from domain.threescale.holders import Holder, holder_of
from domain.threescale.notes import ID_ANNOTATIONS, OWN_IDS, combined, identified
from domain.threescale.orphans import next_look, waiting_since
from domain.threescale.product_sync import Sync
from domain.threescale.providers import NoAccount, ProviderAccount, same_tenant
from domain.threescale.remote_object import One
from domain.threescale.resources import (
    ActiveDoc,
    Application,
    ApplicationAuth,
    Backend,
    CustomPolicyDefinition,
    DeveloperAccount,
    DeveloperUser,
    OpenApi,
    Product,
    ProxyConfigPromote,
    Tenant,
)
from domain.threescale.resources.shared import Conditions, Digests
from domain.writes import JsonPatch, difference

Told = (
    ActiveDoc
    | Application
    | ApplicationAuth
    | Backend
    | CustomPolicyDefinition
    | DeveloperAccount
    | DeveloperUser
    | OpenApi
    | Product
    | ProxyConfigPromote
    | Tenant
)


# The slot of what the object writes to a Secret of the cluster.
SECRET = "Secret"  # noqa: S105 - no secret itself

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


_PHASES = {
    Standing.FINE: Phase.SYNCED,
    Standing.WAITING: Phase.ORPHAN,
    Standing.INVALID: Phase.INVALID,
    Standing.FAILED: Phase.FAILED,
    Standing.SYNCING: Phase.SYNCING,
}


class Observed(Model):
    """What a decision sees besides the object, its referents and what is known of 3scale.

    Attributes:
        refusals: what was refused since the last wake, by slot.
        look: compare with 3scale although nothing new is wanted: the sweep found a difference, or a person asks.
    """

    refusals: dict[str, Refusal] = {}
    look: bool = False


class Effect(Model):
    """A write of the cluster besides the object itself."""

    @property
    def slot(self) -> str:
        """By which its refusals are remembered."""
        raise NotImplementedError

    @property
    def summary(self) -> str:
        """A line for `plan`."""
        raise NotImplementedError


class SecretWrite(Effect):
    """Keys of the object's Secret get random values (`generated`), or these (`values`)."""

    generated: tuple[str, ...] = ()
    values: dict[str, str] = {}

    @property
    def slot(self) -> str:
        """One for the whole Secret."""
        return SECRET

    @property
    def summary(self) -> str:
        """The keys; never what they get."""
        return f"write {', '.join((*self.generated, *self.values))} to its Secret"


class Work(Model):
    """What to do now.

    Attributes:
        phase: where the object stands.
        why: what is waited for or done, in words.
        patch: the merge patch of the object; made before anything else.
        effects: what else to write in the cluster, one after the other; then it is decided again.
        status: the merge patch of its status; made before any call of 3scale.
        reads: what to read of 3scale before deciding again.
        writes: what to write to 3scale, one after the other; at the first refusal it is decided again.
        delete: the object is to be deleted, because what it belongs to is gone.
        drop_finalizer: nothing is left, and the object may go.
        waits_for: what must happen next, as `Kind/namespace/name`.
        deadline: when another look can differ without anything happening.
        left: what stays in 3scale when the object goes, in words.
        warnings: what of the spec is left aside, for an Event each.
    """

    phase: Phase
    why: str = ""
    patch: JsonPatch = {}
    effects: tuple[Effect, ...] = ()
    reads: tuple[Read, ...] = ()
    writes: tuple[Write, ...] = ()
    status: JsonPatch = {}
    delete: bool = False
    drop_finalizer: bool = False
    waits_for: tuple[str, ...] = ()
    deadline: datetime | None = None
    left: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def idle(self) -> bool:
        """Whether nothing is to be done now."""
        done = (self.patch, self.effects, self.reads, self.writes, self.status)
        return not any(done) and not self.drop_finalizer and not self.delete


class Blocker(Model):
    """Why an object cannot be synced now, without asking 3scale."""

    standing: Standing
    message: str
    waits_for: tuple[str, ...] = ()


def adopted(meta: ObjectMeta, kind: Kind, defaults: JsonPatch) -> JsonPatch:
    """The first write: the finalizer, and what the spec leaves open; empty once that is done."""
    patch: JsonPatch = {"spec": defaults} if defaults else {}
    if kind.finalizer and kind.finalizer not in meta.finalizers:
        patch["metadata"] = {"finalizers": [*meta.finalizers, kind.finalizer]}
    return patch


def told(resource: Told, situation: Situation, now: datetime, fields: Mapping[str, object]) -> JsonPatch:
    """The patch of its status, by the names of the model's fields; empty if it says so already."""
    before = resource.status
    known = {} if _stays_behind(resource, fields) else fields
    changed = {**known, "conditions": conditions(resource.kind_of, situation, before.conditions, now)}
    if "observed_generation" in type(before).model_fields:
        changed["observed_generation"] = resource.metadata.generation
    return status_patch(resource, changed)


def status_patch(resource: Told, changed: Mapping[str, object]) -> JsonPatch:
    """The patch that sets these fields of its status; empty if they are so."""
    return difference(resource.status, resource.status.model_copy(update=changed))


def _stays_behind(resource: Told, fields: Mapping[str, object]) -> bool:
    """Whether its tenant is another one now, where it has no id yet: the address stays that of the id that it has."""
    own, host = OWN_IDS.get(resource.kind_of.name), fields.get("provider_account_host")
    before = getattr(resource.status, "provider_account_host", None)
    if own is None or not before or same_tenant(before, str(host or before)):
        return False
    has_id = (
        bool(getattr(resource.status, own))
        or ID_ANNOTATIONS.get(resource.kind_of.name, "") in resource.metadata.annotations
    )
    return has_id and not fields.get(own)


def told_in_sync(resource: Told, why: str, now: datetime) -> JsonPatch:
    """The patch of the status of an object whose sync lasts; what goes keeps its own."""
    if resource.metadata.deleting:
        return {}
    before = resource.status
    shown = in_sync(resource.kind_of, why, before.conditions, now)
    return status_patch(resource, {"conditions": shown})


def blocked(resource: Told, blocker: Blocker, now: datetime, fields: Mapping[str, object]) -> Work:
    """The object waits, with no call to 3scale; an orphan is observed again after growing pauses."""
    situation = Situation(standing=blocker.standing, message=blocker.message)
    deadline = None
    if blocker.standing is Standing.WAITING:
        since = waiting_since(resource.status.conditions, _waits(resource.kind_of), now)
        deadline = next_look(since, now, resource.metadata.uid)
    return Work(
        phase=_PHASES[blocker.standing],
        why=blocker.message,
        status=told(resource, situation, now, fields),
        waits_for=blocker.waits_for,
        deadline=deadline,
    )


def without_account(resource: Told, account: NoAccount, now: datetime) -> Work:
    """The tenant is not known: nothing can be called."""
    blocker = Blocker(standing=Standing.WAITING, message=account.why, waits_for=(account.waits_for,))
    return blocked(resource, blocker, now, {})


def standing_of(refusals: Iterable[Refusal]) -> Situation:
    """How an object stands that 3scale has refused something, in an order that does not depend on theirs."""
    listed = sorted(refusals, key=lambda each: each.message)
    invalid = any(each.type is ErrorType.INVALID for each in listed)
    message = "; ".join(dict.fromkeys(each.message for each in listed))
    return Situation(standing=Standing.INVALID if invalid else Standing.FAILED, message=message)


def held(refusals: Mapping[str, Refusal], now: datetime) -> tuple[str, ...]:
    """The slots that are not tried yet."""
    return tuple(slot for slot, refusal in refusals.items() if refusal.retry_at > now)


def refused(sync: Sync, refusals: Mapping[str, Refusal]) -> dict[str, Refusal]:
    """Those refusals that stand in the way of what is still wanted."""
    slots = {each.slot for each in sync.writes} | {each.path for each in sync.reads}
    return {slot: refusal for slot, refusal in refusals.items() if slot in slots}


def as_refused(resource: Told, blocking: Mapping[str, Refusal], now: datetime, fields: Mapping[str, object]) -> Work:
    """The object stands as the refusals say, until the first may be tried again."""
    situation = standing_of(blocking.values())
    return Work(
        phase=_PHASES[situation.standing],
        why=situation.message,
        status=told(resource, situation, now, fields),
        deadline=earliest([each.retry_at for each in blocking.values()]),
    )


def into_secret(
    resource: Told,
    write: SecretWrite,
    why: str,
    refusals: Mapping[str, Refusal],
    now: datetime,
    fields: Mapping[str, object] | None = None,
) -> Work:
    """The write of the object's Secret; as long as that was refused, how the object stands because of it."""
    blocking = {slot: refusals[slot] for slot in held(refusals, now) if slot == write.slot}
    if blocking:
        return as_refused(resource, blocking, now, fields or {})
    return Work(phase=Phase.SYNCING, why=why, effects=(write,))


def fine(
    resource: Told,
    now: datetime,
    fields: Mapping[str, object],
    *,
    digests: Digests | None = None,
    why: str = "in sync with 3scale",
) -> Work:
    """3scale has all that is wanted; `digests` is what the object remembers of that from now on."""
    patch: JsonPatch = {}
    if digests is not None:
        own_id = fields.get(OWN_IDS[resource.kind_of.name])
        patch = combined(begun_no_more(resource.metadata), identified(resource, own_id))
        fields = {**fields, **remembering(resource, digests)}
    status = told(resource, Situation(standing=Standing.FINE), now, fields)
    return Work(phase=Phase.SYNCED, why=why, patch=patch, status=status)


def syncing(sync: Sync, held_slots: Iterable[str], patch: JsonPatch | None = None) -> Work | None:
    """The calls that are to be made now, if any can."""
    slots = set(held_slots)
    reads = tuple(each for each in sync.reads if each.path not in slots)
    if reads:
        return Work(phase=Phase.SYNCING, why="; ".join(each.summary for each in reads), reads=reads)
    if not sync.writes:
        return None
    why = "; ".join(each.summary for each in sync.writes)
    return Work(phase=Phase.SYNCING, why=why, writes=sync.writes, patch=patch or {})


def attempted(
    sync: Sync, refusals: Mapping[str, Refusal], now: datetime, unmarked: ObjectMeta | None = None
) -> tuple[Work | None, dict[str, Refusal]]:
    """The calls of an object without parts that are to be made now, if any can; and the refusals in their way.

    `unmarked` is the object's metadata where its creation is to be noted (`digests.py`).
    """
    blocking = refused(sync, refusals)
    slots = held(blocking, now)
    writes = unless_refused(sync.writes, slots)
    creation = next((each for each in writes if each.key), None)
    patch = creating(unmarked, creation.key, creation.others) if unmarked is not None and creation else {}
    return syncing(sync.model_copy(update={"writes": writes}), slots, patch), blocking


def compared(
    resource: Told,
    sync: Sync,
    refusals: Mapping[str, Refusal],
    now: datetime,
    fields: Mapping[str, object],
    digests: Digests,
) -> Work:
    """What is left to do for an object without parts that carries no mark in 3scale, else how it stands."""
    work, blocking = attempted(sync, refusals, now, resource.metadata)
    if work is not None:
        return work
    if blocking:
        return as_refused(resource, blocking, now, fields)
    return fine(resource, now, fields, digests=digests)


class Leaving(Model):
    """An object that is being deleted: what it would take along.

    Attributes:
        account: the tenant, if it is known.
        outside: what it has in 3scale, in words.
        look: how it is found where its id is not known; None where it is known or not looked for.
        write: the deletion; None where nothing is left in 3scale.
        holders: others of its kind that have something in the tenant, which may be the same.
        blocker: what has to stop using it before; None if nothing.
    """

    account: ProviderAccount | NoAccount
    outside: tuple[str, ...] = ()
    look: Read | None = None
    write: Write | None = None
    holders: tuple[Holder, ...] = ()
    blocker: Blocker | None = None


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


def deprovision(resource: Told, leaving: Leaving, refusals: Mapping[str, Refusal], now: datetime) -> Work:
    """What to do for an object that is being deleted.

    One that shall stay in 3scale, one whose tenant's Secret is gone (it is disconnected), and one that has the same
    there as another that stays, go without a call. A Secret that is there and lacks something is in somebody's hands:
    what is known to be in 3scale waits for that.
    """
    meta, finalizer = resource.metadata, resource.kind_of.finalizer
    if finalizer not in meta.finalizers:
        return Work(phase=Phase.GONE, why="it has released everything")
    if retained(meta):
        return _released("it stays in 3scale, as its annotation says", leaving.outside)
    if isinstance(leaving.account, NoAccount) and leaving.account.incomplete and leaving.outside:
        return without_account(resource, leaving.account, now).model_copy(update={"phase": Phase.DELETING})
    if isinstance(leaving.account, NoAccount):
        return _released(f"disconnected from 3scale: {leaving.account.why}", leaving.outside)
    other = holder_of(leaving.write.id, leaving.holders) if leaving.write else None
    if other is not None:
        why = f"{resource.kind_of.name} {other.namespace}/{other.name} manages the same object in 3scale"
        return _released(why, leaving.outside)
    if leaving.blocker is not None:
        return blocked(resource, leaving.blocker, now, {}).model_copy(update={"phase": Phase.DELETING})
    if leaving.look is not None:
        look = Sync(reads=(leaving.look,))
    else:
        look = Sync(writes=(leaving.write,) if leaving.write else ())
    if look.done:
        return _released("nothing of it is left in 3scale", ())
    blocking = {slot: each for slot, each in refused(look, refusals).items() if each.retry_at > now}
    if blocking:
        return as_refused(resource, blocking, now, {}).model_copy(update={"phase": Phase.DELETING})
    return Work(phase=Phase.DELETING, why="delete it from 3scale", reads=look.reads, writes=look.writes)


def _released(why: str, left: tuple[str, ...]) -> Work:
    return Work(phase=Phase.DELETING, why=why, drop_finalizer=True, left=left)


def _waits(kind: Kind) -> str:
    return WAITING if kind == DEVELOPER_ACCOUNT else ORPHAN


def is_true(conditions_: Conditions, type_: str) -> bool:
    """Whether the condition of that type is True."""
    return any(each.type == type_ and each.status == "True" for each in conditions_)
