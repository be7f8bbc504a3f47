"""Objects as Poolboy 1.12 to 1.17 left them, and as restored backups bring them: taken over, never made again.

The operator's objects are made while the product is down; so each of these tests shows what is found at a start.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest

from claims.claims_ground import GADGET, OPERATOR_NAMESPACE, PROMPT, Ground
from claims.claims_lab import Lab
from claims.claims_objects import NAMES, Json, annotation, deleting, link, look, now, stamp, version
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

INITIALISED = "2025-01-20T10:00:00Z"
KOPF: Json = {"diffBase": '{"spec": {}}', "kopf": {"progress": {"claim_create": {"retries": 3}}}}


class Left:
    """A claim, its handle and its Gadget, written by hand as another operator, or a backup, left them."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.handle = f"guid-{ground.named('left')}"
        self.gadget = f"guid0-{ground.named('left')}"
        self.end = stamp(now() + timedelta(hours=3))

    @property
    def reference(self) -> Json:
        return {
            "apiVersion": GADGET.api_version,
            "kind": "Gadget",
            "name": self.gadget,
            "namespace": self.ground.namespace,
        }

    async def make(
        self,
        *,
        in_spec: bool = True,
        in_status: bool = True,
        bound: bool = True,
        shown: bool = True,
        finalizers: tuple[str, ...] = (NAMES.finalizer,),
        ignored: bool = False,
        gadget: bool = True,
    ) -> None:
        """All of it; `bound`: the handle names the claim, `shown`: the claim names the handle."""
        await self._provider()
        labels = {NAMES.ignore_label: "restored"} if ignored else {}
        held = [] if ignored else list(finalizers)
        if gadget:
            await self._gadget()
        await self._handle({"labels": labels, "finalizers": held}, in_spec=in_spec, in_status=in_status, bound=bound)
        await self._claim({"labels": labels, "finalizers": held[:1] and [NAMES.finalizer]}, shown=shown)

    async def _provider(self) -> None:
        await self.ground.provider(
            "lab",
            override=self.ground.gadget(),
            parameters=[{"name": "size", "allowUpdate": True, "default": {"value": 1}}],
            template={"definition": {"spec": {"size": "{{ size | int }}"}}},
            updateFilters=[{"pathMatch": "/spec/.*"}],
            readinessCheck="true",
            lifespan={"default": "1h", "maximum": "7d"},
        )

    async def _gadget(self) -> None:
        marks = {
            NAMES.resource_handle_name_annotation: self.handle,
            NAMES.resource_handle_uid_annotation: "of-the-saved-handle",
        }
        obj = self.ground.gadget(self.gadget, metadata={"annotations": marks}, spec={"size": 4})
        await self.ground.create(GADGET, obj)

    async def _handle(self, metadata: Json, *, in_spec: bool, in_status: bool, bound: bool) -> None:
        ground = self.ground
        entry = ground.entry("lab", ground.named("lab"), spec={"size": 4})
        spec: Json = {
            "provider": {"name": ground.named("lab"), "parameterValues": {"size": 4, "former": "kept"}},
            "resources": [{**entry, **({"reference": self.reference} if in_spec else {})}],
            "lifespan": {"default": "1h", "end": self.end, "maximum": "7d"},
        }
        if bound:
            spec["resourceClaim"] = link("ResourceClaim", ground.namespace, "mine")
        named = {"name": self.handle, "generateName": "guid-", **metadata}
        await ground.create(RESOURCE_HANDLE, {"metadata": named, "spec": spec})
        resources = [{"name": ground.named("lab"), **({"reference": self.reference} if in_status else {})}]
        status = {**KOPF, "healthy": True, "ready": True, "resources": resources}
        await ground.edit(RESOURCE_HANDLE, self.handle, {"status": status}, status=True)

    async def _claim(self, metadata: Json, *, shown: bool) -> None:
        ground = self.ground
        annotations = {NAMES.init_timestamp_annotation: INITIALISED}
        await ground.ask("mine", provider="lab", values={"size": 4}, annotations=annotations, **{})
        await ground.edit(RESOURCE_CLAIM, "mine", {"metadata": metadata})
        reference = self.ground.provider_reference("lab")
        status: Json = {
            **KOPF,
            "provider": {"name": ground.named("lab"), "parameterValues": {"size": 4, "former": "kept"}},
            "resources": [{"name": ground.named("lab"), "provider": reference}],
            "lifespan": {"start": INITIALISED, "end": self.end, "firstReady": INITIALISED, "maximum": "7d"},
        }
        if shown:
            status["resourceHandle"] = link("ResourceHandle", OPERATOR_NAMESPACE, self.handle)
        await ground.edit(RESOURCE_CLAIM, "mine", {"status": status}, status=True)

    def is_taken_over(self) -> bool:
        """Claim and handle show each other and the Gadget, wherever clients look for it."""
        handle, claim = self.ground.one(RESOURCE_HANDLE, self.handle), self.ground.claim()
        return (
            self.ground.handle_name() == self.handle
            and look(handle, "spec.resourceClaim.name") == "mine"
            and look(handle, "spec.resources.0.reference") == self.reference
            and look(handle, "status.resources.0.reference") == self.reference
            and look(claim, "status.resources.0.reference") == self.reference
            and look(claim, "status.resources.0.state.metadata.name") == self.gadget
            and look(claim, "status.ready") is True
        )

    async def taken_over(self) -> None:
        await self.ground.until("it is taken over", self.is_taken_over)
        assert [look(obj, "metadata.name") for obj in self.ground.handles()] == [self.handle]
        assert [look(obj, "metadata.name") for obj in self.ground.gadgets()] == [self.gadget]


Scene = dict[str, Ground]


@pytest.fixture(scope="module")
async def scene(lab: Lab) -> AsyncIterator[Scene]:
    """Everything that was left, by what is odd about it, and the product started on it."""
    async with AsyncExitStack() as stack:
        grounds = {case: await stack.enter_async_context(lab.ground()) for case in CASES}
        async with lab.without_product():
            for case, ground in grounds.items():
                await CASES[case](ground)
        yield grounds


# --- what was left ---


def left(**how: Any) -> Any:
    async def make(ground: Ground) -> None:
        await Left(ground).make(**how)

    return make


async def half_deleted_claim(ground: Ground) -> None:
    await Left(ground).make()
    await ground.delete(RESOURCE_CLAIM, "mine")


async def half_deleted_handle(ground: Ground) -> None:
    """The later releases' finalizer beside the old one; and only the spec knows the resource."""
    await Left(ground).make(in_status=False, finalizers=(NAMES.finalizer, NAMES.former_finalizer))
    await ground.delete(RESOURCE_HANDLE, f"guid-{ground.named('left')}")


async def handle_of_a_claim_that_is_gone(ground: Ground) -> None:
    await Left(ground).make()
    await ground.edit(RESOURCE_CLAIM, "mine", {"metadata": {"finalizers": None}})
    await ground.delete(RESOURCE_CLAIM, "mine")


async def claim_of_a_handle_that_is_gone(ground: Ground) -> None:
    await Left(ground).make(gadget=False)
    handle = f"guid-{ground.named('left')}"
    await ground.edit(RESOURCE_HANDLE, handle, {"metadata": {"finalizers": None}})
    await ground.delete(RESOURCE_HANDLE, handle)


async def full_pool(ground: Ground) -> None:
    """A pool and its two handles, as the later releases left them."""
    await ground.provider()
    for word in ("a", "b"):
        name = f"guid-{ground.named(word)}"
        pool = link("ResourcePool", OPERATOR_NAMESPACE, ground.named("pool"))
        provider = {"name": ground.named("lab"), "parameterValues": {}}
        metadata = {"name": name, "generateName": "guid-", "finalizers": [NAMES.former_finalizer]}
        spec = {"resourcePool": pool, "provider": provider}
        await ground.create(RESOURCE_HANDLE, {"metadata": metadata, "spec": spec})
    await ground.pool(minAvailable=2, provider={"name": ground.named("lab")})
    await ground.edit(
        RESOURCE_POOL, ground.named("pool"), {"metadata": {"finalizers": [NAMES.finalizer]}, "status": KOPF}
    )


CASES = {
    "1.12": left(in_status=False),
    "1.17": left(in_spec=False, finalizers=(NAMES.former_finalizer,)),
    "bound, not shown": left(shown=False),
    "shown, not bound": left(bound=False),
    "resource lost": left(gadget=False),
    "half-deleted claim": half_deleted_claim,
    "half-deleted handle": half_deleted_handle,
    "handle alone": handle_of_a_claim_that_is_gone,
    "claim alone": claim_of_a_handle_that_is_gone,
    "pool": full_pool,
}


# --- what becomes of it ---


@pytest.mark.parametrize("case", ["1.12", "1.17"])
async def test_bound_objects_of_every_release_are_taken_over(scene: Scene, case: str) -> None:
    ground = scene[case]
    await Left(ground).taken_over()
    claim, gadget = ground.claim(), ground.resource()
    assert annotation(claim, "resource-claim-init-timestamp") == INITIALISED
    # No accepted value is ever dropped, although its parameter is gone.
    assert look(claim, "status.provider.parameterValues") == {"size": 4, "former": "kept"}
    assert look(claim, "status.lifespan.start") == look(claim, "status.lifespan.firstReady") == INITIALISED
    assert look(claim, "status.lifespan.end") == look(ground.handle(), "spec.lifespan.end")
    assert look(gadget, "spec.size") == 4
    await ground.until(
        "the stale uid is refreshed",
        lambda: annotation(ground.resource(), "resource-handle-uid") == look(ground.handle(), "metadata.uid"),
    )


async def test_an_adopted_handle_follows_its_claim(scene: Scene) -> None:
    ground = scene["1.12"]
    await Left(ground).taken_over()
    await ground.choose(size=5)
    await ground.until("the edit is carried out", lambda: look(ground.resource(), "spec.size") == 5, PROMPT)
    assert look(ground.handle(), "spec.provider.parameterValues.former") == "kept"


async def test_a_finalizer_of_later_releases_does_not_hold_a_deletion(scene: Scene) -> None:
    ground = scene["1.17"]
    await Left(ground).taken_over()
    await ground.delete(RESOURCE_CLAIM, "mine")
    await ground.gone(RESOURCE_CLAIM, "mine", PROMPT)
    await ground.gone(RESOURCE_HANDLE, Left(ground).handle, PROMPT)
    await ground.gone(GADGET, Left(ground).gadget, PROMPT)


async def test_a_claim_that_never_learnt_of_its_handle_does(scene: Scene) -> None:
    await Left(scene["bound, not shown"]).taken_over()


async def test_a_claim_whose_handle_never_learnt_of_it_has_exactly_one_in_the_end(scene: Scene) -> None:
    ground = scene["shown, not bound"]
    await ground.bound()
    await ground.ready()
    holders = [obj for obj in ground.handles() if look(obj, "spec.resourceClaim.name") == "mine"]
    assert [look(obj, "metadata.name") for obj in holders] == [ground.handle_name()]


async def test_a_recorded_resource_that_is_gone_is_made_again_under_its_name(scene: Scene) -> None:
    await Left(scene["resource lost"]).taken_over()


@pytest.mark.parametrize("case", ["half-deleted claim", "half-deleted handle", "handle alone"])
async def test_a_deletion_that_was_under_way_is_brought_to_its_end(scene: Scene, case: str) -> None:
    ground = scene[case]
    await ground.gone(RESOURCE_CLAIM, "mine")
    await ground.gone(RESOURCE_HANDLE, Left(ground).handle)
    await ground.gone(GADGET, Left(ground).gadget)
    assert ground.handles() == []


async def test_a_claim_whose_handle_is_gone_goes_too(scene: Scene) -> None:
    ground = scene["claim alone"]
    await ground.gone(RESOURCE_CLAIM, "mine")
    assert ground.handles() == []
    assert ground.gadgets() == []


async def test_a_full_pool_is_unchanged(scene: Scene) -> None:
    ground = scene["pool"]

    def count() -> object:
        return look(ground.one(RESOURCE_POOL, ground.named("pool")), "status.resourceHandleCount.available")

    await ground.until("it is counted", lambda: count() == 2)
    await ground.until("its handles have their resources", lambda: len(ground.gadgets()) == 2)
    assert [look(obj, "metadata.name") for obj in ground.handles()] == [
        f"guid-{ground.named(word)}" for word in ("a", "b")
    ]
    await ground.ask("mine", provider="lab")
    await ground.ready()
    assert ground.handle_name() in [f"guid-{ground.named(word)}" for word in ("a", "b")]


@pytest.mark.parametrize("first", ["handle", "claim"])
async def test_a_restored_backup_is_taken_over_when_its_labels_are_removed(ground: Ground, first: str) -> None:
    restored = Left(ground)
    await restored.make(in_status=False, ignored=True)
    uid = look(ground.one(GADGET, restored.gadget), "metadata.uid")
    await ground.others_go_on()
    assert look(ground.claim(), "metadata.finalizers") is None
    assert look(ground.one(RESOURCE_HANDLE, restored.handle), "status.diffBase") == KOPF["diffBase"]
    objects = [(RESOURCE_HANDLE, restored.handle), (RESOURCE_CLAIM, "mine")]
    for kind, name in objects if first == "handle" else reversed(objects):
        await ground.label(kind, name, ignore=None)
        await ground.others_go_on()
    await restored.taken_over()
    assert look(ground.resource(), "metadata.uid") == uid
    assert annotation(ground.claim(), "resource-claim-init-timestamp") == INITIALISED
    await ground.until(
        "the stale uid is refreshed",
        lambda: annotation(ground.resource(), "resource-handle-uid") == look(ground.handle(), "metadata.uid"),
    )
    assert not deleting(ground.handle())
    assert look(ground.claim(), "metadata.finalizers") == [NAMES.finalizer] == [NAMES.domain]


async def test_a_takeover_of_objects_that_need_nothing_writes_nothing(lab: Lab) -> None:
    async with lab.ground() as ground:
        await ground.provider()
        await ground.ask("mine", "lab")
        await ground.ready()

        def versions() -> list[int]:
            return [version(obj) for obj in (ground.claim(), ground.handle(), ground.resource())]

        async with lab.without_product():
            before = versions()
        # A claim that was made after the start is served after those that were there.
        await ground.ask("later", "lab")
        await ground.ready("later")
        assert versions() == before
