"""The last step of a pool's account before Ready: AWS Support's case and the quotas, in parallel.

    InitializingRegions --case opened, quotas listed--> PendingVerification --case resolved, quotas settled--> Ready
                                                                 +--a quota is denied--> Failed

AWS Support sends no notification: the organization's lifecycle polls all open cases and informs the Accounts.
In development mode there is no case, and no quota is requested.
"""

from __future__ import annotations

from datetime import datetime

from domain.accounts.actions.support_cases import OpenSupportCase, ResolveSupportCase
from domain.accounts.observed import AccountWorld
from domain.accounts.region_initialization import entered_at
from domain.accounts.resources import Account, AccountState, AccountStatus
from domain.accounts.service_quotas import (
    Raising,
    counted_and_named,
    denied_again,
    expanded,
    raising,
    wanted,
    with_manual_actions,
)
from domain.accounts.state_conditions import with_account_state
from domain.decision import Action, Decision
from domain.resource import condition_of
from domain.writes import Patch

DENIED_MESSAGE = "ServiceQuota increase got denied"
PENDING_MESSAGE = "Account pending AWS limits verification"
ASKED_MESSAGE = "Account pending verification in AWS"
READY_MESSAGE = "Account ready to be claimed"

_RESOLVING_TRIES = 3
_ON_THE_WAY = frozenset({AccountState.INITIALIZING_REGIONS, AccountState.PENDING_VERIFICATION})


def to_pending_verification(world: AccountWorld, now: datetime, why: str) -> Decision:
    """Try once to open the support case. After that, write state PendingVerification and the wanted quotas."""
    account = world.account
    if _case_first(world):
        return world.working(why, support_case(world, once=True))
    case_id = account.status.support_case_id or world.known.case_id
    status = account.status.model_copy(update={"support_case_id": case_id})
    if wanted(account.spec) and not world.dev_mode and world.known.regions is not None:
        status = expanded(account.spec, denied_again(status), world.known.regions, world.config)
    return world.entering(AccountState.PENDING_VERIFICATION, PENDING_MESSAGE, now, why=why, status=status)


def _case_first(world: AccountWorld) -> bool:
    """Whether to open the support case before `PendingVerification` is written; not if this has failed once."""
    has_case = world.account.status.support_case_id or world.known.case_id
    return not (has_case or world.dev_mode or world.refused(OpenSupportCase.activity))


def support_case(world: AccountWorld, *, once: bool = False) -> OpenSupportCase:
    account = world.account
    search = bool(world.known.inherited or world.refused(OpenSupportCase.activity))
    return OpenSupportCase(account_id=account.spec.aws_account_id, name=account.metadata.name, search=search, once=once)


def case_to_resolve(world: AccountWorld) -> ResolveSupportCase | None:
    """The action that resolves the support case of a deleted Account; None if AWS Support has already resolved it.

    Also None after three refusals: `perdure audit` then reports the case.
    """
    account, known = world.account, world.known
    case_id = account.status.support_case_id or known.case_id
    if not case_id or world.dev_mode or known.resolved_case == case_id or _verified(account):
        return None
    refusal = world.refused(ResolveSupportCase.activity)
    if refusal is not None and refusal.attempts >= _RESOLVING_TRIES:
        return None
    return ResolveSupportCase(account_id=account.spec.aws_account_id, case_id=case_id)


def _verified(account: Account) -> bool:
    requested_at = entered_at(account, AccountState.PENDING_VERIFICATION)
    ready = entered_at(account, AccountState.READY)
    return (
        ready is not None
        and (requested_at is None or ready >= requested_at)
        and account.status.state not in _ON_THE_WAY
    )


def pending_verification(world: AccountWorld, now: datetime) -> Decision:
    account = world.account
    if world.dev_mode:
        why = "development mode opens no support case"
        return world.entering(AccountState.READY, READY_MESSAGE, now, why=why)
    quotas = raising(world) if wanted(account.spec) else Raising(status=account.status)
    if quotas.denied:
        why = f"AWS denied {counted_and_named(quotas.denied)}"
        return world.entering(AccountState.FAILED, DENIED_MESSAGE, now, why=why, status=quotas.status)
    verified = _case(world, quotas.status, now)
    if not quotas.done:
        return _with_quotas(world, verified, quotas)
    return verified


def _case(world: AccountWorld, status: AccountStatus, now: datetime) -> Decision:
    account, known = world.account, world.known
    case_id = account.status.support_case_id
    if not case_id and known.case_id:
        if condition_of(status.conditions, AccountState.PENDING_VERIFICATION) is None:  # the state was set by hand
            status = with_account_state(status, AccountState.PENDING_VERIFICATION, ASKED_MESSAGE, now)
        recorded = status.model_copy(update={"support_case_id": known.case_id})
        return world.working("record the support case", world.write_status(recorded, note="record supportCaseID"))
    if not case_id:
        return world.working("ask AWS Support to verify the account", support_case(world))
    if known.resolved_case == case_id:
        why, status = f"support case {case_id} is resolved", with_manual_actions(status, now)
        return world.entering(AccountState.READY, READY_MESSAGE, now, why=why, status=status)
    changed = world.status_change(status, note="service quotas")
    return world.waiting(f"waits until AWS Support resolves case {case_id}", f"SupportCase/{case_id}", *changed)


def _with_quotas(world: AccountWorld, verified: Decision, quotas: Raising) -> Decision:
    account, known = world.account, world.known
    resolved = bool(known.resolved_case) and known.resolved_case == account.status.support_case_id
    why = f"waits for {quotas.awaited}"
    actions: tuple[Action, ...] = () if resolved else verified.actions
    if not any(isinstance(action, Patch) for action in actions):
        actions = (*world.status_change(quotas.status, note="service quotas"), *actions)
    waits_for = (*(() if resolved else verified.waits_for), "ServiceQuotas")
    why = why if resolved else f"{verified.why}; {why}"
    return world.working(why, *actions, *quotas.actions, waits_for=waits_for)


def quotas_of_ready_account(world: AccountWorld, now: datetime) -> Decision | None:
    """The decision to raise a Ready account's quotas; None if nothing is left to do, or the ConfigMap has no
    `shard-name`.
    """
    account = world.account
    if account.customers or world.dev_mode or not account.spec.aws_account_id:
        return None
    if world.config.shard_name is None or not wanted(account.spec):
        return None
    # A denied quota does not fail the account, because it may be in use.
    quotas = raising(world, through_denial=True)
    status = quotas.status if quotas.awaited else with_manual_actions(quotas.status, now)
    written = world.status_change(status, note="service quotas")
    if quotas.done and not written:
        return None
    if not quotas.awaited:
        return world.working("the quotas are settled", *written, *quotas.actions)
    waits_for = ("ServiceQuotas",)
    return world.working(f"waits for {quotas.awaited}", *written, *quotas.actions, waits_for=waits_for)
