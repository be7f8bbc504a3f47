"""A claim is deleted with its handle, and binds to no other handle.

    its handle does not exist, and no other handle names the claim --> claim deleted
    its handle is being deleted --> claim, handle and resources deleted

Detached claims and claims that name another handle stay. A claim that names no handle stays if it was created after the
deletion of the handle that names it: it is a new claim with the old claim's name. If both happened in the same second,
their order is unknown, and the claim stays.
"""

from __future__ import annotations

from typing import ClassVar

from domain.claims import phases
from domain.claims.claim_preparation import Claim
from domain.claims.handle_lifecycle import RECONCILING, EndHandle, Finding
from domain.claims.handle_reconciliation import HandleEnded
from domain.claims.ignore_label import is_left_alone
from domain.claims.json_objects import GivenObject, JsonObject, is_deleting, name_of, text_at
from domain.claims.references import handle_name, holder_of, is_detached
from domain.claims.timestamps import born, moment_at
from domain.claims.writes import ClaimsAction, Stored
from domain.decision import Decision
from domain.identity import Key
from domain.model import Model


class FindAnother(Finding):
    activity: ClassVar[str] = "claims.find_another_handle"
    fact: ClassVar[str] = "has_another"


class DeleteClaim(ClaimsAction):
    activity: ClassVar[str] = "claims.delete_claim"
    result: ClassVar[type[Model] | None] = Stored

    claim: GivenObject
    why: str
    expired: bool = False

    @property
    def summary(self) -> str:
        return f"delete the claim: {self.why}"

    def fold(self, world: Claim, deleted: Stored) -> Claim:  # type: ignore[override]
        end = HandleEnded(why=self.why) if self.expired else world.end
        return world.asking(claim=deleted.obj).model_copy(update={"exists": is_deleting(deleted.obj), "end": end})


class ClaimEnded(HandleEnded):
    claim: GivenObject | None = None


class EndHandleAndClaim(EndHandle):
    activity: ClassVar[str] = "claims.end_handle_and_claim"
    result: ClassVar[type[Model] | None] = ClaimEnded

    key: Key

    @property
    def summary(self) -> str:
        return f"delete claim, handle and resources: {self.why}"

    def fold(self, world: Claim, ended: ClaimEnded) -> Claim:  # type: ignore[override]
        return world.asking(claim=ended.claim).model_copy(update={"end": ended, "exists": ended.claim is not None})


def ends_with_handle(world: Claim, claim: JsonObject) -> Decision | None:
    """The decision if the handle is missing or being deleted; None if the handle stays or is another claim's."""
    handle = world.handle
    if not handle and world.has_another is None:
        return RECONCILING.doing(FindAnother(claim=claim))
    if not handle and not world.has_another:
        return deleting(claim, "its handle does not exist any more")
    if holder_of(handle) != name_of(claim) or not is_deleting(handle):
        return None
    if is_left_alone(world.names, handle):
        return phases.HANDLE_LEFT_ALONE
    return ending(world, "its handle is being deleted")


def deleting(claim: JsonObject, why: str, *, expired: bool = False) -> Decision:
    return phases.ending(why).doing(DeleteClaim(claim=claim, why=why, expired=expired))


def ending(world: Claim, why: str, **seen: object) -> Decision:
    return phases.ending(why).doing(EndHandleAndClaim(key=world.key, handle=world.handle, why=why, **seen))


def deletes_claim(handle: JsonObject, claim: JsonObject) -> bool:
    if is_detached(claim):
        return False
    named = handle_name(claim)
    if named:
        return named == text_at(handle, "metadata", "name")
    deleted = moment_at(handle, "metadata", "deletionTimestamp")
    return deleted is None or born(claim) < deleted
