"""When claims and handles begin, end, and by what their ends are bounded: to the second, and also after an outage."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from claims.claims_ground import GADGET, PATIENT, PROMPT, Ground
from claims.claims_lab import Lab
from claims.claims_objects import Json, look, moment, now, stamp
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.claims.events import LIFESPAN_END_CHANGED
from domain.resource import parse_timestamp

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

HOUR = timedelta(hours=1)


async def provider(ground: Ground, word: str = "lab", **lifespan: str) -> None:
    """A provider of Gadgets with these terms, ready as soon as they are there."""
    await ground.provider(word, override=ground.gadget(), readinessCheck="true", lifespan=lifespan)


async def slow_provider(ground: Ground, **lifespan: str) -> None:
    """The same, but a Gadget's own controller says when it is ready."""
    await ground.provider("lab", override=ground.gadget(), readinessCheck="status.ready", lifespan=lifespan)


def ahead(seconds: float) -> str:
    """A moment to come, in whole seconds."""
    return stamp(now() + timedelta(seconds=seconds))


def lasts(ground: Ground, name: str = "mine", since: str = "start") -> timedelta:
    claim = ground.claim(name)
    return moment(claim, "status.lifespan.end") - moment(claim, f"status.lifespan.{since}")


def end_of(handle: Json) -> datetime | None:
    return parse_timestamp(str(look(handle, "spec.lifespan.end") or ""))


# --- beginning ---


async def test_before_its_start_nothing_is_done_for_a_claim_and_nothing_is_written(ground: Ground) -> None:
    await provider(ground)
    start = now().replace(microsecond=0) + timedelta(seconds=6)
    created = await ground.ask("mine", provider="lab", lifespan={"start": stamp(start)})
    await ground.others_go_on()
    if now() < start:
        assert look(ground.claim(), "metadata.resourceVersion") == look(created, "metadata.resourceVersion")
    await ground.bound(seconds=(start - now()).total_seconds() + PROMPT)
    assert now() >= start
    assert moment(ground.claim(), "status.lifespan.start") >= start


async def test_a_start_brought_forward_counts_at_once(ground: Ground) -> None:
    await provider(ground)
    await ground.ask("mine", provider="lab", lifespan={"start": ahead(3600)})
    await ground.others_go_on()
    assert "status" not in ground.claim()
    await ground.edit_claim(lifespan=None)
    await ground.bound(seconds=PROMPT)


# --- terms ---


async def test_without_a_wish_the_default_counts_from_the_handle_on_to_the_second(ground: Ground) -> None:
    await slow_provider(ground, default="90m", maximum="7d")
    await ground.ask("mine", provider="lab")
    handle = await ground.bound()
    await ground.served()
    assert lasts(ground) == timedelta(minutes=90)
    assert end_of(handle) == moment(ground.claim(), "status.lifespan.end")
    assert look(handle, "spec.lifespan.default") == "1h30m"
    assert look(handle, "spec.lifespan.maximum") == look(ground.claim(), "status.lifespan.maximum") == "7d"
    assert "firstReady" not in look(ground.claim(), "status.lifespan")
    assert look(ground.claim(), "spec.lifespan") is None


async def test_the_default_restarts_when_the_environment_is_usable_first(ground: Ground) -> None:
    await slow_provider(ground, default="1h")
    await ground.ask("mine", provider="lab")
    await ground.served()
    start = moment(ground.claim(), "status.lifespan.start")
    await until_after(start + timedelta(seconds=1))
    await ground.report(look(ground.resource(), "metadata.name"), ready=True)
    await ground.until("it was ready", lambda: look(ground.claim(), "status.lifespan.firstReady"), PROMPT)
    claim, handle = ground.claim(), ground.handle()
    assert lasts(ground, since="firstReady") == HOUR
    assert moment(claim, "status.lifespan.firstReady") > start == moment(claim, "status.lifespan.start")
    assert moment(claim, "spec.lifespan.end") == moment(claim, "status.lifespan.end") == end_of(handle)
    await ground.says("mine", LIFESPAN_END_CHANGED)


async def until_after(instant: datetime) -> None:
    """Let the clock pass it."""
    await asyncio.sleep(max(0.0, (instant - now()).total_seconds()) + 0.05)


async def test_a_wish_of_the_user_survives_the_first_readiness(ground: Ground) -> None:
    await slow_provider(ground, default="1h", maximum="1d")
    end = ahead(2 * 3600)
    await ground.ask("mine", provider="lab", lifespan={"end": end})
    await ground.served()
    await ground.report(look(ground.resource(), "metadata.name"), ready=True)
    await ground.until("it was ready", lambda: look(ground.claim(), "status.lifespan.firstReady"), PROMPT)
    assert look(ground.claim(), "spec.lifespan.end") == look(ground.claim(), "status.lifespan.end") == end


async def test_a_wish_beyond_the_maximum_is_cut_at_once_and_stays_a_wish(ground: Ground) -> None:
    await slow_provider(ground, default="1h", maximum="2h")
    request = ahead(10 * 3600)
    await ground.ask("mine", provider="lab", lifespan={"end": request})
    handle = await ground.bound()
    await ground.served()
    assert lasts(ground) == 2 * HOUR
    assert end_of(handle) == moment(ground.claim(), "status.lifespan.end")
    assert look(ground.claim(), "spec.lifespan.end") == request


async def test_a_changed_wish_moves_the_end_up_to_the_maximum(ground: Ground) -> None:
    await provider(ground, default="1h", maximum="2h")
    await ground.ask("mine", provider="lab")
    await ground.ready()
    shorter = ahead(1800)
    await ground.edit_claim(lifespan={"end": shorter})
    await ground.until(
        "the end is nearer", lambda: look(ground.claim(), "status.lifespan.end") == shorter == ends(ground), PROMPT
    )
    await ground.edit_claim(lifespan={"end": ahead(9 * 3600)})
    await ground.until("it is cut", lambda: lasts(ground, since="firstReady") == 2 * HOUR, PROMPT)
    await ground.until("the handle's too", lambda: end_of(ground.handle()) == moment_of_end(ground), PROMPT)
    # A wish withdrawn changes nothing.
    before = ends(ground)
    await ground.edit_claim(lifespan=None)
    await ground.others_go_on()
    assert ends(ground) == before


def ends(ground: Ground, name: str = "mine") -> object:
    return look(ground.handle(name), "spec.lifespan.end")


def moment_of_end(ground: Ground, name: str = "mine") -> datetime:
    return moment(ground.claim(name), "status.lifespan.end")


async def test_a_wish_beyond_the_relative_maximum_is_granted_as_far_as_that_reaches(ground: Ground) -> None:
    await provider(ground, default="10m", relativeMaximum="1h")
    await ground.ask("mine", provider="lab", lifespan={"end": ahead(3 * 3600)})
    await ground.ready()
    assert abs(lasts(ground) - HOUR) <= timedelta(seconds=3)
    assert look(ground.claim(), "status.lifespan.relativeMaximum") == "1h"
    # It moves when half of it has passed, not at each look; on a busy machine the first looks may still be under way.
    await ground.others_go_on()
    before = ends(ground)
    await ground.edit(RESOURCE_CLAIM, "mine", {"metadata": {"annotations": {"look": "again"}}})
    await ground.others_go_on()
    assert ends(ground) == before


async def test_a_relative_maximum_alone_is_the_lifespan(ground: Ground) -> None:
    await slow_provider(ground, maximum="7d", relativeMaximum="1d")
    await ground.ask("mine", provider="lab")
    await ground.served()
    assert lasts(ground) == timedelta(days=1)


async def test_a_maximum_of_mixed_units_is_shown_in_one(ground: Ground) -> None:
    await slow_provider(ground, default="1h", maximum="1h30m")
    await ground.ask("mine", provider="lab")
    await ground.served()
    assert look(ground.claim(), "status.lifespan.maximum") == "90m"
    assert look(ground.handle(), "spec.lifespan.maximum") == "1h30m"


async def test_a_maximum_that_is_a_template_follows_the_claims_metadata(ground: Ground) -> None:
    await slow_provider(ground, default="1h", maximum="{{ resource_claim.annotations['most'] | default('2h') }}")
    await ground.ask("mine", provider="lab", lifespan={"end": ahead(9 * 3600)})
    await ground.served()
    assert (look(ground.claim(), "status.lifespan.maximum"), lasts(ground)) == ("2h", 2 * HOUR)
    await ground.edit(RESOURCE_CLAIM, "mine", {"metadata": {"annotations": {"most": "3h"}}})
    await ground.until("it is longer", lambda: look(ground.claim(), "status.lifespan.maximum") == "3h", PROMPT)
    await ground.until("so is the end", lambda: lasts(ground) == 3 * HOUR, PROMPT)


async def test_claims_without_terms_have_no_end(ground: Ground) -> None:
    await ground.provider()
    await ground.ask("mine", provider="lab")
    await ground.ready()
    assert set(look(ground.claim(), "status.lifespan")) == {"start", "firstReady"}
    assert look(ground.handle(), "spec.lifespan") in (None, {})


# --- pools' handles ---


async def pool_of_one(ground: Ground, **spec: Any) -> Json:
    """The only handle of a pool that has come into being."""
    await ground.pool(minAvailable=1, provider={"name": ground.named("lab")}, **spec)
    await ground.until("the pool is filled", lambda: ground.free_handles())
    return ground.free_handles()[0]


async def test_an_unclaimed_handle_ends_a_fixed_time_after_its_creation_exactly(ground: Ground) -> None:
    await provider(ground, default="5h")
    handle = await pool_of_one(ground, lifespan={"unclaimed": "1h", "default": "2h", "maximum": "3h"})
    birth = moment(handle, "metadata.creationTimestamp")
    # A second write corrects the end if the API server notes the birth in the next second.
    await ground.until(
        "the handle ends an hour after its creation",
        lambda: moment(ground.free_handles()[0], "spec.lifespan.end") - birth == HOUR,
    )
    assert look(handle, "spec.lifespan.default") == "2h"
    await ground.ask("mine", provider="lab")
    await ground.ready()
    assert ground.handle_name() == look(handle, "metadata.name")
    # Bound when it was ready already, its default counts from then on.
    assert lasts(ground) == lasts(ground, since="firstReady") == 2 * HOUR
    assert end_of(ground.handle()) == moment_of_end(ground)


async def test_a_pools_handle_takes_its_providers_terms_each_in_its_place(ground: Ground) -> None:
    await provider(ground, default="1h", maximum="2d", relativeMaximum="4h", unclaimed="30m")
    handle = await pool_of_one(ground)
    terms = {name: look(handle, f"spec.lifespan.{name}") for name in ("default", "maximum", "relativeMaximum")}
    assert terms == {"default": "1h", "maximum": "2d", "relativeMaximum": "4h"}
    unclaimed = moment(handle, "spec.lifespan.end") - moment(handle, "metadata.creationTimestamp")
    # The end is reckoned when the handle is sent; the API server may note its birth in the next second.
    assert timedelta(minutes=30, seconds=-1) <= unclaimed <= timedelta(minutes=30)


async def test_without_a_default_a_bound_handle_keeps_its_unclaimed_end(ground: Ground) -> None:
    await ground.provider()
    handle = await pool_of_one(ground, lifespan={"unclaimed": "1h"})
    await ground.ask("mine", provider="lab")
    await ground.ready()
    assert look(ground.claim(), "status.lifespan.end") == look(handle, "spec.lifespan.end")


async def test_an_unclaimed_handle_ends_on_the_second_and_is_replaced(ground: Ground) -> None:
    await ground.provider()
    handle = await pool_of_one(ground, lifespan={"unclaimed": "20s"})
    name, end = look(handle, "metadata.name"), moment(handle, "spec.lifespan.end")
    await ground.gone(RESOURCE_HANDLE, name, 20 + PROMPT)
    assert timedelta(0) <= now() - end < timedelta(seconds=PROMPT)
    await ground.until("there is another", lambda: ground.free_handles(), PROMPT)


# --- ends ---


async def ends_in(ground: Ground, seconds: int) -> datetime:
    """Have the claim end in so many seconds; returns the end that its status shows."""
    end = ahead(seconds)
    await ground.edit_claim(lifespan={"end": end})
    await ground.until("the handle has the end", lambda: ends(ground) == end, PROMPT)
    await ground.until("the claim shows it", lambda: look(ground.claim(), "status.lifespan.end") == end, PROMPT)
    return moment_of_end(ground)


async def test_a_claim_ends_on_the_second_with_all_that_it_has(ground: Ground) -> None:
    await ground.provider()
    await ground.ask("mine", provider="lab")
    await ground.ready()
    handle, gadget = ground.handle_name(), look(ground.resource(), "metadata.name")
    end = await ends_in(ground, 15)
    await ground.gone(RESOURCE_CLAIM, "mine", 15 + PROMPT)
    assert timedelta(0) <= now() - end < timedelta(seconds=PROMPT)
    await ground.gone(RESOURCE_HANDLE, handle, PROMPT)
    await ground.gone(GADGET, gadget, PROMPT)


@pytest.mark.complete
async def test_claims_that_end_together_end_on_the_second(ground: Ground) -> None:
    await ground.provider()
    end, names = ahead(30), [f"together-{number}" for number in range(20)]
    await asyncio.gather(*(ground.ask(name, provider="lab", lifespan={"end": end}) for name in names))
    for name in names:
        await ground.ready(name)
    instant = moment_of_end(ground, names[0])
    await ground.until("all have ended", lambda: not ground.claims(), (instant - now()).total_seconds() + PROMPT)
    assert timedelta(0) <= now() - instant
    await ground.until("with all that they had", lambda: not (ground.handles() or ground.gadgets()), PROMPT)


async def test_an_end_that_is_brought_forward_counts(ground: Ground) -> None:
    await provider(ground, default="1h")
    await ground.ask("mine", provider="lab")
    await ground.ready()
    end = await ends_in(ground, 20)
    await ground.gone(RESOURCE_CLAIM, "mine", (end - now()).total_seconds() + PROMPT)
    assert now() >= end


async def test_an_end_in_the_past_means_now(ground: Ground) -> None:
    await provider(ground, default="1h")
    await ground.ask("mine", provider="lab")
    await ground.ready()
    handle = ground.handle_name()
    await ground.edit_claim(lifespan={"end": ahead(-3600)})
    await ground.gone(RESOURCE_CLAIM, "mine", PROMPT)
    await ground.gone(RESOURCE_HANDLE, handle, PROMPT)


async def test_an_end_in_fractions_of_a_second_is_understood(ground: Ground) -> None:
    await provider(ground, default="1h", maximum="1d")
    end = (now() + 2 * HOUR).replace(microsecond=500_000)
    await ground.ask("mine", provider="lab", lifespan={"end": end.isoformat().replace("+00:00", "Z")})
    await ground.ready()
    assert abs(moment_of_end(ground) - end) < timedelta(seconds=1)


async def test_a_handles_end_that_a_person_moves_counts(ground: Ground) -> None:
    await provider(ground, default="1h")
    handle = await pool_of_one(ground, lifespan={"unclaimed": "1h"})
    name = look(handle, "metadata.name")
    await ground.edit(RESOURCE_HANDLE, name, {"spec": {"lifespan": {"end": ahead(-5)}}})
    await ground.gone(RESOURCE_HANDLE, name, PROMPT)


@pytest.mark.complete
async def test_a_detached_claim_ends_when_it_would_have(ground: Ground) -> None:
    await ground.provider()
    when = {"when": "'done' in metadata.annotations"}
    await ground.ask("mine", provider="lab", autoDetach=when)
    await ground.ready()
    end, handle = await ends_in(ground, 30), ground.handle_name()
    await ground.edit(RESOURCE_CLAIM, "mine", {"metadata": {"annotations": {"done": "yes"}}})
    await ground.gone(RESOURCE_HANDLE, handle, PROMPT)
    assert ground.claim()
    await ground.gone(RESOURCE_CLAIM, "mine", (end - now()).total_seconds() + PROMPT)
    assert now() >= end


@pytest.mark.complete
async def test_ends_that_pass_while_everything_is_down_are_made_up_for_at_the_start(lab: Lab, ground: Ground) -> None:
    await ground.provider()
    await ground.ask("mine", provider="lab")
    await ground.ready()
    free = look(await pool_of_one(ground, lifespan={"unclaimed": "1h"}), "metadata.name")
    await ground.until("the pool's handle is ready", lambda: look(ground.one(RESOURCE_HANDLE, free), "status.ready"))
    end = await ends_in(ground, 30)
    await ground.edit(RESOURCE_HANDLE, free, {"spec": {"lifespan": {"end": stamp(end)}}})
    handle = ground.handle_name()
    async with lab.without_product():
        assert ground.claim()
        await until_after(end)
    await ground.gone(RESOURCE_CLAIM, "mine", PROMPT)
    await ground.gone(RESOURCE_HANDLE, handle, PROMPT)
    await ground.gone(RESOURCE_HANDLE, free, PROMPT)
    await ground.until("the pool is filled again", lambda: ground.free_handles(), PATIENT)
