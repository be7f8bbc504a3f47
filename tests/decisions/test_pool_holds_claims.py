"""What a pool writes of a claim before it gives it an account."""

from __future__ import annotations

from typing import cast

from memory_kube import MemoryKube
from temporalio.client import Client

from activities.accounts.handover import HandOver
from activities.accounts.pool import PoolActivities
from activities.accounts.reading import Reader
from domain.accounts import ACCOUNT_CLAIM
from domain.accounts.constants import FINALIZER
from domain.accounts.resources import AccountClaim
from engine.settings import Settings


async def test_the_finalizer_comes_with_the_fields_that_go_structs_always_show() -> None:
    kube = MemoryKube()
    asked = {"legalEntity": {"id": "e", "name": "E"}, "accountLink": ""}
    await kube.create(ACCOUNT_CLAIM, {"metadata": {"name": "claim", "finalizers": ["theirs"]}, "spec": asked}, "tenant")
    pool = PoolActivities(Reader(kube, Settings()), cast("HandOver", None), cast("Client", None))  # type: ignore[arg-type]
    await pool._hold_claim(AccountClaim.model_validate(await kube.get(ACCOUNT_CLAIM, "tenant", "claim")))
    held = await kube.get(ACCOUNT_CLAIM, "tenant", "claim")
    assert held["metadata"]["finalizers"] == ["theirs", FINALIZER]
    empty = {"byocSecretRef": {"name": "", "namespace": ""}, "fleetManagerConfig": {"trustedARN": ""}}
    assert held["spec"] == {**asked, **empty}
    await pool._hold_claim(AccountClaim.model_validate(held))
    assert await kube.get(ACCOUNT_CLAIM, "tenant", "claim") == held, "a claim that has the finalizer is not written"
