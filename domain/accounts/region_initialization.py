"""Region initialization: one instance is launched and terminated in each region before an Account is Ready.

A pool's account is initialised in all its enabled regions, a customer's account in the regions that its claim names.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from domain.accounts.account_access import access_to
from domain.accounts.actions.region_initialization import InitializeRegion, ListRegions
from domain.accounts.constants import REGION_INITIALIZATION_TIMEOUT
from domain.accounts.iam_and_instance_tags import ownership_tags
from domain.accounts.observed import AccountWorld
from domain.accounts.resources import Account, AccountState
from domain.decision import Decision
from domain.resource import condition_of, reckonable_timestamp

# Makes the decision after every region has an outcome, unless AWS has refused all regions.
Done = Callable[[AccountWorld, datetime], Decision]


def list_regions(world: AccountWorld) -> ListRegions:
    return ListRegions(**world.member, access=access_to(world))


def wanted_regions(world: AccountWorld) -> tuple[str, ...]:
    if world.account.customers:
        named = world.claim.spec.aws.regions if world.claim else ()
        return () if world.config.fedramp else tuple(dict.fromkeys(each.name for each in named if each.name))
    return world.known.regions or ()


def initializing(world: AccountWorld, now: datetime, done: Done) -> Decision:
    known = world.known
    entered = entered_at(world.account, AccountState.INITIALIZING_REGIONS)
    if entered is None:
        message, why = "Condition InitializingRegions is missing", "condition InitializingRegions is missing"
        return world.failing("InternalError", "MissingCondition", message, now, why=why)
    deadline = entered + REGION_INITIALIZATION_TIMEOUT
    at = "the account fails with RegionInitializationTimeout"
    wanted = wanted_regions(world)
    all_known = known.regions is not None and set(wanted) <= set(known.outcomes)
    if now >= deadline and not all_known:
        seconds = int(REGION_INITIALIZATION_TIMEOUT.total_seconds())
        open_ones = ", ".join(region for region in wanted or ("all",) if region not in known.outcomes)
        message = f"Initializing regions for longer than {seconds} seconds"
        why = f"regions not initialised: {open_ones}"
        return world.failing("AccountCreationFailed", "RegionInitializationTimeout", message, now, why=why)
    if lacking := world.lacking("ami-owner", deadline=deadline, at=at):
        return lacking
    if known.regions is None and not world.config.fedramp:
        return world.working("list the regions", list_regions(world), deadline=deadline, at=at)
    open_regions = [region for region in wanted if region not in known.outcomes]
    if open_regions:
        actions = tuple(_region(world, region, entered) for region in open_regions)
        why = f"initialise regions: {len(wanted) - len(open_regions)} of {len(wanted)} done"
        return world.working(why, *actions, deadline=deadline, at=at)
    return _none_initialized(world, now) or _ready_again(world, now) or done(world, now)


def _region(world: AccountWorld, region: str, entered: datetime) -> InitializeRegion:
    account = world.account
    return InitializeRegion(
        **world.member,
        access=access_to(world),
        owner=account.key,
        region=region,
        round=str(int(entered.timestamp())),
        ami_owner=world.config.ami_owner,
        kms_key_id=world.claim.spec.kms_key_id if world.claim else "",
        vcpu_quota=world.config.vcpu_quota,
        tags=ownership_tags(world, account),
        search=bool(world.known.inherited),
    )


def entered_at(account: Account, state: str) -> datetime | None:
    condition = condition_of(account.status.conditions, state)
    if condition is None:
        return None
    moments = (condition.last_probe_time, condition.last_transition_time)  # people edit statuses by hand
    return next(filter(None, map(reckonable_timestamp, moments)), None)


def _refused_regions(world: AccountWorld) -> dict[str, str]:
    return {region: outcome.message for region, outcome in sorted(world.known.outcomes.items()) if not outcome.ok}


def regions_done(world: AccountWorld) -> str:
    refused = _refused_regions(world)
    return "regions are initialised" + (f" ({len(refused)} regions refused: {', '.join(refused)})" if refused else "")


def _ready_again(world: AccountWorld, now: datetime) -> Decision | None:
    """A pool's account that was Ready before needs no second support case."""
    account = world.account
    if account.customers or condition_of(account.status.conditions, AccountState.READY) is None:
        return None
    return world.entering(AccountState.READY, "Account support case already resolved; Account Ready", now)


def _none_initialized(world: AccountWorld, now: datetime) -> Decision | None:
    """The failure if AWS definitely refused every region, else None.

    A region that was given up does not count: it may work once AWS Support has verified the account.
    """
    refused = _refused_regions(world)
    if not refused or any(outcome.ok or outcome.given_up for outcome in world.known.outcomes.values()):
        return None
    region, message = next(iter(refused.items()))
    refusal, why = f"No region could be initialized; {region}: {message}", "no region could be initialised"
    return world.failing("AccountCreationFailed", "RegionInitializationFailed", refusal, now, why=why)
