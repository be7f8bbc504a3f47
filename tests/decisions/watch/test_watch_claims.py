"""What changes of claims, handles, pools and of what they manage wake: the claims area's rules, without any server."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, cast

import pytest
from claim_domain import NAMES
from claim_scenes import BOUND, POOLED, claim, config_map, entry, handle, provider
from edited_documents import edited

from domain.claims.constants import NAMESPACE_REQUESTER_ANNOTATION, RESOURCE_FIELD_MANAGER
from domain.control_annotations import PAUSED
from domain.identity import Key
from engine.errors import Invalid
from engine.kube.api import KubeApi, Listing
from engine.settings import Settings
from starters.watch import resource_watches
from starters.watch.claims import watched_for
from starters.watch.gauges import families
from starters.watch.projection import Projection
from starters.watch.projection_index import Index
from starters.watch.resource_watches import wanted_views, watch_name
from starters.watch.watched_kinds import Watched
from starters.watch.watcher import Watcher

Obj = dict[str, Any]

WATCHED = watched_for(Settings())
ENTRIES = {each.kind.name: each for each in WATCHED}
SERVED = {"resourceHandle": {"name": "guid-b7k2q"}, "lifespan": {"start": "2026-11-21T12:00:00Z"}}
NUMBERS = ("min_available", "available", "ready", "unready")
READY = {"healthy": True, "ready": True}
# Named by the first claim.
NAMESPACES = ENTRIES["ResourceClaim"].declared(ENTRIES["ResourceClaim"].project("", claim()))[0]
ENTRIES["Namespace"] = NAMESPACES


def declared(each: Obj) -> tuple[Watched, ...]:
    entry = ENTRIES["ResourceHandle"]
    return entry.declared(entry.project("", each))


(ENTRIES["ConfigMap"],) = declared(handle(entry("base", template=config_map("x"))))


class Scene:
    """A watcher that knows some objects, and what it would wake."""

    def __init__(self, *known: Obj) -> None:
        async def wake(_: Key) -> None:
            raise AssertionError("not reached: nothing drains the queue here")

        self.watcher = Watcher(cast(KubeApi, None), wake, WATCHED)
        self.watcher.mirrors.follow = lambda *_: None  # type: ignore[method-assign] # no reflector runs here
        self.gathered: list[Callable[[], Iterable[Key]]] = []
        self.gather = self.watcher.queue.gather
        self.watcher.queue.gather = self.noted  # type: ignore[method-assign]
        for each in known:
            self.know(each)

    def noted(self, find: Callable[[], Iterable[Key]], seconds: float) -> None:
        self.gathered.append(find)
        self.gather(find, seconds)

    def know(self, each: Obj) -> Projection:
        seen = self.seen(each)
        self.watcher.index.of(self.entry(each).name)[seen.name] = seen
        return seen

    def forget(self, each: Obj) -> None:
        del self.watcher.index.of(self.entry(each).name)[self.seen(each).name]

    def seen(self, each: Obj) -> Projection:
        return self.entry(each).project("", each)

    @staticmethod
    def entry(each: Obj) -> Watched:
        return ENTRIES[each["kind"]]

    def changed(self, before: Obj | None, after: Obj | None) -> set[str]:
        """The lifecycles that the change wakes, as Kind/name; `ClaimBinder` by its kind alone."""
        old = self.know(before) if before else None
        if after:
            self.know(after)
        elif before:
            self.forget(before)
        subject = after or before
        assert subject is not None
        self.watcher.changed(self.entry(subject), old, self.seen(after) if after else None, seen_live=True)
        return self.woken()

    def started(self, *objects: Obj) -> set[str]:
        self.watcher.started(self.entry(objects[0]), [self.know(each) for each in objects])
        return self.woken()

    def woken(self) -> set[str]:
        queue = self.watcher.queue
        keys = {*queue.outstanding(), *(key for find in self.gathered for key in find())}
        return {key.kind if key.kind == "ClaimBinder" else f"{key.kind}/{key.name}" for key in keys}


def ours(each: Obj) -> Obj:
    return written(each, "perdure")


def by_handles(each: Obj) -> Obj:
    return written(each, RESOURCE_FIELD_MANAGER)


def written(each: Obj, manager: str, time: str = "2026-11-21T12:00:00Z") -> Obj:
    made = copy.deepcopy(each)
    made["metadata"]["managedFields"] = [{"manager": manager, "time": time}]
    return made


def deleting(each: Obj) -> Obj:
    return edited(each, "metadata.deletionTimestamp", "2026-11-21T12:00:00Z")


def labelled(each: Obj, label: str = NAMES.ignore_label) -> Obj:
    after = copy.deepcopy(each)
    after["metadata"].setdefault("labels", {})[label] = ""
    return after


def annotated(each: Obj, **annotations: str) -> Obj:
    after = copy.deepcopy(each)
    after["metadata"].setdefault("annotations", {}).update(annotations)
    return after


def served(**spec: Any) -> Obj:
    """A claim as the binder leaves it."""
    return annotated(claim(SERVED, **spec), **{NAMES.init_timestamp_annotation: "2026-11-21T12:00:00Z"})


def bound(*resources: Obj, status: Obj | None = None, **spec: Any) -> Obj:
    return handle(*resources, status=status, **BOUND, **spec)


def pool(name: str = "spare", **spec: Any) -> Obj:
    metadata = {"name": name, "namespace": "poolboy", "uid": f"uid-{name}", "generation": 1}
    return {"apiVersion": NAMES.api_version, "kind": "ResourcePool", "metadata": metadata, "spec": spec}


def scaling(**status: Any) -> Obj:
    metadata = {"name": "more", "namespace": "poolboy", "uid": "uid-more"}
    spec = {"count": 2, "resourcePool": {"name": "spare"}}
    return {"kind": "ResourcePoolScaling", "metadata": metadata, "spec": spec, "status": status}


def namespace(requester: str = "") -> Obj:
    annotations = {NAMESPACE_REQUESTER_ANNOTATION: requester} if requester else {}
    return {"kind": "Namespace", "metadata": {"name": "user-ada", "annotations": annotations}}


def resource(version: str = "1", of: str = "guid-b7k2q") -> Obj:
    metadata = {"name": "thing", "namespace": "things", "uid": "uid-thing", "resourceVersion": version}
    made = {"kind": "ConfigMap", "metadata": metadata}
    marks = {NAMES.resource_handle_name_annotation: of, NAMES.resource_handle_namespace_annotation: "poolboy"}
    return annotated(made, **marks) if of else made


# Delegation.


def test_a_new_claim_wakes_the_binder_and_not_itself() -> None:
    assert Scene().changed(None, claim()) == {"ClaimBinder"}


def test_a_claim_with_a_handle_wakes_itself() -> None:
    assert Scene().changed(served(), edited(served(), "metadata.generation", 2)) == {"ResourceClaim/mine"}


@pytest.mark.parametrize(
    "after",
    [deleting(claim()), labelled(claim()), claim({"resourceHandle": {"detached": True}})],
    ids=["deleted", "ignored", "detached"],
)
async def test_a_claim_that_the_binder_has_nothing_to_do_for_carries_itself(after: Obj) -> None:
    assert Scene().changed(claim(), after) == {"ResourceClaim/mine"}


def test_a_bound_handle_wakes_its_claim() -> None:
    assert Scene(served()).changed(bound(), edited(bound(), "metadata.generation", 2)) == {"ResourceClaim/mine"}


def test_a_handle_of_a_claim_that_is_not_bound_yet_wakes_the_binder() -> None:
    assert Scene(claim()).changed(bound(), edited(bound(), "metadata.generation", 2)) == {"ClaimBinder"}


@pytest.mark.parametrize(
    "holder",
    [
        labelled(served()),
        annotated(served(), **{"perdure.dev/paused": "true"}),
        edited(served(), "status.resourceHandle.detached", True),
    ],
    ids=["ignored", "paused", "detached"],
)
def test_a_handle_whose_claim_does_not_look_after_it_carries_itself(holder: Obj) -> None:
    after = edited(bound(), "metadata.generation", 2)
    assert Scene(holder).changed(bound(), after) == {"ResourceHandle/guid-b7k2q"}


async def test_an_ignored_handle_delegates_to_no_claim_and_wakes_its_claim() -> None:
    assert Scene(served()).changed(bound(), labelled(bound())) == {"ResourceHandle/guid-b7k2q", "ResourceClaim/mine"}


async def test_a_claim_is_woken_by_the_end_of_an_ignored_handle_being_deleted() -> None:
    assert "ResourceClaim/mine" in Scene(served()).changed(deleting(labelled(bound())), None)


@pytest.mark.parametrize("writer", ["kubectl", "perdure"])
def test_a_bound_handle_that_is_paused_or_goes_on_wakes_its_claim(writer: str) -> None:
    before, held = bound(), annotated(bound(), **{PAUSED: "true"})
    assert Scene(served()).changed(written(before, "perdure"), written(held, writer)) == {"ResourceClaim/mine"}
    assert Scene(served()).changed(written(held, "perdure"), written(before, writer)) == {"ResourceClaim/mine"}


async def test_a_paused_handle_on_its_way_out_goes_on_at_once_although_its_end_has_come() -> None:
    over = deleting(bound(lifespan={"end": "2026-11-21T12:00:00Z"}))
    scene = Scene()
    scene.changed(annotated(over, **{PAUSED: "true"}), over)
    assert [key.name for key in scene.watcher.queue.outstanding()] == ["guid-b7k2q"]


def test_a_free_handle_carries_itself() -> None:
    assert Scene().changed(handle(), edited(handle(), "metadata.generation", 2)) == {"ResourceHandle/guid-b7k2q"}


def test_a_handle_that_the_binder_made_is_no_news_to_it() -> None:
    assert Scene(claim()).changed(None, ours(bound())) == set()


def test_a_handle_that_others_made_for_a_claim_is_news() -> None:
    assert Scene(claim()).changed(None, written(bound(), "kubectl")) == {"ClaimBinder"}


# Claims.


def test_whatever_others_write_into_a_status_is_news() -> None:
    patched = edited(served(), "status.approval", {"state": "approved"})
    assert Scene().changed(served(), patched) == {"ResourceClaim/mine"}


async def test_a_status_blanked_by_others_wakes_the_binder() -> None:
    assert Scene().changed(served(), edited(served(), "status", {})) == {"ClaimBinder"}


def test_fields_that_frameworks_store_in_a_status_are_no_news() -> None:
    assert Scene().changed(served(), edited(served(), "status.kopf", {"progress": 1})) == set()
    assert Scene().changed(served(), edited(served(), "status.diffBase", "{}")) == set()


def test_the_init_annotation_is_no_news() -> None:
    assert Scene().changed(claim(), annotated(claim(), **{NAMES.init_timestamp_annotation: "now"})) == set()


def test_labels_and_annotations_are_news() -> None:
    assert Scene().changed(served(), annotated(served(), mood="bad")) == {"ResourceClaim/mine"}
    assert Scene().changed(served(), labelled(served(), "team")) == {"ResourceClaim/mine"}


def test_our_own_status_is_an_echo() -> None:
    before, after = ours(served()), ours(edited(served(), "status.ready", True))
    assert Scene(bound()).changed(before, after) == set()


async def test_a_claim_that_is_gone_leaves_its_handle_to_itself() -> None:
    assert "ResourceHandle/guid-b7k2q" in Scene(bound()).changed(deleting(served()), None)


def test_a_claim_that_is_left_alone_leaves_its_handle_to_itself() -> None:
    assert "ResourceHandle/guid-b7k2q" in Scene(bound()).changed(served(), labelled(served()))


def test_a_claim_that_is_looked_after_again_takes_its_handle_back() -> None:
    assert Scene(bound()).changed(labelled(served()), served()) == {"ResourceClaim/mine"}


# Handles.


def test_a_handle_that_becomes_ready_wakes_its_pool() -> None:
    scene = Scene(pool())
    before, after = handle(**POOLED), ours(handle(status=READY, **POOLED))
    assert scene.changed(ours(before), after) == {"ResourcePool/spare"}


def test_a_bound_handle_that_becomes_ready_does_not_wake_its_pool() -> None:
    scene = Scene(pool(), served())
    assert scene.changed(bound(**POOLED), bound(status=READY, **POOLED)) == {"ResourceClaim/mine"}


async def test_a_handle_that_is_taken_wakes_its_pool_though_we_took_it() -> None:
    scene = Scene(pool(), claim())
    taken = edited(bound(**POOLED), "metadata.generation", 2)
    assert scene.changed(ours(handle(**POOLED)), ours(taken)) == {"ResourcePool/spare"}


async def test_a_handle_that_its_pool_has_just_made_wakes_neither() -> None:
    assert Scene(pool()).changed(None, ours(handle(**POOLED))) == set()
    assert "ResourcePool/spare" in Scene(pool()).changed(None, written(handle(**POOLED), "kubectl"))


def test_a_free_handle_on_its_way_out_wakes_its_pool() -> None:
    scene = Scene(pool())
    assert "ResourcePool/spare" in scene.changed(
        handle(status=READY, **POOLED), deleting(handle(status=READY, **POOLED))
    )


async def test_a_new_free_handle_wakes_the_binder_while_claims_wait() -> None:
    assert "ClaimBinder" in Scene(claim()).changed(None, ours(handle()))
    assert "ClaimBinder" not in Scene(served()).changed(None, ours(handle()))


async def test_a_free_handle_that_goes_on_after_a_pause_may_be_taken_and_given_up_at_once() -> None:
    held = annotated(handle(**POOLED), **{PAUSED: "true"})
    assert "ClaimBinder" not in Scene(claim(), pool()).changed(None, ours(held))
    woken = Scene(claim(), pool()).changed(held, handle(**POOLED))
    assert woken == {"ClaimBinder", "ResourcePool/spare", "ResourceHandle/guid-b7k2q"}


def test_a_free_handle_whose_spec_changes_may_fit_a_claim_now() -> None:
    assert "ClaimBinder" in Scene(claim()).changed(handle(), edited(handle(), "metadata.generation", 2))


def test_a_free_handle_that_becomes_ready_fits_no_claim_better_than_before() -> None:
    assert "ClaimBinder" not in Scene(claim()).changed(handle(), handle(status=READY))


def test_a_handle_that_is_gone_wakes_the_claims_that_name_it() -> None:
    assert "ResourceClaim/mine" in Scene(served()).changed(handle(), None)
    assert "ResourceClaim/mine" in Scene(served()).changed(bound(), None)


async def test_a_handle_that_a_person_takes_from_its_claim_wakes_the_claim_that_names_it() -> None:
    anothers = edited(bound(), "spec.resourceClaim.name", "anothers")
    for taken in (handle(), anothers):
        after = written(edited(taken, "metadata.generation", 2), "kubectl")
        assert "ResourceClaim/mine" in Scene(served()).changed(bound(), after)


async def test_a_handle_that_the_binder_has_just_bound_does_not_wake_its_claim() -> None:
    bind = ours(edited(bound(), "metadata.generation", 2))
    assert Scene(served()).changed(ours(handle()), bind) == set()


# Pools, scalings, namespaces.


def test_a_pool_wakes_only_itself() -> None:
    scene = Scene(handle(**POOLED), claim())
    assert scene.changed(pool(), edited(pool(), "metadata.generation", 2)) == {"ResourcePool/spare"}


def test_a_scaling_wakes_its_pool_unless_the_pool_wrote_it() -> None:
    assert Scene(pool()).changed(None, scaling()) == {"ResourcePool/spare"}
    assert Scene(pool()).changed(ours(scaling()), ours(scaling(count=1))) == set()
    assert Scene(pool()).changed(ours(scaling()), written(scaling(count=1), "kubectl")) == {"ResourcePool/spare"}


def test_another_requester_wakes_the_claims_of_the_namespace_that_have_a_handle() -> None:
    assert Scene(served()).changed(namespace(), namespace("ada")) == {"ResourceClaim/mine"}
    assert Scene(claim()).changed(namespace(), namespace("ada")) == set()
    assert Scene(served()).changed(namespace("ada"), labelled(namespace("ada"), "team")) == set()


# Providers.


async def test_a_provider_wakes_what_uses_it() -> None:
    scene = Scene(handle(entry("base")), pool(provider={"name": "base"}), served(provider={"name": "other"}))
    woken = scene.changed(provider(), edited(provider(), "spec.override", {"kind": "Another"}))
    assert woken == {"ResourceHandle/guid-b7k2q", "ResourcePool/spare"}


async def test_a_provider_wakes_the_claim_for_the_handle_that_it_holds() -> None:
    scene = Scene(served(), bound(entry("base")))
    assert scene.changed(provider(), edited(provider(), "spec.override", {"kind": "Another"})) == {"ResourceClaim/mine"}


async def test_a_provider_wakes_what_uses_it_through_links() -> None:
    scene = Scene(
        served(provider={"name": "top"}),
        provider("top", linkedResourceProviders=[{"name": "middle"}]),
        provider("middle", linkedResourceProviders=[{"name": "base"}]),
    )
    assert scene.changed(provider(), edited(provider(), "spec.override", {"kind": "Another"})) == {"ResourceClaim/mine"}


async def test_providers_that_link_to_each_other_end() -> None:
    ring = provider("other", linkedResourceProviders=[{"name": "base"}])
    subject = provider("base", linkedResourceProviders=[{"name": "other"}])
    scene = Scene(ring, served(provider={"name": "other"}))
    assert scene.changed(subject, edited(subject, "spec.override", {"kind": "Another"})) == {"ResourceClaim/mine"}


async def test_a_condition_of_a_provider_wakes_nothing() -> None:
    shown = edited(edited(provider(), "status.conditions", [{"type": "VarsAreTemplates"}]), "metadata.generation", 2)
    assert Scene(served(), claim(), handle(entry("base"))).changed(provider(), shown) == set()


async def test_a_provider_wakes_the_binder_while_claims_wait_for_any() -> None:
    assert Scene(claim()).changed(None, provider()) == {"ClaimBinder"}
    assert Scene(claim()).changed(provider(), None) == {"ClaimBinder"}
    assert Scene(served()).changed(None, provider()) == set()


@pytest.mark.parametrize(
    ("entries", "woken"),
    [
        ([{"template": config_map()}], {"ResourceClaim/mine"}),
        ([{"template": config_map(), "provider": {"name": "other"}}], set()),
    ],
    ids=["without a provider", "with its provider"],
)
async def test_a_provider_wakes_a_bound_claim_with_a_resource_that_lacks_one(entries: Any, woken: set[str]) -> None:
    assert Scene(served(resources=entries)).changed(None, provider(match={"kind": "ConfigMap"})) == woken


async def test_a_provider_does_not_wake_a_bound_claim_whose_status_names_another() -> None:
    held = edited(served(resources=[{"template": config_map()}]), "status.resources", [entry("other")])
    assert Scene(held).changed(None, provider(match={"kind": "ConfigMap"})) == set()


async def test_a_burst_of_edits_is_one_wake_each_after_it() -> None:
    scene = Scene(served(provider={"name": "base"}))
    for generation in range(2, 6):
        scene.changed(provider(), edited(provider(), "spec.override", {"kind": f"Other{generation}"}))
    queue = scene.watcher.queue
    assert not queue.outstanding()
    assert len(queue) == 1
    async with asyncio.timeout(5):
        await queue.arrived.wait()
    assert [key.name for key in queue.outstanding()] == ["mine"]


async def test_edits_wake_what_names_the_provider_when_they_are_gathered() -> None:
    scene = Scene(claim(provider={"name": "base"}))
    assert scene.changed(provider(), edited(provider(), "spec.override", {"kind": "Other"})) == {"ClaimBinder"}
    scene.know(served(provider={"name": "base"}))
    pooled = edited(handle(entry("base"), **POOLED), "metadata.name", "guid-new")
    scene.know(edited(pooled, "metadata.uid", "new"))
    queue = scene.watcher.queue
    async with asyncio.timeout(5):
        await queue.arrived.wait()
    assert {key.name for key in queue.outstanding()} == {"mine", "guid-new"}
    assert len(queue) == 2, "nothing is gathered any more"


# Managed objects.


def test_a_managed_object_wakes_the_lifecycle_of_its_handle() -> None:
    assert Scene(handle()).changed(resource("1"), resource("2")) == {"ResourceHandle/guid-b7k2q"}
    assert Scene(bound(), served()).changed(resource("1"), resource("2")) == {"ResourceClaim/mine"}
    assert Scene(bound(), claim()).changed(resource("1"), resource("2")) == {"ClaimBinder"}


def test_writes_of_handles_into_a_managed_object_are_no_news() -> None:
    assert Scene(handle()).changed(None, by_handles(resource())) == set()
    assert Scene(handle()).changed(by_handles(resource("1")), by_handles(resource("2"))) == set()


def test_our_write_to_a_managed_object_with_its_own_lifecycle_wakes_it() -> None:
    made, served = by_handles(resource("1")), ours(resource("2"))
    served["metadata"]["managedFields"] += made["metadata"]["managedFields"]
    for before, after in ((None, served), (made, served), (served, edited(served, "metadata.resourceVersion", "3"))):
        assert Scene(handle()).changed(before, after) == {"ResourceHandle/guid-b7k2q"}


def test_writes_of_handles_into_an_object_are_news_to_its_own_lifecycle() -> None:
    before = ours(served())
    after = edited(before, "metadata.generation", 2)
    after["metadata"]["managedFields"] = by_handles(after)["metadata"]["managedFields"]
    assert Scene().changed(before, after) == {"ResourceClaim/mine"}


def test_the_deletion_of_a_managed_object_is_news_whichever_process_wrote_last() -> None:
    scene = Scene(handle())
    gone = deleting(by_handles(resource("2")))
    assert scene.changed(by_handles(resource("1")), gone) == {"ResourceHandle/guid-b7k2q"}
    assert Scene(handle()).changed(by_handles(resource()), None) == {"ResourceHandle/guid-b7k2q"}


def test_an_object_that_loses_our_annotations_is_news() -> None:
    assert Scene(handle()).changed(resource("1"), resource("2", of="")) == {"ResourceHandle/guid-b7k2q"}


def test_a_handle_that_waits_for_anothers_object_learns_that_it_is_gone() -> None:
    recorded = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "things", "name": "thing"}
    waits = edited(handle(entry("base", reference=recorded)), "metadata.name", "guid-waits")
    assert Scene(handle(), waits).changed(resource(), None) == {
        "ResourceHandle/guid-b7k2q",
        "ResourceHandle/guid-waits",
    }
    assert Scene(waits).changed(None, resource(of="")) == {"ResourceHandle/guid-waits"}


def test_objects_without_an_owner_are_no_news() -> None:
    assert Scene(handle()).changed(resource("1", of=""), resource("2", of="")) == set()
    known = [Scene().seen(resource(version, of="")).fingerprint for version in "12"]
    assert known[0] == known[1], "nothing is looked up for the changes of the many objects that belong to no handle"


def test_objects_of_another_installation_have_no_owner_here() -> None:
    others = [
        annotated(resource(version), **{NAMES.resource_handle_namespace_annotation: "poolboy-dev"}) for version in "12"
    ]
    assert Scene(handle()).changed(others[0], others[1]) == set()
    assert Scene(handle()).changed(None, others[0]) == set()


async def test_an_object_deleted_with_its_handle_wakes_the_handle_only_seconds_later() -> None:
    for going in (None, deleting(resource("2"))):
        scene = Scene(deleting(handle()))
        assert scene.changed(resource("1"), going) == set()
        assert [key.name for key in scene.watcher.queue.held] == ["guid-b7k2q"]
    assert Scene(handle()).changed(resource("1"), None) == {"ResourceHandle/guid-b7k2q"}, "it goes on"


def test_a_handle_declares_the_kinds_that_its_resources_are() -> None:
    recorded = {"apiVersion": "example.com/v1", "kind": "Thing", "namespace": "things", "name": "a"}
    entries = [entry("base", template=config_map(name)) for name in "xy"]
    found = declared(handle(*entries, entry("base", reference=recorded)))
    assert [each.name for each in found] == ["Thing of example.com/v1, managed", "ConfigMap of v1, managed"]
    assert [each.kind.api_version for each in found] == ["example.com/v1", "v1"]


def test_namespaces_are_watched_while_there_are_claims() -> None:
    for each in (claim(), ours(claim())):
        assert "Namespaces of claims" in {one.name for one in ENTRIES["ResourceClaim"].declared(Scene().seen(each))}
    assert "Namespace" not in {each.kind.name for each in WATCHED}


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"apiVersion": "v1\nv2", "kind": "X"},
        {"apiVersion": "../v1", "kind": "X"},
        {"apiVersion": "v1", "kind": "a b"},
        {"apiVersion": f"{'a' * 60}!", "kind": "X"},
        {"apiVersion": f"{'apps.' * 30}example.com/V1", "kind": "X"},
    ],
)
def test_a_text_that_can_be_no_kind_is_not_searched(odd: Obj) -> None:
    assert not declared(handle(entry("base", template=odd)))


def test_a_handle_whose_object_was_deleted_during_downtime_is_woken() -> None:
    thing = {"namespace": "things", "name": "thing"}
    recorded = {"apiVersion": "v1", "kind": "ConfigMap", **thing}
    others = [{**recorded, "apiVersion": "example.com/v1"}, {**recorded, "kind": "Secret"}]
    entries = [entry("base", reference=each) for each in others]
    not_made = edited(handle(*entries, entry("base", template=config_map("x"))), "metadata.name", "guid-other")
    scene = Scene(handle(entry("base", reference=recorded)), not_made)
    missing = ENTRIES["ConfigMap"].missing
    assert {key.name for key in missing(scene.watcher.index)} == {"guid-b7k2q"}
    scene.know(resource())
    assert missing(scene.watcher.index) == set()


# After a start.


def entry_of(status: Obj) -> Obj:
    recorded = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "things", "name": "thing"}
    return handle(entry("base", reference=recorded), status={"resources": [status]})


@pytest.mark.parametrize(
    ("known", "settled"),
    [
        (claim(), False),
        (claim(SERVED), False),
        (served(), True),
        (edited(served(), "status.lifespan", {}), False),
        (annotated(served(), **{"perdure.dev/retry": "1"}), False),
        (annotated(served(), **{"perdure.dev/retry": "1", "perdure.dev/retried": "1"}), True),
        (deleting(served()), False),
        (claim({"resourceHandle": {"name": "x", "detached": True}}), True),
        (labelled(claim()), True),
        (edited(labelled(claim()), "metadata.finalizers", [NAMES.finalizer]), False),
        (handle(), False),
        (entry_of({"name": "a"}), True),
        (entry_of({"waitingFor": "Linked ResourceProvider"}), False),
        (handle(entry("base"), status={"resources": [{"waitingFor": "ResourceClaim"}]}), True),
        (bound(entry("base"), status={"resources": [{"waitingFor": "ResourceClaim"}]}), False),
        (handle(entry("base"), status={"resources": [{}]}), False),
        (pool(), False),
        (scaling(state="done"), True),
        (scaling(state="waiting"), False),
        (provider(), True),
        (namespace("ada"), True),
    ],
)
def test_states_that_show_a_settled_object(known: Obj, settled: bool) -> None:
    assert Scene().seen(known).settled is settled


def test_after_a_start_the_binder_serves_every_claim_without_a_handle() -> None:
    assert Scene().started(claim()) == {"ClaimBinder"}


def test_after_a_start_a_claim_is_woken_for_the_handle_that_it_misses() -> None:
    scene = Scene(served())
    stranger = edited(handle(entry("base", reference={}), status={}), "metadata.name", "guid-other")
    assert "ResourceClaim/mine" in scene.started(stranger)


def test_after_a_start_a_handle_is_woken_for_the_claim_that_it_misses() -> None:
    stranger = edited(served(), "metadata.name", "another")
    assert "ResourceHandle/guid-b7k2q" in Scene(bound()).started(stranger)


def test_a_view_is_wanted_for_each_kind_and_namespace_with_resources() -> None:
    thing = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "things"}
    of_cluster = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "x"}
    references = [{**thing, "name": "a"}, {**thing, "name": "b"}, of_cluster]
    scene = Scene(handle(*(entry("base", reference=reference) for reference in references)))
    assert wanted_views(scene.watcher.index) == {
        watch_name("v1", "ConfigMap", "things"): {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "things"},
        watch_name("example.com/v1", "Thing"): {"apiVersion": "example.com/v1", "kind": "Thing"},
    }


async def test_a_view_that_the_api_server_finds_invalid_blocks_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_watches, "ROUND", 0.0)
    monkeypatch.setattr(resource_watches, "BETWEEN_WRITES", 0.0)
    made: list[str] = []

    class Cluster:
        async def list(self, *_: object) -> Listing:
            return Listing([], "1")

        async def create(self, kind: object, obj: Obj, *_: object) -> None:
            made.append(obj["spec"]["namespace"])
            if made == ["Not a name"]:
                raise Invalid("metadata.name: Invalid value")

    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "namespace": where, "name": "a"} for where in ("Not a name", "things")
    ]
    index = Scene(handle(*(entry("base", reference=reference) for reference in references))).watcher.index
    with suppress(TimeoutError):
        async with asyncio.timeout(0.2):
            await resource_watches.keep_views("poolboy", cast(Any, Cluster()), index)
    assert made == ["Not a name", "things"]


# Numbers.


def numbers(family: str, *known: Obj) -> dict[tuple[str, ...], float]:
    scene = Scene(*known)
    found = [one for one in families(scene.watcher.index) if one.name == family]
    assert len(found) == 1
    return {tuple(sample.labels.values()): sample.value for sample in found[0].samples}


def named(each: Obj, name: str) -> Obj:
    return edited(each, "metadata.name", name)


def test_a_pools_numbers_are_counted_from_its_free_handles() -> None:
    known = (
        pool(minAvailable=3),
        named(handle(status=READY, **POOLED), "a"),
        named(handle(**POOLED), "b"),
        named(bound(status=READY, **POOLED), "c"),
        named(deleting(handle(status=READY, **POOLED)), "d"),
        named(handle(status=READY), "e"),
    )
    shown = {name: numbers(f"perdure_pool_{name}", *known)["poolboy", "spare"] for name in NUMBERS}
    assert shown == {"min_available": 3, "available": 2, "ready": 1, "unready": 1}


def test_lifecycles_are_counted_by_the_phase_that_they_show() -> None:
    known = (claim(), named(edited(served(), "status.ready", True), "ready"), named(labelled(claim()), "ignored"))
    assert numbers("perdure_lifecycles", *known, handle(), pool(minAvailable=2)) == {
        ("ResourceClaim", "Unbound"): 1,
        ("ResourceClaim", "Ready"): 1,
        ("ResourceClaim", "Ignored"): 1,
        ("ResourceHandle", "FreeNotReady"): 1,
        ("ResourcePool", "Filling"): 1,
    }


STALLED = {"conditions": [{"type": "Stalled", "status": "True", "reason": "TemplateFailed", "message": "no"}]}


def test_a_fault_is_counted_as_a_phase_of_its_own_until_it_is_corrected() -> None:
    corrected = {"conditions": [{**STALLED["conditions"][0], "status": "False"}]}
    known = (edited(served(), "status.conditions", STALLED["conditions"]), handle(status={**READY, **corrected}))
    stalled_pool = {**pool(minAvailable=2), "status": STALLED}
    assert numbers("perdure_lifecycles", *known, stalled_pool) == {
        ("ResourceClaim", "Stalled"): 1,
        ("ResourceHandle", "FreeReady"): 1,
        ("ResourcePool", "Stalled"): 1,
    }


def test_a_family_that_several_areas_publish_is_shown_once() -> None:
    names = [family.name for family in families(Index())]
    assert sorted(names) == sorted(set(names))


# Ends that are being carried out

PAST, FUTURE = "2026-11-20T12:00:00Z", "2999-01-01T00:00:00Z"


class Carrying(Scene):
    """A scene with one claim that has a handle with a resource."""

    def __init__(self, end: str, asked: str = "", *, deleting_claim: bool = False) -> None:
        held = served(lifespan={"end": asked}) if asked else served()
        held = edited(held, "status.lifespan.end", end)
        self.claim = deleting(held) if deleting_claim else held
        self.handle = bound(lifespan={"end": end})
        super().__init__(self.claim, self.handle)

    def left(self) -> set[str]:
        """Who is woken only later."""
        return {f"{key.kind}/{key.name}" for key in self.watcher.queue.held}


@pytest.mark.parametrize(
    "scene",
    [
        lambda: Carrying(PAST),
        lambda: Carrying(FUTURE, asked=PAST),
        lambda: Carrying(FUTURE, deleting_claim=True),
    ],
    ids=["the end has come", "the end asked for has come", "the claim is being deleted"],
)
async def test_the_steps_of_an_end_are_left_to_who_carries_it_out(scene: Any) -> None:
    on = scene()
    for before, after in (
        (on.handle, deleting(on.handle)),
        (resource(), None),
        (on.claim, deleting(on.claim)),
        (deleting(on.handle), None),
        (deleting(on.claim), None),
    ):
        assert on.changed(before, after) == set()
        assert on.left() == {"ResourceClaim/mine"}


@pytest.mark.parametrize("end", [FUTURE, "", "soon"])
async def test_a_deletion_without_such_a_cause_is_reported_at_once(end: str) -> None:
    on = Carrying(end)
    assert on.changed(on.handle, deleting(on.handle)) == {"ResourceClaim/mine"}
    assert on.left() == set()
    on = Carrying(end)
    assert on.changed(on.claim, deleting(on.claim)) == {"ResourceClaim/mine"}


async def test_an_object_that_vanishes_without_having_been_marked_is_reported_at_once() -> None:
    on = Carrying(PAST)
    assert on.changed(on.handle, None) == {"ResourceClaim/mine"}


async def test_a_pool_is_notified_at_once_of_an_expired_free_handle() -> None:
    free = handle(**POOLED, lifespan={"end": PAST})
    on = Scene(pool())
    assert on.changed(free, deleting(free)) == {"ResourcePool/spare"}
    assert {key.name for key in on.watcher.queue.held} == {"guid-b7k2q"}


async def test_an_object_listed_as_deleting_is_reported_at_once() -> None:
    on = Carrying(PAST)
    assert on.changed(None, deleting(on.handle)) == {"ResourceClaim/mine"}


async def test_a_lifecycle_about_to_be_woken_is_not_left() -> None:
    on = Carrying(PAST)
    assert on.changed(on.claim, annotated(on.claim, mood="new")) == {"ResourceClaim/mine"}
    on.changed(on.handle, deleting(on.handle))
    assert (on.woken(), on.left()) == ({"ResourceClaim/mine"}, set())
