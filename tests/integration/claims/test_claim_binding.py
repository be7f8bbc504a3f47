"""Which handle a claim gets, that it gets exactly one, and that it finds it again."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from claims.claims_ground import GADGET, OPERATOR_NAMESPACE, PATIENT, PROMPT, Ground
from claims.claims_objects import NAMES, Json, annotation, deleting, label_of, look, now, stamp
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from engine.errors import Absent
from localcloud.objects import Objects

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

BURST = 24  # claims at once
COLOUR_IS_NO_MATTER = ["/spec/colour"]


async def provider(ground: Ground, word: str = "lab", **spec: Any) -> None:
    """A provider of Gadgets whose own controller says when they are ready."""
    checks = {"healthCheck": "status.phase | default('') != 'Failed'", "readinessCheck": "status.phase == 'Ready'"}
    await ground.provider(word, override=ground.gadget(), **{**checks, **spec})


async def spare(ground: Ground, word: str, *entries: Json, ready: bool = False, **spec: Any) -> str:
    """A free handle made by hand, whose resources exist and are as they are said to be."""
    name = await ground.make_handle(word, resources=list(entries), **spec)

    def references() -> list[str]:
        found = look(ground.one(RESOURCE_HANDLE, name), "status.resources") or []
        return [look(entry, "reference.name") for entry in found if "reference" in entry]

    await ground.until(f"{name} has its resources", lambda: len(references()) == len(entries))
    if ready:
        for reference in references():
            await ground.until(f"{reference} is there", lambda: ground.one(GADGET, reference))  # noqa: B023
            await ground.report(reference, phase="Ready")
        await ground.until(f"{name} is ready", lambda: look(ground.one(RESOURCE_HANDLE, name), "status.ready") is True)
    return name


def wanted(ground: Ground, *names: str, **spec: Any) -> list[Json]:
    """What a claim lists."""
    provider = {"name": ground.named("lab")}
    template = {"template": {"spec": spec}} if spec else {}
    return [{**({"name": name} if name else {}), "provider": provider, **template} for name in names or ("",)]


async def test_claims_take_the_handles_that_differ_least_first(ground: Ground) -> None:
    await provider(ground, matchIgnore=COLOUR_IS_NO_MATTER, disableCreation=True)
    red, blue = {"spec": {"colour": "red"}}, {"spec": {"colour": "blue"}}
    expected = [
        await spare(ground, "exact", ground.entry("lab", "a", **red), ground.entry("lab", "b", **red), ready=True),
        await spare(ground, "unready", ground.entry("lab", "a", **red), ground.entry("lab", "b", **red)),
        await spare(ground, "blue", ground.entry("lab", "a", **red), ground.entry("lab", "b", **blue), ready=True),
        await spare(ground, "named", ground.entry("lab", "a", **red), ground.entry("lab", "c", **red), ready=True),
        await spare(ground, "smaller", ground.entry("lab", "a", **red), ready=True),
    ]
    taken = []
    for number in range(len(expected)):
        await ground.ask(f"claim-{number}", resources=wanted(ground, "a", "b", colour="red"))
        taken.append(look(await ground.bound(f"claim-{number}"), "metadata.name"))
    assert taken == expected
    # What the handle lacked is added to it, and names become the claim's.
    smaller = await ground.served("claim-4")
    assert [entry["name"] for entry in look(smaller, "status.resources")] == ["a", "b"]
    assert [entry["name"] for entry in look(ground.handle("claim-3"), "spec.resources")] == ["a", "b"]


async def test_of_equal_handles_the_preferred_then_the_older_is_taken(ground: Ground) -> None:
    await provider(ground)
    for word in ("second", "first", "third"):
        await spare(ground, word, ground.entry("lab"), preferenceScore=5 if word == "third" else 0)
    oldest_first = [look(obj, "metadata.name") for obj in ground.handles()]
    preferred = f"guid-{ground.named('third')}"
    expected = [preferred, *(name for name in oldest_first if name != preferred)]
    for number, name in enumerate(expected):
        await ground.ask(f"claim-{number}", resources=wanted(ground))
        assert look(await ground.bound(f"claim-{number}"), "metadata.name") == name


async def test_an_unhealthy_different_or_expiring_handle_is_not_bound(ground: Ground) -> None:
    await provider(ground, healthCheck="spec.size | default(1) != 13", matchIgnore=["/spec/size"])
    soon, later = stamp(now() + timedelta(seconds=100)), stamp(now() + timedelta(seconds=600))
    unhealthy = await spare(ground, "unhealthy", ground.entry("lab", spec={"size": 13, "colour": "red"}))
    await spare(ground, "different", ground.entry("lab", spec={"size": 1, "colour": "blue"}))
    await spare(ground, "ending", ground.entry("lab", spec={"size": 1, "colour": "red"}), lifespan={"end": soon})
    await ground.until(
        "it is unhealthy", lambda: look(ground.one(RESOURCE_HANDLE, unhealthy), "status.healthy") is False
    )
    await ground.ask("mine", resources=wanted(ground, size=1, colour="red"))
    made = await ground.bound()
    assert look(made, "metadata.name") not in [f"guid-{ground.named(w)}" for w in ("unhealthy", "different", "ending")]
    lasting = await spare(
        ground, "lasting", ground.entry("lab", spec={"size": 1, "colour": "red"}), lifespan={"end": later}
    )
    await ground.ask("another", resources=wanted(ground, size=2, colour="red"))
    assert look(await ground.bound("another"), "metadata.name") == lasting


async def test_a_claim_may_name_the_pool_that_it_wants(ground: Ground) -> None:
    await provider(ground)
    for word in ("first", "second"):
        await ground.pool(word, minAvailable=1, provider={"name": ground.named("lab")})
        await ground.until(f"{word} is filled", lambda: pooled(ground, word))  # noqa: B023
    await ground.ask("mine", provider="lab", annotations={NAMES.pool_name_key: ground.named("second")})
    handle = await ground.bound()
    assert look(handle, "spec.resourcePool.name") == ground.named("second")


def pooled(ground: Ground, word: str) -> list[Json]:
    """The free handles of a pool."""
    return [obj for obj in ground.free_handles() if look(obj, "spec.resourcePool.name") == ground.named(word)]


async def test_a_handle_made_by_hand_is_found_and_named_after(ground: Ground) -> None:
    await provider(ground, disableCreation=True)
    name = await ground.make_handle("demo-base", resources=[ground.entry("lab", "theirs")])
    await ground.ask("mine", resources=wanted(ground))
    claim, handle = await ground.served(), await ground.bound()
    assert look(handle, "metadata.name") == name
    assert look(ground.resource(), "metadata.name") == f"guid0-{ground.named('demo-base')}"
    assert look(handle, "metadata.finalizers") == [NAMES.finalizer]
    assert (label_of(handle, "resource-claim-name"), label_of(handle, "resource-claim-namespace")) == (
        "mine",
        ground.namespace,
    )
    # A claim's resource without a name takes the name from the handle's.
    assert "name" not in look(handle, "spec.resources.0")
    assert "name" not in look(claim, "spec.resources.0")


async def test_a_provider_mode_claim_binds_by_content_and_passes_its_values_to_the_handle(
    ground: Ground,
) -> None:
    await ground.provider(
        "lab",
        override=ground.gadget(),
        parameters=[{"name": "size", "default": {"value": 1}}, {"name": "note", "default": {"value": "none"}}],
        template={"definition": {"spec": {"size": "{{ size | int }}"}}},
        disableCreation=True,
    )
    name = await spare(ground, "spare", ground.entry("lab", ground.named("lab"), spec={"size": 3}))
    await ground.ask("mine", provider="lab", values={"size": 3})
    handle = await ground.bound()
    assert look(handle, "metadata.name") == name
    assert look(handle, "spec.provider") == {
        "name": ground.named("lab"),
        "parameterValues": {"size": 3, "note": "none"},
    }


async def test_a_list_mode_claim_takes_a_pools_handle_and_its_provider_from_it(ground: Ground) -> None:
    await provider(ground, readinessCheck="true")
    await ground.pool(minAvailable=1, provider={"name": ground.named("lab")})
    await ground.until("the pool is filled", lambda: pooled(ground, "pool"))
    free = look(pooled(ground, "pool")[0], "metadata.name")
    assert look(ground.one(RESOURCE_HANDLE, free), "spec.provider.name") == ground.named("lab")
    await ground.ask("mine", resources=wanted(ground))
    handle = await ground.bound()
    assert look(handle, "metadata.name") == free
    await ground.until("it has no provider", lambda: "provider" not in ground.handle()["spec"], PROMPT)
    await ground.ready()
    assert annotation(ground.resource(), "resource-pool-name") == ground.named("pool")
    assert annotation(ground.resource(), "resource-claim-name") == "mine"


@pytest.mark.parametrize("who", ["claim", "provider"])
async def test_where_nothing_may_be_created_a_claim_waits_for_a_handle_that_fits(ground: Ground, who: str) -> None:
    by_provider: dict[str, Any] = {"disableCreation": True} if who == "provider" else {}
    await provider(ground, readinessCheck="true", **by_provider)
    by_claim: dict[str, Any] = {"disableCreation": True} if who == "claim" else {}
    await ground.ask("mine", resources=wanted(ground, colour="red"), **by_claim)
    await ground.others_go_on()
    assert look(ground.claim(), "status.resourceHandle") is None
    await ground.make_handle("unfit", resources=[ground.entry("lab", spec={"colour": "blue"})])
    fitting = await ground.make_handle("fit", resources=[ground.entry("lab", spec={"colour": "red"})])
    await ground.bound(seconds=PROMPT)
    assert ground.handle_name() == fitting
    await ground.ready()


async def test_while_a_claim_waits_for_a_handle_it_shows_what_was_accepted(ground: Ground) -> None:
    parameters = [{"name": "size", "validation": {"openAPIV3Schema": {"type": "integer"}}}]
    await provider(ground, parameters=parameters, disableCreation=True)
    await ground.ask("mine", provider="lab", values={"size": "large"})
    await ground.says("mine", "validationErrors", "size")
    await ground.choose(size=3)
    await ground.until(
        "its values are accepted",
        lambda: (
            look(ground.claim(), "status.provider") == {"name": ground.named("lab"), "parameterValues": {"size": 3}}
        ),
        PROMPT,
    )
    assert look(ground.claim(), "status.resources.0.provider.name") == ground.named("lab")
    await ground.choose(size=4)
    await ground.says("mine", "Parameter size is immutable.")


async def test_thirty_claims_race_for_twenty_handles_and_the_rest_wait_for_new_ones(ground: Ground) -> None:
    await provider(ground, disableCreation=True)
    names = [f"claim-{number:02}" for number in range(30)]
    await asyncio.gather(*(ground.make_handle(f"h{n:02}", resources=[ground.entry("lab")]) for n in range(20)))
    await ground.until("the handles are there", lambda: len(ground.free_handles()) == 20)
    await asyncio.gather(*(ground.ask(name, resources=wanted(ground)) for name in names))
    await ground.until("twenty are bound", lambda: len(holders(ground)) == 20)
    await ground.others_go_on()
    held = holders(ground)
    assert len(set(held.values())) == len(held) == 20
    assert ground.free_handles() == []
    await asyncio.gather(*(ground.make_handle(f"h{n:02}", resources=[ground.entry("lab")]) for n in range(20, 30)))
    await ground.until("all are bound", lambda: len(holders(ground)) == 30)
    assert {name: held[name] for name in held} == {name: holders(ground)[name] for name in held}
    assert len(set(holders(ground).values())) == 30
    for name in names:
        assert look(ground.handle(name), "spec.resourceClaim.name") == name


def holders(ground: Ground) -> dict[str, str]:
    """The handle of each claim that has one."""
    claims = [look(obj, "metadata.name") for obj in ground.claims()]
    return {name: ground.handle_name(name) for name in claims if ground.handle_name(name)}


async def test_a_claim_made_again_under_its_name_gets_another_handle(ground: Ground) -> None:
    await provider(ground, readinessCheck="true")
    await ground.ask("mine", resources=wanted(ground))
    await ground.ready()
    former = ground.handle_name()
    await ground.edit(RESOURCE_HANDLE, former, {"metadata": {"finalizers": [NAMES.finalizer, "tests/hold"]}})
    await ground.delete(RESOURCE_CLAIM, "mine")
    await ground.gone(RESOURCE_CLAIM, "mine")
    await ground.ask("mine", resources=wanted(ground))
    await ground.ready()
    assert ground.handle_name() != former
    assert deleting(ground.one(RESOURCE_HANDLE, former))
    await ground.edit(RESOURCE_HANDLE, former, {"metadata": {"finalizers": None}})
    await ground.gone(RESOURCE_HANDLE, former)
    # The predecessor's end is not the successor's.
    await ground.others_go_on()
    assert look(ground.claim(), "status.ready") is True


async def test_a_claim_whose_handle_was_blanked_finds_it_again(ground: Ground) -> None:
    await provider(ground, readinessCheck="true")
    await ground.ask("mine", resources=wanted(ground))
    await ground.ready()
    handle, uid = ground.handle_name(), look(ground.resource(), "metadata.uid")
    await ground.edit(RESOURCE_CLAIM, "mine", {"status": {"resourceHandle": None}}, status=True)
    await ground.until("the claim shows its handle", lambda: ground.handle_name() == handle, PROMPT)
    assert len(ground.handles()) == 1
    assert look(ground.resource(), "metadata.uid") == uid


async def is_there(ground: Ground, handle: str) -> bool:
    """Whether the API server has the handle."""
    try:
        return bool(await ground.kube.get(RESOURCE_HANDLE, OPERATOR_NAMESPACE, handle))
    except Absent:
        return False


async def test_a_second_handle_that_was_bound_unheard_goes_and_one_bound_by_a_person_stays(ground: Ground) -> None:
    await provider(ground, readinessCheck="true")
    await ground.ask("mine", resources=wanted(ground))
    await ground.ready()
    own, uid = ground.handle_name(), look(ground.resource(), "metadata.uid")
    spec = {"resources": [ground.entry("lab")], "resourceClaim": look(ground.handle(), "spec.resourceClaim")}
    stays = await ground.make_handle("by-a-person", **spec)
    goes = f"guid-{ground.named('unheard')}"
    metadata = {"name": goes, "finalizers": [NAMES.finalizer]}
    await ground.kube.create(RESOURCE_HANDLE, {"metadata": metadata, "spec": spec}, OPERATOR_NAMESPACE)
    async with asyncio.timeout(PATIENT):
        while await is_there(ground, goes):  # noqa: ASYNC110 - it may come and go unseen
            await asyncio.sleep(0.1)
    assert ground.one(RESOURCE_HANDLE, stays)
    assert (ground.handle_name(), look(ground.resource(), "metadata.uid")) == (own, uid)
    assert len(ground.gadgets()) == 1


async def test_a_claim_whose_whole_status_was_wiped_shows_it_again(ground: Ground) -> None:
    await ground.provider(
        "lab",
        override=ground.gadget(),
        parameters=[{"name": "size"}],
        template={"definition": {"spec": {"size": "{{ size | int }}"}}},
        readinessCheck="true",
        lifespan={"default": "1h"},
    )
    await ground.ask("mine", provider="lab", values={"size": 3})
    before = await ground.ready()
    await ground.edit(RESOURCE_CLAIM, "mine", {"status": None}, status=True)
    await ground.ready(seconds=PROMPT)
    after = ground.claim()
    assert ground.handle_name() == look(before, "status.resourceHandle.name")
    assert look(after, "status.provider") == look(before, "status.provider")
    assert look(after, "status.lifespan.end") == look(before, "status.lifespan.end")
    assert len(ground.handles()) == 1


async def test_two_claims_whose_handles_were_exchanged_in_their_statuses_heal(ground: Ground) -> None:
    await provider(ground, readinessCheck="true")
    for name in ("one", "two"):
        await ground.ask(name, resources=wanted(ground))
        await ground.ready(name)
    held = holders(ground)
    one, two = (look(ground.claim(name), "status.resourceHandle") for name in ("one", "two"))
    await ground.edit(RESOURCE_CLAIM, "one", {"status": {"resourceHandle": two}}, status=True)
    await ground.edit(RESOURCE_CLAIM, "two", {"status": {"resourceHandle": one}}, status=True)
    await ground.until("each shows its own again", lambda: holders(ground) == held, PROMPT)
    await ground.others_go_on()
    assert holders(ground) == held
    for name, handle in held.items():
        assert look(ground.one(RESOURCE_HANDLE, handle), "spec.resourceClaim.name") == name
        shown = look(ground.claim(name), "status.resources.0.state")
        assert annotation(shown, "resource-claim-name") == name


async def test_an_invented_handle_in_the_status_is_corrected(ground: Ground) -> None:
    await provider(ground, readinessCheck="true")
    await ground.ask("mine", resources=wanted(ground))
    await ground.ready()
    handle = ground.handle_name()
    await ground.edit(RESOURCE_CLAIM, "mine", {"status": {"resourceHandle": {"name": "guid-zzzzz"}}}, status=True)
    await ground.until("the claim shows its handle", lambda: ground.handle_name() == handle, PROMPT)


async def test_a_claim_of_a_burst_is_shown_as_bound_before_its_resources_are_made(ground: Ground) -> None:
    await provider(ground)
    names = [f"burst-{number}" for number in range(BURST)]
    first: dict[str, bool] = {}

    def note() -> None:
        for claim in seen.of(RESOURCE_CLAIM, ground.namespace):
            name = look(claim, "metadata.name")
            if look(claim, "status.resourceHandle.name"):
                first.setdefault(name, bool(look(claim, "status.resources.0.reference")))

    def with_a_state() -> set[str]:
        claims = seen.of(RESOURCE_CLAIM, ground.namespace)
        return {look(claim, "metadata.name") for claim in claims if look(claim, "status.resources.0.state")}

    seen = Objects(ground.kube, note)
    async with seen.followed(RESOURCE_CLAIM):
        await asyncio.gather(*(ground.ask(name, "lab", values={}) for name in names))
        async with asyncio.timeout(PATIENT):
            await seen.until(lambda: with_a_state() == set(names))
    assert first == dict.fromkeys(names, False)
