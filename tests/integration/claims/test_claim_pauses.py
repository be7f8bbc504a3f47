"""Paused handles on real servers: what is not done on their behalf, and that it is done once they go on."""

from __future__ import annotations

from datetime import timedelta

import pytest

from claims.claims_ground import GADGET, PROMPT, Ground
from claims.claims_objects import deleting, look, now, stamp
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.control_annotations import PAUSED

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


async def pause(ground: Ground, handle: str, *, held: bool) -> None:
    await ground.edit(RESOURCE_HANDLE, handle, {"metadata": {"annotations": {PAUSED: "true" if held else None}}})


async def sized(ground: Ground) -> str:
    """A claim for a Gadget of a size, ready; its handle's name."""
    await ground.provider(
        "lab",
        template={"definition": ground.gadget(spec={"size": "{{ size | int }}"})},
        parameters=[{"name": "size", "allowUpdate": True}],
        updateFilters=[{"pathMatch": "/spec/.*"}],
        readinessCheck="true",
    )
    await ground.ask("mine", provider="lab", values={"size": 1})
    await ground.ready()
    return ground.handle_name()


async def test_a_new_value_waits_until_the_handle_goes_on(ground: Ground) -> None:
    name = await sized(ground)
    await pause(ground, name, held=True)
    await ground.choose(size=2)
    await ground.others_go_on()
    assert look(ground.resource(), "spec.size") == 1
    await pause(ground, name, held=False)
    await ground.until("the size changes", lambda: look(ground.resource(), "spec.size") == 2, PROMPT)


async def test_an_end_waits_until_the_handle_goes_on(ground: Ground) -> None:
    name = await sized(ground)
    await pause(ground, name, held=True)
    await ground.edit_claim(lifespan={"end": stamp(now() - timedelta(hours=1))})
    await ground.edit(RESOURCE_HANDLE, name, {"spec": {"lifespan": {"end": stamp(now() - timedelta(hours=1))}}})
    await ground.others_go_on()
    assert not any(deleting(each) for each in (ground.claim(), ground.handle(), ground.resource()))
    await pause(ground, name, held=False)
    await ground.gone(RESOURCE_CLAIM, "mine", PROMPT)
    await ground.gone(RESOURCE_HANDLE, name, PROMPT)
    await ground.until("the resource is gone", lambda: not ground.gadgets(), PROMPT)


async def test_a_claim_goes_without_what_its_paused_handle_holds(ground: Ground) -> None:
    name = await sized(ground)
    gadget = look(ground.resource(), "metadata.name")
    await pause(ground, name, held=True)
    await ground.delete(RESOURCE_CLAIM, "mine")
    await ground.gone(RESOURCE_CLAIM, "mine", PROMPT)
    await ground.ask("mine", provider="lab", values={"size": 3})
    await ground.ready()
    assert ground.handle_name() != name
    assert not deleting(ground.one(GADGET, gadget))
    assert ground.one(GADGET, gadget)
    await pause(ground, name, held=False)
    await ground.gone(RESOURCE_HANDLE, name, PROMPT)
    await ground.gone(GADGET, gadget, PROMPT)
    assert look(ground.claim(), "status.ready") is True


async def test_a_claim_paused_by_its_tenant_still_ends_with_its_lifespan(
    ground: Ground,
) -> None:
    await ground.provider("lab", override=ground.gadget(), readinessCheck="true", lifespan={"maximum": "1h"})
    await ground.ask("mine", provider="lab")
    await ground.ready()
    name, end = ground.handle_name(), stamp(now() + timedelta(seconds=40))
    await ground.edit_claim(lifespan={"end": end})
    await ground.until("the end is known", lambda: look(ground.handle(), "spec.lifespan.end") == end, PROMPT)
    await ground.edit(RESOURCE_CLAIM, "mine", {"metadata": {"annotations": {PAUSED: "true"}}})
    await ground.gone(RESOURCE_HANDLE, name, 40 + PROMPT)
    await ground.until("the resource is gone", lambda: not ground.gadgets())


async def test_a_paused_free_handle_is_bound_to_no_claim_and_stays_in_its_pool(ground: Ground) -> None:
    await ground.provider()
    await ground.pool(minAvailable=1, provider={"name": ground.named("lab")})
    await ground.until("there is a handle", lambda: ground.free_handles(), PROMPT)
    name = look(ground.free_handles()[0], "metadata.name")
    await pause(ground, name, held=True)
    await ground.ask("mine", provider="lab", disableCreation=True)
    await ground.others_go_on()
    assert [look(each, "metadata.name") for each in ground.free_handles()] == [name]
    await pause(ground, name, held=False)
    await ground.bound(seconds=PROMPT)
    assert ground.handle_name() == name


# --- what people set right ---


async def test_a_past_end_on_the_handle_ends_everything(ground: Ground) -> None:
    await ground.provider("lab", override=ground.gadget(), readinessCheck="true", lifespan={"default": "2h"})
    await ground.ask("mine", provider="lab")
    await ground.ready()
    name = ground.handle_name()
    await ground.edit(RESOURCE_HANDLE, name, {"spec": {"lifespan": {"end": stamp(now() - timedelta(hours=1))}}})
    await ground.gone(RESOURCE_CLAIM, "mine", PROMPT)
    await ground.gone(RESOURCE_HANDLE, name, PROMPT)
    await ground.until("the resource is gone", lambda: not ground.gadgets(), PROMPT)


async def test_a_forgotten_namespace_is_corrected_and_its_object_ends_with_the_claim(ground: Ground) -> None:
    placed = ground.gadget()
    await ground.provider("lab", override={**placed, "metadata": {}}, readinessCheck="true")
    await ground.ask("mine", provider="lab")
    await ground.says("mine", "Stalled")
    await ground.edit_provider(override=placed)
    await ground.ready()
    await ground.delete(RESOURCE_CLAIM, "mine")
    await ground.until("the resource is gone", lambda: not ground.gadgets(), PROMPT)


@pytest.mark.parametrize("wrong", [{"kind": "Gadgett"}, {"apiVersion": "lab.perdure.dev/v11"}])
async def test_a_mistyped_kind_is_corrected_by_an_edit_of_the_provider(ground: Ground, wrong: dict[str, str]) -> None:
    await ground.provider("lab", override={**ground.gadget(), **wrong}, readinessCheck="true")
    await ground.ask("mine", provider="lab")
    await ground.says("mine", "UnknownKind")
    await ground.edit_provider(override={"kind": GADGET.name, "apiVersion": GADGET.api_version})
    await ground.ready()
    await ground.delete(RESOURCE_CLAIM, "mine")
    await ground.until("the resource is gone", lambda: not ground.gadgets(), PROMPT)
