"""The operator's ConfigMap as the accounts' workers follow it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from accounts_lab import Lab, laboratory
from kube_fault_proxy import FaultProxy
from waiting import eventually

from activities.accounts.cache import THE_CONFIG_MAP, Reader
from domain.accounts.constants import CONFIG_MAP as CONFIG_MAP_NAME
from domain.accounts.constants import OPERATOR_NAMESPACE
from engine.kube import CONFIG_MAP, KubeApi
from engine.kube.informer_cache import Store
from engine.kube.json import text
from engine.settings import Settings
from localcloud.deployment import Deployment

pytestmark = pytest.mark.integration

OPTED = "opt-in-regions"


@pytest.fixture
async def lab(deployment: Deployment) -> AsyncIterator[Lab]:
    async with laboratory(deployment) as found:
        yield found


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


async def changed(lab: Lab, regions: str) -> dict[str, str]:
    """The ConfigMap names these regions; what a wake says of it."""
    await lab.configure({OPTED: regions})
    found = await lab.kube.get(CONFIG_MAP, OPERATOR_NAMESPACE, CONFIG_MAP_NAME)
    return {CONFIG_MAP.name: text(found, "metadata", "resourceVersion")}
