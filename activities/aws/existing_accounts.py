"""Finds an existing account or creation request with a given name that Perdure may adopt."""

from __future__ import annotations

from collections.abc import Iterable

from activities.aws.organization import IN_PROGRESS, SUCCEEDED, list_accounts, list_attempts, tags_of
from activities.aws.session import Sessions
from domain.accounts import ACCOUNT
from domain.accounts.actions.account_creation import CreateRequest
from domain.accounts.constants import OWNER_TAG
from domain.accounts.organization import MemberAccount
from engine.kube.json import text


def existing(sessions: Sessions, name: str, email: str) -> CreateRequest | None:
    """The oldest pending or successful request with this name, else the account with this name and e-mail address;
    None if Perdure may adopt neither (`_may_be_ours`).
    """
    for known in list_attempts(sessions, IN_PROGRESS, SUCCEEDED):
        if known.name == name and (
            not known.account_id or _may_be_ours(sessions, known.account_id, list_accounts(sessions))
        ):
            return CreateRequest(request_id=known.request_id, created_account_id=known.account_id)
    account_id = account_of(sessions, name, email)
    return CreateRequest(created_account_id=account_id) if account_id else None


def account_of(sessions: Sessions, name: str, email: str) -> str:
    accounts = list_accounts(sessions)
    matches = (each.id for each in accounts if each.name == name and each.email.lower() == email.lower())
    return next((account_id for account_id in matches if _may_be_ours(sessions, account_id, accounts)), "")


def _may_be_ours(sessions: Sessions, account_id: str, accounts: Iterable[MemberAccount]) -> bool:
    if any(each.id == account_id and not each.active for each in accounts):
        return False
    recorded = (text(each, "spec", "awsAccountID") for each in sessions.kube.list(ACCOUNT).items)
    return account_id not in recorded and not foreign(sessions, [account_id])


def owner_of(sessions: Sessions, account_id: str) -> str | None:
    """The `shard-name` of the installation in the account's tags; None if no tag names one."""
    return tags_of(sessions, account_id).get(OWNER_TAG)


def foreign(sessions: Sessions, account_ids: Iterable[str]) -> set[str]:
    """The accounts whose tags name another installation; one call per account."""
    ours = sessions.config().shard_name or ""
    return {account_id for account_id in account_ids if owner_of(sessions, account_id) not in {None, ours}}
