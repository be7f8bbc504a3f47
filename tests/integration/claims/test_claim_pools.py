"""Pools: how they fill, what they count, which handles they give up, and what goes with them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from claims.claims_ground import GADGET, PROMPT, Ground
from claims.claims_objects import NAMES, Json, annotation, deleting, label_of, link, look, moment, now, stamp
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL, RESOURCE_POOL_SCALING

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


async def slow_provider(ground: Ground) -> None:
    """Gadgets whose own controller says how they are."""
    await ground.provider(
        "lab",
        override=ground.gadget(),
        healthCheck="status.phase | default('') != 'Failed'",
        readinessCheck="status.phase == 'Ready'",
    )


async def filled(ground: Ground, size: int, word: str = "pool", **spec: Any) -> None:
    """A pool with that many handles."""
    await ground.pool(word, minAvailable=size, provider={"name": ground.named("lab")}, **spec)
    await ground.until(f"{word} has {size} handles", lambda: len(free(ground, word)) == size)


def free(ground: Ground, word: str = "pool") -> list[Json]:
    return [obj for obj in ground.free_handles() if look(obj, "spec.resourcePool.name") == ground.named(word)]


def names(objects: list[Json]) -> list[str]:
    return [look(obj, "metadata.name") for obj in objects]


def counts(ground: Ground, word: str = "pool") -> tuple[object, object]:
    """Available and ready, as the pool's status says."""
    pool = ground.one(RESOURCE_POOL, ground.named(word))
    return look(pool, "status.resourceHandleCount.available"), look(pool, "status.resourceHandleCount.ready")


async def scale(ground: Ground, size: int, word: str = "pool") -> None:
    await ground.edit(RESOURCE_POOL, ground.named(word), {"spec": {"minAvailable": size}})


async def report(ground: Ground, handle: str, phase: str) -> None:
    """The phase of a handle's only Gadget."""
    await ground.until(f"{handle} has its Gadget", lambda: gadget_of(ground, handle))
    await ground.report(look(gadget_of(ground, handle), "metadata.name"), phase=phase)


def gadget_of(ground: Ground, handle: str) -> Json:
    reference = look(ground.one(RESOURCE_HANDLE, handle), "status.resources.0.reference.name")
    return ground.one(GADGET, reference) if reference else {}


# --- filling ---


async def test_a_new_pool_is_filled_at_once_and_says_so(ground: Ground) -> None:
    await ground.provider()
    await filled(ground, 3, lifespan={"unclaimed": "1h"})
    await ground.until("its status counts them", lambda: counts(ground) == (3, 3), PROMPT)
    shown = look(ground.one(RESOURCE_POOL, ground.named("pool")), "status.resourceHandles")
    assert sorted(shown, key=str) == sorted(
        ({"name": name, "healthy": True, "ready": True} for name in names(free(ground))), key=str
    )
    for handle in free(ground):
        assert look(handle, "spec.resourcePool") == link("ResourcePool", "poolboy", ground.named("pool"))
        assert (label_of(handle, "resource-pool-name"), label_of(handle, "resource-pool-namespace")) == (
            ground.named("pool"),
            "poolboy",
        )
        assert look(handle, "metadata.generateName") == "guid-"
        assert look(handle, "metadata.finalizers") == [NAMES.finalizer]
        made_for = gadget_of(ground, look(handle, "metadata.name"))
        assert annotation(made_for, "resource-pool-name") == ground.named("pool")
        assert annotation(made_for, "resource-claim-name") is None
        assert moment(handle, "spec.lifespan.end") - moment(handle, "metadata.creationTimestamp") == timedelta(hours=1)


async def test_a_taken_handle_is_replaced_at_once(ground: Ground) -> None:
    await ground.provider()
    await filled(ground, 2)
    before = names(free(ground))
    await ground.ask("mine", provider="lab")
    await ground.bound(seconds=PROMPT)
    assert ground.handle_name() in before
    await ground.until("it is replaced", lambda: len(free(ground)) == 2, PROMPT)
    await ground.until("the status counts the new one", lambda: counts(ground) == (2, 2), PROMPT)
    assert ground.handle_name() not in names(free(ground))


async def test_a_deleted_handle_is_replaced_at_once(ground: Ground) -> None:
    await ground.provider()
    await filled(ground, 2)
    lost = names(free(ground))[0]
    gadget = look(gadget_of(ground, lost), "metadata.name")
    await ground.delete(RESOURCE_HANDLE, lost)
    await ground.until("it is replaced", lambda: len(free(ground)) == 2 and lost not in names(free(ground)), PROMPT)
    if gadget:
        await ground.gone(GADGET, gadget, PROMPT)


async def test_pools_grow_when_their_spec_says_so_and_never_shrink(ground: Ground) -> None:
    await ground.provider()
    await filled(ground, 1)
    await scale(ground, 3)
    await ground.until("it has grown", lambda: len(free(ground)) == 3, PROMPT)
    before = names(free(ground))
    await scale(ground, 0)
    await ground.others_go_on()
    assert names(free(ground)) == before
    await ground.ask("mine", provider="lab")
    await ground.bound()
    await ground.until("one less is counted", lambda: counts(ground)[0] == 2, PROMPT)
    assert len(free(ground)) == 2


async def test_no_more_handles_are_made_than_may_be_unready(ground: Ground) -> None:
    await slow_provider(ground)
    await ground.pool(minAvailable=3, maxUnready=1, provider={"name": ground.named("lab")})
    for size in (1, 2, 3):
        await ground.until(f"there are {size}", lambda: len(free(ground)) == size, PROMPT * 2)  # noqa: B023
        await ground.others_go_on()
        assert len(free(ground)) == size
        unready = [obj for obj in free(ground) if look(obj, "status.ready") is not True]
        await report(ground, names(unready)[0], "Ready")
    await ground.until("all are ready", lambda: counts(ground) == (3, 3), PROMPT)


async def test_unhealthy_handles_are_replaced_from_the_pools_present_spec(ground: Ground) -> None:
    await slow_provider(ground)
    await filled(ground, 2, deleteUnhealthyResourceHandles=True, vars={"edition": 1})
    await ground.edit(RESOURCE_POOL, ground.named("pool"), {"spec": {"vars": {"edition": 2}}})
    ill, well = names(free(ground))
    await report(ground, ill, "Failed")
    await ground.until("it is replaced", lambda: len(free(ground)) == 2 and ill not in names(free(ground)), PROMPT * 2)
    await ground.gone(RESOURCE_HANDLE, ill)
    assert {look(obj, "metadata.name"): look(obj, "spec.vars.edition") for obj in free(ground)} == {
        well: 1,
        next(name for name in names(free(ground)) if name != well): 2,
    }


async def test_the_status_follows_what_becomes_of_the_handles(ground: Ground) -> None:
    await slow_provider(ground)
    await filled(ground, 2)
    await ground.until("new ones are counted, none is ready", lambda: counts(ground) == (2, 0), PROMPT)
    first, second = names(free(ground))
    await report(ground, first, "Ready")
    await report(ground, second, "Failed")
    await ground.until("one is ready", lambda: counts(ground) == (2, 1), PROMPT)

    def shown() -> dict[str, Json]:
        entries = look(ground.one(RESOURCE_POOL, ground.named("pool")), "status.resourceHandles") or []
        return {entry["name"]: entry for entry in entries}

    await ground.until("one is unhealthy", lambda: shown()[second].get("healthy") is False, PROMPT)
    assert shown()[first] == {"name": first, "healthy": True, "ready": True}
    # Unhealthy ones stay where the pool does not say otherwise, and are bound to no claim.
    await ground.ask("mine", provider="lab")
    assert look(await ground.bound(), "metadata.name") == first


async def test_handles_without_resources_are_of_unknown_health(ground: Ground) -> None:
    await ground.provider("nothing", vars={"makes": "nothing"})
    name = await ground.make_handle("empty", provider={"name": ground.named("nothing")})
    await ground.until(
        "it is looked after",
        lambda: look(ground.one(RESOURCE_HANDLE, name), "metadata.finalizers") == [NAMES.finalizer],
    )
    await ground.others_go_on()
    assert not {"healthy", "ready"} & (look(ground.one(RESOURCE_HANDLE, name), "status") or {}).keys()


async def test_a_pools_labels_and_annotations_are_put_on_what_its_handles_manage(ground: Ground) -> None:
    await ground.provider()
    await filled(ground, 1, resourceLabels={"team": "red"}, resourceAnnotations={"note": "from the pool"})
    handle = names(free(ground))[0]
    await ground.until("it has its Gadget", lambda: gadget_of(ground, handle))
    gadget = gadget_of(ground, handle)
    assert look(gadget, "metadata.labels.team") == "red"
    assert look(gadget, "metadata.annotations.note") == "from the pool"


async def test_the_pool_with_the_higher_score_is_taken_from_first(ground: Ground) -> None:
    await ground.provider()
    await filled(ground, 1, "older")
    await filled(ground, 1, "preferred", preferenceScore=7)
    await ground.until("both are ready", lambda: all(look(obj, "status.ready") for obj in ground.free_handles()))
    await ground.ask("mine", provider="lab")
    handle = await ground.bound()
    assert look(handle, "spec.resourcePool.name") == ground.named("preferred")
    assert look(handle, "spec.preferenceScore") == 7


async def test_a_pool_may_list_resources_with_templates(ground: Ground) -> None:
    await ground.provider("lab", override=ground.gadget(), readinessCheck="true", disableCreation=True)
    entries = [ground.entry("lab", "a", spec={"size": 1}), ground.entry("lab", "b", spec={"size": 2})]
    await ground.pool(minAvailable=1, resources=entries, vars={"region": "north"})
    await ground.until("it is filled", lambda: len(ground.gadgets()) == 2)
    handle = ground.free_handles()[0]
    assert look(handle, "spec.vars") == {"region": "north"}
    assert look(handle, "spec.lifespan") in (None, {})
    provider = {"name": ground.named("lab")}
    listed = [{"name": n, "provider": provider, "template": {"spec": {"size": s}}} for n, s in (("a", 1), ("b", 2))]
    await ground.ask("mine", resources=listed)
    assert look(await ground.bound(), "metadata.name") == look(handle, "metadata.name")


# --- leaving ---


async def test_a_deleted_pool_takes_its_free_handles_along_and_leaves_the_others(ground: Ground) -> None:
    await ground.provider()
    await filled(ground, 3)
    await ground.ask("mine", provider="lab")
    await ground.ready()
    await ground.until("it is full again", lambda: len(free(ground)) == 3)
    gadget = look(ground.resource(), "metadata.uid")
    await ground.delete(RESOURCE_POOL, ground.named("pool"))
    await ground.gone(RESOURCE_POOL, ground.named("pool"), PROMPT)
    await ground.until("its free handles are gone", lambda: len(ground.handles()) == 1, PROMPT)
    await ground.until("so are their resources", lambda: len(ground.gadgets()) == 1, PROMPT)
    await ground.others_go_on()
    assert look(ground.claim(), "status.ready") is True
    assert look(ground.resource(), "metadata.uid") == gadget
    assert not deleting(ground.handle())


# --- scalings ---


async def scaling(ground: Ground, count: int, **spec: Any) -> str:
    name = ground.named("more")
    body = {"count": count, "resourcePool": {"name": ground.named("pool")}, **spec}
    await ground.create(RESOURCE_POOL_SCALING, {"metadata": {"name": name}, "spec": body})
    return name


async def test_a_scaling_adds_handles_once(ground: Ground) -> None:
    await ground.provider()
    await filled(ground, 1)
    name = await scaling(ground, 2)
    await ground.until("two more", lambda: len(free(ground)) == 3, PROMPT)
    await ground.until("it is done", lambda: state(ground, name) == ("done", 2), PROMPT)
    labelled = [obj for obj in free(ground) if label_of(obj, "resource-pool-scaling-name") == name]
    assert len(labelled) == 2

    def owner() -> Any:
        return look(ground.one(RESOURCE_POOL_SCALING, name), "metadata.ownerReferences.0")

    await ground.until("it has its owner, which is written after the status", owner, PROMPT)
    assert (owner()["kind"], owner()["name"]) == ("ResourcePool", ground.named("pool"))
    # Once only: what is taken of them is not made again beyond the minimum.
    for number in range(3):
        await ground.ask(f"claim-{number}", provider="lab")
        await ground.bound(f"claim-{number}")
    await ground.until("the minimum again", lambda: len(free(ground)) == 1, PROMPT)
    await ground.others_go_on()
    assert len(free(ground)) == 1
    assert state(ground, name) == ("done", 2)


def state(ground: Ground, name: str) -> tuple[object, object]:
    found = ground.one(RESOURCE_POOL_SCALING, name)
    return look(found, "status.state"), look(found, "status.count")


async def test_a_scaling_waits_for_its_time(ground: Ground) -> None:
    await ground.provider()
    await filled(ground, 1)
    at = now().replace(microsecond=0) + timedelta(seconds=5)
    name = await scaling(ground, 1, at=stamp(at))
    await ground.until("it waits", lambda: state(ground, name)[0] == "waiting", PROMPT)
    assert len(free(ground)) == 1
    await ground.until("it is done", lambda: state(ground, name) == ("done", 1), (at - now()).total_seconds() + PROMPT)
    assert now() >= at
    assert len(free(ground)) == 2


async def test_a_scaling_heeds_how_many_may_be_unready_and_replaces_what_fails(ground: Ground) -> None:
    await slow_provider(ground)
    await filled(ground, 1, maxUnready=2, deleteUnhealthyResourceHandles=True)
    name = await scaling(ground, 2)
    await ground.until("one more", lambda: state(ground, name) == ("scaling", 1), PROMPT)
    assert len(free(ground)) == 2
    (scaled,) = [obj for obj in free(ground) if label_of(obj, "resource-pool-scaling-name") == name]
    await report(ground, look(scaled, "metadata.name"), "Failed")
    await ground.gone(RESOURCE_HANDLE, look(scaled, "metadata.name"))
    for _ in range(3):
        await ground.until("the next is there", lambda: [o for o in free(ground) if not look(o, "status.ready")])
        unready = next(obj for obj in free(ground) if not look(obj, "status.ready"))
        await report(ground, look(unready, "metadata.name"), "Ready")
        ready = look(unready, "metadata.name")
        await ground.until("it is ready", lambda: look(ground.one(RESOURCE_HANDLE, ready), "status.ready"))  # noqa: B023
    await ground.until("it is done", lambda: state(ground, name) == ("done", 2), PROMPT)
    assert len(free(ground)) == 3


async def test_a_claim_of_a_deleted_pool_goes_like_any_other(ground: Ground) -> None:
    await ground.provider()
    await filled(ground, 1)
    await ground.ask("mine", provider="lab")
    await ground.ready()
    handle = ground.handle_name()
    await ground.delete(RESOURCE_POOL, ground.named("pool"))
    await ground.gone(RESOURCE_POOL, ground.named("pool"))
    await ground.delete(RESOURCE_CLAIM, "mine")
    await ground.gone(RESOURCE_CLAIM, "mine", PROMPT)
    await ground.gone(RESOURCE_HANDLE, handle, PROMPT)
