"""The admin user of an AWS account, and its key: created, recreated, or refused by IAM."""

from __future__ import annotations

from datetime import datetime

from domain.accounts.account_access import access_to
from domain.accounts.actions.iam_identities import EnsureAdminUser
from domain.accounts.constants import NOT_ENTERED
from domain.accounts.iam_and_instance_tags import ownership_tags
from domain.accounts.naming import secret_of
from domain.accounts.observed import AccountWorld
from domain.accounts.protected_accounts import only_shown
from domain.accounts.region_initialization import list_regions
from domain.decision import Action, Decision
from domain.refusal import ErrorType
from domain.writes import Patch

# Codes of temporary conflicts over the key's Secret.
_PASSING_CONFLICTS = frozenset({"ForeignSecret", "Conflict", "AlreadyExists"})


def _admin_user(world: AccountWorld) -> EnsureAdminUser:
    account = world.account
    return EnsureAdminUser(
        **world.member,
        access=access_to(world),
        owner=account.key,
        iam_user_id=account.iam_user_id,
        secret=secret_of(account.metadata.name),
        tags=ownership_tags(world, account),
    )


def key_and_regions(world: AccountWorld) -> list[Action]:
    actions: list[Action] = []
    if not world.account.spec.manual_sts_mode and not world.known.admin_secret:
        actions.append(_admin_user(world))
    if world.known.regions is None and not world.config.fedramp:
        actions.append(list_regions(world))
    return actions


def secret_recorded(world: AccountWorld) -> Patch:
    spec = world.account.spec.model_copy(update={"iam_user_secret": world.known.admin_secret})
    return world.write_spec(spec, note="record iamUserSecret")


def recreated_user(world: AccountWorld) -> Decision | None:
    """The next step to recreate a free, reused Account's IAM user and Secret; None if not needed."""
    account = world.account
    if not account.status.reused or account.spec.iam_user_secret or account.spec.claim_link or only_shown(world):
        return None
    if not world.known.admin_secret:
        return world.working("recreate the IAM user", _admin_user(world))
    return world.working("record the Secret", secret_recorded(world))


def refused_by_iam(world: AccountWorld, now: datetime) -> Decision | None:
    """The Account's failure after a refusal by IAM, with the replaced operator's condition types and reasons.

    None if there is no refusal, or if IAM did not cause it: Perdure itself refused, a bug occurred, the account could
    not be entered, or the key's Secret was in conflict.
    """
    refusal = world.refused(EnsureAdminUser.activity)
    if refusal is None or refusal.type is ErrorType.BUG or refusal.ours or refusal.code == NOT_ENTERED:
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
