"""Accounts and claims as the aws-account-operator left them, on a real cluster; and accounts that drifted afterwards.

The objects are written as that operator wrote them, without a process that acts on them. Then Perdure begins: what is
settled stays so, what was cut short goes on. Last, a person moves and re-tags an account outside Perdure.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import boto3
import pytest
from accounts_lab import CREDENTIALS, POOL, REGION, Lab, laboratory, product
from waiting import eventually

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL, THE_VALIDATION
from domain.accounts.constants import CLAIM_UID_ANNOTATION, FINALIZER, OPERATOR_NAMESPACE
from domain.accounts.resources import Account
from domain.resource import condition_of
from engine.kube import NAMESPACE, SECRET
from engine.kube.json import text
from engine.temporal import wake
from localcloud.aws.contract import AccountRecord
from localcloud.deployment import Deployment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

NAMES = {
    role: f"osd-creds-mgmt-{suffix}"
    for role, suffix in (("settled", "stt222"), ("torn", "trn222"), ("emptied", "mpt222"), ("linked", "lnk222"))
}
ENTITY, TENANT = "left-behind", "left-behind"
RULES = "L-0EA8095F"  # rules per security group, 60 by default
LONG_AGO = "2024-03-01T10:00:00Z"


class Past:
    """What the replaced operator left."""

    def __init__(self, lab: Lab, deployment: Deployment) -> None:
        env = deployment.env()
        self._lab = lab
        self.payer = boto3.client(
            "organizations",
            endpoint_url=env["AWS_ENDPOINT_URL"],
            region_name=REGION,
            aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
        )
        self.ids: dict[str, str] = {}
        self._pool: dict[str, Any] = {}

    def record(self, role: str) -> AccountRecord:
        return self._lab.emulator.world().account(self.ids[role])

    async def make(self) -> None:
        await asyncio.gather(*(self._aws_account(role) for role in NAMES))
        pool = await self._lab.kube.create(
            ACCOUNT_POOL, {"metadata": {"name": POOL}, "spec": {"poolSize": 0}}, OPERATOR_NAMESPACE
        )
        self._pool = {"name": POOL, "uid": text(pool, "metadata", "uid")}
        ready = [_left(each) for each in ("Creating", "InitializingRegions", "PendingVerification", "Ready")]
        await self._account("settled", self.ids["settled"], {"state": "Ready", "conditions": ready})
        await self._account("torn", "", {"state": "Creating", "conditions": ready[:1]})
        await self._account("emptied", self.ids["emptied"], {})
        link = {"claimLink": TENANT, "claimLinkNamespace": TENANT, "legalEntity": {"id": ENTITY, "name": ENTITY}}
        await self._account("linked", self.ids["linked"], {"state": "Ready", "conditions": ready}, **link)
        await self._claim()

    async def _aws_account(self, role: str) -> None:
        name, suffix = NAMES[role], NAMES[role].rsplit("-", 1)[1]
        await asyncio.to_thread(
            self.payer.create_account, AccountName=name, Email=f"osd-creds-mgmt+{suffix}@redhat.com"
        )

        self.ids[role] = await eventually(lambda: self._id_of(name), f"AWS has made {name}")

    async def _id_of(self, name: str) -> str:
        return next((each.id for each in self._lab.emulator.world().accounts if each.name == name), "")

    async def _account(self, role: str, id_: str, status: dict[str, Any], **spec: Any) -> None:
        name, kube = NAMES[role], self._lab.kube
        owner = {"apiVersion": "aws.managed.openshift.io/v1alpha1", "kind": "AccountPool", "controller": True}
        metadata = {
            "name": name,
            "labels": {"iamUserId": name.rsplit("-", 1)[1]},
            "finalizers": [FINALIZER],
            "ownerReferences": [{**owner, **self._pool, "blockOwnerDeletion": True}],
        }
        own = {"awsAccountID": id_, "iamUserSecret": f"{name}-secret" if id_ else "", "accountPool": POOL, **spec}
        made = await kube.create(ACCOUNT, {"metadata": metadata, "spec": own}, OPERATOR_NAMESPACE)
        owner = {**owner, "kind": "Account", "name": name, "uid": text(made, "metadata", "uid")}
        await kube.create(
            SECRET,
            {"metadata": {"name": f"{name}-secret", "ownerReferences": [owner]}, "type": "Opaque", "data": _key(role)},
            OPERATOR_NAMESPACE,
        )
        if status:
            await self._lab.change(ACCOUNT, OPERATOR_NAMESPACE, name, {"status": status}, subresource="status")

    async def _claim(self) -> None:
        """Bound by the Account's side alone: the operator died between its two writes."""
        await self._lab.ensure(NAMESPACE, "", {"metadata": {"name": TENANT}})
        await self._lab.ask(TENANT, ENTITY)
        await self._lab.change(
            ACCOUNT_CLAIM, TENANT, TENANT, {"metadata": {"finalizers": [FINALIZER]}, "spec": {"accountPool": POOL}}
        )
        status = {"state": "Pending", "conditions": [{**_left("Unclaimed"), "reason": "AccountClaimed"}]}
        await self._lab.change(ACCOUNT_CLAIM, TENANT, TENANT, {"status": status}, subresource="status")


def _left(type_: str) -> dict[str, str]:
    times = {"lastProbeTime": LONG_AGO, "lastTransitionTime": LONG_AGO}
    return {"type": type_, "status": "True", "reason": type_, "message": type_, **times}


def _key(role: str) -> dict[str, str]:
    entries = {"aws_user_name": f"osdManagedAdmin-{role}", "aws_access_key_id": role, "aws_secret_access_key": role}
    return {name: base64.b64encode(value.encode()).decode() for name, value in entries.items()}


@pytest.fixture(scope="module")
async def past(deployment: Deployment) -> AsyncIterator[tuple[Lab, Past]]:
    """What was left, and then the product."""
    async with laboratory(deployment) as lab:
        left = Past(lab, deployment)
        await left.make()
        lab.emulator.reset_ledger()
        async with product(deployment):
            yield lab, left
            await lab.leave()


async def test_objects_left_by_the_operator_are_adopted_in_any_state(past: tuple[Lab, Past]) -> None:
    lab, left = past
    before = lab.account(NAMES["settled"])
    for role in ("torn", "emptied"):
        await lab.until(
            f"the {role} account is Ready", lambda role=role: lab.account(NAMES[role]).status.state == "Ready", 150
        )
        assert lab.account(NAMES[role]).spec.aws_account_id == left.ids[role]
    claimed = await lab.served(TENANT)
    assert claimed.metadata.name == NAMES["linked"]
    claim = lab.claim(TENANT)
    assert claim is not None
    await lab.until(
        "the account says the uid of its claim",
        lambda: lab.account(NAMES["linked"]).metadata.annotations.get(CLAIM_UID_ANNOTATION) == claim.metadata.uid,
    )
    assert await lab.has_secret(TENANT, CREDENTIALS)
    await lab.says(ACCOUNT, OPERATOR_NAMESPACE, NAMES["settled"], "ready to be claimed")
    assert lab.account(NAMES["settled"]).status == before.status
    ledger = lab.emulator.ledger()
    assert ledger.calls("organizations", "CreateAccount") == 0
    assert [c for c in ledger.counts if c.account == left.ids["settled"] and c.mutating] == []
    assert sum(account.name in NAMES.values() for account in lab.emulator.world().accounts) == len(NAMES)


async def test_an_emptied_account_keeps_its_words(past: tuple[Lab, Past]) -> None:
    lab, _ = past
    creating = condition_of(lab.account(NAMES["emptied"]).status.conditions, "Creating")
    assert creating is not None
    assert creating.message == "AWS account already created"


async def test_an_account_that_was_moved_and_tagged_by_hand_is_corrected_as_the_flags_say(
    past: tuple[Lab, Past],
) -> None:
    lab, left = past
    flags = ("feature.validation_move_account", "feature.validation_tag_account")
    async with lab.configured(*flags) as config:
        elsewhere = left.record("linked").parent  # the OU of another legal entity
        target = {"AccountId": left.ids["settled"], "SourceParentId": config["root"]}
        await asyncio.to_thread(left.payer.move_account, **target, DestinationParentId=elsewhere)
        tags = [{"Key": "owner", "Value": "somebody"}]
        await asyncio.to_thread(left.payer.tag_resource, ResourceId=left.ids["settled"], Tags=tags)
        await lab.configure(dict.fromkeys(flags, "true"))

        async def right() -> bool:
            record = left.record("settled")
            return (record.parent, record.tags.get("owner")) == (config["root"], config["shard-name"])

        await eventually(right, "the account is where and whose it should be")
        assert left.record("linked").parent == elsewhere
        await wake(lab.temporal, THE_VALIDATION)
        await lab._says(THE_VALIDATION.workflow_id, "validated")


async def test_the_sweep_removes_what_failed_without_an_account_and_raises_new_quotas(past: tuple[Lab, Past]) -> None:
    lab, left = past
    stray = "osd-creds-mgmt-str222"  # of no pool: its own lifecycle leaves it to people
    spec = {"awsAccountID": "", "iamUserSecret": "", "claimLink": ""}
    await lab.kube.create(ACCOUNT, {"metadata": {"name": stray}, "spec": spec}, OPERATOR_NAMESPACE)
    failed = {"status": {"state": "Failed", "conditions": [_left("Failed")]}}
    await lab.change(ACCOUNT, OPERATOR_NAMESPACE, stray, failed, subresource="status")
    await lab.says(ACCOUNT, OPERATOR_NAMESPACE, stray, "Failed")
    flags = ("feature.validation_delete_account", "feature.accountpool_validation")
    async with lab.configured(*flags, "accountpool"):
        pools = {POOL: {"default": True, "servicequotas": {"default": {RULES: "120"}}}}
        await lab.configure({**dict.fromkeys(flags, "true"), "accountpool": json.dumps(pools)})
        await lab.until("the stray is removed", lambda: lab.objects.one(ACCOUNT, OPERATOR_NAMESPACE, stray) is None)
        await lab.until("the quotas of the settled one are raised", lambda: _raised(lab.account(NAMES["settled"])))
        settled = lab.account(NAMES["settled"])
        assert settled.spec.regional_service_quotas["default"][RULES].value == 120
        assert settled.status.state == "Ready"
        requested = [each for each in lab.emulator.world().quota_requests if each.account == left.ids["settled"]]
        assert {(each.region, each.code) for each in requested} == {
            (r, RULES) for r in settled.status.regional_service_quotas
        }
        assert len(requested) == len(settled.status.regional_service_quotas)


def _raised(account: Account) -> bool:
    shown = account.status.regional_service_quotas.values()
    return bool(shown) and {quota.status for codes in shown for quota in codes.values()} == {"COMPLETED"}
