"""Opting in to regions that AWS enables only on request, for pool accounts, behind `feature.opt_in_regions`.

    Creating --the organization's permit--> OptingInRegions --every region ENABLED--> OptInRegionsEnabled --> ...
                                             TODO --> ENABLING --> ENABLED
                                              +------------------> MANUAL_ACTION (AWS denies it)

Enabling a region takes minutes to hours; at most six regions per account are enabled at once. `opt_in_permits.py`
limits the number of accounts. The deadline of Creating does not run meanwhile. If the ConfigMap has a
`shard-name` and its list of regions grows, a Ready account opts in to the new regions, stays Ready, and expands its
quotas again.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from domain.accounts.actions.opt_in_regions import AskToOptIn, EnableRegions
from domain.accounts.config import OperatorConfig
from domain.accounts.observed import AccountWorld
from domain.accounts.resources import Account, AccountState, AccountStatus, OptInRegion
from domain.accounts.state_conditions import with_trouble
from domain.accounts.unrecorded_regions_and_quotas import with_news
from domain.decision import Decision
from domain.refusal import ErrorType

TODO = "TODO"
ENABLING = "ENABLING"
ENABLED = "ENABLED"
MANUAL_ACTION = "MANUAL_ACTION"
UNKNOWN = ""  # AWS does not know the region
OPEN = frozenset({TODO, ENABLING})
# A region's status by its state in AWS; TODO in all other states.
BY_STATE = {"ENABLED": ENABLED, "ENABLED_BY_DEFAULT": ENABLED, "ENABLING": ENABLING, UNKNOWN: UNKNOWN}
# A region's status after AWS has refused to enable it.
BY_REFUSAL = {
    ErrorType.CONFLICT: TODO,  # the region is being disabled
    ErrorType.THROTTLED: TODO,  # too many regions are in progress, because another client has requested some
    ErrorType.INVALID: UNKNOWN,
    ErrorType.DENIED: MANUAL_ACTION,
}

OPTING_IN_MESSAGE = "Opting-In Regions"
ENABLED_MESSAGE = "Opt-In Regions Enabled"
MANUAL_CONDITION = "OptInRegionsManualAction"
DECIDED = "AWS has decided on every opt-in region"


def regions_of(config: OperatorConfig) -> tuple[str, ...]:
    if not config.features.opt_in_regions or config.fedramp:
        return ()
    return tuple(sorted({*config.opt_in_regions} - {*config.disabled_regions}))


def free_places(states: Iterable[str], at_once: int) -> int:
    """How many more regions may be enabled, given the states of all the account's regions."""
    return at_once - sum(state in {"ENABLING", "DISABLING"} for state in states)


def is_opting_in(account: Account) -> bool:
    if account.status.state == AccountState.OPTING_IN_REGIONS:
        return True
    return account.status.state == AccountState.READY and _open(account.status)


def wants_to_opt_in(account: Account, config: OperatorConfig) -> bool:
    spec, meta, status = account.spec, account.metadata, account.status
    if account.customers or not spec.aws_account_id or meta.deleting:
        return False
    if account.on_hold or is_opting_in(account):
        return False
    if status.state == AccountState.CREATING:
        return not status.claimed and bool(regions_of(config))
    grown = not {*regions_of(config)} <= {*status.opt_in_regions}
    return status.state == AccountState.READY and config.shard_name is not None and grown


def _open(status: AccountStatus) -> bool:
    return any(region.status in OPEN for region in status.opt_in_regions.values())


def wanted_regions(world: AccountWorld) -> tuple[str, ...]:
    """The regions to enable, except those that AWS does not know."""
    news = world.known.opt_in_news
    return tuple(region for region in regions_of(world.config) if news.get(region) != UNKNOWN)


def before_credentials(world: AccountWorld, now: datetime) -> Decision | None:
    account, regions = world.account, wanted_regions(world)
    if not regions or account.status.claimed or not account.spec.aws_account_id:
        return None
    if world.dev_mode:
        return _enabled(world, account.status, now)
    if decision := _without_permit(world, now):
        return decision
    why, status = f"opt in to {len(regions)} regions", _todo(account.status, regions)
    return world.entering(AccountState.OPTING_IN_REGIONS, OPTING_IN_MESSAGE, now, why=why, status=status)


def opting_in(world: AccountWorld, now: datetime) -> Decision:
    account, regions = world.account, wanted_regions(world)
    if world.dev_mode or not regions:
        return _enabled(world, _current(world), now)
    if not account.status.opt_in_regions:  # a person or tool has set the state
        status = _todo(account.status, regions)
        return world.working(f"opt in to {len(regions)} regions", world.write_status(status, note="optInRegions"))
    status = _current(world)
    return _looking(world, status) if _open(status) else _enabled(world, status, now)


def _enabled(world: AccountWorld, status: AccountStatus, now: datetime) -> Decision:
    status = _with_manual_actions(status, now)
    return world.entering(AccountState.OPT_IN_REGIONS_ENABLED, ENABLED_MESSAGE, now, why=DECIDED, status=status)


def of_ready_account(world: AccountWorld, now: datetime) -> Decision | None:
    account, regions = world.account, wanted_regions(world)
    if world.dev_mode or account.customers or not account.spec.aws_account_id:
        return None
    if _open(account.status):
        status = _current(world)
        if _open(status):
            return _looking(world, status)
        status = _with_manual_actions(status, now)
        return world.working(DECIDED, world.write_status(status, note="optInRegions"))
    grown = tuple(region for region in regions if region not in account.status.opt_in_regions)
    if not grown or world.config.shard_name is None:  # without a shard-name, Ready accounts are left as they are
        return None
    if decision := _without_permit(world, now):
        return decision
    # An empty quota status makes the quotas expand again, so that they include the new regions.
    status = _todo(account.status, grown).model_copy(update={"regional_service_quotas": {}})
    status = status.model_copy(update={"opt_in_regions": {**account.status.opt_in_regions, **status.opt_in_regions}})
    return world.working(f"opt in to {len(grown)} more regions", world.write_status(status, note="optInRegions"))


def _without_permit(world: AccountWorld, now: datetime) -> Decision | None:
    until = world.known.opt_in_until
    if until is not None and now < until:
        return None
    if until is not None or not world.known.opt_in_asked:
        return world.working("request a turn to opt in to regions", AskToOptIn(account=world.key))
    why = "waits for its turn to opt in to regions: at most nine accounts do so at once"
    return world.waiting(why, "Organization")


def _todo(status: AccountStatus, regions: tuple[str, ...]) -> AccountStatus:
    return status.model_copy(update={"opt_in_regions": {region: OptInRegion(status=TODO) for region in regions}})


def _current(world: AccountWorld) -> AccountStatus:
    status = with_news(world.account.status, world.known.opt_in_news, {})
    wanted, disabled = {*wanted_regions(world)}, {*world.config.disabled_regions}
    remaining = {
        name: region
        for name, region in status.opt_in_regions.items()
        if name not in disabled and (name in wanted or region.status not in OPEN)
    }
    return status.model_copy(update={"opt_in_regions": remaining})


def _looking(world: AccountWorld, status: AccountStatus) -> Decision:
    seen = {name: region.status for name, region in sorted(status.opt_in_regions.items()) if region.status in OPEN}
    written = world.status_change(status, note="optInRegions")
    enabling = [name for name, state in seen.items() if state == ENABLING]
    why = f"{len(seen)} opt-in regions are pending; AWS is enabling {', '.join(enabling) or 'none yet'}"
    waits_for = tuple(f"Region/{name}" for name in enabling)
    return world.working(why, *written, EnableRegions(**world.member, seen=seen), waits_for=waits_for)


def _with_manual_actions(status: AccountStatus, now: datetime) -> AccountStatus:
    named = [name for name, region in sorted(status.opt_in_regions.items()) if region.status == MANUAL_ACTION]
    listed = ", ".join(named)
    message = f"AWS refuses to enable {listed}: allow account:EnableRegion, or enable them by hand" if named else ""
    conditions = with_trouble(status.conditions, MANUAL_CONDITION, MANUAL_ACTION, message, now)
    return status.model_copy(update={"conditions": conditions})
