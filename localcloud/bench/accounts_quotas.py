"""Row 8d of `perdure bench accounts`: many existing AWS accounts with region opt-in and quota increases."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable

import boto3

from domain.accounts import ACCOUNT
from domain.accounts.constants import (
    CONFIG_MAP,
    FINALIZER,
    IAM_USER_ID_LABEL,
    OPERATOR_NAMESPACE,
    OPTING_IN_ACCOUNTS,
    OPTING_IN_REGIONS,
    QUOTA_REQUESTS,
)
from domain.accounts.naming import account_name, email_of, suffix_of
from domain.accounts.quota_codes import SERVICE_OF
from domain.accounts.resources import AccountState
from domain.built_in_kinds import CONFIG_MAP as CONFIG_MAP_KIND
from engine.kube.json import JsonObject, text
from localcloud.aws.contract import DEFAULT_REGIONS, World
from localcloud.bench.figures import Figure, Found
from localcloud.bench.laboratory import Laboratory, laboratory
from localcloud.state import Cloud

ROW = "8d"
QUOTAS = [code for code, service in SERVICE_OF.items() if service != "iam"][:15]
VALUE = 6000  # above every default
OPT_IN = ("af-south-1", "eu-south-1")
# Fifteen of the seventeen regions need no opt-in.
PLAIN = DEFAULT_REGIONS[: 17 - len(OPT_IN)]
SPEED = 100.0
# In seconds of the emulator's clock.
SLOW_ANSWERS = {"region_enable_seconds": 300, "quota_pending_seconds": 60, "quota_case_seconds": 120}
LONGEST_HISTORY = 2000
PATIENCE_SECONDS = 3000.0
_AT_ONCE = 8

Interval = tuple[float, float]


async def raised(accounts: int) -> Found:
    emulated = {**SLOW_ANSWERS, "regions": PLAIN, "opt_in_regions": OPT_IN, "recent_calls": 0}
    async with laboratory((Cloud.AWS,), ACCOUNT, **emulated) as lab:
        names = await _prepare(lab, accounts)
        lab.emulator.clock(speed=SPEED)
        lab.emulator.reset_ledger()
        before, began = lab.cpu(), time.monotonic()
        await asyncio.gather(*(_make(lab, name, id_) for name, id_ in names.items()))
        most_opting = await _followed(lab, accounts)
        seconds = time.monotonic() - began
        spent = {service: seconds_ - before[service] for service, seconds_ in lab.cpu().items()}
        world, ledger = lab.emulator.world(), lab.emulator.ledger()
        lengths = await _history_lengths(lab)
    statuses = _requests_of(world)
    figures = (
        _figure(f"{accounts} accounts Ready", round(seconds, 1), unit="s", goal="finishes"),
        _figure("most accounts opting in at once, seen in AWS", _most_accounts(world), goal=f"≤ {OPTING_IN_ACCOUNTS}"),
        _figure("most Accounts in OptingInRegions at once", most_opting, goal=f"≤ {OPTING_IN_ACCOUNTS}"),
        _figure("most regions that one account changes at once", _most_regions(world), goal=f"≤ {OPTING_IN_REGIONS}"),
        _figure("most open quota requests of one account", _most_requests(world), goal=f"≤ {QUOTA_REQUESTS}"),
        _figure("quota requests made", sum(statuses.values()), note=f"{17 * len(QUOTAS)} wanted for each account"),
        _figure("events of the longest history", max(lengths), goal=f"< {LONGEST_HISTORY}", note=_runs(lengths)),
        _figure("AWS calls per account", round(ledger.total() / accounts, 1)),
        _figure("CPU per account", round(sum(spent.values()) / accounts, 2), unit="s", note=_shares(spent, accounts)),
    )
    return Found(figures=figures, breakdown={f"{ROW}: AWS calls": ledger.by_action()})


def _figure(what: str, measured: float, *, unit: str = "", goal: str = "", note: str = "") -> Figure:
    return Figure(row=ROW, what=what, measured=measured, unit=unit, goal=goal, note=note)


def _runs(lengths: list[int]) -> str:
    return f"{len(lengths)} runs of all workflows, {sum(lengths)} events"


def _shares(spent: dict[str, float], accounts: int) -> str:
    return ", ".join(f"{service} {seconds / accounts:.2f}" for service, seconds in spent.items())


# Preparing and following.


async def _prepare(lab: Laboratory, count: int) -> dict[str, str]:
    pools = {"default": {"default": True}}
    data = {"feature.opt_in_regions": "true", "opt-in-regions": ", ".join(OPT_IN), "accountpool": json.dumps(pools)}
    await lab.patch(CONFIG_MAP_KIND, OPERATOR_NAMESPACE, CONFIG_MAP, {"data": data})
    return await asyncio.to_thread(_create, lab, [account_name(suffix_of("bench", str(n))) for n in range(count)])


def _create(lab: Laboratory, names: Iterable[str]) -> dict[str, str]:
    client = boto3.client("organizations", endpoint_url=lab.emulator.endpoint, region_name="us-east-1")
    ids: dict[str, str] = {}
    for name in names:
        creation = client.create_account(AccountName=name, Email=email_of(name, "example.com"))
        request = creation["CreateAccountStatus"]["Id"]
        made = client.describe_create_account_status(CreateAccountRequestId=request)
        ids[name] = made["CreateAccountStatus"]["AccountId"]
    return ids


async def _make(lab: Laboratory, name: str, account_id: str) -> None:
    quotas = {code: {"value": VALUE, "status": ""} for code in QUOTAS}
    manifest: JsonObject = {
        "metadata": {"name": name, "labels": {IAM_USER_ID_LABEL: name[-6:]}, "finalizers": [FINALIZER]},
        "spec": {
            "awsAccountID": account_id,
            "iamUserSecret": "",
            "claimLink": "",
            "legalEntity": {"id": "", "name": ""},
            "accountPool": "default",
            "regionalServiceQuotas": {"default": quotas},
        },
    }
    await lab.kube.create(ACCOUNT, manifest, OPERATOR_NAMESPACE)


async def _followed(lab: Laboratory, count: int) -> int:
    most = 0

    def finished() -> bool:
        nonlocal most
        states = Counter(text(obj, "status", "state") for obj in lab.objects.of(ACCOUNT))
        most = max(most, states[AccountState.OPTING_IN_REGIONS])
        if states[AccountState.FAILED]:
            raise TimeoutError(f"{states[AccountState.FAILED]} accounts failed")
        return states[AccountState.READY] >= count

    async with asyncio.timeout(PATIENCE_SECONDS):
        await lab.objects.until(finished)
    return most


async def _history_lengths(lab: Laboratory) -> list[int]:
    permits = asyncio.Semaphore(_AT_ONCE)

    async def length(id_: str, run: str) -> int:
        async with permits:
            return (await lab.temporal.get_workflow_handle(id_, run_id=run).describe()).history_length

    found = [(row.id, row.run_id) async for row in lab.temporal.list_workflows()]
    return list(await asyncio.gather(*(length(id_, run) for id_, run in found)))


# Reading the emulator's records.


def most_at_once(intervals: Iterable[Interval]) -> int:
    moments = sorted((moment, change) for begin, end in intervals for moment, change in ((begin, 1), (end, -1)))
    under_way = most = 0
    for _, change in moments:
        under_way += change
        most = max(most, under_way)
    return most


def _requests_of(world: World) -> Counter[str]:
    return Counter(request.status for request in world.quota_requests)


def _most_requests(world: World) -> int:
    of: dict[str, list[Interval]] = defaultdict(list)
    for request in world.quota_requests:
        of[request.account].append((request.opened_at, request.done_at))
    return max(map(most_at_once, of.values()), default=0)


def _region_changes(world: World) -> dict[str, list[Interval]]:
    of: dict[str, list[Interval]] = defaultdict(list)
    for region in world.opt_in_regions:
        of[region.account].append((region.asked_at, region.done_at))
    return of


def _most_regions(world: World) -> int:
    return max(map(most_at_once, _region_changes(world).values()), default=0)


def _most_accounts(world: World) -> int:
    changes = _region_changes(world).values()
    return most_at_once((min(begin for begin, _ in each), max(end for _, end in each)) for each in changes)
