"""A fleet manager's claim: a pool account with a role for the manager's principal, and no key.

    bound --> OU, support role (as any claim) --> role managed-sts-role, our IAM user deleted --> Secret with role_arn
    released --> the role is deleted first --> cleaned as any account; user and key are recreated afterwards

While `feature.accountclaim_fleet_manager_trusted_arn` is off, the claim gets no Secret, as in the replaced operator.
"""

from __future__ import annotations

from domain.accounts.actions.claim_secrets import DeliverRole
from domain.accounts.actions.iam_identities import DeleteFleetRole, EnsureFleetRole
from domain.accounts.arns import role_arn
from domain.accounts.constants import FLEET_ROLE
from domain.accounts.iam_and_instance_tags import ownership_tags
from domain.accounts.observed import ClaimWorld
from domain.accounts.resources import Account
from domain.decision import Action, Decision


def equip(world: ClaimWorld, account: Account) -> Decision | None:
    """The next step for role and Secret; None if both exist or the feature is off."""
    claim, known = world.claim, world.known
    if known.fleet_principal and not claim.of_fleet_manager:
        why = f"{account.metadata.name} has the role {FLEET_ROLE} and no key: restore spec.fleetManagerConfig and "
        return world.waiting(f"{why}spec.accountPool, or delete the claim", "a corrected spec")
    if not claim.of_fleet_manager or not world.config.features.accountclaim_fleet_manager_trusted_arn:
        return None
    principal = claim.spec.fleet_manager_config.trusted_arn
    if known.fleet_principal != principal:
        ensure = EnsureFleetRole(
            **world.member_of(account),
            trusted_arn=principal,
            name=account.metadata.name,
            namespace=account.metadata.namespace,
            tags=ownership_tags(world, account),
        )
        return world.working("make the role for the fleet manager", ensure)
    if not known.role_delivered:
        arn = role_arn(world.config.partition, account.spec.aws_account_id, FLEET_ROLE)
        deliver = DeliverRole(claim=claim.key, account=account.metadata.name, secret=claim.secret_name, role_arn=arn)
        return world.working("put the role's ARN into the claim's Secret", deliver)
    return None


def strip(world: ClaimWorld, account: Account) -> tuple[Action, ...]:
    """The action that deletes the fleet role; empty if there is no such role. The creation of the role deletes the
    Account's access key, so an Account whose access key is missing counts as having the role.
    """
    had_role = world.claim.of_fleet_manager or world.known.fleet_principal or not account.spec.iam_user_secret
    if not had_role or world.known.fleet_role_deleted:
        return ()
    return (DeleteFleetRole(**world.member_of(account)),)
