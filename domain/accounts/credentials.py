"""The credentials of an AWS account: its support role, its admin user with a key, and failures when IAM refuses."""

from __future__ import annotations

from datetime import datetime

from domain.accounts.account_access import access_to
from domain.accounts.actions.account_access import Access
from domain.accounts.actions.iam_identities import EnsureAdminUser, EnsureSupportRole
from domain.accounts.naming import secret_of
from domain.accounts.observed import AccountWorld
from domain.accounts.region_initialization import list_regions
from domain.decision import Action, Decision
from domain.refusal import ErrorType
from domain.writes import Patch

# Codes of temporary conflicts over the key's Secret.
_PASSING_CONFLICTS = frozenset({"ForeignSecret", "Conflict", "AlreadyExists"})


def support_role(world: AccountWorld, access: Access | None = None) -> EnsureSupportRole:
    return EnsureSupportRole(
        **world.member,
        access=access,
        iam_user_id=world.account.iam_user_id,
        jump_role=world.config.support_jump_role,
        tags=world.ownership_tags,
    )


def admin_user(world: AccountWorld) -> EnsureAdminUser:
    account = world.account
    return EnsureAdminUser(
        **world.member,
        access=access_to(world),
        owner=account.key,
        iam_user_id=account.iam_user_id,
        secret=secret_of(account.metadata.name),
        tags=world.ownership_tags,
    )


def key_and_regions(world: AccountWorld) -> list[Action]:
    """The actions that create the account's key and list its regions, as far as that is still needed."""
    actions: list[Action] = []
    if not world.account.spec.manual_sts_mode and not world.known.admin_secret:
        actions.append(admin_user(world))
    if world.known.regions is None and not world.config.fedramp:
        actions.append(list_regions(world))
    return actions


def secret_recorded(world: AccountWorld) -> Patch:
    spec = world.account.spec.model_copy(update={"iam_user_secret": world.known.admin_secret})
    return world.write_spec(spec, note="record iamUserSecret")


def refused_by_iam(world: AccountWorld, now: datetime) -> Decision | None:
    """The failure that IAM's refusal causes, with the replaced operator's conditions. None if IAM has not refused, or
    if the cause is temporary: a bug of ours, or a conflict over the key's Secret, for example because an earlier
    Account of this name still owns it.
    """
    refusal = world.refused(EnsureAdminUser.activity)
    if refusal is None or refusal.type is ErrorType.BUG:
        return None
    if refusal.type is ErrorType.CONFLICT and refusal.code in _PASSING_CONFLICTS:
        return None
    if refusal.code == "InvalidClientTokenId":
        type_, reason = "AuthenticationError", refusal.code
    elif refusal.type is ErrorType.DENIED:
        type_, reason = "AuthorizationError", "AccessDenied"
    elif refusal.code:
        type_, reason = "AccountClientError", refusal.code
    else:
        type_, reason = "UnhandledError", refusal.type.value
    return world.failing(type_, reason, refusal.message, now, why=f"IAM refused: {refusal.message}")
