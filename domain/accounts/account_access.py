"""How the AWS account of an Account is accessed.

| account | access |
|---|---|
| of a pool | `OrganizationAccountAccessRole`, assumed by the payer |
| of a customer (`byoc`) | the customer's key creates `ManagedOpenShift-Support-<id>`, which the payer assumes |
| of a customer in STS mode | the payer's jump role assumes the claim's role, with the claim's external id |
"""

from __future__ import annotations

from domain.accounts.actions.account_access import Access
from domain.accounts.constants import SUPPORT_ROLE_PREFIX
from domain.accounts.observed import AccountWorld
from domain.accounts.resources import Account


def access_to(world: AccountWorld) -> Access | None:
    """Access to a customer's account (BYOC: by the support role, which may be missing). None for a pool's account."""
    account, claim = world.account, world.claim
    if account.spec.manual_sts_mode:
        role = claim.spec.sts_role_arn if claim else ""
        external_id = claim.spec.sts_external_id if claim else ""
        return Access(jump_role=world.config.sts_jump_role, sts_role=role, external_id=external_id)
    return support_access(account)


def support_access(account: Account) -> Access | None:
    return Access(support_role=f"{SUPPORT_ROLE_PREFIX}{account.iam_user_id}") if account.spec.byoc else None


def customers_key(world: AccountWorld) -> Access:
    """Access with the customer's key from the claim's Secret. The support role need not exist."""
    claim = world.claim
    if claim is None:
        return Access()
    return Access(namespace=claim.metadata.namespace, secret=claim.spec.byoc_secret_ref.name)
