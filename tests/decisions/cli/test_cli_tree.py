"""`perdure list --tree`: each object under its owner."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from lb_objects import balancer, machine, machine_set

from domain import custom_resources as module
from domain.claims import RESOURCE_HANDLE
from domain.custom_resources import belonging_of
from domain.reading import read
from domain.resource import CustomResource
from starters.cli.listing import CARRIED, NO_LIFECYCLE, Row, branched, object_row
from starters.cli.session import Session

OWNED_MACHINE = {
    "metadata": {
        "ownerReferences": [{"kind": "LoadBalancerSet", "name": "web--shop-aaaa"}, {"kind": "Other", "name": "x"}]
    }
}


def row(kind: str, name: str, owner: str = "", *, namespace: str = "lbs", phase: str = "Ready") -> Row:
    path = f"{kind}/{namespace}/{name}"
    return Row(kind=kind, namespace=namespace, name=name, phase=phase, owner=owner, workflow_id=path)


ROWS = [
    row("LoadBalancer", "web", "Service/shop/web"),
    row("LoadBalancer", "by-hand"),
    row("LoadBalancerMachine", "web-1", "LoadBalancerSet/lbs/web-a", phase="Booting"),
    row("LoadBalancerMachine", "web-2", "LoadBalancerSet/lbs/web-a"),
    row("LoadBalancerSet", "web-a", "LoadBalancer/lbs/web"),
    row("Service", "web", namespace="shop"),
]


def drawn(rows: list[Row], *, selected: list[Row] | None = None, kind: str = "", namespace: str = "") -> list[str]:
    branches = branched(rows, rows if selected is None else selected, kind, namespace)
    return [f"{'. ' * depth}{each.kind} {each.name}" for depth, each in branches]


def test_every_object_is_listed_under_its_owner() -> None:
    assert drawn(ROWS) == [
        "LoadBalancer by-hand",
        "Service web",
        ". LoadBalancer web",
        ". . LoadBalancerSet web-a",
        ". . . LoadBalancerMachine web-1",
        ". . . LoadBalancerMachine web-2",
    ]


def test_the_branches_of_a_kind_begin_at_its_objects() -> None:
    assert drawn(ROWS, kind="LoadBalancerSet") == [
        "LoadBalancerSet web-a",
        ". LoadBalancerMachine web-1",
        ". LoadBalancerMachine web-2",
    ]


def test_a_namespace_limits_where_branches_begin_and_not_where_they_go() -> None:
    assert drawn(ROWS, namespace="shop")[0] == "Service web"
    assert len(drawn(ROWS, namespace="shop")) == 5


def test_of_a_phase_the_way_to_its_objects_is_shown() -> None:
    selected = [each for each in ROWS if each.phase == "Booting"]
    assert drawn(ROWS, selected=selected, kind="LoadBalancer") == [
        "LoadBalancer web",
        ". LoadBalancerSet web-a",
        ". . LoadBalancerMachine web-1",
    ]


def test_an_object_whose_owner_is_missing_begins_a_branch() -> None:
    assert drawn([row("LoadBalancerSet", "a", "LoadBalancer/lbs/gone")]) == ["LoadBalancerSet a"]


def test_objects_that_own_each_other_end() -> None:
    rows = [row("LoadBalancer", "a", "LoadBalancer/lbs/b"), row("LoadBalancer", "b", "LoadBalancer/lbs/a")]
    assert drawn(rows, kind="LoadBalancer") == [
        "LoadBalancer a",
        ". LoadBalancer b",
        "LoadBalancer b",
        ". LoadBalancer a",
    ]


@pytest.mark.parametrize(
    ("obj", "owner"),
    [
        (balancer(), "Service/web/shop"),
        (balancer(metadata={"annotations": {"yawol.stackit.cloud/serviceName": None}}), ""),
        (machine_set(), "LoadBalancer/lbs/web--shop"),
        (machine(**OWNED_MACHINE), "LoadBalancerSet/lbs/web--shop-aaaa"),  # type: ignore[arg-type]
        (machine(), ""),
    ],
)
def test_load_balancers_name_their_owner(obj: CustomResource, owner: str) -> None:
    assert belonging_of(obj.kind_of, obj.model_dump(mode="json", by_alias=True, exclude_unset=True)).owner == owner


@pytest.mark.parametrize(
    ("spec", "phase", "owner"),
    [
        ({"resourceClaim": {"namespace": "users", "name": "mine"}}, CARRIED, "ResourceClaim/users/mine"),
        ({}, NO_LIFECYCLE, ""),
        ({"resources": "none"}, NO_LIFECYCLE, ""),  # it cannot be read
    ],
)
def test_an_object_is_read_once_for_its_row(
    monkeypatch: pytest.MonkeyPatch, spec: dict[str, Any], phase: str, owner: str
) -> None:
    readings: list[object] = []

    def counted(model: type[CustomResource], obj: Mapping[str, object]) -> object:
        readings.append(obj)
        return read(model, obj)

    monkeypatch.setattr(module, "read", counted)
    handle = {"metadata": {"namespace": "poolboy", "name": "guid-a", "uid": "a"}, "spec": spec}
    session = cast(Session, SimpleNamespace(settings=SimpleNamespace(cluster="")))
    found = object_row(session, RESOURCE_HANDLE, handle)
    assert (found.phase, found.owner, len(readings)) == (phase, owner, 1)
