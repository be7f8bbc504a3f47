"""Which federated accesses the release of a customer's claim sees as ending with it."""

from __future__ import annotations

from typing import Any

import pytest
from account_objects import AWS_ID, NAME, account, ago, claim
from memory_kube import MemoryKube

from activities.accounts.cache import Reader
from activities.accounts.observation import ObserveActivities
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, AWS_FEDERATED_ACCOUNT_ACCESS
from domain.accounts.constants import FINALIZER
from domain.accounts.passes import ObserveClaim
from domain.identity import Kind
from engine.errors import Absent, ApiError, Denied, Unavailable
from engine.kube import NAMESPACE
from engine.kube.api import Listing
from engine.settings import Settings

GOING = {"deletionTimestamp": ago(minutes=1), "finalizers": [FINALIZER]}
SPEC = {
    "externalCustomerAWSIAMARN": "arn",
    "awsCustomerCredentialSecret": {"name": "keys", "namespace": "tenant"},
    "awsFederatedRole": {"name": "reader", "namespace": "ops"},
}


def access(name: str, of: str = AWS_ID, **meta: Any) -> dict[str, Any]:
    labels = {"uid": "abc123", "awsAccountID": of, "awsFederatedRoleName": "reader"}
    return {"metadata": {"name": name, "labels": labels, **meta}, "spec": SPEC}


class Cluster(MemoryKube):
    """Objects as they are at one moment."""

    def __init__(self, *, may_read_namespaces: bool = True, accesses: ApiError | None = None) -> None:
        super().__init__()
        self._may = may_read_namespaces
        self._refusal = accesses

    async def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
        if kind == NAMESPACE and not self._may:
            raise Denied("get Namespace tenant: forbidden")
        return await super().get(kind, namespace, name)

    async def list(self, kind: Kind, namespace: str = "", **more: Any) -> Listing:
        if kind == AWS_FEDERATED_ACCOUNT_ACCESS and self._refusal:
            raise self._refusal
        return await super().list(kind, namespace, **more)


async def seen(kube: Cluster, *accesses: dict[str, Any], ends: bool, **spec: Any) -> tuple[str, ...]:
    brought = {"byoc": True, "awsAccountID": AWS_ID, "claimLink": "claim", "claimLinkNamespace": "tenant", **spec}
    await kube.create(NAMESPACE, {"metadata": {"name": "tenant", **(GOING if ends else {})}})
    await kube.create(ACCOUNT, account(spec=brought).model_dump(mode="json"), "aws-account-operator")
    leaving = claim(spec={"byoc": True, "accountLink": NAME}, meta=GOING)
    made = await kube.create(ACCOUNT_CLAIM, leaving.model_dump(mode="json"), "tenant")
    for each in accesses:
        await kube.create(AWS_FEDERATED_ACCOUNT_ACCESS, each, "tenant")
    key = leaving.key.model_copy(update={"uid": made["metadata"]["uid"]})
    world = await ObserveActivities(Reader(kube, Settings())).observe_claim(ObserveClaim(key=key))  # type: ignore[arg-type]
    assert world.account is not None
    return world.accesses


async def test_accesses_that_are_deleted_themselves_end_with_the_claim_and_others_do_not() -> None:
    found = await seen(Cluster(), access("goes", **GOING), access("stays"), ends=False)
    assert found == ("goes",)


async def test_of_a_namespace_that_ends_all_accesses_to_the_account_end_with_the_claim() -> None:
    elsewhere = access("elsewhere", of="210987654321")
    assert await seen(Cluster(), access("goes", **GOING), access("next"), elsewhere, ends=True) == ("goes", "next")


async def test_without_the_right_to_read_namespaces_no_release_is_held_up() -> None:
    blind = Cluster(may_read_namespaces=False)
    assert await seen(blind, access("goes", **GOING), access("stays"), ends=True) == ("goes",)


@pytest.mark.parametrize("refusal", [Absent("no such kind"), Denied("forbidden")])
async def test_no_release_is_held_up_where_federated_accesses_cannot_be_listed(refusal: ApiError) -> None:
    assert await seen(Cluster(accesses=refusal), ends=True) == ()


async def test_an_api_server_without_an_answer_tells_nothing_about_federated_accesses() -> None:
    with pytest.raises(Unavailable):
        await seen(Cluster(accesses=Unavailable("no answer")), ends=True)


@pytest.mark.parametrize("spec", [{"manualSTSMode": True}, {"byoc": False, "manualSTSMode": True}])
async def test_an_account_that_no_role_of_ours_opens_waits_for_none(spec: dict[str, Any]) -> None:
    assert await seen(Cluster(), access("goes", **GOING), ends=True, **spec) == ()
