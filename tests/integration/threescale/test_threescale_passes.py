"""The passes over 3scale objects against a real API server and the simulator: every order, every fault, no call twice.

Faults strike single calls of a whole life: the call is late, lost before or after its effect, refused in every way, or
answered by what stands in between. However it strikes, in the end the tenant has what one without faults has, once.
"""

from __future__ import annotations

import random

import pytest
from threescale_lab import Shop
from threescale_passes_lab import Passes
from threescale_scene import everything

from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration


async def test_everything_is_settled_whatever_the_order_and_then_costs_no_call(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    dice = random.Random(1)
    await everything(bare_shop, dice)
    await passes.settled(bare_shop, order=dice)
    control.reset_ledger()
    passes.memory.clear()
    for _ in range(2):
        await passes.round(bare_shop)
    assert control.ledger().by_route() == {}
