"""How the steps of an Account's lifecycle are told: working, waiting, and the writes of the Account itself.

`account.py` and `deletion.py` decide by these words, so that every step shows its phase alike and every write carries
the resource version that was observed.
"""

from __future__ import annotations

from datetime import datetime

from domain.accounts.config import parse_tags
from domain.accounts.constants import DEVELOPMENT_ACCOUNT, PROTECTED
from domain.accounts.resources import Account, AccountSpec, AccountStatus
from domain.accounts.worlds import AccountWorld
from domain.decision import Action, Decision, Outcome
from domain.writes import JsonPatch, Patch, difference


def ownership_tags(world: AccountWorld) -> dict[str, str]:
    """The tags of everything made inside the account: our four marks win over what tenants and configuration name."""
    custom = parse_tags(world.claim.spec.custom_tags) if world.claim else {}
    return {**world.config.managed_tags, **custom, **marks_of(world.account)}


def marks_of(account: Account) -> dict[str, str]:
    """The four marks of an Account."""
    return {
        "clusterAccountName": account.metadata.name,
        "clusterNamespace": account.metadata.namespace,
        "clusterClaimLink": account.spec.claim_link,
        "clusterClaimLinkNamespace": account.spec.claim_link_namespace,
    }


def protected(world: AccountWorld) -> bool:
    """True for a payer or another account of the blocklist: nothing is done in it."""
    account_id = world.account.spec.aws_account_id
    return bool(account_id) and account_id in {*world.config.payer_account_ids, *world.protected}


def stands_in(account: Account, *, dev_mode: bool) -> bool:
    """True for the id that development mode records where it asks AWS for no account: many Accounts may have it."""
    return dev_mode and account.spec.aws_account_id == DEVELOPMENT_ACCOUNT and not account.customers


def out_of_bounds(world: AccountWorld) -> bool:
    """True where that id is a payer's or protected: it is shown as an account, and nothing is done in it.

    Who the payer is, only AWS knows: its refusal tells.
    """
    refused = any(refusal.code == PROTECTED for refusal in world.refusals.values())
    return stands_in(world.account, dev_mode=world.dev_mode) and (protected(world) or refused)


def phase_of(account: Account) -> str:
    """What is shown as the phase of an Account: its state, or Pending while that is blank."""
    return account.status.state or "Pending"


def working(
    account: Account, why: str, *actions: Action, deadline: datetime | None = None, at: str = "", phase: str = ""
) -> Decision:
    """Run these actions now, in this order."""
    return Decision(
        phase=phase or phase_of(account),
        outcome=Outcome.WORKING,
        why=why,
        actions=actions,
        deadline=deadline,
        at_deadline=at,
    )


def waiting(
    account: Account, why: str, waits_for: str, deadline: datetime | None = None, at: str = "", phase: str = ""
) -> Decision:
    """Nothing can be done until what is waited for has changed, or the deadline has come."""
    return Decision(
        phase=phase or phase_of(account),
        outcome=Outcome.WAITING,
        why=why,
        waits_for=(waits_for,),
        deadline=deadline,
        at_deadline=at,
    )


def patched(world: AccountWorld, patch: JsonPatch, *, subresource: str = "", note: str) -> Patch:
    """A write of the Account itself, void when somebody else has written meanwhile."""
    return Patch(
        key=world.account.key,
        patch=patch,
        subresource=subresource,
        resource_version=world.account.metadata.resource_version,
        note=note,
    )


def status_written(world: AccountWorld, status: AccountStatus, note: str = "") -> Patch:
    """The write that turns the Account's status into this one."""
    patch: JsonPatch = {"status": difference(world.account.status, status)}
    return patched(world, patch, subresource="status", note=note or f"status {status.state}")


def spec_written(world: AccountWorld, spec: AccountSpec, note: str) -> Patch:
    """The write that turns the Account's spec into this one."""
    return patched(world, {"spec": difference(world.account.spec, spec)}, note=note)
