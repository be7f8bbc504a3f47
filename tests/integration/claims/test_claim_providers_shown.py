"""The condition of a ResourceProvider whose vars render differently under the older template rules."""

from __future__ import annotations

from collections.abc import AsyncIterator
from copy import deepcopy

import pytest
from waiting import eventually

from claims.claims_ground import OPERATOR_NAMESPACE, Ground
from claims.claims_objects import NAMES, Json, look
from domain.built_in_kinds import CUSTOM_RESOURCE_DEFINITION
from domain.claims import RESOURCE_PROVIDER
from domain.claims.provider_conditions import VARS_ARE_TEMPLATES

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

DEFINITION = f"{RESOURCE_PROVIDER.plural}.{NAMES.domain}"


async def claimed(ground: Ground, url: str) -> None:
    """A claim that is ready, of a provider with this variable."""
    override = {**ground.gadget(), "spec": {"url": "{{ url }}"}}
    values = {"host": "a", "url": url}
    await ground.provider("lab", override=override, template={"enable": True}, readinessCheck="true", vars=values)
    await ground.ask("mine", resources=[{"provider": {"name": ground.named("lab")}, "template": {}}])
    await ground.ready()


async def conditions(ground: Ground) -> list[Json]:
    provider = await ground.kube.get(RESOURCE_PROVIDER, OPERATOR_NAMESPACE, ground.named("lab"))
    return [each for each in look(provider, "status.conditions") or [] if each["type"] == VARS_ARE_TEMPLATES]


async def test_a_provider_with_templates_in_its_vars_says_so_until_they_are_gone(ground: Ground) -> None:
    await claimed(ground, "https://{{ host }}.example.com")
    assert look(ground.resource(), "spec.url") == "https://a.example.com"

    async def shown() -> bool:
        return [look(each, "reason") for each in await conditions(ground)] == ["Rendered"]

    async def gone() -> bool:
        return not await conditions(ground)

    await eventually(shown, "the condition")
    (condition,) = await conditions(ground)
    assert "spec.vars.url" in condition["message"]

    async def reported() -> bool:
        return condition["message"] in await ground.events(RESOURCE_PROVIDER, ground.named("lab"))

    await eventually(reported, "the Event with the condition's message")
    await ground.edit_provider("lab", vars={"url": "https://plain.example.com"})
    await eventually(gone, "the condition goes with the template")


@pytest.fixture
async def without_status(ground: Ground) -> AsyncIterator[None]:
    """A definition of ResourceProviders that drops their status, as the replaced operator's does."""
    definition = await ground.kube.get(CUSTOM_RESOURCE_DEFINITION, "", DEFINITION)
    older = deepcopy(definition["spec"])
    del older["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    await ground.kube.patch(CUSTOM_RESOURCE_DEFINITION, "", DEFINITION, {"spec": older})
    yield
    await ground.kube.patch(CUSTOM_RESOURCE_DEFINITION, "", DEFINITION, {"spec": definition["spec"]})


@pytest.mark.usefixtures("without_status")
async def test_an_event_says_it_where_the_definition_drops_the_status(ground: Ground) -> None:
    await claimed(ground, "https://{{ host }}.example.com")

    async def reported() -> bool:
        return "spec.vars.url" in await ground.events(RESOURCE_PROVIDER, ground.named("lab"))

    await eventually(reported, "the Event")
    assert await conditions(ground) == []
    await ground.others_go_on()
