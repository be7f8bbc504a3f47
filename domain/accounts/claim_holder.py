"""Which claim holds an Account. Tenants can write `spec.accountLink`, so a claim gets keys only from an Account that
links back to it.
"""

from __future__ import annotations

from domain.accounts.constants import CLAIM_UID_ANNOTATION, UNCLEANED
from domain.accounts.resources import Account, AccountClaim, ClaimState
from domain.identity import Key
from domain.resource import condition_of


def holds(claim: AccountClaim, account: Account) -> bool:
    """Whether the Account belongs to the claim. A claim's name alone proves nothing, because a new claim may have an
    earlier claim's name. So an Account without a recorded uid must have the claim's legal entity, or none.
    """
    entity, recorded = account.spec.legal_entity.id, CLAIM_UID_ANNOTATION in account.metadata.annotations
    if unclean(account) and not recorded:  # a release that the replaced operator has begun
        linked = claim.metadata.deleting and claim.spec.account_link == account.metadata.name
        return linked and bool(entity) and entity == claim.spec.legal_entity.id
    if unlinked(account):
        return claim.metadata.deleting and may_release(claim.key, account)
    return (recorded or entity in {"", claim.spec.legal_entity.id}) and links_back(account, claim.key)


def links_back(account: Account, claim: Key) -> bool:
    """Whether the Account names this claim: by namespace and name, and by the uid if that is recorded.

    An Account bound by the replaced operator gets the uid in the claim's next pass. If the Account is unclean, only the
    uid counts.
    """
    spec, annotations = account.spec, account.metadata.annotations
    if unclean(account):
        return annotations.get(CLAIM_UID_ANNOTATION) == claim.uid
    named = spec.claim_link == claim.name and spec.claim_link_namespace == claim.namespace
    return named and annotations.get(CLAIM_UID_ANNOTATION, claim.uid) == claim.uid


def may_release(claim: Key, account: Account) -> bool:
    recorded = account.metadata.annotations.get(CLAIM_UID_ANNOTATION) == claim.uid
    return recorded if unlinked(account) else links_back(account, claim)


def unclean(account: Account) -> bool:
    """Whether a release could not clean the AWS account. The claim's lifecycle repeats the clean-up.

    Meanwhile the Account is Failed and has no link: external tools look for such Accounts and clean them, too.
    """
    left = account.failed and account.status.reused and not (account.spec.claim_link or account.customers)
    return left and UNCLEANED not in account.metadata.annotations


def unlinked(account: Account) -> bool:
    return account.status.claimed and not account.spec.claim_link


def never_held(account: Account) -> bool:
    status, recorded = account.status, CLAIM_UID_ANNOTATION in account.metadata.annotations
    shown = status.reused or condition_of(status.conditions, "Claimed")
    return not (account.spec.legal_entity.id or shown or recorded)


def lost_link(claim: AccountClaim, account: Account) -> bool:
    """Whether the account is unlinked, and this claim's Secret may still have the account's key."""
    fulfilled = claim.status.state == ClaimState.READY and not claim.metadata.deleting
    named = fulfilled and claim.spec.account_link == account.metadata.name
    return unlinked(account) and (named or may_release(claim.key, account))
