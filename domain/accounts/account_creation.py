"""The creation of an AWS account for a pool's Account.

    ""  --permit from the Organization's workflow--> CreateAccount --> waits for AWS --> id recorded --> Creating

A pool replaces an Account that after 25 minutes has neither an AWS account nor a pending request.
"""

from __future__ import annotations

from datetime import datetime

from domain.accounts import ACCOUNT_POOL
from domain.accounts.actions.account_creation import LIMIT_CODES, TRANSIENT_REASONS, AwaitAccount, CreateAccount
from domain.accounts.constants import (
    AT_LIMIT_CONDITION,
    AT_LIMIT_REASON,
    CREATION_TIMEOUT,
    DEVELOPMENT_ACCOUNT,
    DEVELOPMENT_CASE,
)
from domain.accounts.naming import email_of, secret_of
from domain.accounts.observed import AccountWorld, Verdict
from domain.accounts.resources import AccountState
from domain.decision import Action, Decision
from domain.identity import Key
from domain.refusal import ErrorType
from domain.writes import Delete


def create_account(world: AccountWorld, now: datetime) -> Decision:
    """The next step for an Account with a blank state. An AWS account that it already has is used."""
    account, known = world.account, world.known
    if account.status.claimed:
        return world.waiting("status.claimed is true, but status.state is empty", "status.state or status.claimed")
    if account.spec.aws_account_id:
        case = {"support_case_id": DEVELOPMENT_CASE} if world.stands_in(account) else {}
        message = "Creating" if known.created_account_id else "AWS account already created"
        status = account.status.model_copy(update=case)
        return world.entering(AccountState.CREATING, message, now, why="the AWS account exists", status=status)
    if created := DEVELOPMENT_ACCOUNT if world.dev_mode else known.created_account_id:
        # The name of the future Secret is recorded in the same write. In development mode the Secret may never exist,
        # so its name is left out, and claims do not get the account until a Secret is recorded.
        secret = account.spec.iam_user_secret if world.dev_mode else secret_of(account.metadata.name)
        spec = account.spec.model_copy(update={"aws_account_id": created, "iam_user_secret": secret})
        return world.working(f"record AWS account {created}", world.write_spec(spec, note="record awsAccountID"))
    if known.request_id:
        return world.working(f"AWS is creating the account ({known.request_id})", await_account(world))
    if known.failure and known.failure not in LIMIT_CODES | TRANSIENT_REASONS:
        return _refused(world, known.failure, known.failure, now)
    if (refusal := world.refused(CreateAccount.activity, ErrorType.INVALID)) is not None:
        return _refused(world, refusal.code, refusal.message, now)
    return _wanting(world, now)


def await_account(world: AccountWorld) -> AwaitAccount:
    return AwaitAccount(**_names(world), request_id=world.known.request_id)


def _names(world: AccountWorld) -> dict[str, str]:
    name = world.account.metadata.name
    return {"name": name, "email": email_of(name, world.email_domain)}


def _refused(world: AccountWorld, code: str, message: str, now: datetime) -> Decision:
    why = f"AWS refused to create the account: {message}"
    return world.failing("AccountCreationFailed", code, "Failed to create AWS Account", now, why=why)


def _wanting(world: AccountWorld, now: datetime) -> Decision:
    account, permit = world.account, world.known.permit
    if permit and permit.verdict is Verdict.GRANTED and permit.until and now < permit.until:
        search = bool(world.known.inherited)
        create = CreateAccount(**_names(world), until=permit.until, search=search)
        at = "the permit to create it expires"
        return world.working("ask AWS for the account", create, deadline=permit.until, at=at)
    asks = "the organization's permit to create an account"
    born = account.metadata.creation_timestamp
    zombie_at = born + CREATION_TIMEOUT if born and account.pool_owned else None
    at = "if it still has no AWS account, it is deleted, and the pool creates another Account" if zombie_at else ""
    if permit is None or permit.verdict is Verdict.GRANTED:
        limit = world.known.failure  # AWS's own limit, which the permits do not consider
        if limit not in LIMIT_CODES:
            return world.waiting(f"waits for {asks}", "Organization")
        if zombie_at and now >= zombie_at:
            return discard(world, f"AWS created no account within 25 minutes: {limit}")
        why = f"AWS refused to create the account ({limit}). The Account waits for {asks}"
        return world.waiting(why, "Organization", deadline=zombie_at, at=at)
    if zombie_at and now >= zombie_at:
        return discard(world, "no AWS account within 25 minutes")
    noted: tuple[Action, ...] = ()
    if permit.verdict is Verdict.LIMIT_REACHED:
        message = "AWS account limit reached, waiting for capacity"
        noted = world.noted(AT_LIMIT_CONDITION, AT_LIMIT_REASON, message, now)
    why, waits_for = permit.message or f"waits for {asks}", ("Organization", permit.verdict.value)
    return world.waiting(why, waits_for, *noted, deadline=zombie_at, at=at)


def creation_timed_out(world: AccountWorld, entered: datetime, now: datetime) -> Decision | None:
    if now < entered + CREATION_TIMEOUT:
        return None
    message, why = "Creation pending for longer than 25 minutes", "creation took longer than 25 minutes"
    return world.failing("AccountCreationFailed", "CreationTimeout", message, now, why=why)


def discard(world: AccountWorld, why: str) -> Decision:
    return world.working(f"delete: {why}", Delete(key=world.key, dependent=_pool(world)))


def _pool(world: AccountWorld) -> Key | None:
    meta = world.account.metadata
    owner = next((o for o in meta.owner_references if o.controller and o.kind == ACCOUNT_POOL.name), None)
    if owner is None:
        return None
    cluster = world.key.cluster
    return Key(kind=owner.kind, namespace=meta.namespace, name=owner.name, uid=owner.uid, cluster=cluster)
