"""What claims do about the world around them: conditions, labels, namespaces, providers and clocks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from claims.claims_ground import GADGET, PROMPT, Ground
from claims.claims_lab import CLOCK_SECONDS, serve
from claims.claims_objects import NAMES, annotation, look
from domain.built_in_kinds import CUSTOM_RESOURCE_DEFINITION
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.identity import Kind
from engine.kube import NAMESPACE

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

ALL_OF_SPEC = [{"pathMatch": "/spec/.*"}]


async def test_a_claim_is_deleted_as_soon_as_its_condition_holds(ground: Ground) -> None:
    await ground.provider()
    done = "status.resources[0].state.status.done | default(false)"
    await ground.ask("mine", provider="lab", autoDelete={"when": done})
    await ground.ready()
    handle, gadget = ground.handle_name(), look(ground.resource(), "metadata.name")
    await ground.report(gadget, done=True)
    await ground.gone(RESOURCE_CLAIM, "mine", PROMPT)
    await ground.gone(RESOURCE_HANDLE, handle, PROMPT)
    await ground.gone(GADGET, gadget, PROMPT)


async def test_a_condition_on_readiness_sees_the_readiness_of_the_same_moment(ground: Ground) -> None:
    await ground.provider("lab", override=ground.gadget(), readinessCheck="status.phase == 'Ready'")
    await ground.ask("mine", provider="lab", autoDelete={"when": "resource_handle.is_ready and status.ready"})
    await ground.served()
    await ground.report(look(ground.resource(), "metadata.name"), phase="Ready")
    await ground.gone(RESOURCE_CLAIM, "mine", PROMPT)


async def test_a_detached_claim_gives_its_resources_up_and_stays(ground: Ground) -> None:
    await ground.provider()
    await ground.ask("mine", provider="lab", autoDetach={"when": "'done' in metadata.annotations"})
    await ground.ready()
    handle, gadget = ground.handle_name(), look(ground.resource(), "metadata.name")
    await ground.edit(RESOURCE_CLAIM, "mine", {"metadata": {"annotations": {"done": "yes"}}})
    await ground.gone(RESOURCE_HANDLE, handle, PROMPT)
    await ground.gone(GADGET, gadget, PROMPT)
    assert look(ground.claim(), "status.resourceHandle.detached") is True
    await ground.others_go_on()
    assert ground.claim()
    assert [obj for obj in ground.handles() if look(obj, "spec.resourceClaim.name") == "mine"] == []


async def test_a_condition_that_fails_counts_as_false(ground: Ground) -> None:
    await ground.provider()
    await ground.ask("mine", provider="lab", autoDelete={"when": "1 / 0"}, autoDetach={"when": "nothing.at.all()"})
    await ground.ready()
    await ground.others_go_on()
    assert look(ground.claim(), "status.ready") is True


async def test_an_ignored_claim_and_handle_lose_their_finalizers_and_are_left_alone(ground: Ground) -> None:
    await updatable(ground)
    await ground.ask("mine", provider="lab", values={"size": 1})
    await ground.ready()
    handle, gadget = ground.handle_name(), look(ground.resource(), "metadata.name")
    await ground.label(RESOURCE_CLAIM, "mine", ignore="")
    await ground.label(RESOURCE_HANDLE, handle, ignore="")
    for kind, name in ((RESOURCE_CLAIM, "mine"), (RESOURCE_HANDLE, handle)):
        await ground.until(
            f"{kind.name} has no finalizer",
            lambda: not look(ground.one(kind, name), "metadata.finalizers"),  # noqa: B023
            PROMPT,
        )
    await ground.choose(size=2)
    await ground.report(gadget, phase="changed")
    await ground.others_go_on()
    assert look(ground.one(GADGET, gadget), "spec.size") == 1
    assert look(ground.claim(), "status.provider.parameterValues.size") == 1
    assert look(ground.claim(), "status.resources.0.state.status") is None
    # With the label goes the peace.
    await ground.label(RESOURCE_HANDLE, handle, ignore=None)
    await ground.label(RESOURCE_CLAIM, "mine", ignore=None)
    await ground.until("the edit is carried out", lambda: look(ground.resource(), "spec.size") == 2, PROMPT)
    assert look(ground.claim(), "metadata.finalizers") == [NAMES.finalizer]
    await ground.until("so is the handle's", lambda: look(ground.handle(), "metadata.finalizers") == [NAMES.finalizer])
    assert ground.handle_name() == handle


async def test_deleting_an_ignored_claim_leaves_its_ignored_handle(ground: Ground) -> None:
    await ground.provider()
    await ground.ask("mine", provider="lab")
    await ground.ready()
    handle, gadget = ground.handle_name(), look(ground.resource(), "metadata.name")
    await ground.label(RESOURCE_HANDLE, handle, ignore="yes")
    await ground.label(RESOURCE_CLAIM, "mine", ignore="yes")
    await ground.until("it has no finalizer", lambda: not look(ground.claim(), "metadata.finalizers"), PROMPT)
    await ground.delete(RESOURCE_CLAIM, "mine")
    await ground.gone(RESOURCE_CLAIM, "mine", PROMPT)
    await ground.others_go_on()
    assert ground.one(RESOURCE_HANDLE, handle)
    assert ground.one(GADGET, gadget)
    # When the handle is released too, it finds that its claim does not exist any more.
    await ground.label(RESOURCE_HANDLE, handle, ignore=None)
    await ground.gone(RESOURCE_HANDLE, handle)
    await ground.gone(GADGET, gadget)


async def test_a_claim_that_is_born_ignored_is_not_touched(ground: Ground) -> None:
    await ground.provider()
    await ground.ask("mine", provider="lab", labels={NAMES.ignore_label: "yes"})
    await ground.others_go_on()
    claim = ground.claim()
    assert "status" not in claim
    assert look(claim, "metadata.finalizers") is None
    assert annotation(claim, "resource-claim-init-timestamp") is None
    await ground.label(RESOURCE_CLAIM, "mine", ignore=None)
    await ground.ready()


async def updatable(ground: Ground) -> None:
    """A provider of Gadgets with a size that may change."""
    await ground.provider(
        "lab",
        override=ground.gadget(),
        parameters=[{"name": "size", "allowUpdate": True}],
        template={"definition": {"spec": {"size": "{{ size | int }}"}}},
        updateFilters=ALL_OF_SPEC,
        readinessCheck="true",
    )


USER = Kind(name="User", group="user.openshift.io", version="v1", plural="users", area="")
IDENTITY = Kind(name="Identity", group="user.openshift.io", version="v1", plural="identities", area="")


async def test_a_requester_without_an_account_is_known_by_name(ground: Ground) -> None:
    await requested_by(ground, "ada")
    await ground.provider(
        "lab", override=ground.gadget(spec={"for": "{{ requester_user.metadata.name }}"}), template={"enable": True}
    )
    await ground.ask("mine", provider="lab")
    await ground.served()
    gadget = ground.resource()
    assert annotation(gadget, "resource-requester-user") == "ada"
    assert annotation(gadget, "resource-requester-email") is None
    assert look(gadget, "spec.for") == "ada"


async def requested_by(ground: Ground, user: str) -> None:
    annotations = {"openshift.io/requester": user}
    await ground.kube.patch(NAMESPACE, "", ground.namespace, {"metadata": {"annotations": annotations}})


@pytest.fixture
async def openshift_users(ground: Ground) -> AsyncIterator[None]:
    """The part of OpenShift's API that knows users, with one of them in it."""
    for kind in (USER, IDENTITY):
        await serve(ground.kube, kind, scope="Cluster")
    await ground.kube.create(USER, {"metadata": {"name": "grace"}, "identities": ["sso.grace", "sso.unknown"]})
    extra = {"email": "grace@example.com", "name": "Grace Hopper"}
    await ground.kube.create(IDENTITY, {"metadata": {"name": "sso.grace"}, "extra": extra})
    yield
    for kind in (USER, IDENTITY):
        await ground.kube.delete(CUSTOM_RESOURCE_DEFINITION, "", f"{kind.plural}.{kind.group}")


@pytest.mark.usefixtures("openshift_users")
async def test_a_requesters_identity_is_written_on_the_resources(ground: Ground) -> None:
    await requested_by(ground, "grace")
    await ground.provider(
        "lab",
        override=ground.gadget(spec={"to": "{{ requester_identity.extra.email }}"}),
        template={"enable": True},
    )
    await ground.ask("mine", provider="lab")
    await ground.served()
    gadget = ground.resource()
    assert look(gadget, "spec.to") == "grace@example.com"
    assert annotation(gadget, "resource-requester-user") == "grace"
    assert annotation(gadget, "resource-requester-email") == "grace@example.com"
    assert annotation(gadget, "resource-requester-name") == "Grace Hopper"
    assert annotation(gadget, "resource-requester-preferred-username") == ""


async def test_a_requester_named_later_is_written_as_well(ground: Ground) -> None:
    await ground.provider()
    await ground.ask("mine", provider="lab")
    await ground.ready()
    assert annotation(ground.resource(), "resource-requester-user") is None
    await requested_by(ground, "linus")
    await ground.until(
        "the requester is named", lambda: annotation(ground.resource(), "resource-requester-user") == "linus", PROMPT
    )


async def test_an_edit_of_a_provider_reaches_the_claims_that_use_it(ground: Ground) -> None:
    await ground.provider("lab", override=ground.gadget(spec={"level": 1}), updateFilters=ALL_OF_SPEC)
    for name in ("one", "two"):
        await ground.ask(name, provider="lab")
        await ground.served(name)
    await ground.edit_provider(override={"spec": {"level": 2}}, readinessCheck="spec.level == 2")
    for name in ("one", "two"):
        await ground.ready(name, seconds=PROMPT)
        assert look(ground.resource(name), "spec.level") == 2


async def test_an_edit_of_a_linked_provider_reaches_the_claims_above_it(ground: Ground) -> None:
    await ground.provider("base", override=ground.gadget(spec={"level": 1}), updateFilters=ALL_OF_SPEC)
    linked = {"name": ground.named("base"), "resourceName": "ground"}
    await ground.provider("lab", override=ground.gadget(), linkedResourceProviders=[linked])
    await ground.ask("mine", provider="lab")
    await ground.served()
    await ground.edit_provider("base", override={"spec": {"level": 2}})
    await ground.until("the resource follows", lambda: look(ground.resource(), "spec.level") == 2, PROMPT)


async def test_an_override_that_reads_the_clock_is_rendered_again_by_itself(ground: Ground) -> None:
    await ground.provider(
        "lab",
        override=ground.gadget(spec={"at": "{{ timestamp }}"}),
        template={"enable": True},
        updateFilters=ALL_OF_SPEC,
    )
    await ground.ask("mine", provider="lab")
    await ground.served()
    first = look(ground.resource(), "spec.at")
    await ground.until(
        "it has a later time", lambda: look(ground.resource(), "spec.at") > first, CLOCK_SECONDS + 2 * PROMPT
    )


async def test_an_edit_of_the_claims_own_metadata_is_rendered_at_once(ground: Ground) -> None:
    await ground.provider(
        "lab",
        override=ground.gadget(spec={"mood": "{{ resource_claim.annotations['mood'] | default('none') }}"}),
        template={"enable": True},
        updateFilters=ALL_OF_SPEC,
    )
    await ground.ask("mine", provider="lab")
    await ground.served()
    await ground.edit(RESOURCE_CLAIM, "mine", {"metadata": {"annotations": {"mood": "fine"}}})
    await ground.until("the mood is there", lambda: look(ground.resource(), "spec.mood") == "fine", PROMPT)


async def test_a_person_and_the_product_write_one_status_and_neither_loses_a_word(ground: Ground) -> None:
    await ground.provider("lab", override=ground.gadget(), statusSummaryTemplate={"step": STEP})
    await ground.ask("mine", provider="lab")
    await ground.served()
    gadget = look(ground.resource(), "metadata.name")
    for step in range(10):
        approval = {"state": "approved", "message": f"word {step}"}
        await asyncio.gather(
            ground.report(gadget, step=step),
            ground.edit(RESOURCE_CLAIM, "mine", {"status": {"approval": approval}}, status=True),
        )
    await ground.until("the last step is shown", lambda: look(ground.claim(), "status.summary.step") == "9", PROMPT)
    assert look(ground.claim(), "status.approval.message") == "word 9"
    assert look(ground.claim(), "status.resources.0.state.status.step") == 9


STEP = "{{ resources[0].state.status.step | default('none') }}"
