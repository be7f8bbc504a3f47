"""An Account's opt-in regions and quotas on a clock: looks that last for days, and waiting that costs nothing."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from lifecycles import Lifecycle
from world import SEVENTEEN_REGIONS, World

from domain.accounts.actions.opt_in_regions import EnableRegions, RegionStatuses
from domain.accounts.actions.service_quotas import QuotaStatuses, RaiseQuotas
from domain.accounts.passes import OptInPermit
from domain.accounts.quota_codes import SERVICE_OF
from engine import clock
from engine.errors import Pending

MINUTE = timedelta(minutes=1)
FIVE = tuple(SERVICE_OF)[:5]


class Quotas:
    """AWS, which decides on one request after the other, so that every decision is news by itself."""

    def __init__(self, each: timedelta) -> None:
        self.each = each
        self.done_at: dict[tuple[str, str], datetime] = {}
        self.most_open = 0

    async def __call__(self, action: RaiseQuotas) -> QuotaStatuses:
        statuses = {code: self._status(action.region, code) for code in action.quotas}
        if all(statuses[code] == quota.status for code, quota in action.quotas.items()):
            raise Pending("AWS decides", delay=timedelta(seconds=30))
        return QuotaStatuses(statuses=statuses)

    def _status(self, region: str, code: str) -> str:
        now, key = clock.now(), (region, code)
        if key not in self.done_at:
            last = max([now, *self.done_at.values()])
            self.done_at[key] = last + self.each
            self.most_open = max(self.most_open, sum(moment > now for moment in self.done_at.values()))
        return "COMPLETED" if now >= self.done_at[key] else "IN_PROGRESS"


def want_quotas(world: World) -> None:
    codes = {code: {"value": 100, "status": ""} for code in FIVE}
    world.edit({"spec": {"regionalServiceQuotas": {"default": codes}}})


async def length(lifecycle: Lifecycle) -> int:
    return len((await lifecycle.history()).events)


@pytest.mark.complete
@pytest.mark.recorded
async def test_quotas_that_aws_decides_on_one_by_one_are_asked_for_once_and_twenty_at_most(
    lifecycle: Lifecycle,
) -> None:
    world, quotas = lifecycle.world, Quotas(each=2 * MINUTE)
    world.regions = SEVENTEEN_REGIONS[:5]
    world.answers["aws.raise_quotas"] = quotas
    want_quotas(world)
    await lifecycle.wake()
    await lifecycle.permit()
    await lifecycle.until_state("PendingVerification")
    await lifecycle.until(lambda: world.present.status.support_case_id == "case-1", "the case")
    await lifecycle.resolve()
    for _ in range(120):
        if world.state == "Ready":
            break
        await lifecycle.pass_time(MINUTE)
    await lifecycle.until_state("Ready")
    assert len(quotas.done_at) == 5 * 5
    assert quotas.most_open <= 20
    found = {q.status for codes in world.present.status.regional_service_quotas.values() for q in codes.values()}
    assert found == {"COMPLETED"}


@pytest.mark.complete
async def test_a_request_that_stays_open_for_a_month_costs_no_event(lifecycle: Lifecycle) -> None:
    world = lifecycle.world
    world.answers["aws.raise_quotas"] = Quotas(each=timedelta(days=40))
    want_quotas(world)
    await lifecycle.wake()
    await lifecycle.permit()
    await lifecycle.until(lambda: world.made("aws.raise_quotas") >= 2 * len(world.regions), "the looks")
    await lifecycle.until_why(lambda why: "10 service quotas" in why.why)
    await lifecycle.pass_time(timedelta(hours=1))
    before = await length(lifecycle)
    await lifecycle.pass_time(timedelta(hours=4))
    assert await length(lifecycle) == before


@pytest.mark.recorded
async def test_a_denied_quota_fails_the_account_and_a_retry_requests_it_again(lifecycle: Lifecycle) -> None:
    world = lifecycle.world
    answers = ["DENIED", "COMPLETED"]

    async def decide(action: RaiseQuotas) -> QuotaStatuses:
        return QuotaStatuses(statuses=dict.fromkeys(action.quotas, answers[0]))

    world.regions = ("us-east-1",)
    world.answers["aws.raise_quotas"] = decide
    want_quotas(world)
    await lifecycle.wake()
    await lifecycle.permit()
    await lifecycle.until_state("Failed")
    assert world.condition("Failed")["message"] == "ServiceQuota increase got denied"
    await lifecycle.until_why(lambda why: why.outcome == "failed")
    answers.pop(0)
    requested = world.made("aws.raise_quotas")
    await lifecycle.handle.execute_update("retry", "AWS has been talked to")
    await lifecycle.wake()
    await lifecycle.until(lambda: world.made("aws.raise_quotas") > requested, "the quotas are asked for again")
    await lifecycle.resolve()
    await lifecycle.until_state("Ready")


# --- opt-in regions ---


async def opted_in_to(lifecycle: Lifecycle, hours: int) -> None:
    """AWS enables the regions after so long."""
    begun: list[datetime] = []

    async def enable(action: EnableRegions) -> RegionStatuses:
        begun.append(clock.now())
        done = clock.now() >= begun[0] + timedelta(hours=hours)
        statuses = dict.fromkeys(action.seen, "ENABLED" if done else "ENABLING")
        if statuses == action.seen:
            raise Pending("AWS is enabling", delay=MINUTE)
        return RegionStatuses(statuses=statuses)

    lifecycle.world.answers["aws.enable_regions"] = enable
    features = lifecycle.world.config.features.model_copy(update={"opt_in_regions": True})
    lifecycle.world.config = lifecycle.world.config.model_copy(
        update={"features": features, "opt_in_regions": ("af-south-1", "eu-south-1")}
    )
    await lifecycle.wake()
    await lifecycle.permit()


async def turn(lifecycle: Lifecycle) -> None:
    until = await lifecycle.now() + 2 * MINUTE
    await lifecycle.handle.signal("opt_in_permit", OptInPermit(until=until))


@pytest.mark.recorded
async def test_an_account_waits_for_its_turn_for_hours_and_for_its_regions_for_longer(lifecycle: Lifecycle) -> None:
    await opted_in_to(lifecycle, hours=5)
    await lifecycle.until_why(lambda why: "its turn" in why.why)
    await lifecycle.pass_time(timedelta(hours=3))
    assert lifecycle.world.state == "Creating", "the deadline of 25 minutes does not run"
    await turn(lifecycle)
    await lifecycle.until_state("OptingInRegions")
    await lifecycle.until(lambda: statuses_of(lifecycle.world) == {"ENABLING"}, "AWS enables them")
    await lifecycle.pass_time(timedelta(hours=4))
    assert lifecycle.world.state == "OptingInRegions"
    await lifecycle.pass_time(timedelta(hours=2))
    await lifecycle.until_state("PendingVerification")
    assert statuses_of(lifecycle.world) == {"ENABLED"}
    assert [lifecycle.world.condition(type_)["status"] for type_ in ("OptingInRegions", "OptInRegionsEnabled")] == [
        "True",
        "True",
    ]


def statuses_of(world: World) -> set[str]:
    return {region.status for region in world.present.status.opt_in_regions.values()}


@pytest.mark.parametrize("moment", ["before its turn", "while regions are enabled"])
async def test_a_deletion_ends_the_wait(lifecycle: Lifecycle, moment: str) -> None:
    await opted_in_to(lifecycle, hours=5)
    await lifecycle.until_why(lambda why: "its turn" in why.why)
    if moment == "while regions are enabled":
        await turn(lifecycle)
        await lifecycle.until(lambda: statuses_of(lifecycle.world) == {"ENABLING"}, "AWS enables them")
    lifecycle.world.delete()
    await lifecycle.wake()
    await lifecycle.ended()
