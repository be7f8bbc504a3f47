"""The emulator as a process of its own, and clients for it, for the tests of it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import boto3
from botocore.config import Config as BotoConfig
from botocore.exceptions import ClientError

from localcloud.aws.control import Emulator
from tests.running.simulator import Simulator

_SERIAL = itertools.count()
_SESSION = boto3.session.Session()


@dataclass
class EmulatorProcess(Simulator):
    module = "localcloud.aws.__main__"
    name = "aws"

    more: dict[str, str] = field(default_factory=dict)  # of its environment

    def arguments(self) -> tuple[str, ...]:
        return ("--port", "0", *super().arguments(), "--config", str(self.folder / "aws.yaml"))

    def environment(self) -> dict[str, str]:
        return {k: v for k, v in os.environ.items() if not k.startswith("AWS_")} | self.more

    @property
    def endpoint(self) -> str:
        return self.url

    def control(self) -> Emulator:
        return Emulator(self.endpoint)

    def cloud(self) -> Cloud:
        with self.control() as emulator:
            health = emulator.health()
        keys = {"aws_access_key_id": health.access_key_id, "aws_secret_access_key": health.secret_access_key}
        return Cloud(self.endpoint, keys)


@dataclass(frozen=True)
class Cloud:
    """Clients for one set of credentials."""

    endpoint: str
    credentials: dict[str, str]

    def client(self, service: str, region: str = "us-east-1") -> Any:
        return _client(service, region, self.endpoint, tuple(self.credentials.items()))

    def with_key(self, key: str, secret: str, token: str | None = None) -> Cloud:
        credentials = {"aws_access_key_id": key, "aws_secret_access_key": secret}
        return Cloud(self.endpoint, credentials | ({"aws_session_token": token} if token else {}))

    def assume(self, role_arn: str, **more: str) -> Cloud:
        answer = self.client("sts").assume_role(RoleArn=role_arn, RoleSessionName="test", **more)["Credentials"]
        return self.with_key(answer["AccessKeyId"], answer["SecretAccessKey"], answer["SessionToken"])

    def request_account(self, name: str | None = None, email: str | None = None) -> str:
        """Ask for an account and return the id of the request."""
        serial = f"{os.getpid()}-{next(_SERIAL)}"
        answer = self.client("organizations").create_account(
            AccountName=name or f"test-{serial}", Email=email or f"test+{serial}@example.com"
        )
        return answer["CreateAccountStatus"]["Id"]

    def creation(self, request_id: str) -> dict[str, Any]:
        organizations = self.client("organizations")
        return organizations.describe_create_account_status(CreateAccountRequestId=request_id)["CreateAccountStatus"]

    def new_account(self) -> str:
        return self.creation(self.request_account())["AccountId"]

    def in_account(self, account: str) -> Cloud:
        return self.assume(f"arn:aws:iam::{account}:role/OrganizationAccountAccessRole")


@cache
def _client(service: str, region: str, endpoint: str, credentials: tuple[tuple[str, str], ...]) -> Any:
    """Once for each: to make one takes up to 80 ms of CPU."""
    once = BotoConfig(retries={"total_max_attempts": 1}, read_timeout=20)
    return _SESSION.client(  # type: ignore[call-overload]
        service, region_name=region, endpoint_url=endpoint, config=once, **dict(credentials)
    )


def error_of(call: Callable[[], object]) -> str:
    """The code of the error a call is answered with."""
    try:
        call()
    except ClientError as error:
        return error.response["Error"]["Code"]
    raise AssertionError("the call was not refused")
