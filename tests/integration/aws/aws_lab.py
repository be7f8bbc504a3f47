"""The AWS activities against the emulator and a real API server: what the tests of this folder work with.

Activities run in Temporal's own `ActivityEnvironment`, with the attempt, age and workflow that a test asks for. The
Accounts that own the key Secrets are real objects (the garbage collector deletes Secrets without a living owner),
paused so that no other process acts on them.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

import boto3
from botocore.credentials import ReadOnlyCredentials
from temporalio.testing import ActivityEnvironment
from waiting import until

from activities.aws.activities import AwsActivities
from activities.aws.session import Services, Sessions
from domain.accounts import ACCOUNT
from domain.accounts.actions.account_creation import AwaitAccount, CreateAccount
from domain.accounts.actions.iam_identities import EnsureAdminUser, EnsureSupportRole
from domain.accounts.actions.region_initialization import InitializeRegion
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.control_annotations import PAUSED
from domain.identity import Key
from domain.model import Model
from domain.names import SUFFIX_ALPHABET
from engine.errors import Absent
from engine.kube import SECRET, BlockingKube
from engine.kube.json import mapping, text
from engine.settings import Settings
from localcloud.aws.contract import IMAGE_OWNER, InstanceRecord, KeyRecord
from localcloud.aws.control import Emulator

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client

A = TypeVar("A", bound=Model)
R = TypeVar("R")

REGION = "us-east-1"


class Lab:
    """What a test works with."""

    def __init__(self, emulator: Emulator, kube: BlockingKube, settings: Settings) -> None:
        self.emulator = emulator
        self.kube = kube
        self.settings = settings
        self.sessions = Sessions(kube, settings)
        self.activities = AwsActivities(self.sessions)

    def run(
        self,
        effect: Callable[[A], R],
        action: A,
        *,
        attempt: int = 1,
        age: timedelta = timedelta(),
        lifecycle: str = "test",
        cancelled: bool = False,
    ) -> R:
        """One attempt of an activity."""
        environment = ActivityEnvironment()
        now = datetime.now(UTC)
        environment.info = replace(
            environment.info, attempt=attempt, scheduled_time=now - age, started_time=now, workflow_id=lifecycle
        )
        if cancelled:
            environment.cancel()
        return environment.run(effect, action)

    def run_and_cancel(self, effect: Callable[[A], R], action: A, *, when: Callable[[], bool]) -> R | BaseException:
        """Run an activity on a thread, cancel it once `when` holds, and return what became of it."""
        environment = ActivityEnvironment()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(environment.run, effect, action)
            until(when)
            environment.cancel()
            return running.exception(30) or running.result()

    def name(self) -> str:
        """A name as pools give it."""
        return "osd-creds-mgmt-" + "".join(random.choices(SUFFIX_ALPHABET, k=6))

    def account(self) -> tuple[str, str]:
        """A new member account: its id and name."""
        name = self.name()
        request = self.run(self.activities.create_account, create(name))
        action = AwaitAccount(name=name, email=email(name), request_id=request.request_id)
        outcome = self.run(self.activities.await_account, action, attempt=2)  # the first one does not ask
        return outcome.created_account_id, name

    def tenants_ec2(self, account_id: str, region: str = REGION) -> EC2Client:
        """EC2 as the account's tenant calls it; the product's own client has only the operations that it needs."""
        member = self.sessions.member(account_id).credential()
        return boto3.client(
            "ec2",
            region,
            endpoint_url=self.emulator.endpoint,
            aws_access_key_id=member.access_key,
            aws_secret_access_key=member.secret_key,
            aws_session_token=member.token,
        )

    def owner(self, name: str, *, labels: Mapping[str, str] | None = None, **spec: object) -> Key:
        """The Account custom resource of that name, made now, with further fields of its spec."""
        made = self.kube.create(
            ACCOUNT,
            {
                "metadata": {"name": name, "annotations": {PAUSED: "true"}, "labels": {**(labels or {})}},
                "spec": {
                    "awsAccountID": "",
                    "iamUserSecret": "",
                    "claimLink": "",
                    "legalEntity": {"id": "", "name": ""},
                    **spec,
                },
            },
            OPERATOR_NAMESPACE,
        )
        return Key(kind="Account", namespace=OPERATOR_NAMESPACE, name=name, uid=text(made, "metadata", "uid"))

    def secret(self, name: str) -> dict[str, str]:
        """A Secret's entries, empty if there is none."""
        try:
            found = self.kube.get(SECRET, OPERATOR_NAMESPACE, name)
        except Absent:
            return {}
        return {entry: base64.b64decode(str(value)).decode() for entry, value in mapping(found, "data").items()}

    def identity_of(self, secret: dict[str, str]) -> str:
        """Who AWS says that the holder of a Secret is; raises as every call does."""
        holder = _Holder(self.sessions.clients, "the key's holder", observing=False)
        holder.key = ReadOnlyCredentials(secret["aws_access_key_id"], secret["aws_secret_access_key"], None)
        return holder.ask_identity().arn

    def keys(self, account_id: str) -> list[KeyRecord]:
        """The access keys that live in an account."""
        return [key for key in self.emulator.world().keys if key.account == account_id]

    def instances(self, account_id: str) -> list[InstanceRecord]:
        """The instances that live in an account."""
        return [instance for instance in self.emulator.world().instances if instance.account == account_id]

    def calls(self, service: str, action: str, account: str | None = None) -> int:
        """How often a call was made in this test."""
        return self.emulator.ledger().calls(service, action, account)


class _Holder(Services):
    """The owner of a key."""

    key: ReadOnlyCredentials

    def credential(self) -> ReadOnlyCredentials:
        return self.key


def email(name: str) -> str:
    """The address of an account."""
    return f"{name}@example.com"


def create(name: str, *, search: bool = False, until: datetime | None = None) -> CreateAccount:
    """CreateAccount of that name."""
    until = until or datetime.now(UTC) + timedelta(minutes=5)
    return CreateAccount(name=name, email=email(name), until=until, search=search)


def marks(name: str) -> dict[str, str]:
    """The tags that Perdure puts on what it makes."""
    return {
        "clusterAccountName": name,
        "clusterNamespace": OPERATOR_NAMESPACE,
        "clusterClaimLink": "",
        "clusterClaimLinkNamespace": "",
    }


def support_role(account_id: str, name: str) -> EnsureSupportRole:
    """The action for the support role; its jump role is a principal that exists in the payer."""
    return EnsureSupportRole(
        account_id=account_id,
        iam_user_id=name[-6:],
        jump_role="arn:aws:iam::123456789012:role/jump",
        tags=marks(name),
    )


def admin_user(account_id: str, name: str, owner: Key) -> EnsureAdminUser:
    """The action for the admin user."""
    return EnsureAdminUser(
        account_id=account_id, owner=owner, iam_user_id=name[-6:], secret=f"{name}-secret", tags=marks(name)
    )


def region_init(account_id: str, name: str, *, region: str = REGION, search: bool = False) -> InitializeRegion:
    """The action for one region."""
    owner = Key(kind="Account", namespace=OPERATOR_NAMESPACE, name=name, uid=f"uid-of-{name}")
    return InitializeRegion(
        account_id=account_id,
        owner=owner,
        region=region,
        round="1",
        ami_owner=IMAGE_OWNER,
        tags=marks(name),
        search=search,
    )
