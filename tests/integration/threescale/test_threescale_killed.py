"""The product killed while 3scale is called, again and again: what was wanted comes out, once, and goes again whole.

Calls that change something hang, some after their effect and some before it; then worker and watcher are killed, and
started again. So each kill falls between an effect and the moment at which anybody could have noted it.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest
from product import process
from threescale_lab import SLOW_MACHINE, Shop
from threescale_process import Client, fresh
from threescale_scene import EVERYTHING, everything, holds
from waiting import eventually

from domain.threescale import BACKEND, PRODUCT
from engine.kube import KubeApi
from localcloud.deployment import Deployment
from localcloud.threescale.control import ThreescaleControl

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(1500)]

KILLS = 6


async def shop_of_its_own(kube: KubeApi, control: ThreescaleControl) -> tuple[Shop, str]:
    """A namespace, and the name of its new tenant."""
    made = control.add_tenant(fresh("Tenant"))
    return await Shop(kube, Client(made.url, made.token)).open(), made.name


async def all_ready(shop: Shop) -> None:
    for kind, name, _ in EVERYTHING:
        await (shop.synced(kind, name) if kind in (PRODUCT, BACKEND) else shop.ready(kind, name))


async def killed_while_it_calls(
    deployment: Deployment, control: ThreescaleControl, tenant: str, *, after_effect: bool, skip: int
) -> bool:
    """Whether it has come to a call within the time; it is killed either way."""
    fault = control.fault(
        "[PD]*", "/admin/api", kind="hang", late_answer=after_effect, tenant=tenant, count=1, skip=skip
    )
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(process(deployment, "run"))

        def hangs() -> bool:
            return any(each.hits for each in control.faults() if each.id == fault.id)

        try:
            await eventually(hangs, "a call hangs", 45)
            struck = True
        except pytest.fail.Exception:
            struck = False
        running.kill()
        await running.wait()
    control.clear(fault.id)
    return struck


async def test_kills_between_effects_and_their_notes_double_and_lose_nothing(
    deployment: Deployment, kube: KubeApi, control: ThreescaleControl
) -> None:
    shop, tenant = await shop_of_its_own(kube, control)
    before = holds(control.world(tenant))
    await everything(shop)
    struck = 0
    for number in range(KILLS):
        struck += await killed_while_it_calls(
            deployment, control, tenant, after_effect=number % 3 != 2, skip=2 * number
        )
    assert struck >= KILLS // 2
    reference, other = await shop_of_its_own(kube, control)
    await everything(reference)
    async with process(deployment, "run"):
        await all_ready(shop)
        await all_ready(reference)
    assert holds(control.world(tenant)) == holds(control.world(other))

    for kind, name, _ in EVERYTHING:
        await shop.delete(kind, name)
    for number in range(2):
        await killed_while_it_calls(deployment, control, tenant, after_effect=number == 0, skip=number)
    async with process(deployment, "run"):
        for kind, name, _ in EVERYTHING:
            await shop.gone(kind, name)
        await eventually(lambda: holds(control.world(tenant)) == before, "nothing is left", SLOW_MACHINE)
