"""`perdure bench accounts`: the account area's figures (docs/benchmarks.md describes the rows)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.constants import FINALIZER, IAM_USER_ID_LABEL, OPERATOR_NAMESPACE
from domain.accounts.naming import account_name, suffix_of
from domain.accounts.resources import Account, AccountClaim, AccountState, ClaimState
from domain.accounts.support_case_polling import CASE_PAUSE_BY_AGE
from domain.built_in_kinds import NAMESPACE, SECRET
from domain.identity import Kind
from domain.model import Model
from engine.errors import Absent
from engine.kube.json import JsonObject, text
from localcloud.bench import accounts_left, accounts_quotas
from localcloud.bench.figures import Figure, Found, percentile
from localcloud.bench.laboratory import (
    PATIENCE_SECONDS,
    History,
    Laboratory,
    laboratory,
    memory_mib,
    memory_of_mib,
    writes,
)
from localcloud.services import AWS, WATCH, WORKER
from localcloud.state import Cloud

KINDS: tuple[Kind, ...] = (ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL)
SLOW_CLOUD = {"latency_ms": 50, "create_account_seconds": 5, "case_seconds": 20}
NEVER_SECONDS = 1e6
QUIET_SECONDS = 10.0
CREDENTIALS = "aws-credentials"


class Sizes(Model):
    pool: int = 10
    idle_pool: int = 20
    idle_seconds: float = 300.0
    pending: int = 10
    pending_seconds: float = 300.0
    idle_accounts: int = 1000
    single_claims: int = 20
    quota_accounts: int = 200
    left_accounts: int = 160


async def ready_and_claimed(sizes: Sizes, rows: frozenset[str]) -> Found:
    async with laboratory((Cloud.AWS,), *KINDS, **SLOW_CLOUD) as lab:
        found = await _fill(lab, sizes.pool)
        if "d2" not in rows:
            return found
        claimed = await _claim_and_release(lab, sizes.pool)
    figures = (*(found.figures if "d" in rows else ()), *claimed.figures)
    return Found(figures=figures, breakdown={**found.breakdown, **claimed.breakdown})


async def filled_by_one_process(sizes: Sizes, rows: frozenset[str]) -> Found:
    async with (
        laboratory((Cloud.AWS,), *KINDS, **SLOW_CLOUD) as lab,
        lab.in_one_process(WORKER, WATCH, PERDURE_AREAS="accounts") as process,
    ):
        await lab.create_pool(ACCOUNT_POOL, sizes.pool)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await lab.objects.until(lambda: _ready(lab) >= sizes.pool)
        figure = Figure(
            row="d3",
            what=f"memory of `perdure run` after {sizes.pool} accounts",
            measured=round(memory_of_mib(process.pid)),
            unit="MiB",
            goal="≤ 200 MB",
        )
    return Found(figures=(figure,))


async def _fill(lab: Laboratory, size: int) -> Found:
    lab.emulator.reset_ledger()
    mark, began, cpu_before = lab.audit_mark(), time.monotonic(), lab.cpu()
    await lab.create_pool(ACCOUNT_POOL, size)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await lab.objects.until(lambda: _ready(lab) >= size)
    seconds = time.monotonic() - began
    await asyncio.sleep(1)  # includes what follows the last Ready, such as the pool's count
    ledger, requests = lab.emulator.ledger(), lab.requests_since(mark)
    cpu = {service: seconds - cpu_before[service] for service, seconds in lab.cpu().items()}
    clouds = cpu.pop(AWS)
    memory = {service: memory_mib(lab, service) for service in (WORKER, WATCH)}
    # Requests that do not depend on the number of accounts: periodic renewals of Leases, and reopened watches.
    standing = sum(n for name, n in requests.items() if name.endswith(" leases") or name.startswith("watch "))
    histories = await lab.histories()
    accounts = [len(history.events) for id_, history in histories.items() if id_.startswith("Account/")]
    everything = sum(len(history.events) for history in histories.values())
    figures = (
        Figure(
            row="d",
            what=f"{size} accounts Ready",
            measured=round(seconds, 1),
            unit="s",
            goal="≤ 45 s",
            note="upstream 127 s",
        ),
        Figure(row="d", what="accounts per minute", measured=round(60 * size / seconds, 1)),
        Figure(row="d", what="AWS calls per account", measured=ledger.total() / size, goal="≤ 50", note="upstream 242"),
        Figure(
            row="d",
            what="Kubernetes requests per account",
            measured=(sum(requests.values()) - standing) / size,
            goal="≤ 12",
            note=f"upstream 11; in addition {standing} for leases and watches",
        ),
        Figure(
            row="d",
            what="history events of the account that has most",
            measured=max(accounts),
            goal="≤ 250",
            note=f"mean {sum(accounts) / size:.0f}; all workflows {everything / size:.0f} per account",
        ),
        Figure(
            row="d",
            what="CPU of everything but the emulator",
            measured=round(sum(cpu.values()), 1),
            unit="s",
            note=", ".join(f"{service} {seconds:.1f}" for service, seconds in cpu.items()) + f"; emulator {clouds:.1f}",
        ),
        Figure(
            row="d",
            what="CPU of worker and watcher",
            measured=round(cpu[WORKER] + cpu[WATCH], 1),
            unit="s",
            goal="≤ 4.5 s",
            note="7.9 s before",
        ),
        Figure(
            row="d",
            what="memory of worker and watcher",
            measured=round(sum(memory.values())),
            unit="MiB",
            note=", ".join(f"{service} {size:.0f}" for service, size in memory.items()),
        ),
        Figure(
            row="d",
            what="AWS accounts against custom resources",
            measured=discrepancies(lab),
            goal="one to one, no e-mail address twice",
        ),
    )
    return Found(
        figures=figures,
        breakdown={
            "d: AWS calls": ledger.by_action(),
            "d: Kubernetes requests": dict(requests.most_common()),
            "d: history events of all accounts": _sum_of_accounts(histories),
        },
    )


def _sum_of_accounts(histories: dict[str, History]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for id_, history in histories.items():
        if id_.startswith("Account/"):
            total += history.types
    return dict(total.most_common())


def discrepancies(lab: Laboratory) -> str:
    world = lab.emulator.world()
    cloud = {(record.id, record.name) for record in world.members()}
    cluster = {(account.spec.aws_account_id, account.metadata.name) for account in _accounts(lab)}
    emails = [record.email for record in world.accounts]
    wrong = [f"{id_} ({name}) only in AWS" for id_, name in cloud - cluster]
    wrong += [f"{name} ({id_}) only in Kubernetes" for id_, name in cluster - cloud]
    wrong += [f"{email} used twice" for email, count in Counter(emails).items() if count > 1]
    created = sum(creation.state == "SUCCEEDED" for creation in world.creations)
    wrong += [f"{created} creations for {len(cloud)} accounts"] if created != len(cloud) else []
    return "; ".join(wrong) or "one to one"


# d2


async def _claim_and_release(lab: Laboratory, size: int) -> Found:
    # A refilling pool would mix its calls with those of the claims.
    await lab.patch(ACCOUNT_POOL, OPERATOR_NAMESPACE, "default", {"spec": {"poolSize": 0}})
    names = [f"tenant-{number}" for number in range(size)]
    await lab.create_namespaces(names, NAMESPACE)
    await asyncio.sleep(2)
    keys_before = {key.id for key in lab.emulator.world().keys}
    lab.emulator.reset_ledger()
    began = time.monotonic()
    await asyncio.gather(*(lab.kube.create(ACCOUNT_CLAIM, claim(name), name) for name in names))
    created = time.monotonic() - began
    async with asyncio.timeout(PATIENCE_SECONDS):
        await lab.objects.until(lambda: _claims_ready(lab) == size)
    claimed = time.monotonic() - began
    await asyncio.sleep(1)
    claim_calls = lab.emulator.ledger()
    lab.emulator.reset_ledger()
    began = time.monotonic()
    await asyncio.gather(*(lab.kube.delete(ACCOUNT_CLAIM, name, name) for name in names))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await lab.objects.until(lambda: not lab.objects.of(ACCOUNT_CLAIM) and _free(lab) >= size)
    released = time.monotonic() - began
    await asyncio.sleep(1)
    release_calls = lab.emulator.ledger()
    old = [key.id for key in lab.emulator.world().keys if key.id in keys_before and key.account != "123456789012"]
    secrets = sum([await _has_secret(lab, name) for name in names])
    figures = (
        Figure(
            row="d2",
            what=f"last of {size} claims Ready",
            measured=round(claimed, 2),
            unit="s",
            goal="≤ 1 s",
            note=f"upstream 1.6 s; each claim has its own legal entity; creating the objects took {created:.2f} s",
        ),
        Figure(
            row="d2", what="AWS calls per claim", measured=claim_calls.total() / size, goal="≤ 6", note="upstream 6.3"
        ),
        Figure(
            row="d2",
            what=f"last of {size} accounts free again",
            measured=round(released, 2),
            unit="s",
            goal="≤ 6 s",
            note="upstream 6.3 s",
        ),
        Figure(row="d2", what="AWS calls per release", measured=release_calls.total() / size, note="upstream 10"),
        Figure(row="d2", what="keys that outlived their claim", measured=len(old), goal="0", note="upstream all"),
        Figure(row="d2", what="Secrets that outlived their claim", measured=secrets, goal="0", note="upstream all"),
    )
    return Found(
        figures=figures,
        breakdown={
            "d2: AWS calls of claims": claim_calls.by_action(),
            "d2: AWS calls of releases": release_calls.by_action(),
        },
    )


async def _has_secret(lab: Laboratory, namespace: str) -> bool:
    try:
        await lab.kube.get(SECRET, namespace, CREDENTIALS)
    except Absent:
        return False
    return True


# e


async def idle(sizes: Sizes, rows: frozenset[str]) -> Found:
    async with laboratory((Cloud.AWS,), *KINDS) as lab:
        await lab.create_pool(ACCOUNT_POOL, sizes.idle_pool)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await lab.objects.until(lambda: _ready(lab) >= sizes.idle_pool)
        await asyncio.sleep(QUIET_SECONDS)
        before, mark = await lab.histories(), lab.audit_mark()
        lab.emulator.reset_ledger()
        await asyncio.sleep(sizes.idle_seconds)
        ledger, requests = lab.emulator.ledger(), lab.requests_since(mark)
        after = await lab.histories()
    tasks = _tasks(before, after)
    sweep = sum(count for id_, count in tasks.items() if id_.startswith("Organization/"))
    calls = ", ".join(f"{name} {count}" for name, count in ledger.by_action().items())
    minutes = f"in {sizes.idle_seconds / 60:g} min"
    figures = (
        Figure(
            row="e", what=f"AWS calls {minutes}", measured=ledger.total(), goal="≤ 2 list calls per 5 min", note=calls
        ),
        Figure(row="e", what=f"Kubernetes writes {minutes}", measured=writes(requests), goal="0"),
        Figure(row="e", what=f"Kubernetes requests {minutes}", measured=sum(requests.values())),
        Figure(
            row="e",
            what=f"workflow tasks {minutes}",
            measured=sum(tasks.values()) - sweep,
            goal="0",
            note=f"and {sweep} of the organization's sweep",
        ),
    )
    return Found(
        figures=figures,
        breakdown={
            "e: Kubernetes requests": dict(requests.most_common()),
            "e: workflow tasks": {id_: count for id_, count in tasks.items() if count},
        },
    )


def _tasks(before: dict[str, History], after: dict[str, History]) -> dict[str, int]:
    task = "workflow_task_completed"
    return {id_: history.types[task] - before.get(id_, History()).types[task] for id_, history in after.items()}


# f


async def pending(sizes: Sizes, rows: frozenset[str]) -> Found:
    async with laboratory((Cloud.AWS,), *KINDS, case_seconds=NEVER_SECONDS) as lab:
        await lab.create_pool(ACCOUNT_POOL, sizes.pending)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await lab.objects.until(lambda: _in_state(lab, AccountState.PENDING_VERIFICATION) >= sizes.pending)
        interval = float(lab.deployment.program_env()["PERDURE_ACCOUNTS_POLL"])
        await asyncio.sleep(QUIET_SECONDS + interval / CASE_PAUSE_BY_AGE)  # young cases are polled more often
        before = await lab.histories(ACCOUNT)
        lab.emulator.reset_ledger()
        await asyncio.sleep(sizes.pending_seconds)
        ledger = lab.emulator.ledger()
        after = await lab.histories(ACCOUNT)
    looks = ledger.calls("support", "DescribeCases")
    tasks = sum(_tasks(before, after).values())
    figures = (
        Figure(
            row="f",
            what=f"DescribeCases per interval, {sizes.pending} accounts pending",
            measured=round(looks * interval / sizes.pending_seconds, 2),
            goal="1",
            note=f"{looks} calls in {sizes.pending_seconds:g} s; the interval is {interval:g} s",
        ),
        Figure(row="f", what="other AWS calls meanwhile", measured=ledger.total() - looks),
        Figure(row="f", what="workflow tasks of the accounts meanwhile", measured=tasks),
    )
    return Found(figures=figures, breakdown={"f: AWS calls": ledger.by_action()})


# i


async def crowded(sizes: Sizes, rows: frozenset[str]) -> Found:
    async with laboratory((Cloud.AWS,), *KINDS) as lab:
        began = time.monotonic()
        await lab.create_pool(ACCOUNT_POOL, 0)
        await make_idle_accounts(lab, sizes.idle_accounts)
        await settle(lab, sizes.idle_accounts)
        prepared = time.monotonic() - began
        names = [f"single-{number}" for number in range(sizes.single_claims)]
        await lab.create_namespaces(names, NAMESPACE)
        await asyncio.sleep(2)
        seconds = [await _bound_after(lab, name) for name in names]
    figures = (
        Figure(
            row="i",
            what=f"a claim bound among {sizes.idle_accounts} idle Accounts, p99 of {len(seconds)}",
            measured=round(percentile(seconds, 0.99), 2),
            unit="s",
            goal="≤ 5 s",
            note=f"median {percentile(seconds, 0.5):.2f} s",
        ),
        Figure(row="i", what="all Accounts created and observed once", measured=round(prepared, 1), unit="s"),
    )
    return Found(figures=figures)


async def _bound_after(lab: Laboratory, name: str) -> float:
    began = time.monotonic()
    await lab.kube.create(ACCOUNT_CLAIM, claim(name), name)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await lab.objects.until(lambda: bool(text(lab.objects.one(ACCOUNT_CLAIM, name, name), "spec", "accountLink")))
    return time.monotonic() - began


async def make_idle_accounts(lab: Laboratory, count: int) -> None:
    permits = asyncio.Semaphore(10)

    async def one(number: int) -> None:
        suffix = suffix_of("bench", str(number))
        name = account_name(suffix)
        manifest: JsonObject = {
            "metadata": {"name": name, "labels": {IAM_USER_ID_LABEL: suffix}, "finalizers": [FINALIZER]},
            "spec": {
                "awsAccountID": f"{900_000_000_000 + number}",
                "iamUserSecret": f"{name}-secret",
                "claimLink": "",
                "legalEntity": {"id": "", "name": ""},
                "accountPool": "default",
            },
        }
        async with permits:
            await lab.kube.create(ACCOUNT, manifest, OPERATOR_NAMESPACE)
            status: JsonObject = {"status": {"state": AccountState.READY, "claimed": False}}
            await lab.patch(ACCOUNT, OPERATOR_NAMESPACE, name, status, subresource="status")

    await asyncio.gather(*(one(number) for number in range(count)))


async def settle(lab: Laboratory, count: int) -> None:
    query = "OpKind = 'Account' AND OpPhase = 'Ready' AND ExecutionStatus = 'Running'"
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await lab.temporal.count_workflows(query)).count < count:  # noqa: ASYNC110 - visibility sends no events
            await asyncio.sleep(0.5)


# 8d


async def raised(sizes: Sizes, rows: frozenset[str]) -> Found:
    return await accounts_quotas.raised(sizes.quota_accounts)


# 8e


async def left_behind(sizes: Sizes, rows: frozenset[str]) -> Found:
    return await accounts_left.taken_over(sizes.left_accounts)


# Reading the objects.


def claim(name: str) -> JsonObject:
    return {
        "metadata": {"name": name},
        "spec": {
            "legalEntity": {"id": name, "name": name},
            "awsCredentialSecret": {"name": CREDENTIALS, "namespace": name},
            "aws": {"regions": [{"name": "us-east-1"}]},
            "accountLink": "",
        },
    }


def _accounts(lab: Laboratory) -> list[Account]:
    return [Account.model_validate(obj) for obj in lab.objects.of(ACCOUNT)]


def _in_state(lab: Laboratory, state: str) -> int:
    return sum(text(obj, "status", "state") == state for obj in lab.objects.of(ACCOUNT))


def _ready(lab: Laboratory) -> int:
    return _in_state(lab, AccountState.READY)


def _free(lab: Laboratory) -> int:
    return sum(
        account.status.state == AccountState.READY
        and account.status.reused
        and not account.status.claimed
        and not account.spec.claim_link
        for account in _accounts(lab)
    )


def _claims_ready(lab: Laboratory) -> int:
    claims = (AccountClaim.model_validate(obj) for obj in lab.objects.of(ACCOUNT_CLAIM))
    return sum(claim.status.state == ClaimState.READY for claim in claims)


# Rows that run only on request.
ON_REQUEST: frozenset[str] = frozenset({"8d", "8e"})
# In the order of the documentation; each with its rows.
MEASUREMENTS = (
    (frozenset({"d", "d2"}), ready_and_claimed),
    (frozenset({"d3"}), filled_by_one_process),
    (frozenset({"e"}), idle),
    (frozenset({"f"}), pending),
    (frozenset({"i"}), crowded),
    (frozenset({"8d"}), raised),
    (frozenset({"8e"}), left_behind),
)
