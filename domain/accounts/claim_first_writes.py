from __future__ import annotations

from domain.accounts.actions.handover import PatchAccount
from domain.accounts.constants import CLAIM_UID_ANNOTATION, FINALIZER
from domain.accounts.observed import ClaimWorld
from domain.accounts.resources import Account
from domain.control_annotations import paused, retry_wanted
from domain.decision import Decision
from domain.writes import JsonPatch


def taken_in_hand(world: ClaimWorld) -> Decision | None:
    """The first of three writes that is missing: the finalizer (with the fields that the replaced operator always
    writes), the claim's uid on its Account, the confirmation of a person's retry.
    """
    claim = world.claim
    if FINALIZER not in claim.metadata.finalizers:
        held_by_us: JsonPatch = {
            "metadata": {"finalizers": [*claim.metadata.finalizers, FINALIZER]},
            "spec": claim.always_written,
        }
        return world.working("set the finalizer", world.write(held_by_us, note="finalizer"))
    if (account := world.held) and (recording := uid_recorded(world, account)):
        return recording
    if token := retry_wanted(claim.metadata):
        return world.retried(token)
    return None


def uid_recorded(world: ClaimWorld, account: Account) -> Decision | None:
    """Record the claim's uid on the Account; None if it is recorded, or the Account is paused."""
    if CLAIM_UID_ANNOTATION in account.metadata.annotations or paused(account.metadata):
        return None
    uid = {CLAIM_UID_ANNOTATION: world.claim.metadata.uid}
    record = PatchAccount.annotating(account, uid, "record the claim's uid")
    return world.working(f"record the claim's uid on {account.metadata.name}", record)
