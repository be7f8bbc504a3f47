"""Faults of people: each is reported on the object that has it, blocks no other, and heals when it is corrected."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from uuid import uuid4

import pytest

from claims.claims_ground import GADGET, GADGET_GROUP, PERSON, PROMPT, Ground
from claims.claims_lab import DENIED_GROUP, binding, rule, serve
from claims.claims_objects import Json, look
from domain.built_in_kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CUSTOM_RESOURCE_DEFINITION
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL, RESOURCE_PROVIDER
from domain.identity import Kind
from engine.errors import Absent

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

# How long the watcher may take to notice that a kind is served now, or that it may be read.
NOTICED = 60.0

# What must end in a status within two seconds, and the words that name what was wrong.
HOSTILE = {
    "a syntax error": "{{ resource_claim.",
    "a missing value": "{{ nothing.at.all }}",
    "an attribute walk": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "globals of a function": "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "an endless loop": "{% for a in range(90000) %}{% for b in range(90000) %}{{ b }}{% endfor %}{% endfor %}",
    "a huge range": "{{ range(10 ** 12) | list | length }}",
    "a memory bomb": "{{ 'x' * (10 ** 10) }}",
    "a doubling text": "{% set t = namespace(v='x') %}{% for i in range(60) %}{% set t.v = t.v ~ t.v %}{% endfor %}",
    "a power tower": "{{ 9 ** (9 ** 9) }}",
    "a wide format": "{{ '%999999999d' % 1 }}",
}


# No limit of its own ends this one: it has to be ended.
ENDLESS = "{% for a in range(90000) if range(90000) | sum == 1 %}{% endfor %}"

HOSTILE_CONDITIONS = {
    "a syntax error": "metadata.",
    "an attribute walk": "''.__class__.__mro__[1].__subclasses__() | length > 0",
    "globals of a function": "cycler.__init__.__globals__.os.popen('id').read() != ''",
    "a huge range": "range(10 ** 12) | list | length > 0",
    "a memory bomb": "'x' * (10 ** 10) != ''",
    "a power tower": "9 ** (9 ** 9) > 1",
}


@pytest.mark.parametrize("template", HOSTILE.values(), ids=list(HOSTILE))
async def test_a_hostile_override_is_named_while_others_go_on(ground: Ground, elsewhere: Ground, template: str) -> None:
    await elsewhere.provider()
    await ground.provider("bad", override=ground.gadget(spec={"x": template}), template={"enable": True})
    await asyncio.gather(ground.ask("bad", provider="bad"), elsewhere.ask("mine", provider="lab"))
    await elsewhere.ready(seconds=PROMPT)
    await ground.says("bad", ground.named("bad"), "override")
    assert ground.gadgets() == []


@pytest.mark.parametrize("condition", HOSTILE_CONDITIONS.values(), ids=list(HOSTILE_CONDITIONS))
async def test_a_hostile_condition_of_a_claim_is_named_and_does_nothing(
    ground: Ground, elsewhere: Ground, condition: str
) -> None:
    for each in (ground, elsewhere):
        await each.provider()
    await asyncio.gather(
        ground.ask("bad", provider="lab", autoDelete={"when": condition}), elsewhere.ask("mine", provider="lab")
    )
    await elsewhere.ready(seconds=PROMPT)
    await ground.says("bad", "autoDelete")
    await elsewhere.others_go_on()
    assert ground.claim("bad")


async def test_a_wave_of_hostile_claims_delays_no_other_claims(ground: Ground, elsewhere: Ground) -> None:
    await elsewhere.provider()
    await ground.provider("bad", override=ground.gadget(spec={"x": ENDLESS}), template={"enable": True})
    await asyncio.gather(*(ground.ask(f"bad-{number:02}", provider="bad") for number in range(60)))
    await elsewhere.ask("mine", provider="lab")
    await elsewhere.ready(seconds=PROMPT)
    # One after the other they would be evaluated for a minute and a half.
    await ground.until(
        "each of them says why it waits",
        lambda: all("TemplateLimit" in json.dumps(claim.get("status", {})) for claim in ground.claims()),
        PROMPT,
    )
    for _ in range(3):
        await elsewhere.others_go_on()


async def test_a_recreated_provider_ends_nothing(ground: Ground) -> None:
    await ground.provider()
    while_unready = {"autoDelete": {"when": "status.lifespan.firstReady is defined and not status.ready"}}
    await ground.ask("mine", provider="lab", **while_unready)
    await ground.ready()
    made = ground.gadgets()
    await ground.delete(RESOURCE_PROVIDER, ground.named("lab"))
    await ground.edit(RESOURCE_CLAIM, "mine", {"metadata": {"labels": {"looked": "at"}}})
    await ground.says("mine", ground.named("lab"), "not found")
    await ground.others_go_on()
    assert (look(ground.claim(), "status.ready"), look(ground.handle(), "status.ready")) == (True, True)
    await ground.provider()
    await ground.until("it has no fault", lambda: not look(ground.claim(), "status.conditions"), PROMPT)
    assert ground.gadgets() == made


async def test_a_resource_that_gets_another_name_stays_one(ground: Ground) -> None:
    size = ground.gadget(spec={"size": "{{ size | default(1) | int }}"})
    filters = [{"pathMatch": "/spec/size"}]
    await ground.provider("lab", override=size, template={"enable": True}, readinessCheck="true", updateFilters=filters)
    await ground.ask("mine", provider="lab")
    await ground.ready()
    await ground.edit_provider(resourceName="renamed", vars={"size": 2})
    await ground.until("its template has changed", lambda: look(ground.gadgets()[0], "spec.size") == 2, PROMPT)
    await ground.others_go_on()
    assert len(ground.gadgets()) == len(ground.handle()["spec"]["resources"]) == 1


async def test_a_bomb_of_a_regular_expression_is_named_while_others_go_on(ground: Ground, elsewhere: Ground) -> None:
    schema = {"type": "string", "pattern": "^(a|a?)+$"}
    parameter = {"name": "text", "validation": {"openAPIV3Schema": schema}}
    await ground.provider("bad", override=ground.gadget(), parameters=[parameter])
    await elsewhere.provider()
    await asyncio.gather(
        ground.ask("bad", provider="bad", values={"text": VICTIM}), elsewhere.ask("mine", provider="lab")
    )
    await elsewhere.ready(seconds=PROMPT)
    await ground.says("bad", ground.named("bad"), "schema of parameter text")
    assert ground.handles() == []


VICTIM = "a" * 60 + "!"
BOMB = "/spec/(a|a?)+$"


@pytest.mark.parametrize("spec", [{"matchIgnore": [BOMB]}, {"updateFilters": [{"pathMatch": BOMB}]}], ids=str)
async def test_a_bomb_among_the_patterns_of_paths_goes_off_nowhere(
    ground: Ground, elsewhere: Ground, spec: Json
) -> None:
    await ground.provider("bad", override=ground.gadget(spec={"fixed": 1}), readinessCheck="true", **spec)
    await elsewhere.provider()
    # What makes the expressions run: a free handle that differs, a live resource that differs.
    await ground.make_handle("spare", resources=[ground.entry("bad", spec={"other": 1})])
    listed = [{"provider": {"name": ground.named("bad")}, "template": {"spec": {VICTIM: 1}}}]
    await ground.ask("bad", resources=listed)
    await ground.ready("bad", seconds=2 * PROMPT)
    await ground.edit(GADGET, look(ground.resource("bad"), "metadata.name"), {"spec": {VICTIM: 2}})
    await elsewhere.ask("mine", provider="lab")
    await elsewhere.ready(seconds=PROMPT)


@pytest.mark.parametrize("levels", [230, 400, 800])
async def test_a_claim_nested_beyond_reason_is_reported_while_others_go_on(
    ground: Ground, elsewhere: Ground, levels: int
) -> None:
    deep: Json = {}
    for _ in range(levels):
        deep = {"deeper": deep}
    await ground.provider()
    await elsewhere.provider()
    await ground.ask("bad", provider="lab", values={"deep": deep})
    await elsewhere.ask("mine", provider="lab")
    await elsewhere.ready(seconds=PROMPT)
    await ground.until("it is reported", lambda: "Stalled" in str(ground.claim("bad").get("status")), PROMPT)
    await ground.delete(RESOURCE_CLAIM, "bad")
    await ground.gone(RESOURCE_CLAIM, "bad", PROMPT)


async def test_a_corrected_template_is_applied_at_once(ground: Ground) -> None:
    broken = ground.gadget(spec={"x": "{{ nonsense( }}"})
    await ground.provider("lab", override=broken, template={"enable": True}, readinessCheck="true")
    await ground.ask("mine", provider="lab")
    await ground.says("mine", ground.named("lab"))
    await ground.edit_provider(override={"spec": {"x": "{{ 1 + 1 | int }}"}})
    await ground.ready(seconds=2 * PROMPT)
    assert look(ground.resource(), "spec.x") == 2
    await ground.until("the fault is forgotten", lambda: "nonsense" not in str(ground.claim()["status"]), PROMPT)


async def test_a_template_that_begins_to_fail_leaves_what_is_there_alone(ground: Ground) -> None:
    await ground.provider("lab", override=ground.gadget(spec={"x": 1}), readinessCheck="true")
    await ground.ask("mine", provider="lab")
    await ground.ready()
    await ground.edit_provider(template={"enable": True}, override={"spec": {"x": "{{ nonsense( }}"}})
    await ground.says("mine", ground.named("lab"), "override")
    assert look(ground.resource(), "spec.x") == 1
    await ground.delete(RESOURCE_CLAIM, "mine")
    await ground.gone(RESOURCE_CLAIM, "mine", PROMPT)
    await ground.until("its resource, too", lambda: not ground.gadgets(), PROMPT)


async def test_a_check_that_cannot_answer_leaves_health_unknown(ground: Ground) -> None:
    await ground.provider("lab", override=ground.gadget(), healthCheck="1 / 0", readinessCheck="spec.x.y()")
    await ground.ask("mine", provider="lab")
    claim = await ground.served()
    assert not {"healthy", "ready"} & claim["status"].keys()
    # It blocks no other claim whose resources are of the same kind.
    await ground.provider("good", override=ground.gadget(), readinessCheck="status.up")
    await ground.ask("good", provider="good")
    await ground.served("good")
    await ground.report(look(ground.resource("good"), "metadata.name"), up=True)
    await ground.ready("good", seconds=PROMPT)


# --- providers ---


async def test_a_claim_waits_for_a_provider_that_comes_later(ground: Ground) -> None:
    await ground.ask("mine", provider="lab")
    await ground.says("mine", ground.named("lab"), "not found")
    assert ground.handles() == []
    await ground.provider()
    await ground.ready(seconds=2 * PROMPT)


async def test_a_template_waits_for_the_one_provider_that_serves_it(ground: Ground) -> None:
    match = {"kind": "Gadget", "metadata": {"labels": {"ground": ground.tag}}}
    template = {"apiVersion": GADGET.api_version, **match}
    await ground.ask("mine", resources=[{"template": template}])
    await ground.says("mine", "no ResourceProvider")
    for word in ("first", "second"):
        await ground.provider(word, match=match, override=ground.gadget(), readinessCheck="true")
    await ground.ask("another", resources=[{"template": template}])
    await ground.says("another", ground.named("first"), ground.named("second"))


async def test_a_pool_waits_for_a_provider_that_comes_later(ground: Ground) -> None:
    name = await ground.pool(minAvailable=1, provider={"name": ground.named("lab")})
    await ground.objects_say([(RESOURCE_POOL, name), *handles(ground)], ground.named("lab"), "not found")
    await ground.provider()
    await ground.until("it has a resource", lambda: len(ground.gadgets()) == 1, 2 * PROMPT)
    assert len(ground.free_handles()) == 1


def handles(ground: Ground) -> list[tuple[Kind, str]]:
    return [(RESOURCE_HANDLE, look(handle, "metadata.name")) for handle in ground.handles()]


async def test_a_claim_asks_by_provider_or_by_list_and_not_both_ways(ground: Ground) -> None:
    await ground.provider()
    provider = {"name": ground.named("lab")}
    await ground.ask("both", provider="lab", resources=[{"provider": provider}])
    await ground.ask("neither")
    await ground.ask("empty", resources=[])
    await ground.ask("bare", resources=[{"name": "nothing more"}])
    for name, word in {"both": "resources", "neither": "provider", "empty": "resources", "bare": "provider"}.items():
        await ground.says(name, word)
    assert ground.handles() == []
    await ground.edit_claim("both", resources=None)
    await ground.edit_claim("neither", provider=provider)
    for name in ("both", "neither"):
        await ground.ready(name, seconds=PROMPT)


async def test_a_claims_provider_does_not_change(ground: Ground) -> None:
    for word in ("first", "second"):
        await ground.provider(word)
    await ground.ask("mine", provider="first")
    await ground.ready()
    before = ground.resource()
    await ground.edit_claim(provider={"name": ground.named("second")})
    await ground.says("mine", ground.named("first"), ground.named("second"))
    assert look(ground.handle(), "spec.provider.name") == ground.named("first")
    assert look(ground.resource(), "metadata.uid") == look(before, "metadata.uid")
    assert look(ground.claim(), "status.provider.name") == ground.named("first")


async def test_a_resource_keeps_its_provider_and_its_template_when_the_claim_lists_another(ground: Ground) -> None:
    for word in ("first", "second"):
        await ground.provider(
            word, override=ground.gadget(), updateFilters=[{"pathMatch": "/spec/.*"}], readinessCheck="true"
        )
    first, second = ({"name": ground.named(word)} for word in ("first", "second"))
    await ground.ask("mine", resources=[{"provider": first, "template": {"spec": {"x": 1}}}])
    await ground.ready()
    await ground.edit_claim(resources=[{"provider": second, "template": {"spec": {"x": 2}}}])
    await ground.says("mine", ground.named("second"))
    assert look(ground.handle(), "spec.resources.0.provider.name") == ground.named("first")
    assert look(ground.handle(), "spec.resources.0.template.spec") == {"x": 1}
    assert look(ground.resource(), "spec.x") == 1


async def test_providers_that_link_in_a_ring_are_named(ground: Ground) -> None:
    for word, other in (("one", "two"), ("two", "one")):
        await ground.provider(word, override=ground.gadget(), linkedResourceProviders=[{"name": ground.named(other)}])
    await ground.ask("mine", provider="one")
    await ground.says("mine", ground.named("one"), ground.named("two"))
    await ground.others_go_on()


async def test_a_lifespan_that_cannot_be_read_is_named_and_can_be_corrected(ground: Ground) -> None:
    await ground.provider("lab", override=ground.gadget(), readinessCheck="true", lifespan={"default": "soon"})
    await ground.ask("mine", provider="lab")
    await ground.says("mine", "lifespan", "soon")
    await ground.edit_provider(lifespan={"default": "1h"})
    await ground.ready(seconds=2 * PROMPT)
    assert look(ground.handle(), "spec.lifespan.default") == "1h"


async def test_a_definition_without_a_kind_is_named_and_can_be_corrected(ground: Ground) -> None:
    await ground.provider("lab", override={"metadata": {"namespace": ground.namespace}}, readinessCheck="true")
    await ground.ask("mine", provider="lab")
    await ground.says("mine", "apiVersion")
    await ground.edit_provider(override={"apiVersion": GADGET.api_version, "kind": "Gadget"})
    await ground.ready(seconds=2 * PROMPT)


async def test_two_resources_of_one_name_are_named_and_can_be_corrected(ground: Ground) -> None:
    await ground.provider("lab", override={"metadata": {"namespace": ground.namespace}}, readinessCheck="true")
    twin = {"apiVersion": GADGET.api_version, "kind": "Gadget", "metadata": {"generateName": "twin-"}}
    one, two = ({"name": name, "provider": {"name": ground.named("lab")}, "template": twin} for name in ("one", "two"))
    await ground.ask("mine", resources=[one, two])
    await ground.says("mine", "resource two", "would be the same Gadget", "resource one")
    assert len(ground.gadgets()) == 1
    corrected = {**two, "template": {**twin, "metadata": {"generateName": "other-"}}}
    await ground.edit_claim(resources=[one, corrected])
    await ground.ready(seconds=2 * PROMPT)
    assert len(ground.gadgets()) == 2


async def test_refused_labels_of_a_provider_are_named_and_can_be_corrected(ground: Ground) -> None:
    labels = {"team": "the blue ones"}
    await ground.provider("lab", override=ground.gadget(), readinessCheck="true", resourceClaimLabels=labels)
    await ground.ask("mine", provider="lab")
    await ground.says("mine", "the blue ones", "what the provider adds")
    await ground.edit_provider(resourceClaimLabels={"team": "blue"})
    await ground.ready(seconds=2 * PROMPT)


async def test_a_definition_that_the_api_server_refuses_is_named_and_can_be_corrected(ground: Ground) -> None:
    invalid = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": ground.namespace}, "data": {"n": 1}}
    await ground.provider("lab", override=invalid, readinessCheck="true")
    await ground.ask("mine", provider="lab")
    await ground.says("mine", "ConfigMap")
    await ground.edit_provider(override={"data": {"n": "1"}})
    await ground.ready(seconds=2 * PROMPT)


# --- kinds ---


@pytest.fixture
async def late(ground: Ground) -> AsyncIterator[Kind]:
    """A kind that no cluster serves yet."""
    word = f"latecomer{uuid4().hex[:4]}"
    kind = Kind(name=word.capitalize(), group=GADGET_GROUP, version="v1", plural=f"{word}s", area="")
    yield kind
    await forget(ground, kind)


async def forget(ground: Ground, kind: Kind) -> None:
    with suppress(Absent):
        await ground.kube.delete(CUSTOM_RESOURCE_DEFINITION, "", f"{kind.plural}.{kind.group}")


async def provider_of(ground: Ground, kind: Kind) -> None:
    definition = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"namespace": ground.namespace}}
    await ground.provider("lab", override=definition, readinessCheck="true")


async def test_a_kind_that_is_installed_later_is_made_and_followed_then(ground: Ground, late: Kind) -> None:
    await provider_of(ground, late)
    await ground.ask("mine", provider="lab")
    await ground.says("mine", late.name)
    await ground.others_go_on()
    await serve(ground.kube, late)
    await ground.ready(seconds=NOTICED)
    name = look(ground.claim(), "status.resources.0.reference.name")
    await ground.kube.patch(late, ground.namespace, name, {"spec": {"theirs": 1}}, field_manager=PERSON)
    await ground.until(
        "it is followed", lambda: look(ground.claim(), "status.resources.0.state.spec.theirs") == 1, NOTICED
    )
    # The definition removed, the claim can still go.
    await forget(ground, late)
    await ground.delete(RESOURCE_CLAIM, "mine")
    await ground.gone(RESOURCE_CLAIM, "mine", NOTICED)
    await ground.until("so is its handle", lambda: not ground.handles(), NOTICED)


async def test_a_kind_that_is_not_granted_is_named_until_it_is(ground: Ground) -> None:
    denied = Kind(name="Secretive", group=DENIED_GROUP, version="v1", plural="secretives", area="")
    await serve(ground.kube, denied)
    await provider_of(ground, denied)
    await ground.ask("mine", provider="lab")
    await ground.says("mine", "secretives")
    await ground.others_go_on()
    role = ground.named("grant")
    await ground.kube.create(CLUSTER_ROLE, {"metadata": {"name": role}, "rules": [rule([DENIED_GROUP])]})
    await ground.kube.create(CLUSTER_ROLE_BINDING, binding(role))
    try:
        await ground.ready(seconds=NOTICED)
        await ground.delete(RESOURCE_CLAIM, "mine")
        await ground.until("its handle is gone", lambda: not ground.handles(), NOTICED)
    finally:
        await ground.kube.delete(CLUSTER_ROLE_BINDING, "", role)
        await ground.kube.delete(CLUSTER_ROLE, "", role)
        await forget(ground, denied)
