"""`perdure demo byoc`: a customer brings an account, uses it, and takes it away unchanged.

In the end Perdure's role and user are gone; the customer's bucket and key remain.
"""

from __future__ import annotations

import asyncio

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.accounts.resources import AccountClaim, ClaimState
from domain.built_in_kinds import SECRET
from domain.resource import condition_of
from engine.errors import Absent, Conflict
from localcloud.aws.contract import CustomerAccount
from localcloud.demo.accounts import failure
from localcloud.demo.aws_keys import CREDENTIALS, AwsKey, account_of, key_of, session_of
from localcloud.demo.stage import Scenario, Stage, UnsettledError
from localcloud.state import Cloud

CLAIM = "cluster-of-customer"  # and its namespace
CUSTOMER = "700000000001"  # as in the manifest
INPUT = "customer-key"
BUCKET = "globex-before-perdure"


async def play(stage: Stage) -> None:
    await _forget_the_last_run(stage)
    customer = await asyncio.to_thread(stage.emulator.customer, CUSTOMER)
    theirs = AwsKey(customer.access_key_id, customer.secret_access_key)
    await asyncio.to_thread(_have_a_bucket, stage, theirs)
    stage.say(f"A customer has the AWS account {CUSTOMER} with a bucket in it")
    await stage.apply("claim.yaml")
    stage.say("Applied claim.yaml: an AccountClaim for that account; the customer's key is not there yet")
    await stage.until("the claim reports the missing Secret", lambda: _reason(stage) == "BYOCSecretMissing")
    stage.say(f"The claim waits: AuthenticationFailed, BYOCSecretMissing (Secret {CLAIM}/{INPUT})")
    await _bring_the_key(stage, customer)
    await stage.until("the claim is Ready", lambda: _state(stage) == ClaimState.READY)
    await stage.until("the account has its support role", lambda: bool(_support_role(stage)))
    ours = await key_of(stage, CLAIM)
    if await asyncio.to_thread(account_of, stage, ours) != CUSTOMER:
        raise UnsettledError(f"the key in Secret {CLAIM}/{CREDENTIALS} does not open {CUSTOMER}")
    stage.say(f"The claim is Ready: Secret {CLAIM}/{CREDENTIALS} opens {CUSTOMER}, with a user that Perdure created")
    await stage.breathe()
    await stage.delete(ACCOUNT_CLAIM, CLAIM, CLAIM)
    stage.say("Deleted the claim")
    await stage.until("the claim is gone", lambda: stage.objects.one(ACCOUNT_CLAIM, CLAIM, CLAIM) is None)
    await _look_at_the_end(stage, ours, theirs)


async def _forget_the_last_run(stage: Stage) -> None:
    if stage.objects.one(ACCOUNT_CLAIM, CLAIM, CLAIM) is not None:
        stage.say("A claim is left from an earlier run: it is released first")
        await stage.delete(ACCOUNT_CLAIM, CLAIM, CLAIM)
        await stage.until("the earlier claim is gone", lambda: stage.objects.one(ACCOUNT_CLAIM, CLAIM, CLAIM) is None)
    try:
        await stage.kube.delete(SECRET, CLAIM, INPUT)
    except Absent:
        return


async def _bring_the_key(stage: Stage, customer: CustomerAccount) -> None:
    keys = {"aws_access_key_id": customer.access_key_id, "aws_secret_access_key": customer.secret_access_key}
    secret = {"metadata": {"name": INPUT}, "type": "Opaque", "stringData": keys}
    try:
        await stage.kube.create(SECRET, secret, CLAIM)
    except Conflict:
        await stage.kube.patch(SECRET, CLAIM, INPUT, {"stringData": keys})
    stage.say(f"The customer has put the key of its administrator into Secret {CLAIM}/{INPUT}")


async def _look_at_the_end(stage: Stage, ours: AwsKey, theirs: AwsKey) -> None:
    world = await asyncio.to_thread(stage.emulator.world)
    left = [
        each.name
        for each in (*world.users, *world.roles)
        if each.account == CUSTOMER and each.name.startswith(("osdManagedAdmin-", "ManagedOpenShift-"))
    ]
    if left or CUSTOMER in {instance.account for instance in world.instances}:
        raise UnsettledError(f"{CUSTOMER} was given back, but still contains Perdure's {', '.join(left) or 'instance'}")
    if await asyncio.to_thread(account_of, stage, ours):
        raise UnsettledError("the released claim's key still opens the customer's account")
    if await asyncio.to_thread(account_of, stage, theirs) != CUSTOMER:
        raise UnsettledError("the customer's own key does not open its account any more")
    if BUCKET not in {each.id for each in world.buckets if each.account == CUSTOMER}:
        raise UnsettledError(f"the customer's bucket {BUCKET} is gone")
    stage.say(f"What Perdure created in {CUSTOMER} is gone; the customer's bucket and key are as they were")


# Reading the objects.


def _claim(stage: Stage) -> AccountClaim | None:
    obj = stage.objects.one(ACCOUNT_CLAIM, CLAIM, CLAIM)
    return AccountClaim.model_validate(obj) if obj is not None else None


def _state(stage: Stage) -> str:
    claim = _claim(stage)
    return claim.status.state if claim else ""


def _support_role(stage: Stage) -> str:
    claim = _claim(stage)
    return claim.spec.support_role_arn if claim else ""


def _reason(stage: Stage) -> str:
    claim = _claim(stage)
    found = condition_of(claim.status.conditions, "AuthenticationFailed") if claim else None
    return (found.reason or "") if found and found.status == "True" else ""


# Preparing the cloud.


def _have_a_bucket(stage: Stage, key: AwsKey) -> None:
    session_of(key).client("s3", endpoint_url=stage.emulator.endpoint).create_bucket(Bucket=BUCKET)


SCENARIO = Scenario(
    title="An AWS account that its owner brings: claimed, used, and given back as it was",
    clouds=(Cloud.AWS,),
    kinds=(ACCOUNT, ACCOUNT_CLAIM),
    delays={"run_instances_seconds": 1, "latency_ms": 20},
    play=play,
    failure=failure,
    areas=("accounts",),
    hints=(
        f"kubectl -n {CLAIM} get accountclaim {CLAIM} -o yaml",
        f"kubectl -n {OPERATOR_NAMESPACE} get accounts",
        f"perdure why accountclaim {CLAIM}/{CLAIM}",
        f"kubectl -n {CLAIM} delete accountclaim {CLAIM}",
    ),
)
