"""Row 8e of `perdure bench accounts`: taking over Accounts and claims as the aws-account-operator leaves them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum

import boto3

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
from domain.accounts.constants import DEFAULT_EMAIL_DOMAIN, FINALIZER, IAM_USER_ID_LABEL, OPERATOR_NAMESPACE
from domain.accounts.naming import account_name, email_of, suffix_of
from domain.accounts.resources import AccountState
from domain.accounts.support_role import support_role_arn
from domain.built_in_kinds import NAMESPACE
from domain.model import Model
from domain.resource import timestamp
from engine.kube.json import JsonObject, mapping, text
from localcloud.bench.figures import Figure, Found
from localcloud.bench.laboratory import PATIENCE_SECONDS, Laboratory, laboratory
from localcloud.state import Cloud

ROW = "8e"
LONG_AGO = "2024-03-01T10:00:00Z"
_AT_ONCE = 10


class Left(StrEnum):
    READY = "ready"
    CLAIMED = "claimed"
    UNRECORDED = "unrecorded"
    CREDENTIALS = "credentials"
    REGIONS = "regions"
    CASE = "case"


SETTLED = frozenset({Left.READY, Left.CLAIMED})
ROUND = (*[Left.READY] * 8, *[Left.CLAIMED] * 4, Left.UNRECORDED, Left.CREDENTIALS, Left.REGIONS, Left.CASE)
_STATES = {
    Left.UNRECORDED: AccountState.CREATING,
    Left.CREDENTIALS: AccountState.CREATING,
    Left.REGIONS: AccountState.INITIALIZING_REGIONS,
    Left.CASE: AccountState.PENDING_VERIFICATION,
}


class LeftAccount(Model):
    name: str
    account_id: str
    how: Left


async def taken_over(accounts: int) -> Found:
    async with laboratory((Cloud.AWS,), ACCOUNT, ACCOUNT_CLAIM) as lab:
        names = [account_name(suffix_of("left", str(number))) for number in range(accounts)]
        ids = await asyncio.to_thread(_create, lab, names)
        left = [
            LeftAccount(name=name, account_id=ids[name], how=ROUND[number % len(ROUND)])
            for number, name in enumerate(names)
        ]
        async with lab.nobody_at_work(ready_seconds=120):
            await _leave_all(lab, left)
            before = _statuses(lab)
            lab.emulator.reset_ledger()
        began = time.monotonic()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await lab.objects.until(lambda: _all_ready(lab, left))
        seconds = time.monotonic() - began
        await lab.quiet()
        return _row(lab, left, before, seconds)


def _row(lab: Laboratory, left: list[LeftAccount], before: dict[str, JsonObject], seconds: float) -> Found:
    ledger, world, after = lab.emulator.ledger(), lab.emulator.world(), _statuses(lab)
    settled = {each.account_id for each in left if each.how in SETTLED}
    touched = sum(count.count for count in ledger.counts if count.mutating and count.account in settled)
    changed = sum(before[each.name] != after[each.name] for each in left if each.how in SETTLED)
    unfinished = [each for each in left if each.how not in SETTLED]
    ended = sum(text(after[each.name], "state") == AccountState.READY for each in unfinished)
    recorded = {text(obj, "metadata", "name"): text(obj, "spec", "awsAccountID") for obj in lab.objects.of(ACCOUNT)}
    adopted = sum(recorded[each.name] == each.account_id for each in left)
    claims = sum(each.how is Left.CLAIMED for each in left)
    figures = (
        _figure(f"mutating AWS calls in {len(settled)} settled accounts", touched, "0"),
        _figure("settled accounts whose status was written", changed, "0"),
        _figure(f"interrupted Accounts, of {len(unfinished)}, that became Ready", ended, str(len(unfinished))),
        _figure("accounts that keep their AWS account", adopted, str(len(left))),
        _figure("calls of CreateAccount", ledger.calls("organizations", "CreateAccount"), "0"),
        _figure("support cases opened", ledger.calls("support", "CreateCase"), f"≤ {len(unfinished)}"),
        _figure("AWS accounts", len(world.members()), str(len(left))),
        _figure(f"{len(left)} Accounts and {claims} claims, until the last is Ready", round(seconds, 1), "", unit="s"),
    )
    return Found(figures=figures, breakdown={f"{ROW}: AWS calls": ledger.by_action()})


def _figure(what: str, measured: float, goal: str, *, unit: str = "") -> Figure:
    return Figure(row=ROW, what=what, measured=measured, unit=unit, goal=goal)


# What the replaced operator left.


def _create(lab: Laboratory, names: Iterable[str]) -> dict[str, str]:
    client = boto3.client("organizations", endpoint_url=lab.emulator.endpoint, region_name="us-east-1")
    ids: dict[str, str] = {}
    for name in names:
        creation = client.create_account(AccountName=name, Email=email_of(name, DEFAULT_EMAIL_DOMAIN))
        request = creation["CreateAccountStatus"]["Id"]
        made = client.describe_create_account_status(CreateAccountRequestId=request)
        ids[name] = made["CreateAccountStatus"]["AccountId"]
    return ids


async def _leave_all(lab: Laboratory, left: Iterable[LeftAccount]) -> None:
    permits = asyncio.Semaphore(_AT_ONCE)

    async def one(each: LeftAccount) -> None:
        async with permits:
            await _leave(lab, each)
            if each.how is Left.CLAIMED:
                await _leave_claim(lab, each)

    await asyncio.gather(*(one(each) for each in left))


async def _leave(lab: Laboratory, each: LeftAccount) -> None:
    claimed, recorded = each.how is Left.CLAIMED, each.how is not Left.UNRECORDED
    link = {"claimLink": each.name, "claimLinkNamespace": each.name} if claimed else {"claimLink": ""}
    entity = each.name if claimed else ""
    manifest: JsonObject = {
        "metadata": {
            "name": each.name,
            "labels": {IAM_USER_ID_LABEL: each.name[-6:]},
            "finalizers": [FINALIZER],
        },
        "spec": {
            "awsAccountID": each.account_id if recorded else "",
            "iamUserSecret": f"{each.name}-secret" if each.how in SETTLED else "",
            "legalEntity": {"id": entity, "name": entity},
            "accountPool": "default",
            **link,
        },
    }
    await lab.kube.create(ACCOUNT, manifest, OPERATOR_NAMESPACE)
    state = _STATES.get(each.how, AccountState.READY)
    # The deadlines of interrupted Accounts run from the time of their last state.
    now = timestamp(datetime.now(UTC))
    conditions = [_condition("Creating", LONG_AGO), _condition(state, LONG_AGO if each.how in SETTLED else now)]
    status: JsonObject = {
        "status": {
            "state": state,
            "claimed": claimed,
            "conditions": conditions if state != AccountState.CREATING else conditions[1:],
        }
    }
    await lab.patch(ACCOUNT, OPERATOR_NAMESPACE, each.name, status, subresource="status")


async def _leave_claim(lab: Laboratory, each: LeftAccount) -> None:
    name = each.name
    await lab.kube.create(NAMESPACE, {"metadata": {"name": name}})
    claim: JsonObject = {
        "metadata": {"name": name, "finalizers": [FINALIZER]},
        "spec": {
            "legalEntity": {"id": name, "name": name},
            "awsCredentialSecret": {"name": "aws", "namespace": name},
            "aws": {"regions": [{"name": "us-east-1"}]},
            "accountLink": name,
            "accountOU": "ou-left-behind",
            "supportRoleARN": support_role_arn("aws", each.account_id, name[-6:]),
        },
    }
    await lab.kube.create(ACCOUNT_CLAIM, claim, name)
    status: JsonObject = {"status": {"state": "Ready", "conditions": [_condition("Claimed", LONG_AGO)]}}
    await lab.patch(ACCOUNT_CLAIM, name, name, status, subresource="status")


def _condition(type_: str, at: str) -> dict[str, str]:
    times = {"lastProbeTime": at, "lastTransitionTime": at}
    return {"type": type_, "status": "True", "reason": type_, "message": type_, **times}


# Reading the objects.


def _statuses(lab: Laboratory) -> dict[str, JsonObject]:
    return {text(obj, "metadata", "name"): dict(mapping(obj, "status")) for obj in lab.objects.of(ACCOUNT)}


def _all_ready(lab: Laboratory, left: list[LeftAccount]) -> bool:
    states = {name: text(status, "state") for name, status in _statuses(lab).items()}
    failed = [name for name, state in states.items() if state == AccountState.FAILED]
    if failed:
        raise TimeoutError(f"{len(failed)} accounts failed: {failed[:3]}")
    return all(states.get(each.name) == AccountState.READY for each in left)
