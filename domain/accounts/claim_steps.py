"""How the steps of an AccountClaim's lifecycle are told, of whatever sort it is: working, waiting, its writes.

And what all sorts ask of the Account they are linked to: that it names the claim as its holder. Its link is the truth,
the claim's own can be written by its tenant.
"""

from __future__ import annotations

from datetime import datetime

from domain.accounts.actions.handover import RecordHolder
from domain.accounts.constants import CLAIM_UID_ANNOTATION, FINALIZER
from domain.accounts.resources import Account, AccountClaim, AccountClaimStatus, ClaimState
from domain.accounts.status import with_claim_state
from domain.accounts.worlds import ClaimWorld
from domain.decision import Action, Decision, Outcome
from domain.identity import Key
from domain.levers import RETRIED, paused, retry_wanted
from domain.writes import JsonPatch, Patch

DELETING = "Deleting"


def holds(claim: AccountClaim, account: Account) -> bool:
    """True if the Account names the claim as its holder.

    Where no uid decides, another legal entity does: a claim made again under the name of one that is gone is not it.
    """
    entity = account.spec.legal_entity.id
    same = CLAIM_UID_ANNOTATION in account.metadata.annotations or entity in {"", claim.spec.legal_entity.id}
    return same and named_by(account, claim.key)


def named_by(account: Account, claim: Key) -> bool:
    """The same by the claim's key: its namespace and name, and its uid where the Account says it.

    Accounts that the replaced operator has bound do not say it until the claim's next pass.
    """
    named = account.spec.claim_link == claim.name and account.spec.claim_link_namespace == claim.namespace
    return named and account.metadata.annotations.get(CLAIM_UID_ANNOTATION, claim.uid) == claim.uid


def still_names(claim: AccountClaim, account: Account) -> bool:
    """True for a fulfilled claim whose Account names nobody any more: it has the key, and nothing was cleaned."""
    fulfilled = claim.status.state == ClaimState.READY and not claim.metadata.deleting
    return fulfilled and not account.spec.claim_link and claim.spec.account_link == account.metadata.name


def protected(world: ClaimWorld, account_id: str) -> bool:
    """True for a payer or another account of the blocklist: nothing is done in it."""
    return bool(account_id) and account_id in {*world.config.payer_account_ids, *world.protected}


def working(claim: AccountClaim, why: str, *actions: Action, phase: str = "") -> Decision:
    """Run these actions now, in this order."""
    return Decision(phase=phase or claim.status.state or "New", outcome=Outcome.WORKING, why=why, actions=actions)


def waiting(claim: AccountClaim, why: str, waits_for: str, phase: str = "", *actions: Action) -> Decision:
    """What is missing has to change; the actions only tell of it, or try again meanwhile."""
    return Decision(
        phase=phase or claim.status.state or "New",
        outcome=Outcome.WAITING,
        why=why,
        actions=actions,
        waits_for=(waits_for,),
    )


def held(claim: AccountClaim, account: Account, phase: str = "") -> Decision | None:
    """Wait while a person holds the Account: what its claim would do with it, or in it, is held as well."""
    if not paused(account.metadata):
        return None
    name = account.metadata.name
    return waiting(claim, f"Account {name} is paused", f"Account/{name}", phase)


def patched(world: ClaimWorld, patch: JsonPatch, *, subresource: str = "", note: str) -> Patch:
    """A write of the claim itself, void when somebody else has written meanwhile."""
    meta = world.claim.metadata
    return Patch(
        key=world.claim.key,
        patch=patch,
        subresource=subresource,
        resource_version=meta.resource_version,
        note=note,
    )


def taken_in_hand(world: ClaimWorld) -> Decision | None:
    """What comes before all else of a living claim; None once that is done.

    That is our finalizer, with the fields that clients find in whatever the replaced operator has written; the claim's
    uid on its Account; and a person's retry noted.
    """
    claim, account = world.claim, world.account
    if FINALIZER not in claim.metadata.finalizers:
        held_by_us: JsonPatch = {
            "metadata": {"finalizers": [*claim.metadata.finalizers, FINALIZER]},
            "spec": claim.always_written,
        }
        return working(claim, "set the finalizer", patched(world, held_by_us, note="finalizer"))
    if account is not None and holds(claim, account) and _lacks_uid(account):
        return working(claim, f"record its uid on {account.metadata.name}", _holder_recorded(claim, account))
    if token := retry_wanted(claim.metadata):
        noted: JsonPatch = {"metadata": {"annotations": {RETRIED: token}}}
        return working(claim, "record the retry", patched(world, noted, note="retry honoured"))
    return None


def _lacks_uid(account: Account) -> bool:
    return CLAIM_UID_ANNOTATION not in account.metadata.annotations and not paused(account.metadata)


def _holder_recorded(claim: AccountClaim, account: Account) -> RecordHolder:
    return RecordHolder(
        key=account.key,
        patch={"metadata": {"annotations": {CLAIM_UID_ANNOTATION: claim.metadata.uid}}},
        resource_version=account.metadata.resource_version,
        note="record the claim's uid",
    )


def status_written(world: ClaimWorld, status: AccountClaimStatus) -> Patch:
    """The write of the claim's status, whole: conditions and state are both required once it is present."""
    patch: JsonPatch = {"status": status.model_dump(mode="json", exclude_none=True)}
    note = entering(status.state) if status.state != world.claim.status.state else "conditions"
    return patched(world, patch, subresource="status", note=note)


def entering(state: str) -> str:
    """The note of the write by which a claim enters a state: later writes of its whole status name the state, too."""
    return f"status {state}"


def invalid(world: ClaimWorld, reason: str, explanation: str, now: datetime) -> Decision:
    """A spec at fault: shown as Error with its reason until it is mended."""
    claim = world.claim
    status = with_claim_state(
        claim.status, ClaimState.ERROR, "InvalidAccountClaim", reason, "Invalid AccountClaim", now
    )
    # The condition is replaced when another fault follows: it says what is wrong now.
    conditions = tuple(
        c.model_copy(update={"reason": reason}) if c.type == "InvalidAccountClaim" else c for c in status.conditions
    )
    status = status.model_copy(update={"conditions": conditions})
    actions = () if status == claim.status else (status_written(world, status),)
    return Decision(
        phase=ClaimState.ERROR,
        outcome=Outcome.WAITING,
        why=explanation,
        actions=actions,
        waits_for=("a corrected spec",),
    )
