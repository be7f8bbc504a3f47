"""`perdure demo accounts`: an AWS account from creation to its second claim (steps: examples/accounts/README.md)."""

from __future__ import annotations

import asyncio

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.accounts.resources import Account, AccountClaim, AccountPool, AccountState, ClaimState
from domain.built_in_kinds import SECRET
from domain.resource import condition_of
from engine.errors import Absent
from engine.kube.json import JsonObject, text
from localcloud.demo.aws_keys import CREDENTIALS, REGION, AwsKey, account_of, key_of, session_of
from localcloud.demo.stage import Scenario, Stage, UnsettledError
from localcloud.state import Cloud

POOL = "default"
CLAIM = "cluster-one"  # and its namespace


async def play(stage: Stage) -> None:
    await _forget_the_last_run(stage)
    await _fill_the_pool(stage)
    first, key = await _claim(stage)
    await asyncio.to_thread(_leave_things_behind, stage, key)
    stage.say(f"The claim's user started an instance with a volume and filled a bucket in {first.spec.aws_account_id}")
    await _release(stage, first, key)
    second, new_key = await _claim(stage)
    if second.metadata.name != first.metadata.name:
        raise UnsettledError(
            f"the claim got {second.metadata.name}, not {first.metadata.name}, which its legal entity had used"
        )
    if new_key.id == key.id:
        raise UnsettledError(f"{second.metadata.name} was handed over with the former claim's key")
    stage.say("The same legal entity got the same account, with a new key")
    await _claimed(stage, second.metadata.name)
    await stage.until("the pool is full again", lambda: available(stage) >= pool_size(stage))


async def _forget_the_last_run(stage: Stage) -> None:
    left = stage.objects.one(ACCOUNT_CLAIM, CLAIM, CLAIM)
    if left is None:
        return
    account = text(left, "spec", "accountLink")
    stage.say("A claim is left from an earlier run: it is released first")
    await stage.delete(ACCOUNT_CLAIM, CLAIM, CLAIM)
    await stage.until("the earlier claim is gone", lambda: stage.objects.one(ACCOUNT_CLAIM, CLAIM, CLAIM) is None)
    if any(each.metadata.name == account for each in _accounts(stage)):
        await stage.until("the earlier claim's account is free again", lambda: _free(_account(stage, account)))


async def _fill_the_pool(stage: Stage) -> None:
    await stage.apply("pool.yaml")
    stage.say("Applied pool.yaml: an AccountPool of three")
    await stage.until(
        "the pool's accounts are Ready",
        lambda: pool_size(stage) > 0 and _ready_accounts(stage) >= pool_size(stage),
    )
    stage.say(f"{_ready_accounts(stage)} accounts are Ready")


async def _claim(stage: Stage) -> tuple[Account, AwsKey]:
    await stage.apply("claim.yaml")
    stage.say("Applied claim.yaml: an AccountClaim of the legal entity acme")
    await stage.until("the claim is Ready", lambda: _claim_state(stage) == ClaimState.READY)
    link = text(stage.objects.one(ACCOUNT_CLAIM, CLAIM, CLAIM), "spec", "accountLink")
    account = _account(stage, link)
    key = await key_of(stage, CLAIM)
    user = await asyncio.to_thread(account_of, stage, key)
    if user != account.spec.aws_account_id:
        raise UnsettledError(
            f"the key in Secret {CLAIM}/{CREDENTIALS} opens {user or 'nothing'}, not the claim's account"
        )
    stage.say(f"{link} is claimed: Secret {CLAIM}/{CREDENTIALS} opens AWS account {account.spec.aws_account_id}")
    return account, key


async def _claimed(stage: Stage, name: str) -> None:
    await stage.until("the account is marked as claimed", lambda: _account(stage, name).status.claimed)


async def _release(stage: Stage, account: Account, key: AwsKey) -> None:
    await stage.delete(ACCOUNT_CLAIM, CLAIM, CLAIM)
    stage.say("Deleted the claim")
    name = account.metadata.name
    await stage.until("the claim is gone", lambda: stage.objects.one(ACCOUNT_CLAIM, CLAIM, CLAIM) is None)
    await stage.until("the claim's account is free again", lambda: _free(_account(stage, name)))
    left = await asyncio.to_thread(_left_in, stage, account.spec.aws_account_id)
    if left:
        raise UnsettledError(f"{name} was released with {', '.join(left)} still in it")
    if await _has_secret(stage):
        raise UnsettledError(f"Secret {CLAIM}/{CREDENTIALS} outlived its claim")
    if await asyncio.to_thread(account_of, stage, key):
        raise UnsettledError(f"the released claim's key still opens {account.spec.aws_account_id}")
    stage.say(f"{name} is clean and free for acme; the claim's Secret is gone, and its key no longer works")


# Reading the objects.


def failure(obj: JsonObject) -> str:
    if text(obj, "kind") == ACCOUNT.name:
        account = Account.model_validate(obj)
        if account.failed:
            return f"Account {account.metadata.name} is {account.status.state}: {_last_word(account)}"
    if text(obj, "kind") == ACCOUNT_CLAIM.name:
        claim = AccountClaim.model_validate(obj)
        if claim.status.state == ClaimState.ERROR:
            condition = condition_of(claim.status.conditions, "InvalidAccountClaim")
            return f"AccountClaim {claim.metadata.name} is in Error: {condition.reason if condition else 'no reason'}"
    return ""


def _last_word(account: Account) -> str:
    conditions = account.status.conditions
    newest = max(conditions, key=lambda c: c.last_transition_time or "", default=None)
    return f"{newest.type}: {newest.reason}, {newest.message}" if newest else "no condition says why"


def _accounts(stage: Stage) -> list[Account]:
    return [Account.model_validate(obj) for obj in stage.objects.of(ACCOUNT, OPERATOR_NAMESPACE)]


def _account(stage: Stage, name: str) -> Account:
    found = next((each for each in _accounts(stage) if each.metadata.name == name), None)
    if found is None:
        raise UnsettledError(f"Account {name} vanished")
    return found


def _free(account: Account) -> bool:
    status = account.status
    return status.state == AccountState.READY and not status.claimed and not account.spec.claim_link and status.reused


def _claim_state(stage: Stage) -> str:
    return text(stage.objects.one(ACCOUNT_CLAIM, CLAIM, CLAIM), "status", "state")


def _pool(stage: Stage) -> AccountPool | None:
    obj = stage.objects.one(ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL)
    return AccountPool.model_validate(obj) if obj is not None else None


def pool_size(stage: Stage) -> int:
    pool = _pool(stage)
    return pool.spec.pool_size if pool else 0


def available(stage: Stage) -> int:
    pool = _pool(stage)
    return pool.status.available_accounts if pool and pool.status else 0


def _ready_accounts(stage: Stage) -> int:
    return sum(
        each.status.state == AccountState.READY and not each.status.claimed and not each.spec.legal_entity.id
        for each in _accounts(stage)
    )


# Reading the cluster and the cloud.


async def _has_secret(stage: Stage) -> bool:
    try:
        await stage.kube.get(SECRET, CLAIM, CREDENTIALS)
    except Absent:
        return False
    return True


def _leave_things_behind(stage: Stage, key: AwsKey) -> None:
    session, endpoint = session_of(key), stage.emulator.endpoint
    ec2, s3 = session.client("ec2", endpoint_url=endpoint), session.client("s3", endpoint_url=endpoint)
    image = ec2.describe_images()["Images"][0]["ImageId"]
    instance = ec2.run_instances(ImageId=image, InstanceType="t3.micro", MinCount=1, MaxCount=1)["Instances"][0]
    volume = ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=1)
    ec2.attach_volume(VolumeId=volume["VolumeId"], InstanceId=instance["InstanceId"], Device="/dev/sdf")
    bucket = f"left-behind-{key.id[-8:].lower()}"
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="state.json", Body=b"{}")


def _left_in(stage: Stage, account_id: str) -> list[str]:
    world = stage.emulator.world()
    instances = [f"instance {each.id}" for each in world.instances if each.account == account_id]
    volumes = [f"volume {each.id}" for each in world.volumes if each.account == account_id]
    return instances + volumes + [f"bucket {each.id}" for each in world.buckets if each.account == account_id]


SCENARIO = Scenario(
    title="AWS accounts: a pool of three, a claim, its release, and a second claim that gets the released account",
    clouds=(Cloud.AWS,),
    kinds=(ACCOUNT_POOL, ACCOUNT, ACCOUNT_CLAIM),
    delays={"create_account_seconds": 3, "case_seconds": 8, "run_instances_seconds": 1, "latency_ms": 20},
    play=play,
    failure=failure,
    areas=("accounts",),
    hints=(
        "kubectl get accounts,accountclaims,accountpools -A",
        f"perdure why accountclaim {CLAIM}/{CLAIM}",
        f"kubectl -n {CLAIM} get secret {CREDENTIALS} -o yaml",
        f'kubectl -n {OPERATOR_NAMESPACE} patch accountpool {POOL} --type merge -p \'{{"spec": {{"poolSize": 5}}}}\'',
        f"kubectl -n {CLAIM} delete accountclaim {CLAIM}",
    ),
)
