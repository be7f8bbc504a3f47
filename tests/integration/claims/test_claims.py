"""What a claim gets: by provider and by template, under which names, with which marks; and how it all goes again."""

from __future__ import annotations

import pytest

from claims.claims_ground import GADGET, OPERATOR_NAMESPACE, PROMPT, Ground
from claims.claims_objects import NAMES, Json, annotation, deleting, label_of, link, look, version
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_PROVIDER
from domain.resource import parse_timestamp
from engine.kube import CONFIG_MAP, NAMESPACE

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


async def provider_of_sizes(ground: Ground) -> None:
    """Gadgets of a size that the claim chooses, owned by the claim's owner."""
    await ground.provider(
        "lab",
        override=ground.gadget(spec={"owner": "{{ resource_claim.metadata.name }}"}),
        parameters=[{"name": "size", "default": {"value": 1}}, {"name": "flavour", "default": {"value": "plain"}}],
        template={"enable": True, "definition": {"spec": {"size": "{{ size | int }}", "flavour": "{{ flavour }}"}}},
        vars={"region": "north"},
    )


async def test_a_claim_by_provider_gets_a_handle_and_what_the_provider_defines(ground: Ground) -> None:
    await provider_of_sizes(ground)
    await ground.ask("mine", provider="lab", values={"size": 3})
    claim, handle = await ground.served(), await ground.bound()
    assert ground.resource()["spec"] == {"size": 3, "flavour": "plain", "owner": "mine"}
    assert look(claim, "status.provider") == {
        "name": ground.named("lab"),
        "parameterValues": {"size": 3, "flavour": "plain"},
    }
    assert look(claim, "status.resources.0.name") == ground.named("lab")
    assert look(claim, "status.resources.0.provider") == ground.provider_reference("lab")
    # What the user wrote stays; the handle has the complete values from the start.
    assert look(claim, "spec.provider.parameterValues") == {"size": 3}
    assert look(handle, "spec.provider.parameterValues") == {"size": 3, "flavour": "plain"}
    assert "vars" not in handle["spec"]


async def test_handle_and_claim_point_at_each_other_and_carry_the_operators_marks(ground: Ground) -> None:
    await provider_of_sizes(ground)
    await ground.ask("mine", provider="lab")
    claim, handle = await ground.served(), await ground.bound()
    name = look(handle, "metadata.name")
    expected = link("ResourceHandle", OPERATOR_NAMESPACE, name)
    assert {field: look(claim, f"status.resourceHandle.{field}") for field in expected} == expected
    assert look(handle, "spec.resourceClaim") == link("ResourceClaim", ground.namespace, "mine")
    assert look(handle, "metadata.finalizers") == look(claim, "metadata.finalizers") == [NAMES.finalizer]
    assert look(handle, "metadata.generateName") == "guid-"
    assert (label_of(handle, "resource-claim-name"), label_of(handle, "resource-claim-namespace")) == (
        "mine",
        ground.namespace,
    )
    assert parse_timestamp(annotation(claim, "resource-claim-init-timestamp") or "") is not None
    assert look(handle, "metadata.ownerReferences") is None


async def test_a_resource_is_named_from_the_guid_and_says_whose_it_is(ground: Ground) -> None:
    await provider_of_sizes(ground)
    await ground.ask("mine", provider="lab")
    claim, handle = await ground.served(), await ground.bound()
    guid = look(handle, "metadata.name").removeprefix("guid-")
    gadget = ground.resource()
    assert look(gadget, "metadata.name") == f"guid0-{guid}"
    reference = {
        "apiVersion": GADGET.api_version,
        "kind": "Gadget",
        "name": f"guid0-{guid}",
        "namespace": ground.namespace,
    }
    assert look(handle, "spec.resources.0.reference") == look(handle, "status.resources.0.reference") == reference
    assert look(claim, "status.resources.0.reference") == reference
    assert {key: annotation(gadget, f"resource-{key}") for key in marks(ground, handle)} == marks(ground, handle)


def marks(ground: Ground, handle: Json) -> dict[str, str | None]:
    """What a managed resource says of the one resource of a handle that was made for a claim."""
    return {
        "provider-name": ground.named("lab"),
        "provider-namespace": OPERATOR_NAMESPACE,
        "handle-name": look(handle, "metadata.name"),
        "handle-namespace": OPERATOR_NAMESPACE,
        "handle-uid": look(handle, "metadata.uid"),
        "index": "0",
        "claim-name": "mine",
        "claim-namespace": ground.namespace,
        # Neither from a pool, nor does the namespace, which has no annotations, name a requester.
        "pool-name": None,
        "pool-namespace": None,
        "requester-user": None,
        "requester-email": None,
    }


async def test_a_claim_by_template_gets_the_one_provider_that_matches_and_its_defaults(ground: Ground) -> None:
    ours = {"labels": {"ground": ground.tag}}
    await ground.provider(
        "lab",
        match={"kind": "Gadget", "metadata": ours},
        default={"spec": {"size": 5, "colour": "blue", "index": "{{ resource_index | int }}"}},
        override={"metadata": {"namespace": ground.namespace}},
        template={"enable": True},
        validation={"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC_WITH_SHAPE}}},
        vars={"region": "north"},
    )
    await ground.provider("other", match={"kind": "Gadget", "metadata": {"labels": {"ground": "elsewhere"}}})
    template = {"apiVersion": GADGET.api_version, "kind": "Gadget", "metadata": ours, "spec": {"colour": "red"}}
    await ground.ask("mine", resources=[{"name": "first", "template": template}])
    claim, handle = await ground.served(), await ground.bound()
    completed = {**template, "spec": {"colour": "red", "size": 5, "index": 0, "shape": "round"}}
    assert look(claim, "spec.resources") == [
        {"name": "first", "provider": ground.provider_reference("lab"), "template": completed}
    ]
    assert look(claim, "status.resources.0.provider") == ground.provider_reference("lab")
    assert look(handle, "spec.resources.0.template") == completed
    assert look(handle, "spec.vars") == {"region": "north"}
    assert look(handle, "spec.provider") is None
    assert ground.resource()["spec"] == completed["spec"]
    # Defaults are applied once.
    await ground.edit_provider(default={"spec": {"size": 9, "weight": 1}})
    await ground.others_go_on()
    assert look(ground.claim(), "spec.resources.0.template") == completed


SPEC_WITH_SHAPE = {"type": "object", "properties": {"shape": {"type": "string", "default": "round"}}}


async def test_a_list_of_resources_is_made_in_order_each_under_its_own_name(ground: Ground) -> None:
    await ground.provider("lab", override={"metadata": {"namespace": ground.namespace}})
    # A bare name is enough, and what else a reference says is not looked at.
    other_domain = {"apiVersion": "other.example.com/v1", "kind": "ResourceProvider", "namespace": "elsewhere"}
    gadget = {"apiVersion": GADGET.api_version, "kind": "Gadget"}
    fixed, generated = f"fixed-{ground.tag}", "generated-"
    await ground.ask(
        "mine",
        resources=[
            {"provider": {"name": ground.named("lab")}, "template": {**gadget, "metadata": {"name": fixed}}},
            {
                "provider": {"name": ground.named("lab"), **other_domain},
                "template": {**gadget, "metadata": {"generateName": generated}},
            },
            {"name": "third", "provider": {"name": ground.named("lab")}, "template": gadget},
        ],
    )
    claim, handle = await ground.served(), await ground.bound()
    guid = look(handle, "metadata.name").removeprefix("guid-")
    names = [look(entry, "reference.name") for entry in look(claim, "status.resources")]
    assert names == [fixed, f"{generated}{guid}", f"guid2-{guid}"]
    assert [annotation(ground.one(GADGET, name), "resource-index") for name in names] == ["0", "1", "2"]
    assert look(ground.one(GADGET, names[1]), "metadata.generateName") == generated
    written = [look(claim, f"spec.resources.{index}.provider") for index in range(3)]
    assert written == [ground.provider_reference("lab")] * 3


async def test_the_shortest_lifespan_of_several_listed_providers_counts(ground: Ground) -> None:
    await ground.provider("long", override=ground.gadget(), lifespan={"default": "3h", "maximum": "2d"})
    await ground.provider("short", override=ground.gadget(), lifespan={"default": "1h30m", "maximum": "7d"})
    listed = [{"provider": {"name": ground.named(word)}} for word in ("long", "short")]
    await ground.ask("mine", resources=listed)
    handle = await ground.bound()
    assert look(handle, "spec.lifespan.default") == "1h30m"
    assert look(handle, "spec.lifespan.maximum") == "2d"


async def test_an_unknown_value_is_absent_from_every_status_and_never_null(ground: Ground) -> None:
    await ground.provider("lab", override=ground.gadget())
    await ground.ask("mine", provider="lab")
    claim, handle = await ground.served(), await ground.bound()
    for obj in (claim, handle):
        assert not {"healthy", "ready", "summary"} & obj["status"].keys()
        assert not {"healthy", "ready", "waitingFor", "validationError"} & look(obj, "status.resources.0").keys()
        assert None not in values_in(obj["status"])
    assert not {"approval", "diffBase", "kopf"} & claim["status"].keys()
    assert "state" not in look(handle, "status.resources.0")
    assert set(look(claim, "status.lifespan")) == {"start"}
    assert look(claim, "status.resourceHandle.detached") in (None, False)


def values_in(value: object) -> list[object]:
    """Every value under this one, to any depth."""
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [value, *(found for part in parts for found in values_in(part))]


async def test_health_readiness_and_summary_follow_the_resource_on_handle_and_claim(ground: Ground) -> None:
    await ground.provider(
        "lab",
        override=ground.gadget(spec={"url": "http://{{ guid }}"}),
        template={"enable": True},
        healthCheck="status.phase | default('') != 'Failed'",
        readinessCheck="status.phase == 'Ready'",
        statusSummaryTemplate={"phase": "{{ resources[0].state.status.phase | default('none') }}"},
    )
    await ground.ask("mine", provider="lab")
    claim = await ground.served()
    assert (look(claim, "status.healthy"), look(claim, "status.ready")) == (True, False)
    assert look(claim, "status.summary") == {"phase": "none"}
    name = look(ground.resource(), "metadata.name")
    for phase, healthy, ready in (("Ready", True, True), ("Failed", False, False), ("Ready", True, True)):
        await ground.report(name, phase=phase)
        await ground.until(f"the claim says {phase}", lambda: summarised(ground.claim()) == phase, PROMPT)  # noqa: B023
        for obj in (ground.claim(), ground.handle()):
            assert (look(obj, "status.healthy"), look(obj, "status.ready")) == (healthy, ready)
            assert look(obj, "status.resources.0.ready") is ready
            assert summarised(obj) == phase
        # A client that sees it on the claim finds it on the handle: the handle is written first.
        assert version(ground.handle()) < version(ground.claim())


def summarised(obj: Json) -> object:
    return look(obj, "status.summary.phase")


async def test_the_claim_shows_the_whole_live_object_with_the_operators_annotations(ground: Ground) -> None:
    await provider_of_sizes(ground)
    await ground.ask("mine", provider="lab")
    await ground.served()
    gadget = ground.resource()
    await ground.report(look(gadget, "metadata.name"), diffBase="{}", phase="up")
    await ground.until(
        "the status is mirrored",
        lambda: look(ground.claim(), "status.resources.0.state.status") == {"phase": "up"},
        PROMPT,
    )
    state = look(ground.claim(), "status.resources.0.state")
    assert "managedFields" not in state["metadata"]
    assert state["spec"] == gadget["spec"]
    assert state["metadata"]["uid"] == look(gadget, "metadata.uid")
    assert annotation(state, "resource-claim-name") == "mine"


async def test_a_config_map_is_followed_like_any_other_kind(ground: Ground) -> None:
    await ground.provider("lab", override=ground.config_map(level="1"), readinessCheck="data.level == '2'")
    await ground.ask("mine", provider="lab")
    claim = await ground.served()
    assert look(claim, "status.ready") is False
    await ground.edit(CONFIG_MAP, look(claim, "status.resources.0.reference.name"), {"data": {"level": "2"}})
    await ground.ready(seconds=PROMPT)
    assert look(ground.claim(), "status.resources.0.state.data.level") == "2"


async def test_claims_carry_the_labels_and_annotations_that_their_provider_forces_on_them(ground: Ground) -> None:
    await ground.provider(
        "lab",
        override=ground.gadget(),
        resourceClaimLabels={"team": "red", "kept": "theirs"},
        resourceClaimAnnotations={"example.com/cost-centre": "7"},
    )
    await ground.ask("mine", provider="lab", labels={"kept": "mine", "own": "yes"}, annotations={"note": "hello"})
    claim = await ground.served()
    assert look(claim, "metadata.labels") == {"team": "red", "kept": "theirs", "own": "yes"}
    annotations = look(claim, "metadata.annotations")
    assert (annotations["example.com/cost-centre"], annotations["note"]) == ("7", "hello")
    await ground.edit(RESOURCE_CLAIM, "mine", {"metadata": {"labels": {"team": None}}})
    await ground.until("the label is back", lambda: look(ground.claim(), "metadata.labels.team") == "red", PROMPT)


async def test_a_deleted_claim_takes_its_handle_and_its_resource_along(ground: Ground) -> None:
    await ground.provider()
    await ground.ask("mine", provider="lab")
    await ground.ready()
    handle, gadget = ground.handle_name(), look(ground.resource(), "metadata.name")
    await ground.delete(RESOURCE_CLAIM, "mine")
    await ground.gone(RESOURCE_CLAIM, "mine", PROMPT)
    await ground.gone(RESOURCE_HANDLE, handle, PROMPT)
    await ground.gone(GADGET, gadget, PROMPT)


async def test_a_deleted_handle_takes_its_claim_and_its_resource_along(ground: Ground) -> None:
    await ground.provider()
    await ground.ask("mine", provider="lab")
    await ground.ready()
    handle, gadget = ground.handle_name(), look(ground.resource(), "metadata.name")
    await ground.delete(RESOURCE_HANDLE, handle)
    await ground.gone(RESOURCE_HANDLE, handle, PROMPT)
    await ground.gone(RESOURCE_CLAIM, "mine", PROMPT)
    await ground.gone(GADGET, gadget, PROMPT)
    assert ground.handles() == []


async def test_a_claim_does_not_wait_for_a_resource_that_another_client_holds(ground: Ground) -> None:
    await ground.provider("lab", override=ground.gadget(metadata={"finalizers": ["tests/hold"]}))
    await ground.ask("mine", provider="lab")
    await ground.served()
    handle, gadget = ground.handle_name(), look(ground.resource(), "metadata.name")
    await ground.delete(RESOURCE_CLAIM, "mine")
    await ground.gone(RESOURCE_CLAIM, "mine", PROMPT)
    await ground.gone(RESOURCE_HANDLE, handle, PROMPT)
    await ground.until("the resource is being deleted", lambda: deleting(ground.one(GADGET, gadget)), PROMPT)
    await ground.edit(GADGET, gadget, {"metadata": {"finalizers": None}})


async def test_a_handle_whose_provider_is_gone_is_deleted_all_the_same(ground: Ground) -> None:
    await ground.provider()
    await ground.ask("mine", provider="lab")
    await ground.ready()
    handle, gadget = ground.handle_name(), look(ground.resource(), "metadata.name")
    await ground.delete(RESOURCE_PROVIDER, ground.named("lab"))
    await ground.delete(RESOURCE_CLAIM, "mine")
    await ground.gone(RESOURCE_HANDLE, handle)
    await ground.gone(GADGET, gadget)


async def test_a_claim_whose_handle_is_being_deleted_takes_no_other(ground: Ground) -> None:
    await ground.provider()
    await ground.ask("mine", provider="lab")
    await ground.ready()
    handle = ground.handle_name()
    await ground.edit(RESOURCE_HANDLE, handle, {"metadata": {"finalizers": [NAMES.finalizer, "tests/hold"]}})
    await ground.delete(RESOURCE_HANDLE, handle)
    await ground.gone(RESOURCE_CLAIM, "mine")
    assert [look(obj, "metadata.name") for obj in ground.handles()] == [handle]


async def test_the_end_of_a_namespace_is_the_end_of_its_claims(ground: Ground) -> None:
    await ground.provider("lab", override=ground.gadget(), readinessCheck="true")
    await ground.ask("mine", provider="lab")
    await ground.ready()
    handle = ground.handle_name()
    await ground.kube.delete(NAMESPACE, "", ground.namespace)
    await ground.gone(RESOURCE_CLAIM, "mine")
    await ground.gone(RESOURCE_HANDLE, handle)


async def test_other_domains_in_references_are_written_as_ours(ground: Ground) -> None:
    await provider_of_sizes(ground)
    foreign = {"apiVersion": "poolboy.dev.local/v1", "kind": "ResourceProvider"}
    reference = {**foreign, "name": ground.named("lab"), "namespace": "elsewhere"}
    await ground.ask("mine", resources=[{"provider": reference}])
    claim = await ground.served()
    assert look(claim, "spec.resources.0.provider.apiVersion") == NAMES.api_version
    assert look(claim, "spec.resources.0.provider.namespace") == OPERATOR_NAMESPACE
