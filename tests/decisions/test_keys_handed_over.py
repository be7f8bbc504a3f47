"""An account's key as its claim gets it: whole or not at all."""

from __future__ import annotations

import base64
from typing import Any, cast

import pytest
from account_objects import AWS_ID, NAME, account, claim
from memory_kube import MemoryKube
from temporalio.client import Client

from activities.accounts.customers import CustomerActivities
from activities.accounts.handover import HandOver
from activities.accounts.reading import Reader
from activities.aws.session import Sessions
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
from domain.accounts.actions.customers import DeliverCredentials
from domain.accounts.actions.handover import Fulfil
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.accounts.resources import LegalEntity
from engine.errors import Invalid
from engine.kube import SECRET
from engine.settings import Settings

KEY = {"aws_access_key_id": "AKIA1", "aws_secret_access_key": "half"}
HELD = {"awsAccountID": AWS_ID, "claimLink": "claim", "claimLinkNamespace": "tenant"}


def encoded(**content: str) -> dict[str, str]:
    return {name: base64.b64encode(value.encode()).decode() for name, value in content.items()}


async def cluster(source: dict[str, str], *, byoc: bool) -> tuple[MemoryKube, DeliverCredentials | Fulfil]:
    """A claim that has a Secret already, the account that it holds, and that account's own Secret."""
    kube = MemoryKube()
    await kube.create(SECRET, {"metadata": {"name": "aws"}, "data": encoded(**KEY)}, "tenant")
    await kube.create(SECRET, {"metadata": {"name": "source"}, "data": encoded(**source)}, OPERATOR_NAMESPACE)
    held = account(spec={**HELD, "byoc": byoc}).model_dump(mode="json", exclude_none=True)
    await kube.create(ACCOUNT, held, OPERATOR_NAMESPACE)
    placed = claim(spec={"accountLink": NAME, "accountOU": "ou-1"}).model_dump(mode="json", exclude_none=True)
    await kube.create(ACCOUNT_CLAIM, placed, "tenant")
    common: dict[str, Any] = {"claim": claim().key, "account": NAME, "source_secret": "source", "support_role_arn": ""}
    if byoc:
        return kube, DeliverCredentials(**common, secret="aws", input_secret="keys")
    where = {"root": "r-1", "base": "ou-base", "legal_entity": LegalEntity(id="entity-1")}
    return kube, Fulfil(**common, **where, account_id=AWS_ID, secret_name="aws", secret_namespace="tenant", placed=True)


async def hand_over(kube: MemoryKube, action: DeliverCredentials | Fulfil) -> None:
    reader = Reader(kube, Settings())  # type: ignore[arg-type]
    if isinstance(action, Fulfil):
        await HandOver(reader, cast("Sessions", None), cast("Client", None)).hand_over(action)
    else:
        await CustomerActivities(reader).deliver_credentials(action)


@pytest.mark.parametrize("byoc", [False, True])
@pytest.mark.parametrize("source", [{}, {"aws_access_key_id": "AKIA2"}, {**KEY, "aws_secret_access_key": ""}])
async def test_half_a_key_is_not_handed_over_and_takes_nobodys_away(source: dict[str, str], byoc: bool) -> None:
    kube, action = await cluster(source, byoc=byoc)
    with pytest.raises(Invalid, match="Secret aws-account-operator/source needs aws_access_key_id"):
        await hand_over(kube, action)
    assert (await kube.get(SECRET, "tenant", "aws"))["data"] == encoded(**KEY)


@pytest.mark.parametrize("byoc", [False, True])
async def test_a_whole_key_replaces_that_of_an_earlier_account(byoc: bool) -> None:
    newer = {"aws_access_key_id": "AKIA2", "aws_secret_access_key": "other half"}
    kube, action = await cluster({**newer, "aws_user_name": "osdManagedAdmin-bcd456"}, byoc=byoc)
    await hand_over(kube, action)
    assert (await kube.get(SECRET, "tenant", "aws"))["data"] == encoded(**newer)
