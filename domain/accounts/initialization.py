"""What an Account makes in its AWS account before it is Ready: the admin user, and one instance per region.

Of a pool's account all enabled regions are initialised, of a customer's those that its claim names. Each region is an
action of its own, whose outcome is known; the deadline of 51 minutes counts from the moment the state was entered last.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from domain.accounts.access import access_to
from domain.accounts.account_steps import ownership_tags, status_written, waiting, working
from domain.accounts.actions.identities import EnsureAdminUser
from domain.accounts.actions.regions import InitializeRegion, ListRegions
from domain.accounts.constants import REGION_INITIALIZATION_TIMEOUT
from domain.accounts.naming import secret_of
from domain.accounts.resources import Account, AccountState, AccountStatus
from domain.accounts.status import with_failure
from domain.accounts.worlds import AccountWorld
from domain.decision import Decision
from domain.refusal import ErrorType, Refusal
from domain.resource import condition_of, parse_timestamp

# Of the key's Secret, by the codes of its activity and of Kubernetes.
_PASSING_CONFLICTS = frozenset({"ForeignSecret", "Conflict", "AlreadyExists"})

# What follows when every region has its outcome.
Done = Callable[[AccountWorld, datetime], Decision]


def admin_user(world: AccountWorld) -> EnsureAdminUser:
    """The action for the admin user and its Secret."""
    account = world.account
    return EnsureAdminUser(
        account_id=account.spec.aws_account_id,
        partition=world.config.partition,
        owner=account.key,
        iam_user_id=account.iam_user_id,
        secret=secret_of(account.metadata.name),
        tags=ownership_tags(world),
        access=access_to(world),
    )


def list_regions(world: AccountWorld) -> ListRegions:
    """The action that finds out which regions are enabled."""
    account = world.account
    return ListRegions(
        account_id=account.spec.aws_account_id, partition=world.config.partition, access=access_to(world)
    )


def refused_for_good(world: AccountWorld) -> Refusal | None:
    """What the admin user was refused for, where that fails the Account.

    Not a bug of ours, nor a Secret that somebody else has written meanwhile, or that goes with an earlier Account of
    this name: these are tried again.
    """
    refusal = world.refused(EnsureAdminUser.activity)
    if refusal is None or refusal.type is ErrorType.BUG:
        return None
    return None if refusal.type is ErrorType.CONFLICT and refusal.code in _PASSING_CONFLICTS else refusal


def iam_failure(account: Account, refusal: Refusal, now: datetime) -> AccountStatus:
    """The status Failed, in the replaced operator's words for what IAM has refused."""
    if refusal.code == "InvalidClientTokenId":
        type_, reason = "AuthenticationError", refusal.code
    elif refusal.type is ErrorType.DENIED:
        type_, reason = "AuthorizationError", "AccessDenied"
    elif refusal.code:
        type_, reason = "AccountClientError", refusal.code
    else:
        type_, reason = "UnhandledError", refusal.type.value
    return with_failure(account.status, type_, reason, refusal.message, now)


def wanted_regions(world: AccountWorld) -> tuple[str, ...]:
    """The regions to initialise, as far as they are known."""
    if world.account.customers:
        named = world.claim.spec.aws.regions if world.claim else ()
        return () if world.config.fedramp else tuple(dict.fromkeys(each.name for each in named if each.name))
    return world.known.regions or ()


def initializing(world: AccountWorld, now: datetime, done: Done) -> Decision:
    """One instance in each region; `done` decides when all have their outcome."""
    account, known = world.account, world.known
    entered = entered_at(account, AccountState.INITIALIZING_REGIONS)
    if entered is None:
        failed = with_failure(
            account.status, "InternalError", "MissingCondition", "Condition InitializingRegions is missing", now
        )
        return working(account, "condition InitializingRegions is missing", status_written(world, failed))
    deadline = entered + REGION_INITIALIZATION_TIMEOUT
    at = "the account fails with RegionInitializationTimeout"
    wanted = wanted_regions(world)
    all_known = known.regions is not None and set(wanted) <= set(known.outcomes)
    if now >= deadline and not all_known:
        seconds = int(REGION_INITIALIZATION_TIMEOUT.total_seconds())
        failed = with_failure(
            account.status,
            "AccountCreationFailed",
            "RegionInitializationTimeout",
            f"Initializing regions for longer than {seconds} seconds",
            now,
        )
        return working(account, f"regions not initialised: {_open_regions(world)}", status_written(world, failed))
    if missing := world.config.missing("ami-owner"):
        return waiting(account, f"missing in the operator's ConfigMap: {', '.join(missing)}", "ConfigMap", deadline, at)
    if known.regions is None and not world.config.fedramp:
        return working(account, "list the regions", list_regions(world), deadline=deadline, at=at)
    open_regions = [region for region in wanted if region not in known.outcomes]
    if open_regions:
        actions = tuple(_region(world, region, entered) for region in open_regions)
        why = f"initialise regions: {len(wanted) - len(open_regions)} of {len(wanted)} done"
        return working(account, why, *actions, deadline=deadline, at=at)
    return done(world, now)


def _region(world: AccountWorld, region: str, entered: datetime) -> InitializeRegion:
    account = world.account
    return InitializeRegion(
        account_id=account.spec.aws_account_id,
        partition=world.config.partition,
        owner=account.key,
        region=region,
        round=str(int(entered.timestamp())),
        ami_owner=world.config.ami_owner,
        kms_key_id=world.claim.spec.kms_key_id if world.claim else "",
        vcpu_quota=world.config.vcpu_quota,
        tags=ownership_tags(world),
        search=bool(world.known.inherited),
        access=access_to(world),
    )


def entered_at(account: Account, state: str) -> datetime | None:
    """When the state was entered last."""
    condition = condition_of(account.status.conditions, state)
    if condition is None:
        return None
    return parse_timestamp(condition.last_probe_time) or parse_timestamp(condition.last_transition_time)


def refused_regions(world: AccountWorld) -> dict[str, str]:
    """The regions that could not be used, with the reason of each."""
    return {region: outcome.message for region, outcome in sorted(world.known.outcomes.items()) if not outcome.ok}


def none_initialized(world: AccountWorld, now: datetime) -> Decision | None:
    """The end of an Account of which every region has refused; None while one can be used.

    One that was given up may be used yet, once AWS has verified the account: support's word is waited for, as the
    replaced operator does.
    """
    account, refused = world.account, refused_regions(world)
    if not refused or any(outcome.ok or outcome.given_up for outcome in world.known.outcomes.values()):
        return None
    region, message = next(iter(refused.items()))
    failed = with_failure(
        account.status,
        "AccountCreationFailed",
        "RegionInitializationFailed",
        f"No region could be initialized; {region}: {message}",
        now,
    )
    return working(account, "no region could be initialised", status_written(world, failed))


def _open_regions(world: AccountWorld) -> str:
    return ", ".join(region for region in wanted_regions(world) or ("all",) if region not in world.known.outcomes)
