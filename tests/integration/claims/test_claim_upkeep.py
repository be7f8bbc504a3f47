"""Managed resources over time: what reaches them, what is put back, what is taken over, and links between them."""

from __future__ import annotations

from typing import Any

import pytest

from claims.claims_ground import GADGET, PROMPT, Ground
from claims.claims_objects import NAMES, Json, annotation, look
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

LINKED_WAIT = "Linked ResourceProvider"


async def listed(ground: Ground, *filters: Json, name: str = "", **spec: Any) -> None:
    """A claim in list mode for one Gadget, whose provider allows these changes."""
    await ground.provider("lab", override=ground.gadget(name), updateFilters=list(filters), readinessCheck="true")
    await ground.ask("mine", resources=[resource(ground, **spec)])
    await ground.ready()


def resource(ground: Ground, **spec: Any) -> Json:
    return {"provider": {"name": ground.named("lab")}, "template": {"spec": spec}}


# --- updates ---


async def test_only_what_a_filter_allows_reaches_the_live_resource(ground: Ground) -> None:
    await listed(ground, {"pathMatch": "/spec/size", "allowedOps": ["replace"]}, size=1, colour="red")
    await ground.edit_claim(resources=[resource(ground, size=2, colour="blue", weight=7)])
    await ground.until("the size changes", lambda: look(ground.resource(), "spec.size") == 2, PROMPT)
    # The edit is in the handle's template unfiltered; the filter is between that and the live resource.
    assert look(ground.handle(), "spec.resources.0.template.spec") == {"size": 2, "colour": "blue", "weight": 7}
    assert ground.resource()["spec"] == {"size": 2, "colour": "red"}


async def test_the_first_filter_that_matches_decides(ground: Ground) -> None:
    await listed(
        ground,
        {"pathMatch": "/spec/colour", "allowedOps": ["add"]},
        {"pathMatch": "/spec/.*"},
        size=1,
        colour="red",
    )
    await ground.edit_claim(resources=[resource(ground, size=2, colour="blue")])
    await ground.until("the size changes", lambda: look(ground.resource(), "spec.size") == 2, PROMPT)
    assert look(ground.resource(), "spec.colour") == "red"


async def test_nothing_is_ever_taken_from_a_handles_template_by_a_claim(ground: Ground) -> None:
    await listed(ground, {"pathMatch": "/spec/.*"}, size=1, colour="red")
    await ground.edit_claim(resources=[resource(ground, size=2)])
    await ground.until("the size changes", lambda: look(ground.resource(), "spec.size") == 2, PROMPT)
    assert ground.resource()["spec"] == {"size": 2, "colour": "red"}


async def test_a_filter_that_allows_removal_strips_what_others_have_added(ground: Ground) -> None:
    await listed(ground, {"pathMatch": "/spec/.*"}, size=1)
    name = look(ground.resource(), "metadata.name")
    await ground.edit(GADGET, name, {"spec": {"theirs": 1}, "data": {"theirs": 2}})
    await ground.until("it is stripped", lambda: "theirs" not in look(ground.resource(), "spec"), PROMPT)
    assert look(ground.resource(), "data.theirs") == 2


async def test_the_operators_annotations_are_put_back_whatever_the_filters_say(ground: Ground) -> None:
    await listed(ground, size=1)
    name = look(ground.resource(), "metadata.name")
    theirs = {f"{NAMES.resource_handle_name_annotation.rpartition('/')[0]}/resource-index": "9", "theirs": "stays"}
    await ground.edit(GADGET, name, {"metadata": {"annotations": theirs}})
    await ground.until("the index is put back", lambda: annotation(ground.resource(), "resource-index") == "0", PROMPT)
    assert look(ground.resource(), "metadata.annotations.theirs") == "stays"


async def test_a_changed_kind_is_reported_and_the_resource_stays(ground: Ground) -> None:
    await listed(ground, {"pathMatch": "/spec/.*"}, size=1)
    before = ground.resource()
    await ground.edit_provider(override={"apiVersion": "v1", "kind": "ConfigMap"})
    await ground.says("mine", "may not change")
    assert look(ground.resource(), "metadata.uid") == look(before, "metadata.uid")


async def test_an_edited_name_makes_no_second_resource(ground: Ground) -> None:
    await listed(ground, {"pathMatch": "/spec/.*"}, size=1)
    await ground.edit_provider(override={"metadata": {"name": f"renamed-{ground.tag}"}, "spec": {"size": 2}})
    await ground.until("the resource follows otherwise", lambda: look(ground.resource(), "spec.size") == 2, PROMPT)
    assert [look(gadget, "metadata.name") for gadget in ground.gadgets()] == [resource_name(ground)]


def resource_name(ground: Ground) -> str:
    return str(look(ground.claim(), "status.resources.0.reference.name"))


# --- existence ---


async def test_a_resource_deleted_by_others_is_created_again_at_once(ground: Ground) -> None:
    await listed(ground, size=1)
    before = ground.resource()
    await ground.delete(GADGET, look(before, "metadata.name"))
    await ground.until(
        "there is another of the name",
        lambda: look(ground.resource(), "metadata.uid") not in (None, look(before, "metadata.uid")),
        PROMPT,
    )
    await ground.until(
        "the claim shows it",
        lambda: (
            look(ground.claim(), "status.resources.0.state.metadata.uid") == look(ground.resource(), "metadata.uid")
        ),
        PROMPT,
    )
    await ground.ready(seconds=PROMPT)


async def test_an_object_that_has_the_name_already_is_adopted(ground: Ground) -> None:
    name = f"shared-{ground.tag}"
    there = await ground.create(GADGET, ground.gadget(name, spec={"size": 9, "theirs": True}))
    await listed(ground, {"pathMatch": "/spec/size"}, name=name, size=1)
    await ground.until("its size is ours", lambda: look(ground.resource(), "spec.size") == 1, PROMPT)
    adopted = ground.resource()
    assert look(adopted, "metadata.uid") == look(there, "metadata.uid")
    assert look(adopted, "spec.theirs") is True
    assert annotation(adopted, "resource-handle-name") == ground.handle_name()
    await ground.delete(RESOURCE_CLAIM, "mine")
    await ground.gone(GADGET, name)


async def test_an_object_with_a_stale_uid_of_a_handle_is_adopted_all_the_same(ground: Ground) -> None:
    name = f"shared-{ground.tag}"
    stale = {
        NAMES.resource_handle_name_annotation: "guid-long-gone",
        NAMES.resource_handle_name_annotation.replace("-name", "-uid"): "0",
    }
    await ground.create(GADGET, ground.gadget(name, metadata={"annotations": stale}))
    await listed(ground, name=name, size=1)
    handle = ground.handle()
    await ground.until(
        "it is ours",
        lambda: annotation(ground.resource(), "resource-handle-uid") == look(handle, "metadata.uid"),
        PROMPT,
    )
    assert annotation(ground.resource(), "resource-handle-name") == look(handle, "metadata.name")


async def test_an_object_of_another_living_handle_is_left_to_it(ground: Ground) -> None:
    name = f"shared-{ground.tag}"
    await listed(ground, name=name, size=1)
    first = ground.handle_name()
    await ground.ask("second", resources=[resource(ground, size=2)])
    await ground.bound("second")
    await ground.says("second", name, first)
    assert annotation(ground.resource(), "resource-handle-name") == first
    assert look(ground.resource(), "spec.size") == 1
    assert look(ground.claim("second"), "status.ready") is not True
    await ground.delete(RESOURCE_CLAIM, "mine")
    await ground.ready("second", seconds=45)
    assert annotation(ground.one(GADGET, name), "resource-handle-name") == ground.handle_name("second")


# --- links ---


async def test_a_resource_waits_for_the_linked_one_and_takes_values_from_it(ground: Ground) -> None:
    await ground.provider("base", override=ground.gadget(spec={"role": "base"}))
    await ground.provider(
        "lab",
        override=ground.gadget(spec={"address": "{{ address }}", "gate": "{{ gate | default('none') }}"}),
        template={"enable": True},
        linkedResourceProviders=[
            {
                "name": ground.named("base"),
                "waitFor": "linked_resource_state.status.phase == 'up'",
                "templateVars": [
                    {"name": "address", "from": "/status/address"},
                    {"name": "gate", "from": "/status/gate"},
                ],
            }
        ],
    )
    await ground.ask("mine", provider="lab")
    await ground.until("the second waits", lambda: waits(ground.claim(), 1) == LINKED_WAIT)
    assert [gadget["spec"] for gadget in ground.gadgets()] == [{"role": "base"}]
    assert waits(ground.handle(), 1) == LINKED_WAIT
    assert waits(ground.claim(), 0) is None
    base = look(ground.resource(), "metadata.name")
    await ground.report(base, phase="coming")
    await ground.others_go_on()
    assert waits(ground.claim(), 1) == LINKED_WAIT
    await ground.report(base, phase="up", address="10.0.0.7")
    await ground.until("the second is there", lambda: look(ground.resource(index=1), "spec"), PROMPT)
    assert look(ground.resource(index=1), "spec") == {"address": "10.0.0.7", "gate": "none"}
    await ground.until("nothing waits", lambda: waits(ground.claim(), 1) is None, PROMPT)


def waits(obj: Json, index: int) -> object:
    return look(obj, f"status.resources.{index}.waitingFor")


async def test_linked_resources_come_first_and_get_the_values_that_the_link_renders(ground: Ground) -> None:
    await ground.provider(
        "base",
        override=ground.gadget(),
        parameters=[{"name": "size", "default": {"value": 1}}, {"name": "kept", "default": {"value": "default"}}],
        template={"definition": {"spec": {"size": "{{ size | int }}", "kept": "{{ kept }}"}}},
    )
    link = {"name": ground.named("base"), "parameterValues": {"size": "{{ total // 2 | int }}"}}
    await ground.provider(
        "lab",
        override=ground.gadget(spec={"role": "top"}),
        resourceName="top",
        parameters=[{"name": "total"}],
        linkedResourceProviders=[
            {**link, "resourceName": "left"},
            {**link, "resourceName": "right", "parameterValues": {"size": 5}},
        ],
    )
    await ground.ask("mine", provider="lab", values={"total": 8})
    claim = await ground.served()
    assert [entry["name"] for entry in look(claim, "status.resources")] == ["left", "right", "top"]
    specs = [look(ground.resource(index=index), "spec") for index in range(3)]
    assert specs == [{"size": 4, "kept": "default"}, {"size": 5, "kept": "default"}, {"role": "top"}]


async def test_a_link_is_omitted_while_its_condition_is_false_and_changes_nothing_later(ground: Ground) -> None:
    for word in ("base", "extra"):
        await ground.provider(word, override=ground.gadget(spec={"role": word}))
    named = f"resource_provider.metadata.name == '{ground.named('lab')}'"  # the provider, not the link
    await ground.provider(
        "lab",
        override=ground.gadget(spec={"role": "top"}),
        parameters=[{"name": "extra", "allowUpdate": True, "default": {"value": False}}],
        linkedResourceProviders=[
            {"name": ground.named("extra"), "when": "extra"},
            {"name": ground.named("base"), "when": named},
        ],
        updateFilters=[{"pathMatch": "/spec/.*"}],
    )
    await ground.ask("mine", provider="lab")
    await ground.served()
    assert roles(ground) == ["base", "top"]
    before = {look(gadget, "metadata.uid") for gadget in ground.gadgets()}
    await ground.choose(extra=True)
    await ground.until("the third is there", lambda: len(roles(ground)) == 3, PROMPT)
    assert roles(ground) == ["base", "top", "extra"]
    assert before <= {look(gadget, "metadata.uid") for gadget in ground.gadgets()}
    # Its condition false again, it stays: nothing of a handle is ever removed.
    await ground.choose(extra=False)
    await ground.others_go_on()
    assert roles(ground) == ["base", "top", "extra"]


def roles(ground: Ground) -> list[object]:
    """The roles of the claim's resources as its status shows them."""
    entries = look(ground.claim(), "status.resources") or []
    return [look(entry, "state.spec.role") for entry in entries if "state" in entry]


async def test_a_resource_that_requires_a_claim_waits_in_the_pool(ground: Ground) -> None:
    await ground.provider("lab", override=ground.gadget(), resourceRequiresClaim=True, readinessCheck="true")
    await ground.pool(minAvailable=1, provider={"name": ground.named("lab")})
    await ground.until(
        "it waits for a claim", lambda: ground.handles() and waits(ground.handles()[0], 0) == "ResourceClaim"
    )
    free = look(ground.handles()[0], "metadata.name")
    assert ground.gadgets() == []
    await ground.ask("mine", provider="lab")
    await ground.ready()
    assert ground.handle_name() == free
    assert "waitingFor" not in look(ground.one(RESOURCE_HANDLE, free), "status.resources.0")
