"""Fifty tenants at once on a pool of sixty: valid, invalid, with missing Secrets, and some who have been here before.

Each valid claim gets an account of its own, each other one says why it does not, and no account changes its legal
entity. Long, so it is run by itself: `./run pytest -m slow tests/integration/test_accounts_tenants.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from accounts_lab import CREDENTIALS, POOL, REGION, Lab, laboratory, product

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.accounts.resources import AccountClaim
from domain.identity import Kind
from engine.errors import Absent
from engine.kube import NAMESPACE
from engine.kube.json import JsonObject
from localcloud.deployment import Deployment

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(1500)]

POOL_SIZE = 60
FORMER = 5  # tenants that have had an account before
FRESH = 30
PATIENCE = 600.0
ELSEWHERE = {"name": CREDENTIALS, "namespace": "elsewhere"}
BROUGHT: dict[str, Any] = {"byoc": True, "byocAWSAccountID": "111122223333"}
# What is wrong with a claim, and a word of what it says: five of each, fifteen in all.
FAULTS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"legalEntity": {"id": "", "name": "nobody"}}, "legalEntity.id"),
    ({"awsCredentialSecret": ELSEWHERE}, "elsewhere"),
    ({**BROUGHT, "byocSecretRef": {"name": "missing", "namespace": "NAMESPACE"}}, "missing"),
)


@pytest.fixture(scope="module")
async def lab(deployment: Deployment) -> AsyncIterator[Lab]:
    async with laboratory(deployment) as found, product(deployment):
        found.emulator.config(regions=(REGION,), opt_in_regions=(), create_account_seconds=0, run_instances_seconds=0)
        yield found
        await empty(found)


def claims(lab: Lab, *beginnings: str) -> dict[str, AccountClaim]:
    found = (AccountClaim.model_validate(obj) for obj in lab.objects.of(ACCOUNT_CLAIM))
    return {claim.metadata.name: claim for claim in found if claim.metadata.name.startswith(beginnings)}


def ready(lab: Lab, *beginnings: str) -> int:
    return sum(claim.status.state == "Ready" for claim in claims(lab, *beginnings).values())


async def empty(lab: Lab) -> None:
    """Let everything go at once; what waits for a customer's key is let go of by hand."""
    for name, claim in claims(lab, "").items():
        await lab.kube.delete(ACCOUNT_CLAIM, claim.metadata.namespace, name)
        if claim.spec.byoc:
            await let_go(lab, ACCOUNT_CLAIM, claim.metadata.namespace, name)
            if claim.spec.account_link:
                await let_go(lab, ACCOUNT, OPERATOR_NAMESPACE, claim.spec.account_link)
    await lab.until("every claim is gone", lambda: not claims(lab, ""), PATIENCE)
    await lab.kube.delete(ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL)
    await lab.until("the pool's accounts are gone with it", lambda: not lab.accounts(), PATIENCE)


async def let_go(lab: Lab, kind: Kind, namespace: str, name: str) -> None:
    with contextlib.suppress(Absent):
        await lab.change(kind, namespace, name, {"metadata": {"finalizers": []}})
        await lab.kube.delete(kind, namespace, name)


async def fill(lab: Lab) -> None:
    pool: JsonObject = {"metadata": {"name": POOL}, "spec": {"poolSize": POOL_SIZE}}
    await lab.ensure(ACCOUNT_POOL, OPERATOR_NAMESPACE, pool)
    await lab.until("the pool is full", lambda: len(lab.free()) >= POOL_SIZE, PATIENCE)


async def ask_all(lab: Lab, requested: dict[str, dict[str, Any]]) -> None:
    """All claims at the same moment, their namespaces made before."""
    for name in requested:
        await lab.ensure(NAMESPACE, "", {"metadata": {"name": name}})
    await asyncio.gather(*(lab.ask(name, name.removeprefix("again-"), **spec) for name, spec in requested.items()))


def faulty(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    reference = spec.get("byocSecretRef")
    return {**spec, "byocSecretRef": {**reference, "namespace": name}} if reference else spec


async def test_each_valid_claim_is_served_alone_and_each_other_says_why(lab: Lab) -> None:
    await fill(lab)
    former: dict[str, dict[str, Any]] = {f"former-{number}": {} for number in range(FORMER)}
    await ask_all(lab, former)
    await lab.until("the first tenants are served", lambda: ready(lab, "former-") == FORMER, PATIENCE)
    had = {name: claim.spec.account_link for name, claim in claims(lab, "former-").items()}
    for name in former:
        await lab.release(name)
    await fill(lab)

    valid: dict[str, dict[str, Any]] = {
        **{f"again-{name}": {} for name in former},
        **{f"fresh-{number}": {} for number in range(FRESH)},
    }
    broken = {
        f"broken-{kind}-{number}": faulty(f"broken-{kind}-{number}", spec)
        for kind, (spec, _) in enumerate(FAULTS)
        for number in range(5)
    }
    await ask_all(lab, {**broken, **valid})
    await lab.until("each valid claim is Ready", lambda: ready(lab, "again-", "fresh-") == len(valid), PATIENCE)

    served = claims(lab, "again-", "fresh-")
    links = Counter(claim.spec.account_link for claim in served.values())
    assert set(links.values()) == {1}
    for name, link in had.items():
        assert served[f"again-{name}"].spec.account_link == link
    for claim in served.values():
        account = await lab.served(claim.metadata.name)
        assert (account.spec.claim_link, account.spec.legal_entity.id) == (
            claim.metadata.name,
            claim.spec.legal_entity.id,
        )
        assert (await lab.key(claim.metadata.name)).opens() == account.spec.aws_account_id
    for kind, (_, word) in enumerate(FAULTS):
        for number in range(5):
            name = f"broken-{kind}-{number}"
            await lab.says(ACCOUNT_CLAIM, name, name, word)
            assert lab.claim_state(name) != "Ready"
    held = {account.spec.claim_link for account in lab.accounts()} - {""}
    assert held == set(served)
