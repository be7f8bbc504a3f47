"""The AWS keys that a demo's claims hand over, and the accounts that they belong to."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

from domain.built_in_kinds import SECRET
from engine.kube.json import text
from localcloud.demo.stage import Stage

if TYPE_CHECKING:
    import boto3

CREDENTIALS = "aws-credentials"  # the claims' Secrets
REGION = "us-east-1"


@dataclass(frozen=True)
class AwsKey:
    id: str
    secret: str

    def __repr__(self) -> str:
        return f"AwsKey(...{self.id[-4:]})"


async def key_of(stage: Stage, namespace: str) -> AwsKey:
    secret = await stage.kube.get(SECRET, namespace, CREDENTIALS)
    id_, value = (
        base64.b64decode(text(secret, "data", name)).decode() for name in ("aws_access_key_id", "aws_secret_access_key")
    )
    return AwsKey(id_, value)


def session_of(key: AwsKey) -> boto3.Session:
    import boto3

    return boto3.Session(aws_access_key_id=key.id, aws_secret_access_key=key.secret, region_name=REGION)


def account_of(stage: Stage, key: AwsKey) -> str:
    from botocore.exceptions import ClientError

    try:
        return session_of(key).client("sts", endpoint_url=stage.emulator.endpoint).get_caller_identity()["Account"]
    except ClientError:
        return ""
