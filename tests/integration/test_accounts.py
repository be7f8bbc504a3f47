"""AWS accounts end to end: pool, claim, release, reuse, and what people do to them meanwhile."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator

import pytest
from accounts_lab import POOL, Lab, laboratory, product
from waiting import eventually

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.constants import DEVELOPMENT_ACCOUNT, OPERATOR_NAMESPACE, PAYER_SECRET
from domain.accounts.organization import ORGANIZATION
from domain.accounts.resources import Account
from domain.control_annotations import PAUSED
from domain.resource import condition_of, parse_timestamp
from engine.kube import SECRET
from engine.kube.json import JsonObject, key_of, mapping
from engine.temporal import wake
from localcloud import services
from localcloud.aws.contract import PAYER_ACCOUNT_ID
from localcloud.deployment import Deployment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

NO_SECRET = {"name": "", "namespace": ""}
PATH_TO_READY = ("Creating", "InitializingRegions", "PendingVerification", "Ready")


@pytest.mark.complete
async def test_a_pool_without_the_payers_secret_says_so_and_fills_once_it_is_there(deployment: Deployment) -> None:
    async with laboratory(deployment) as lab:
        secret = await lab.kube.get(SECRET, OPERATOR_NAMESPACE, PAYER_SECRET)
        await lab.kube.delete(SECRET, OPERATOR_NAMESPACE, PAYER_SECRET)
        async with product(deployment):
            manifest: JsonObject = {"metadata": {"name": POOL}, "spec": {"poolSize": 1}}
            await lab.kube.create(ACCOUNT_POOL, manifest, OPERATOR_NAMESPACE)
            await lab.until("the pool is there", lambda: bool(lab.objects.of(ACCOUNT_POOL)))
            try:
                await lab.organization_says(PAYER_SECRET)
            finally:
                remaining = {
                    "metadata": {"name": PAYER_SECRET},
                    "type": "Opaque",
                    "data": dict(mapping(secret, "data")),
                }
                await lab.kube.create(SECRET, remaining, OPERATOR_NAMESPACE)
            await lab.until("the pool is full", lambda: len(lab.free()) == 1, 100)


@pytest.mark.complete
async def test_development_mode_shows_accounts_and_does_nothing_in_the_payers_own(fresh: Deployment) -> None:
    await asyncio.to_thread(fresh.up, only=services.SERVERS, tether=True)
    async with laboratory(fresh) as lab:
        for payers in (PAYER_ACCOUNT_ID, ""):
            await lab.configure({"payer-account-ids": payers})
            await _development_mode(lab, fresh)


async def _development_mode(lab: Lab, deployment: Deployment) -> None:
    async with product(deployment, FORCE_DEV_MODE="local"):
        before = lab.emulator.world()
        lab.emulator.reset_ledger()
        await lab.ensure_pool(1)
        (account,) = lab.free()
        assert (account.spec.aws_account_id, account.status.support_case_id) == (DEVELOPMENT_ACCOUNT, "11111111")
        await lab.until("the pool counts it", lambda: lab.available() == 1)
        async with lab.asked("hopeful"):
            await lab.says(ACCOUNT_CLAIM, "hopeful", "hopeful", "can't find a suitable account")
        await lab.leave()
        assert lab.emulator.ledger().mutating() == 0
        assert lab.emulator.world() == before


@pytest.fixture(scope="module")
async def lab(deployment: Deployment) -> AsyncIterator[Lab]:
    """The product at work, and two accounts without a former claim."""
    async with laboratory(deployment) as found, product(deployment):
        await found.ensure_pool(2)
        yield found
        await found.leave()


async def test_a_pools_accounts_are_those_of_aws_and_have_come_the_whole_way(lab: Lab) -> None:
    await lab.ensure_pool(2)
    for account in lab.free():
        conditions = account.status.conditions
        assert [c.type for c in conditions if c.type in PATH_TO_READY] == list(PATH_TO_READY)
        record = lab.in_aws(account)
        assert record.name == account.metadata.name
        assert record.tags["owner"] == "local"
        key = await lab.key(OPERATOR_NAMESPACE, account.spec.iam_user_secret)
        assert key.opens() == account.spec.aws_account_id
        assert not [i for i in lab.emulator.world().instances if i.account == record.id]
    emails = [record.email for record in lab.emulator.world().accounts]
    assert len(emails) == len(set(emails))
    await lab.until("the pool counts them", lambda: lab.available() == 2)


async def test_a_claim_gets_one_account_its_key_and_its_own_unit(lab: Lab) -> None:
    await lab.ask("tenant-a", "acme")
    account = await lab.served("tenant-a")
    assert account.spec.claim_link == account.spec.claim_link_namespace == "tenant-a"
    assert (await lab.key("tenant-a")).opens() == account.spec.aws_account_id
    world = lab.emulator.world()
    unit = next(unit for unit in world.units if unit.id == lab.in_aws(account).parent)
    assert unit.name == "acme"
    claim = lab.claim("tenant-a")
    assert claim is not None
    assert claim.spec.account_ou == unit.id
    await lab.release("tenant-a")


async def test_a_release_cleans_the_account_kills_its_key_and_removes_the_secret(lab: Lab) -> None:
    await lab.ask("tenant-b", "leaver")
    account = await lab.served("tenant-b")
    key = await lab.key("tenant-b")
    await asyncio.to_thread(key.leave_things_behind)
    await lab.release("tenant-b")
    world = lab.emulator.world()
    assert not [instance for instance in world.instances if instance.account == account.spec.aws_account_id]
    left = (*world.volumes, *world.buckets, *world.snapshots)
    assert not [thing for thing in left if thing.account == account.spec.aws_account_id]
    assert key.opens() == ""
    assert not await lab.has_secret("tenant-b")
    after = lab.account(account.metadata.name)
    assert after.status.reused
    assert (after.spec.claim_link, after.spec.legal_entity.id) == ("", "leaver")


async def test_only_the_same_legal_entity_gets_a_released_account_again_and_with_a_new_key(lab: Lab) -> None:
    await lab.ask("tenant-c", "returning")
    first, key = await lab.served("tenant-c"), await lab.key("tenant-c")
    await lab.release("tenant-c")
    await lab.ask("stranger")
    assert (await lab.served("stranger")).metadata.name != first.metadata.name
    await lab.ask("tenant-c", "returning")
    again = await lab.served("tenant-c")
    assert again.metadata.name == first.metadata.name
    assert (await lab.key("tenant-c")).id != key.id
    await lab.release("tenant-c")
    await lab.release("stranger")


@pytest.mark.complete
async def test_a_fleet_managers_claim_gets_a_role_and_its_account_a_key_afterwards(lab: Lab) -> None:
    flag = "feature.accountclaim_fleet_manager_trusted_arn"
    trusted = f"arn:aws:iam::{PAYER_ACCOUNT_ID}:root"
    async with lab.configured(flag):
        await lab.configure({flag: "true"})
        await lab.ask("fleet", fleetManagerConfig={"trustedARN": trusted}, awsCredentialSecret=NO_SECRET)
        account = await lab.served("fleet")
        id_ = account.spec.aws_account_id
        found = mapping(await lab.kube.get(SECRET, "fleet", "fleet-sts-secret"), "data")
        assert list(found) == ["role_arn"]
        assert base64.b64decode(str(found["role_arn"])).decode() == f"arn:aws:iam::{id_}:role/managed-sts-role"
        world = lab.emulator.world()
        assert "managed-sts-role" in {role.name for role in world.roles if role.account == id_}
        assert [user for user in world.users if user.account == id_] == []
        assert account.spec.iam_user_secret == ""
        assert not await lab.has_secret(OPERATOR_NAMESPACE, f"{account.metadata.name}-secret")

        await lab.release("fleet")
        assert not await lab.has_secret("fleet", "fleet-sts-secret")
        name = account.metadata.name
        await lab.until("it has its key again", lambda: bool(lab.account(name).spec.iam_user_secret))
        assert (await lab.key(OPERATOR_NAMESPACE, f"{name}-secret")).opens() == id_
        assert "managed-sts-role" not in {role.name for role in lab.emulator.world().roles if role.account == id_}


@pytest.mark.complete
async def test_a_claim_in_sts_mode_on_a_pool_gets_its_account_and_no_support_role(lab: Lab) -> None:
    await lab.ensure_pool(2)
    role = f"arn:aws:iam::{PAYER_ACCOUNT_ID}:role/installer"
    await lab.ask("sts-on-pool", manualSTSMode=True, stsRoleARN=role, stsExternalID="shared")
    account = await lab.served("sts-on-pool")
    claim = lab.claim("sts-on-pool")
    assert claim is not None
    assert (claim.spec.support_role_arn, account.spec.manual_sts_mode, account.spec.byoc) == ("", False, False)
    assert (await lab.key("sts-on-pool")).opens() == account.spec.aws_account_id
    await lab.release("sts-on-pool")
    assert lab.account(account.metadata.name).spec.claim_link == ""
    assert not await lab.has_secret("sts-on-pool")


async def test_a_blanked_status_initialises_again_and_keeps_the_aws_account(lab: Lab) -> None:
    await lab.ensure_pool(2)
    account = lab.free()[0]
    lab.emulator.reset_ledger()
    await lab.blank(account)
    await lab.until("it has been through its regions again", lambda: _initialized_after(lab, account))
    again = lab.account(account.metadata.name)
    assert again.spec.aws_account_id == account.spec.aws_account_id
    assert lab.emulator.ledger().calls("organizations", "CreateAccount") == 0
    assert not [i for i in lab.emulator.world().instances if i.account == account.spec.aws_account_id]


def _initialized_after(lab: Lab, before: Account) -> bool:
    after = lab.account(before.metadata.name)
    return after.status.state == "Ready" and _probed(after) > _probed(before)


def _probed(account: Account) -> float:
    condition = condition_of(account.status.conditions, "InitializingRegions")
    moment = parse_timestamp(condition.last_probe_time) if condition else None
    return moment.timestamp() if moment else 0.0


async def test_a_paused_account_is_left_alone_until_it_is_resumed(lab: Lab) -> None:
    await lab.ensure_pool(2)
    account = lab.free()[0]
    name = account.metadata.name
    await lab.annotate(account, PAUSED, "true")
    await lab.blank(account)
    await lab.says(ACCOUNT, OPERATOR_NAMESPACE, name, "paused")
    lab.emulator.reset_ledger()
    await lab.until("its state is blank", lambda: lab.account(name).status.state == "")
    await wake(lab.temporal, account.key)
    await lab.says(ACCOUNT, OPERATOR_NAMESPACE, name, "paused")
    assert lab.account(name).status.state == ""
    assert lab.emulator.ledger().calls(account=account.spec.aws_account_id) == 0
    await lab.annotate(account, PAUSED, None)
    await lab.until("it is Ready again", lambda: lab.account(name).status.state == "Ready")


async def test_a_paused_account_is_released_by_its_claim_only_when_it_is_resumed(lab: Lab) -> None:
    await lab.ensure_pool(1)
    await lab.ask("under-hold")
    account = await lab.served("under-hold")
    name = account.metadata.name
    await lab.annotate(account, PAUSED, "true")
    held = lab.account(name)
    lab.emulator.reset_ledger()
    await lab.kube.delete(ACCOUNT_CLAIM, "under-hold", "under-hold")
    await lab.says(ACCOUNT_CLAIM, "under-hold", "under-hold", f"Account {name} is paused")
    assert lab.emulator.ledger().calls(account=account.spec.aws_account_id) == 0
    assert (lab.account(name).spec, lab.account(name).status) == (held.spec, held.status)
    await lab.annotate(account, PAUSED, None)
    await lab.until("the claim is gone", lambda: lab.claim("under-hold") is None)
    await lab.until("its account is free", lambda: lab.account(name).spec.claim_link == "")
    assert lab.account(name).status.reused


async def test_deleting_an_account_removes_identities_and_secret_but_no_aws_account(lab: Lab) -> None:
    await lab.ensure_pool(2)
    account = lab.free()[0]
    aws_id = account.spec.aws_account_id
    assert [u for u in lab.emulator.world().users if u.account == aws_id]
    await lab.kube.delete(ACCOUNT, OPERATOR_NAMESPACE, account.metadata.name)
    await lab.until("it is gone", lambda: account.metadata.name not in [a.metadata.name for a in lab.accounts()])
    world = lab.emulator.world()
    assert not [u for u in world.users if u.account == aws_id]
    assert {r.name for r in world.roles if r.account == aws_id} == {"OrganizationAccountAccessRole"}
    assert world.account(aws_id).status == "ACTIVE"

    async def collected() -> bool:
        return not await lab.has_secret(OPERATOR_NAMESPACE, account.spec.iam_user_secret)

    await eventually(collected, "the garbage collector deletes the Account's Secret")
    await lab.ensure_pool(2)


@pytest.mark.complete
async def test_with_every_workflow_terminated_all_converges_without_a_mutating_aws_call(lab: Lab) -> None:
    await lab.ask("survivor")
    await lab.served("survivor")
    await lab.ensure_pool(2)
    lab.emulator.config(case_seconds=1e6)
    await lab.change(ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL, {"spec": {"poolSize": 3}})
    await lab.until("one more waits for its case", lambda: any(a.status.support_case_id for a in _pending(lab)))
    pending = _pending(lab)[0]
    before = {a.metadata.name: a.status for a in lab.accounts()}
    world = lab.emulator.world()
    keys = [key_of(kind.name, obj) for kind in (ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL) for obj in lab.objects.of(kind)]
    for key in (*keys, ORGANIZATION):
        await lab.temporal.get_workflow_handle(key.workflow_id).terminate("a test of what is left without them")
    lab.emulator.reset_ledger()
    for key in keys:
        await wake(lab.temporal, key)
    await lab.says(ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL, "2 available")
    await lab.says(ACCOUNT_CLAIM, "survivor", "survivor", "holds")
    await lab.says(ACCOUNT, OPERATOR_NAMESPACE, pending.metadata.name, "waits until AWS Support resolves")
    for account in lab.accounts():
        if account.metadata.name != pending.metadata.name:
            await lab.says(ACCOUNT, OPERATOR_NAMESPACE, account.metadata.name, "")
    assert lab.emulator.ledger().mutating() == 0, lab.emulator.ledger().by_action()
    assert {a.metadata.name: a.status for a in lab.accounts()} == before
    after = lab.emulator.world()
    assert (after.accounts, after.keys, after.units) == (world.accounts, world.keys, world.units)
    lab.emulator.config(case_seconds=0)
    lab.emulator.resolve_case(pending.status.support_case_id)
    name = pending.metadata.name
    await lab.until("the pending one is Ready", lambda: lab.account(name).status.state == "Ready")
    await lab.release("survivor")


def _pending(lab: Lab) -> list[Account]:
    return [account for account in lab.accounts() if account.status.state == "PendingVerification"]
