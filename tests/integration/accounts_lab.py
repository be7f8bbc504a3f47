"""The account area end to end: a deployment with the product running, and what users and tenants do on it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import boto3
import pytest
from botocore.exceptions import ClientError
from product import process
from temporalio.client import Client
from temporalio.service import RPCError

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.constants import CONFIG_MAP as CONFIG_MAP_NAME
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.accounts.organization import ORGANIZATION
from domain.accounts.resources import Account, AccountClaim, AccountPool
from domain.identity import Kind
from domain.resource import Condition
from domain.why import Why
from engine.errors import Absent, Conflict
from engine.kube import CONFIG_MAP, NAMESPACE, SECRET, KubeApi
from engine.kube.json import JsonObject, mapping, text
from engine.settings import Settings
from localcloud.aws.contract import AccountRecord
from localcloud.aws.control import Emulator
from localcloud.deployment import Deployment
from localcloud.objects import Objects
from localcloud.services import AWS
from tests.running.temporal_client import temporal_of

POOL = "end-to-end"
PERSON = "kubectl"  # the field manager of people's writes
CREDENTIALS = "aws-credentials"
REGION = "us-east-1"


class AwsKey:
    """A tenant's key."""

    def __init__(self, endpoint: str, id_: str, secret: str) -> None:
        self.id = id_
        self._endpoint = endpoint
        self._session = boto3.Session(aws_access_key_id=id_, aws_secret_access_key=secret, region_name=REGION)

    def opens(self) -> str:
        """The account that it opens, empty if AWS does not know it."""
        try:
            return self._session.client("sts", endpoint_url=self._endpoint).get_caller_identity()["Account"]
        except ClientError:
            return ""

    def leave_things_behind(self) -> None:
        """An instance with a volume of its own, and a bucket with versions."""
        ec2 = self._session.client("ec2", endpoint_url=self._endpoint)
        image = ec2.describe_images()["Images"][0]["ImageId"]
        started = ec2.run_instances(ImageId=image, InstanceType="t3.micro", MinCount=1, MaxCount=1)["Instances"][0]
        volume = ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=1)["VolumeId"]
        ec2.attach_volume(VolumeId=volume, InstanceId=started["InstanceId"], Device="/dev/sdf")
        s3 = self._session.client("s3", endpoint_url=self._endpoint)
        bucket = f"left-{self.id[-8:].lower()}"
        s3.create_bucket(Bucket=bucket)
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        for body in (b"1", b"2"):
            s3.put_object(Bucket=bucket, Key="state", Body=body)


class Lab:
    """What a test sees and does."""

    def __init__(self, kube: KubeApi, temporal: Client, emulator: Emulator) -> None:
        self.kube = kube
        self.temporal = temporal
        self.emulator = emulator
        self.objects = Objects(kube)

    # Looking.

    async def until(self, what: str, condition: Callable[[], bool], seconds: float = 90) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self.objects.until(condition)
        except TimeoutError:
            pytest.fail(f"not within {seconds:g} s: {what}")

    def accounts(self) -> list[Account]:
        """The test pool's accounts."""
        found = (Account.model_validate(obj) for obj in self.objects.of(ACCOUNT, OPERATOR_NAMESPACE))
        return [account for account in found if account.spec.account_pool == POOL]

    def account(self, name: str) -> Account:
        return next(account for account in self.accounts() if account.metadata.name == name)

    def free(self) -> list[Account]:
        """Accounts without a former claim."""
        return [
            account
            for account in self.accounts()
            if account.status.state == "Ready" and not account.spec.claim_link and not account.spec.legal_entity.id
        ]

    def available(self) -> int:
        """What the pool's status says."""
        pool = AccountPool.model_validate(self.objects.one(ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL))
        return pool.status.available_accounts if pool.status else -1

    def pool_conditions(self) -> tuple[Condition, ...]:
        pool = AccountPool.model_validate(self.objects.one(ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL))
        return pool.status.conditions if pool.status else ()

    def claim(self, name: str) -> AccountClaim | None:
        obj = self.objects.one(ACCOUNT_CLAIM, name, name)
        return AccountClaim.model_validate(obj) if obj is not None else None

    def claim_state(self, name: str) -> str:
        claim = self.claim(name)
        return claim.status.state if claim else ""

    def in_aws(self, account: Account) -> AccountRecord:
        return self.emulator.world().account(account.spec.aws_account_id)

    async def says(self, kind: Kind, namespace: str, name: str, *words: str) -> None:
        """Wait until the object's lifecycle names all of these words, in its reason or in what hinders it."""
        await self.until(f"{kind.name} {name} is there", lambda: self.objects.one(kind, namespace, name) is not None)
        uid = text(self.objects.one(kind, namespace, name), "metadata", "uid")
        await self._says(f"{kind.name}/{namespace}/{name}/{uid}", *words)

    async def organization_says(self, *words: str) -> None:
        """The same of a lifecycle that has no object."""
        await self._says(ORGANIZATION.workflow_id, *words)

    async def _says(self, workflow_id: str, *words: str, seconds: float = 90) -> None:
        handle, message = self.temporal.get_workflow_handle(workflow_id), ""
        try:
            async with asyncio.timeout(seconds):
                while not message or not all(word in message for word in words):
                    with contextlib.suppress(RPCError):  # its lifecycle is being started
                        answer: Why = await handle.query("why", result_type=Why)
                        message = " ".join((answer.why, answer.hold, *(each.message for each in answer.hindrances)))
                    await asyncio.sleep(0.1)
        except TimeoutError:
            pytest.fail(f"{workflow_id} does not name {words} but says: {message}")

    # Doing what people do.

    async def change(self, kind: Kind, namespace: str, name: str, patch: JsonObject, *, subresource: str = "") -> None:
        await self.kube.patch(kind, namespace, name, patch, subresource=subresource, field_manager=PERSON)

    async def annotate(self, account: Account, annotation: str, value: str | None) -> None:
        await self.change(
            ACCOUNT, OPERATOR_NAMESPACE, account.metadata.name, {"metadata": {"annotations": {annotation: value}}}
        )

    async def blank(self, account: Account) -> None:
        """Blank an account's state, as people do to have it initialised again."""
        patch: JsonObject = {"status": {"state": ""}}
        await self.change(ACCOUNT, OPERATOR_NAMESPACE, account.metadata.name, patch, subresource="status")

    async def configure(self, values: Mapping[str, str | None]) -> None:
        """Change keys of the operator's ConfigMap; None removes one."""
        await self.change(CONFIG_MAP, OPERATOR_NAMESPACE, CONFIG_MAP_NAME, {"data": dict(values)})
        # The worker hears of it by its watch, and nothing shows when: on a busy machine a claim would come first.
        await asyncio.sleep(1)

    @asynccontextmanager
    async def configured(self, *keys: str) -> AsyncIterator[dict[str, str]]:
        """The ConfigMap's content; these keys are what they were again at the end."""
        found = await self.kube.get(CONFIG_MAP, OPERATOR_NAMESPACE, CONFIG_MAP_NAME)
        content = {name: str(value) for name, value in mapping(found, "data").items()}
        try:
            yield content
        finally:
            if keys:
                await self.configure({key: content.get(key) for key in keys})

    async def ask(self, name: str, entity: str = "", **spec: object) -> None:
        """Make a namespace and in it a claim, both of this name."""
        await self.ensure(NAMESPACE, "", {"metadata": {"name": name}})
        await self.kube.create(
            ACCOUNT_CLAIM,
            {
                "metadata": {"name": name},
                "spec": {
                    "legalEntity": {"id": entity or name, "name": name},
                    "awsCredentialSecret": {"name": CREDENTIALS, "namespace": name},
                    "aws": {"regions": [{"name": REGION}]},
                    "accountLink": "",
                    "accountPool": POOL,
                    **spec,
                },
            },
            name,
        )

    @asynccontextmanager
    async def asked(self, name: str, entity: str = "", **spec: object) -> AsyncIterator[None]:
        """A claim that is released at the end, whatever became of it."""
        await self.ask(name, entity, **spec)
        try:
            await self.until(f"claim {name} is there", lambda: self.claim(name) is not None)
            yield
        finally:
            if self.claim(name) is not None:
                await self.release(name)

    async def served(self, name: str, seconds: float = 90) -> Account:
        """Wait until the claim is Ready; its account."""
        await self.until(f"claim {name} is Ready", lambda: self.claim_state(name) == "Ready", seconds)
        claim = self.claim(name)
        assert claim is not None
        link = claim.spec.account_link
        await self.until(f"{link} is marked as claimed", lambda: self.account(link).status.claimed)
        return self.account(link)

    async def release(self, name: str) -> None:
        """Delete a claim and wait until its account is free again."""
        claim = self.claim(name)
        assert claim is not None
        link = claim.spec.account_link
        await self.kube.delete(ACCOUNT_CLAIM, name, name)
        await self.until(f"claim {name} is gone", lambda: self.claim(name) is None)
        if link:
            await self.until(
                f"{link} is free",
                lambda: not self.account(link).status.claimed and self.account(link).status.state == "Ready",
            )

    async def key(self, namespace: str, secret: str = CREDENTIALS) -> AwsKey:
        """The key in a Secret."""
        found = await self.kube.get(SECRET, namespace, secret)
        names = ("aws_access_key_id", "aws_secret_access_key")
        id_, value = (base64.b64decode(text(found, "data", name)).decode() for name in names)
        return AwsKey(self.emulator.endpoint, id_, value)

    async def has_secret(self, namespace: str, name: str = CREDENTIALS) -> bool:
        try:
            await self.kube.get(SECRET, namespace, name)
        except Absent:
            return False
        return True

    async def ensure(self, kind: Kind, namespace: str, obj: JsonObject) -> None:
        try:
            await self.kube.create(kind, obj, namespace)
        except Conflict:
            return

    async def ensure_pool(self, size: int) -> None:
        """The test pool with so many accounts that had no claim before."""
        manifest: JsonObject = {"metadata": {"name": POOL}, "spec": {"poolSize": size}}
        await self.ensure(ACCOUNT_POOL, OPERATOR_NAMESPACE, manifest)
        await self.change(ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL, {"spec": {"poolSize": size}})
        await self.until(f"the pool has {size} accounts", lambda: len(self.free()) >= size, 90)

    async def leave(self) -> None:
        """Give the deployment back without objects of ours that live on."""
        for obj in self.objects.of(ACCOUNT_CLAIM):
            if text(obj, "spec", "accountPool") == POOL:
                await self.release(text(obj, "metadata", "name"))
        await self.kube.delete(ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL)
        await self.until("the pool's accounts are gone with it", lambda: not self.accounts())


@asynccontextmanager
async def laboratory(deployment: Deployment) -> AsyncIterator[Lab]:
    """Clients of a deployment, its objects followed, without the product."""
    env = deployment.env()
    temporal = await temporal_of(deployment)
    async with await KubeApi.open(Settings(), "tests", env["KUBECONFIG"]) as kube:
        with Emulator(deployment.service(AWS).url or "") as emulator:
            lab = Lab(kube, temporal, emulator)
            async with lab.objects.followed(ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL):
                yield lab
            emulator.clear()
            emulator.reset_config()


@asynccontextmanager
async def product(deployment: Deployment, **environ: str) -> AsyncIterator[None]:
    """Worker and watcher in one process, as small installations run them."""
    async with process(deployment, "run", PERDURE_ACCOUNTS_POLL="2", **environ):
        yield
