"""Each kind of call to 3scale broken in each way, one after the other: passes alone, without Kubernetes and Temporal.

One of each of the eleven kinds is created, changed and deleted; in each turn every kind of call that changes something
meets the fault once: an answer that is lost or late, a refusal, the death of the caller. The result is the same as
comes of a life that nothing disturbs. `tests/chaos/test_threescale_broken.py` does the same with real processes and
servers, and takes a hundred times as long.

Where the one answer that shows a tenant's token is lost a person makes another token, as the Tenant asks for it.
"""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from threescale_lab import Shop
from threescale_passes_lab import MOST_ROUNDS, Passes, one_worker

from domain.decision import Outcome
from domain.identity import Key
from domain.threescale import TENANT
from engine.errors import Absent, Conflict, Throttled, Unavailable
from engine.kube import SECRET
from localcloud.bench.threescale_all_kinds import TENANT_TOKEN, all_kinds, differences, holds
from localcloud.threescale.contract import Fault
from localcloud.threescale.control import ThreescaleControl
from tests.chaos.chaos_threescale_turns import CALLS, changes, is_believed

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(600)]

UNDISTURBED = json.loads((Path(__file__).parents[2] / "chaos" / "threescale_undisturbed.json").read_text())
ANSWERS: dict[str, dict[str, Any]] = {
    "later than is waited for": {"kind": "delay", "delay_seconds": 2},
    "done, answer lost": {"kind": "after"},
    "done, answer broken off": {"kind": "cut"},
    "done, answered 502": {"kind": "refuse-after", "status": 502},
    "not heard": {"kind": "before"},
    "refused with 500": {"status": 500},
    "refused with 503": {"status": 503},
    "refused with 429": {"status": 429, "headers": {"Retry-After": "1"}},
    "refused with 403": {"status": 403},
    "refused with 404": {"status": 404},
    "refused with 409": {"status": 409},
    "refused with 422": {"status": 422},
}
DEATHS: dict[str, dict[str, Any]] = {
    "caller dies after the effect": {"kind": "hang", "late_answer": True},
    "caller dies before the effect": {"kind": "hang", "late_answer": False},
}


class Life:
    """One of each kind in a tenant of its own, passed over by one worker."""

    def __init__(self, passes: Passes, control: ThreescaleControl, shop: Shop) -> None:
        self._passes = passes
        self._control = control
        self._shop = shop
        self._master = control.tenant("master")
        self._tenant = next(each.name for each in control.tenants() if each.url == shop.tenant.url)
        self._organization = f"branch-{shop.namespace}"

    async def take(self, turn: str) -> None:
        """What people do."""
        kube, namespace = self._passes.kube, self._shop.namespace
        for kind, body in all_kinds(self._master, self._organization) if turn != "change" else ():
            if turn == "create":
                await kube.create(kind, body, namespace)
            elif kind != SECRET:
                await kube.delete(kind, namespace, str(body["metadata"]["name"]))  # type: ignore[index]
        for kind, name, patch in changes() if turn == "change" else ():
            await kube.patch(kind, namespace, name, patch)

    def arm(self, turn: str, fault: dict[str, Any]) -> None:
        """Every kind of call of the turn meets the fault once, unless its answer would say that the effect is there."""
        for call in CALLS[turn]:
            method, route = call.split(" ")
            if is_believed(call, str(fault.get("status", ""))):
                continue
            parts = ["[^/]+" if part.startswith("{") else part for part in route.split("/")]
            self._control.fault(method, "/".join(parts) + r"(\.json)?$", count=1, **fault)

    def missed(self) -> list[str]:
        """Kinds of calls that never came."""
        return [f"{each.method} {each.path}" for each in self._control.faults() if not each.hits]

    async def settled(self) -> None:
        """Round after round until everything is as it shall be, or gone.

        Raises:
            AssertionError: it never is.
        """
        phases: list[str] = []
        for _ in range(2 * MOST_ROUNDS):
            self._passes.ahead += timedelta(days=1)
            await self._open_branch()
            worlds = [await self._look(key) for key in await self._passes.keys(self._shop)]
            phases = [each for each in worlds if each]
            if not phases:
                return
        raise AssertionError(f"not settled: {phases}; not called: {self.missed()}")

    async def _look(self, key: Key) -> str:
        """One pass, whose caller dies when a call hangs; what it waits for, empty where all is well."""
        running = asyncio.create_task(self._passes.look(key))
        while not running.done():
            await asyncio.wait([running], timeout=0.25)
            hanging = [each for each in self._control.faults() if each.kind == "hang" and each.hits]
            if hanging and not running.done():
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                self._die(key, hanging)
                return f"{key}: died"
        try:
            decision = running.result().decision
        except (Conflict, Throttled, Unavailable) as error:  # as the server does: again
            return f"{key}: {error}"
        well = decision.outcome in (Outcome.SETTLED, Outcome.GONE)
        return "" if well else f"{key}: {decision.phase}, {decision.why}"

    def _die(self, key: Key, hanging: list[Fault]) -> None:
        """What it knew is lost; nothing hangs any more."""
        self._passes.memory.pop(key, None)
        for each in hanging:
            self._control.clear(each.id)

    async def _open_branch(self) -> None:
        """The person's part."""
        tenant = await self._shop.get(TENANT, "branch")
        made = [each for each in self._control.tenants() if each.name.startswith(self._organization)]
        noted = tenant is not None and "tenantID" in tenant["metadata"].get("annotations", {})
        if not noted or len(made) != 1:
            return
        name = f"{TENANT_TOKEN}-{self._organization}"
        try:
            await self._passes.kube.get(SECRET, self._shop.namespace, name)
        except Absent:
            await self._shop.secret(name, token=self._control.add_token(made[0].name).value)

    def odd(self, turn: str) -> list[str]:
        """What is in 3scale otherwise than after a life that nothing disturbs."""
        branches = [each.state for each in self._control.tenants() if each.name.startswith(self._organization)]
        expected = ["scheduled_for_deletion" if turn == "delete" else "approved"]
        wrong = [f"tenants of its own: {branches}"] if branches != expected else []
        return wrong + differences(UNDISTURBED[turn], holds(self._control.world(self._tenant)))


@pytest.mark.parametrize("fault", [*ANSWERS, *DEATHS])
async def test_each_kind_of_call_may_break_and_everything_comes_to_the_same(
    control: ThreescaleControl, fault: str
) -> None:
    async with one_worker(call_timeout=timedelta(seconds=1 if "later" in fault else 30)) as passes:
        shop = await passes.shop_of_its_own(control)
        life = Life(passes, control, shop)
        for turn, calls in CALLS.items():
            life.arm(turn, (ANSWERS | DEATHS)[fault])
            await life.take(turn)
            await life.settled()
            assert not life.missed(), f"of {len(calls)}"
            control.clear()
            assert not life.odd(turn), f"after {turn}"
        assert await passes.keys(shop) == []
