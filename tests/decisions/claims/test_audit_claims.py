"""What the audit of resource claims finds: a world that fits, and what is wrong with it, one thing at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest
from claim_domain import NAMES

from domain.claims import RESOURCE_WATCH
from domain.identity import Kind
from engine.errors import Absent, ApiError, Denied
from engine.kube.api import Listing
from engine.settings import Settings
from starters.cli.audits import audits
from starters.cli.audits.claims import Snapshot, audit, findings, kinds_named

Json = dict[str, Any]
DELETED = {"deletionTimestamp": "2026-11-21T12:00:00Z"}
IGNORED = {"labels": {NAMES.ignore_label: ""}}


def obj(kind: str, namespace: str, name: str, *, metadata: Json | None = None, **parts: Any) -> Json:
    return {"kind": kind, "metadata": {"namespace": namespace, "name": name, "uid": name, **(metadata or {})}, **parts}


def claim(name: str = "mine", held: str = "guid-aaaaa", *, metadata: Json | None = None, **shown: Any) -> Json:
    status = {"resourceHandle": {"name": held, **shown}} if held else {}
    return obj("ResourceClaim", "users", name, metadata=metadata, status=status)


def handle(
    name: str = "guid-aaaaa", holder: str = "mine", things: tuple[str, ...] = ("thing",), metadata: Json | None = None
) -> Json:
    entries = [{"reference": {"kind": "ConfigMap", "namespace": "labs", "name": each}} for each in things]
    held: Json = {"resourceClaim": {"namespace": "users", "name": holder}} if holder else {}
    return obj("ResourceHandle", "poolboy", name, metadata=metadata, spec={"resources": entries, **held})


def thing(name: str = "thing", of: str = "guid-aaaaa", *, index: int = 0, **metadata: Any) -> Json:
    marks = {f"{NAMES.domain}/resource-handle-name": of, f"{NAMES.domain}/resource-index": str(index)}
    return obj("ConfigMap", "labs", name, metadata={"annotations": marks, **metadata})


POOL = obj("ResourcePool", "poolboy", "warm")
FREE = handle("guid-fffff", "", ("spare",))
RUNNING = frozenset(
    {
        "ResourceClaim/users/mine/mine",
        "ResourceHandle/poolboy/guid-fffff/guid-fffff",
        "ResourcePool/poolboy/warm/warm",
    }
)
WHOLE = Snapshot(NAMES, (claim(),), (handle(), FREE), (POOL,), (thing(), thing("spare", "guid-fffff")), RUNNING)


def world(**changes: Any) -> Snapshot:
    """The whole world, changed."""
    return dataclasses.replace(WHOLE, **changes)


def lines_of(found: Snapshot) -> list[str]:
    return [f"{each.subject}: {each.problem}" for each in findings(found)]


def running(*more: str) -> frozenset[str]:
    return RUNNING | {f"ResourceClaim/users/{name}/{name}" for name in more}


@pytest.mark.parametrize(
    "found",
    [
        WHOLE,
        Snapshot(NAMES),
        world(claims=(claim(), claim("waiting", ""))),
        world(claims=(claim(), claim("gone", "guid-zzzzz", detached=True)), workflows=running("gone")),
        world(claims=(claim(), claim("left-alone", "guid-zzzzz", metadata=IGNORED))),
        world(claims=(claim(), claim("going", "guid-zzzzz", metadata=DELETED)), workflows=running("going")),
        world(things=(*WHOLE.things, thing("extra", deletionTimestamp="2026-11-21T12:00:00Z"))),
        world(workflows=RUNNING | {f"north/{each}" for each in RUNNING}),
        Snapshot(NAMES, cluster="north", workflows=RUNNING | {f"north/east/{each}" for each in RUNNING}),
    ],
)
def test_a_world_that_fits_has_no_findings(found: Snapshot) -> None:
    assert lines_of(found) == []


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            world(claims=(), workflows=running() - {"ResourceClaim/users/mine/mine"}),
            [
                "ResourceHandle poolboy/guid-aaaaa: bound to ResourceClaim users/mine, which does not exist",
                "ResourceHandle poolboy/guid-aaaaa: it has no running workflow",
            ],
        ),
        (
            world(claims=(claim(held=""),), workflows=RUNNING),
            ["ResourceHandle poolboy/guid-aaaaa: bound to ResourceClaim users/mine, which names no handle"],
        ),
        (
            world(handles=(FREE,), things=WHOLE.things[1:]),
            ["ResourceClaim users/mine: names ResourceHandle guid-aaaaa, which does not exist"],
        ),
        (
            world(claims=(claim(), claim("late")), workflows=running("late")),
            [
                "ResourceClaim users/late: names ResourceHandle guid-aaaaa, which is bound to users/mine",
                "ResourceHandle guid-aaaaa: named by several claims: users/late, users/mine",
            ],
        ),
        (
            world(handles=(*WHOLE.handles, handle("guid-bbbbb", things=()))),
            [
                "ResourceHandle poolboy/guid-bbbbb: bound to ResourceClaim users/mine, which names guid-aaaaa",
                "ResourceClaim users/mine: several handles are bound to it: guid-aaaaa, guid-bbbbb",
            ],
        ),
        (
            world(things=(*WHOLE.things, thing("lost", "guid-ccccc"))),
            ["ConfigMap labs/lost: created for ResourceHandle guid-ccccc, which does not exist"],
        ),
        (
            world(things=(*WHOLE.things, thing("b"))),
            [
                "ConfigMap labs/b: created for ResourceHandle guid-aaaaa, which does not list it among its resources",
                "ResourceHandle guid-aaaaa: resource 0 exists several times: ConfigMap labs/b, ConfigMap labs/thing",
            ],
        ),
        (
            world(workflows=RUNNING - {"ResourcePool/poolboy/warm/warm"}),
            ["ResourcePool poolboy/warm: it has no running workflow"],
        ),
        (
            world(workflows=RUNNING | {"ResourceClaim/users/mine/former"}),
            ["workflow ResourceClaim/users/mine/former: runs for an object that is gone"],
        ),
    ],
)
def test_each_inconsistency_is_reported(found: Snapshot, expected: list[str]) -> None:
    assert lines_of(found) == expected


def test_workflows_of_other_clusters_are_ignored() -> None:
    prefixed = frozenset(f"blue/{id_}" for id_ in RUNNING)
    assert lines_of(world(cluster="blue", workflows=prefixed | {"ResourceClaim/users/theirs/theirs"})) == []


def test_kinds_are_those_of_handles_watches_and_providers_but_no_templates() -> None:
    held: Json = {"spec": {"resources": [{"template": {"apiVersion": "v1", "kind": "ConfigMap"}}]}}
    shown: Json = {"status": {"resources": [{"reference": {"apiVersion": "apps/v1", "kind": "Deployment"}}]}}
    watch: Json = {"spec": {"apiVersion": "v1", "kind": "Namespace"}}
    provider: Json = {
        "spec": {
            "override": {"apiVersion": "example.com/v1", "kind": "Lab"},
            "template": {"definition": {"apiVersion": "v1", "kind": "{{ kind }}"}},
        }
    }
    assert kinds_named([held, shown], [watch], [provider]) == {
        ("v1", "ConfigMap"),
        ("apps/v1", "Deployment"),
        ("v1", "Namespace"),
        ("example.com/v1", "Lab"),
    }


class Cluster:
    """A session with a cluster that has no objects, and may not list one kind or does not serve it."""

    settings = Settings()

    def __init__(self, refusal: ApiError) -> None:
        self.refusal = refusal
        self.kube = self.temporal = self

    async def list(self, kind: Kind, *_: object) -> Listing:
        if kind is RESOURCE_WATCH:
            raise self.refusal
        return Listing([], "1")

    async def list_workflows(self, _: str) -> AsyncGenerator[Any, None]:
        for row in ():
            yield row


@pytest.mark.parametrize("refusal", [Absent("404 page not found"), Denied("forbidden")])
async def test_resource_watches_are_not_needed(refusal: ApiError, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("starters.cli.audits.claims.APART_SECONDS", 0.0)
    assert await audit(cast(Any, Cluster(refusal)), thorough=False) == []


def test_the_area_has_joined() -> None:
    assert "claims" in audits()
