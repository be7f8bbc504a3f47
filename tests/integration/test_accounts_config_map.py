"""The operator's ConfigMap as the accounts' workers follow it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import boto3
import pytest
from accounts_lab import POOL, Lab, laboratory, product
from kube_fault_proxy import FaultProxy
from waiting import eventually

from activities.accounts.cache import THE_CONFIG_MAP, Reader
from domain.accounts import ACCOUNT_POOL
from domain.accounts.constants import CCS_ACCESS_KEY, CCS_ACCESS_ROLE, OPERATOR_NAMESPACE
from domain.accounts.constants import CONFIG_MAP as CONFIG_MAP_NAME
from domain.accounts.organization import ORGANIZATION
from engine.kube import CONFIG_MAP, KubeApi
from engine.kube.informer_cache import Store
from engine.kube.json import mapping, text
from engine.settings import Settings
from engine.temporal import wake
from localcloud.aws.contract import PAYER_ACCOUNT_ID
from localcloud.deployment import Deployment

pytestmark = pytest.mark.integration

OPTED = "opt-in-regions"


@pytest.fixture
async def lab(deployment: Deployment) -> AsyncIterator[Lab]:
    async with laboratory(deployment) as found:
        yield found


@pytest.mark.usefixtures("patient")
async def test_a_look_is_no_older_than_what_has_woken_it_and_costs_no_request(
    lab: Lab, proxy: FaultProxy, proxied: KubeApi
) -> None:
    async with lab.configured(OPTED), Store(proxied) as store:
        reader = Reader(proxied, Settings(), store)
        await store.follow(THE_CONFIG_MAP).settled()
        proxy.asked.clear()
        for regions in ("eu-south-1", "af-south-1"):
            assert (await reader.config(await changed(lab, regions))).opt_in_regions == (regions,)
        assert ("GET", "configmaps") not in proxy.asked


async def test_where_the_watch_hangs_the_api_server_is_asked(lab: Lab, proxy: FaultProxy, proxied: KubeApi) -> None:
    async with lab.configured(OPTED), Store(proxied) as store:
        reader = Reader(proxied, Settings(), store)
        mirror = store.follow(THE_CONFIG_MAP)
        await mirror.settled()
        await mirror.current()
        proxy.freeze()
        assert (await reader.config(await changed(lab, "eu-south-1"))).opt_in_regions == ("eu-south-1",)
        assert ("GET", "configmaps") in proxy.asked


async def test_a_config_map_that_is_gone_is_seen_to_be_missing(lab: Lab, proxied: KubeApi) -> None:
    async with lab.configured() as content, Store(proxied) as store:
        reader = Reader(proxied, Settings(), store)
        await store.follow(THE_CONFIG_MAP).settled()
        assert (await reader.config({})).present
        await lab.kube.delete(CONFIG_MAP, OPERATOR_NAMESPACE, CONFIG_MAP_NAME)
        try:

            async def missing() -> bool:
                return not (await reader.config({})).present

            await eventually(missing, "it is missing")
        finally:
            await lab.kube.create(
                CONFIG_MAP, {"metadata": {"name": CONFIG_MAP_NAME}, "data": content}, OPERATOR_NAMESPACE
            )


@pytest.mark.timeout(180)
async def test_the_key_for_osdctl_is_written_once_the_payer_has_the_role(lab: Lab, deployment: Deployment) -> None:
    env = deployment.env()
    iam = boto3.client(
        "iam",
        endpoint_url=env["AWS_ENDPOINT_URL"],
        region_name="us-east-1",
        aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
    )

    async def data() -> dict[str, object]:
        return dict(mapping(await lab.kube.get(CONFIG_MAP, OPERATOR_NAMESPACE, CONFIG_MAP_NAME), "data"))

    async with lab.configured(CCS_ACCESS_KEY, OPTED) as before, product(deployment):
        await lab.ensure_pool(0)
        try:
            await lab.organization_says(f"key {CCS_ACCESS_KEY} is not written", CCS_ACCESS_ROLE)
            lab.emulator.reset_ledger()
            await lab.configure({CCS_ACCESS_KEY: "unknown"})
            await eventually(lambda: role_requests(lab), "the role is looked up for the changed key")
            await lab.organization_says(f"key {CCS_ACCESS_KEY} is not written", CCS_ACCESS_ROLE)
            assert await data() == {**before, CCS_ACCESS_KEY: "unknown"}
            arn = iam.create_role(RoleName=CCS_ACCESS_ROLE, AssumeRolePolicyDocument="{}")["Role"]["Arn"]

            async def written() -> bool:
                return await data() == {**before, CCS_ACCESS_KEY: arn}

            async def found() -> str:
                said = await lab.temporal.get_workflow_handle(ORGANIZATION.workflow_id).query("why")
                calls = role_requests(lab)
                return f"the key is written: {await data()} after {calls} calls; the organization says {said}"

            await lab.configure({CCS_ACCESS_KEY: None})
            await eventually(written, found)
            lab.emulator.reset_ledger()
            await lab.configure({CCS_ACCESS_KEY: "changed"})
            await eventually(written, "the key is corrected")
            await wake(lab.temporal, ORGANIZATION)
            await lab.configure({OPTED: "eu-south-1"})

            async def looked_up_again() -> bool:
                return role_requests(lab) > 1

            await eventually(looked_up_again, "a change of another key has the role looked up")
            assert role_requests(lab) == 2, "once for each change, and not for a wake"
        finally:
            await lab.kube.delete(ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL)
            iam.delete_role(RoleName=CCS_ACCESS_ROLE)


def role_requests(lab: Lab) -> int:
    return lab.emulator.ledger().calls("iam", "GetRole", PAYER_ACCOUNT_ID)


async def changed(lab: Lab, regions: str) -> dict[str, str]:
    """The ConfigMap names these regions; what a wake says of it."""
    await lab.configure({OPTED: regions})
    found = await lab.kube.get(CONFIG_MAP, OPERATOR_NAMESPACE, CONFIG_MAP_NAME)
    return {CONFIG_MAP.name: text(found, "metadata", "resourceVersion")}
