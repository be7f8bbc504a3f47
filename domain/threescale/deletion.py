"""The deletion of an object, and of its counterpart in 3scale.

The counterpart stays if the object is retained, if the tenant's Secret is gone, or if another object has the same
counterpart. If the Secret lacks a key, it is probably being edited, so the deletion of a known counterpart waits.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TypeVar

from domain.decision import Decision
from domain.model import Model
from domain.resource import ObjectMeta
from domain.threescale.calls import Read, Sync, Write, deletion
from domain.threescale.duplicate_owners import Holder, holder_of
from domain.threescale.idempotent_creations import created
from domain.threescale.managed_by import is_marked
from domain.threescale.observed import Blocker, Observed, ObservedOwner, Phase, acts, blocking, waiting
from domain.threescale.provider_account import NoAccount
from domain.threescale.refused_calls import held
from domain.threescale.remote_object import One
from domain.threescale.remote_state import Identified

# "true": keep the counterpart in 3scale when the object is deleted.
RETAIN = "perdure.dev/retain"

W = TypeVar("W", bound=Observed)
T = TypeVar("T", bound=Identified)


class Leaving(Model):
    look: Read | None = None  # the search for the counterpart; None if no search is needed
    write: Write | None = None  # the deletion call; None if nothing is left in 3scale
    holders: tuple[Holder, ...] = ()  # other objects that may have the same counterpart
    blocker: Blocker | None = None  # why the deletion must wait, such as Products that use the counterpart


def retained(meta: ObjectMeta) -> bool:
    return meta.annotations.get(RETAIN) == "true"


def deprovision(observed: W, leaving_of: Callable[[W], Leaving], now: datetime) -> Decision | None:
    """The decision if the object is being deleted; otherwise None."""
    resource, provider = observed.resource, observed.provider
    meta, outside = resource.metadata, resource.outside
    if not meta.deleting:
        return None
    if resource.kind_of.finalizer not in meta.finalizers:
        return acts(Phase.GONE, "its finalizer is removed")
    if retained(meta):
        return observed.released("it stays in 3scale because of its annotation perdure.dev/retain", outside)
    if isinstance(provider, NoAccount):
        if provider.incomplete and (outside or created(meta)):
            waits = waiting(provider.why, provider.waits_for)
            return observed.blocked(waits, now, phase=Phase.DELETING)
        return observed.released(f"disconnected from 3scale: {provider.why}", outside)
    leaving = leaving_of(observed)
    other = holder_of(leaving.write.id, leaving.holders) if leaving.write else None
    if other is not None:
        why = f"{resource.kind_of.name} {other.namespace}/{other.name} manages the same object in 3scale"
        return observed.released(why, outside)
    if leaving.blocker is not None:
        return observed.blocked(leaving.blocker, now, phase=Phase.DELETING)
    if leaving.look is not None:
        sync = Sync(reads=(leaving.look,))
    else:
        sync = Sync(writes=(leaving.write,) if leaving.write else ())
    if sync.done:
        return observed.released("nothing of it is left in 3scale", ())
    refused = blocking(sync, observed.refusals)
    if held(refused, now):
        return observed.as_refused(refused, now, phase=Phase.DELETING)
    return acts(Phase.DELETING, "delete it from 3scale", *sync.reads, *sync.writes)


def leaving_of_owner(observed: ObservedOwner, blocker: Blocker | None) -> Leaving:
    """An entry without a known id is deleted only if it has our mark and no other object has its name."""
    leaving = Leaving(holders=observed.holders, blocker=blocker)
    name, known_id, found = observed.resource.spec.system_name, observed.known_id, observed.found
    deletes = partial(deletion, observed.listed, observed.path)
    if known_id and not found.looked:
        return leaving.model_copy(update={"write": deletes(known_id, name)})
    if any(not each.deleting for each in observed.siblings) or not name:
        return leaving
    if not found.looked:
        return leaving.model_copy(update={"look": Read(resource=observed.listed, path=observed.path, paged=True)})
    there = found.entry
    ours = there is not None and (there.id == known_id or is_marked(there.annotations))
    return leaving.model_copy(update={"write": deletes(there.id, there.system_name)}) if ours else leaving


def leaving_of_one(
    leaving: Leaving, found: One[T], known_id: int, look: Read | None, deletes: Callable[[int], Write]
) -> Leaving:
    """The next step to delete an account, user, application, document or policy from 3scale.

    The entry with the id `known_id` (unless 0) is deleted before the entry that `look` finds, the result of a recorded
    creation. `look` is None if no creation is recorded, or if the result may belong to another object.
    """
    if look is not None and holder_of(known_id, leaving.holders):
        known_id = 0  # that entry is another object's; search for the result of this object's creation
    if known_id and (found.untouched or (look is None and not found.lost)):
        return leaving.model_copy(update={"write": deletes(known_id)})
    if look is None:
        return leaving
    if not found.looked:
        return leaving.model_copy(update={"look": look})
    return leaving.model_copy(update={"write": deletes(found.item.id)}) if found.item else leaving
